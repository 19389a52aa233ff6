-- Joins a fleet, or founds it.
--
-- ARGV: 1 to 3 what the node knew of the log before, or ''; 4 the latest time; 5 a new epoch, used if the fleet has
-- none; 6 the agreement, as text; 7 capacity; 8 resolution; 9 longest lifetime; 10 when the node knew it; 11 '1' if
-- no operator has to accept a loss; 12 what the node says about it.
local agreed = redis.call('HGET', FLEET, 'agreed')
local lost = ARGV[1] ~= ''
if agreed and agreed ~= ARGV[6] then return {'disagreement', agreed} end
local is_early = early()
if is_early then return is_early end
if not agreed then
    redis.call('DEL', LOG, ENDS, COUNTS, OVER)
    redis.call('HSET', FLEET, 'epoch', ARGV[5], 'agreed', ARGV[6], 'capacity', ARGV[7], 'resolution', ARGV[8], 'longest', ARGV[9],
        'head', 0, 'chain', '0000000000000000', 'tick', 0, 'live', 0, 'at', 0, 'foreign', 0)
    load()
elseif lost then
    local position = tonumber(ARGV[2])
    local found = epoch == ARGV[1] and head >= position and chain_at(position)
    -- If the message is gone (trimmed), nobody can say, and those who were there have seen it.
    lost = found ~= ARGV[3] and found ~= nil
end
if lost and tonumber(ARGV[10]) > tonumber(redis.call('HGET', FLEET, 'accepted') or 0) then
    waits = ARGV[12] .. string.format(', and the engine\'s log ends at position %.0f', head)
    redis.call('HSET', FLEET, 'waits', waits)
    -- What the operator accepts, no node that knew it before asks about again.
    redis.call('HSET', FLEET, 'suspected',
        string.format('%.0f', math.max(tonumber(ARGV[10]), tonumber(redis.call('HGET', FLEET, 'suspected') or 0))))
end
if waits and ARGV[11] == '1' then accept() end
if waits then return {'waits', waits} end
advance()
save()
return where()
