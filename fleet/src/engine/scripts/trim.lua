-- Deletes the messages before the place.
local no = refused()
if no then return no end
redis.call('XTRIM', LOG, 'MINID', '=', id(tonumber(ARGV[2])))
return {'done'}
