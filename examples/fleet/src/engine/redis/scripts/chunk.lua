-- Writes a chunk of a snapshot. All of it goes away by itself if its writer does not come to the end.
--
-- KEYS: 5 the snapshot.
-- ARGV: 1 and 2 its place; 3 the chunk's number; 4 the chunk; 5 for how many seconds it is kept.
local lost = another(ARGV[1], ARGV[2])
if lost then return lost end
redis.call('HSET', KEYS[5], ARGV[3], ARGV[4])
redis.call('EXPIRE', KEYS[5], ARGV[5])
return {'done'}
