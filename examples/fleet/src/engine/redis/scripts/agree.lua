-- Joins a fleet, or founds it.
--
-- ARGV: 1 a new epoch, used if the fleet has none; 2 the agreement, as text; 3 capacity; 4 resolution; 5 longest
-- lifetime.
local agreed = redis.call('HGET', FLEET, 'agreed')
if not agreed then
    redis.call('DEL', LOG, ENDS, COUNTS)
    redis.call('HSET', FLEET, 'epoch', ARGV[1], 'agreed', ARGV[2], 'capacity', ARGV[3], 'resolution', ARGV[4], 'longest', ARGV[5],
        'head', 0, 'tick', 0, 'live', 0)
    load()
elseif agreed ~= ARGV[2] then
    return {'disagreement', agreed}
end
advance()
save()
return where()
