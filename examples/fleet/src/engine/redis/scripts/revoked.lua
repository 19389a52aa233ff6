-- Until when a token is revoked.
--
-- KEYS: 5 its record.
-- ARGV: 1 and 2 what the caller knows.
local lost = another(ARGV[1], ARGV[2])
if lost then return lost end
local value = redis.call('GET', KEYS[5])
local till = value and string.sub(value, 1, 8) == epoch and struct.unpack('<I8', value, 9)
return {'until', till and till * 1000 > now and till or false}
