-- Until when tokens are revoked.
--
-- ARGV: 5 the tokens, 16 bytes each.
local no = refused()
if no then return no end
local keys = {}
for i = 1, string.len(ARGV[5]) / 16 do keys[i] = PREFIX .. 'token:' .. string.sub(ARGV[5], i * 16 - 15, i * 16) end
local untils = {}
for i, value in ipairs(redis.call('MGET', unpack(keys))) do
    local known = value and string.sub(value, 1, 8) == epoch
    untils[i] = known and struct.unpack('<I8', value, 9) or -1
end
return {'until', untils}
