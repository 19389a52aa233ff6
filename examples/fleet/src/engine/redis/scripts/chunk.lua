-- Writes a chunk of a snapshot. If its writer does not finish, the whole snapshot expires by itself.
--
-- KEYS: 5 the snapshot.
-- ARGV: 1 and 2 its place; 3 the chunk's number; 4 the chunk; 5 how many seconds it is kept.
local lost = another(ARGV[1], ARGV[2])
if lost then return lost end
redis.call('HSET', KEYS[5], ARGV[3], ARGV[4])
redis.call('EXPIRE', KEYS[5], ARGV[5])
return {'done'}
