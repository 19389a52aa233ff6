-- Writes a chunk of a snapshot of the place. If its writer does not finish, the whole snapshot expires by itself.
--
-- ARGV: 5 the snapshot's name; 6 the chunk's number; 7 the chunk; 8 how many seconds it is kept.
local no = refused()
if no then return no end
local CHUNKS = PREFIX .. 'snapshot:' .. ARGV[5]
redis.call('HSET', CHUNKS, ARGV[6], ARGV[7])
redis.call('EXPIRE', CHUNKS, ARGV[8])
return {'done'}
