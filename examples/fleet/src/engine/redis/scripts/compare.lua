-- Stores a node's digest, and returns those of all nodes.
--
-- KEYS: 5 the digests of this place.
-- ARGV: 1 and 2 the place; 3 the node; 4 its digest; 5 how many seconds they are kept.
local lost = another(ARGV[1], ARGV[2])
if lost then return lost end
redis.call('HSET', KEYS[5], ARGV[3], ARGV[4])
redis.call('EXPIRE', KEYS[5], ARGV[5])
return {'digests', redis.call('HGETALL', KEYS[5])}
