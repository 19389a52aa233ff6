-- Puts a snapshot into the list.
--
-- KEYS: 5 the snapshot; 6 the list.
-- ARGV: 1 and 2 its place; 3 how many chunks it has; 4 its name in the list; 5 its description.
local lost = another(ARGV[1], ARGV[2])
if lost then return lost end
if redis.call('HLEN', KEYS[5]) ~= tonumber(ARGV[3]) then return {'incomplete'} end
redis.call('PERSIST', KEYS[5])
redis.call('HSET', KEYS[6], ARGV[4], ARGV[5])
return {'done'}
