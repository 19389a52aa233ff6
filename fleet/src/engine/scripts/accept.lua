-- An operator accepts the log as it is. That holds for all that any node knew when it told of the loss.
if not epoch then return {'another'} end
redis.call('HSET', FLEET, 'accepted', redis.call('HGET', FLEET, 'suspected') or 0)
redis.call('HDEL', FLEET, 'waits')
return {'accepted', waits}
