-- A part of the record.
--
-- ARGV: 5 where to go on, '0' at the beginning.
local no = refused()
if no then return no end
local found = redis.call('SCAN', ARGV[5], 'MATCH', PREFIX .. 'token:*', 'COUNT', 1000)
local records = {}
for _, key in ipairs(found[2]) do
    local value = redis.call('GET', key)
    if value and string.len(value) == 20 and string.sub(value, 1, 8) == epoch then
        table.insert(records, string.sub(key, -16) .. string.sub(value, 17, 20))
    end
end
return {'records', found[1], table.concat(records)}
