-- Stores a node's digest at the place, and returns those of all nodes.
--
-- ARGV: 5 the node; 6 its digest; 7 how many seconds they are kept.
local no = refused()
if no then return no end
local DIGESTS = PREFIX .. 'digests:' .. ARGV[2] .. ':' .. ARGV[3]
redis.call('HSET', DIGESTS, ARGV[5], ARGV[6])
redis.call('EXPIRE', DIGESTS, ARGV[7])
return {'digests', redis.call('HGETALL', DIGESTS)}
