-- Returns the messages after a place, together with the head. If there are none, the head shows whether there
-- should be some.
--
-- ARGV: 1 and 2 the place; 3 the largest number of messages.
local lost = another(ARGV[1], ARGV[2])
if lost then return lost end
local streams = redis.call('XREAD', 'COUNT', ARGV[3], 'STREAMS', LOG, id(tonumber(ARGV[2])))
local last = redis.call('XRANGE', LOG, id(tonumber(ARGV[2])), id(tonumber(ARGV[2])))
return {'messages', head, first(), streams and streams[1] and streams[1][2] or {}, last}
