-- Puts a snapshot of the place into the list.
--
-- ARGV: 5 the snapshot's name; 6 how many chunks it has; 7 its description.
local no = refused()
if no then return no end
local CHUNKS = PREFIX .. 'snapshot:' .. ARGV[5]
if redis.call('HLEN', CHUNKS) ~= tonumber(ARGV[6]) then return {'incomplete'} end
redis.call('PERSIST', CHUNKS)
redis.call('HSET', PREFIX .. 'snapshots', ARGV[5], ARGV[7])
return {'done'}
