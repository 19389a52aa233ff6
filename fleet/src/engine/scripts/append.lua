-- Appends the changes that proposals result in.
--
-- ARGV: 5 the message's identifier; 6 for how many seconds it is remembered; 7 the time from which it is too late, in
-- milliseconds since 1970; 8 the proposals, 37 bytes each (kind, token, hash, until, end).
--
-- Except for the tick, the script first reads and decides, and then writes, the message first. So a command that
-- fails leaves nothing half done.
local no = refused()
if no then return no end

-- An identifier counts once. (What is left of another log begins with another epoch.)
local ANSWER = PREFIX .. 'id:' .. ARGV[5]
local answer = redis.call('GET', ANSWER)
if answer and string.sub(answer, 1, 8) == epoch then return {'answer', string.sub(answer, 9)} end

no = early()
if no then return no end
if now >= tonumber(ARGV[7]) then return {'late', now} end

advance()
local changes, outcomes = {}, {}
-- The new record of these tokens, by key: `false` means none. A token may come twice.
local record, changed = {}, {}
-- The change in the number of live entries, by their end.
local growth = {}

local function recorded(key)
    if record[key] == nil then
        local value = redis.call('GET', PREFIX .. 'token:' .. key)
        record[key] = false
        if value and string.sub(value, 1, 8) == epoch then
            local till, term = struct.unpack('<I8I4', value, 9)
            record[key] = {till = till, term = term}
        end
    end
    local entry = record[key]
    -- An expired entry is no longer in any filter.
    return entry and entry.term > tick and entry
end

local function set(key, entry)
    record[key] = entry
    changed[key] = true
end

local function grow(term, by)
    growth[term] = (growth[term] or 0) + by
    live = live + by
end

local function revoke(key, hash, till, term)
    local entry = recorded(key)
    if entry and entry.till >= till then return 'A' .. struct.pack('<I8', entry.till) end
    if term <= tick then return 'E' end
    if term - tick > longest then return 'L' .. struct.pack('<I4', tick + longest) end
    if not entry then
        if live >= capacity then return 'F' .. struct.pack('<I8I8', live, capacity) end
        table.insert(changes, 'I' .. hash .. struct.pack('<I4', term))
        grow(term, 1)
    elseif term > entry.term then
        table.insert(changes, 'E' .. hash .. struct.pack('<I4I4', entry.term, term))
        grow(entry.term, -1)
        grow(term, 1)
    else
        term = entry.term
    end
    set(key, {till = till, term = term})
    return 'R' .. struct.pack('<I8', till)
end

local function restore(key, hash)
    local entry = recorded(key)
    if not entry then return 'N' end
    table.insert(changes, 'R' .. hash .. struct.pack('<I4', entry.term))
    grow(entry.term, -1)
    set(key, false)
    return 'O'
end

for i = 1, string.len(ARGV[8]) / 37 do
    local kind, key, hash, till, term = struct.unpack('<c1c16c8I8I4', ARGV[8], (i - 1) * 37 + 1)
    outcomes[i] = kind == 'R' and revoke(key, hash, till, term) or kind == 'O' and restore(key, hash)
end

if #changes > 0 then publish(table.concat(changes)) end
for key in pairs(changed) do
    local entry = record[key]
    if entry then
        redis.call('SET', PREFIX .. 'token:' .. key, epoch .. struct.pack('<I8I4', entry.till, entry.term))
        remember_until(needed_until(entry.till, entry.term), 't', key)
    else
        redis.call('DEL', PREFIX .. 'token:' .. key)
    end
end
for term, by in pairs(growth) do
    local count = by ~= 0 and redis.call('HINCRBY', COUNTS, term, by)
    if count == 0 then
        redis.call('HDEL', COUNTS, term)
        redis.call('ZREM', ENDS, term)
    elseif count == by then
        -- These are the first entries with this end.
        redis.call('ZADD', ENDS, term, term)
    end
end
save()
answer = struct.pack('<I8', head) .. chain .. table.concat(outcomes)
redis.call('SET', ANSWER, epoch .. answer)
remember_until(now / 1000 + tonumber(ARGV[6]), 'i', ARGV[5])
return {'answer', answer}
