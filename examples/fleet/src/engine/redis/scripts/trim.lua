-- Deletes messages.
--
-- ARGV: 1 and 2 the last message to delete.
local lost = another(ARGV[1], ARGV[2])
if lost then return lost end
redis.call('XTRIM', LOG, 'MINID', '=', id(tonumber(ARGV[2]) + 1))
return where()
