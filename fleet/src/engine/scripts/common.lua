#!lua
-- The beginning of every script on the log. A script is one step: nothing comes between its commands, and the
-- append-only file has all of its writes or none.
--
-- The first line makes it a script that may write, because it does not say `flags=no-writes`. A replica refuses such
-- a script, and so does a master without enough replicas (`min-replicas-to-write`), even if it writes nothing this
-- time. So every answer comes from a master.
--
-- KEYS: 1 the fleet. All other keys begin with the same name in braces, so a cluster keeps them on one machine.
-- ARGV: 1 to 3 the place that the caller knows (epoch, position, hash); 4 the latest time that the caller allows, in
-- milliseconds since 1970.
local FLEET = KEYS[1]
local PREFIX = string.sub(FLEET, 1, -6)
local LOG, ENDS, COUNTS, OVER = PREFIX .. 'log', PREFIX .. 'ends', PREFIX .. 'live', PREFIX .. 'over'

local time = redis.call('TIME')
local clock = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local epoch, head, chain, tick, live, at, capacity, resolution, longest, waits, foreign, begun, done
-- The clock, but never before what the log has seen already.
local now = clock

local function load()
    local f = redis.call('HMGET', FLEET, 'epoch', 'head', 'chain', 'tick', 'live', 'at', 'capacity', 'resolution', 'longest',
        'waits', 'foreign', 'begun', 'done')
    epoch, chain, waits = f[1], f[3], f[10]
    head, tick, live, at = tonumber(f[2]), tonumber(f[4]), tonumber(f[5]), tonumber(f[6])
    capacity, resolution, longest, foreign = tonumber(f[7]), tonumber(f[8]), tonumber(f[9]), tonumber(f[11])
    now = math.max(clock, at or 0)
    -- A server that is killed in a write and loads the file with `aof-load-truncated yes` can leave a part of that
    -- script's writes there. When it loads the file the next time, this part runs before what came later. Then one more
    -- message was begun than the scripts have counted.
    begun, done = tonumber(f[12]) or 0, tonumber(f[13]) or 0
    if begun ~= done then
        waits = 'the engine was killed in a write, and its file has kept a part of it (aof-load-truncated is yes)'
    end
end

local function save()
    redis.call('HSET', FLEET, 'head', head, 'chain', chain, 'tick', tick, 'live', live, 'at', at, 'foreign', foreign,
        'done', begun)
end

local function id(position)
    return string.format('%.0f-0', position)
end

-- The position of the first message that is still there.
local function first()
    local messages = redis.call('XRANGE', LOG, '-', '+', 'COUNT', 1)
    return messages[1] and tonumber(string.match(messages[1][1], '^%d+')) or head + 1
end

-- The hash at a position, or nil if its message is gone.
local function chain_at(position)
    if position == head then return chain end
    if position == 0 then return '0000000000000000' end
    local messages = redis.call('XRANGE', LOG, id(position), id(position))
    return messages[1] and string.sub(messages[1][2][2], 1, 16)
end

-- The answer if this is not the log that the caller knows. Otherwise nothing.
local function refused()
    if not epoch then return {'another'} end
    if waits then return {'waits', waits} end
    local position = tonumber(ARGV[2])
    if epoch ~= ARGV[1] or head < position then return {'another', epoch, head, chain} end
    local found = chain_at(position)
    if not found then return {'gap', position, first()} end
    if found ~= ARGV[3] then return {'another', epoch, head, chain} end
end

-- The answer if the clock is later than the caller's clocks allow. Otherwise nothing.
local function early()
    if clock > tonumber(ARGV[4]) then return {'clock', clock} end
end

local function where()
    return {'head', epoch, head, chain, first(), tick, live, clock, foreign}
end

-- Removes messages that no script has written. Theirs have higher numbers (such as the time), and the stream takes no
-- lower number after them.
local function clear(is_stuck)
    local cleared = false
    while true do
        local top = redis.call('XREVRANGE', LOG, '+', '-', 'COUNT', 1)[1]
        local number = top and tonumber(string.match(top[1], '^%d+')) or 0
        if number <= head then
            if cleared or is_stuck then redis.call('XSETID', LOG, number == head and top[1] or id(head)) end
            return cleared
        end
        redis.call('XDEL', LOG, top[1])
        foreign = foreign + 1
        cleared = true
    end
end

-- The number is always the next one, whoever appends: this makes numbers dense. The field's name is the epoch. The
-- value begins with the hash of the rest and of the hash before.
local function publish(changes)
    -- The first write, and the only one that counts twice if it runs twice.
    begun = redis.call('HINCRBY', FLEET, 'begun', 1)
    local body = struct.pack('<I8', now) .. changes
    local next_chain = string.sub(redis.sha1hex(chain .. body), 1, 16)
    local done = redis.pcall('XADD', LOG, id(head + 1), epoch, next_chain .. body)
    if type(done) == 'table' and done.err then
        clear(true)
        redis.call('XADD', LOG, id(head + 1), epoch, next_chain .. body)
    end
    head, chain, at = head + 1, next_chain, now
end

-- Appends the clock's tick if it is a later one, and subtracts the entries that have expired by it.
local function advance()
    local present = math.floor(now / 1000 / resolution)
    if present <= tick then return false end
    tick = present
    publish('T' .. struct.pack('<I4', tick))
    local over = redis.call('ZRANGEBYSCORE', ENDS, '-inf', tick)
    for _, term in ipairs(over) do
        live = live - tonumber(redis.call('HGET', COUNTS, term))
        redis.call('HDEL', COUNTS, term)
    end
    redis.call('ZREMRANGEBYSCORE', ENDS, '-inf', tick)
    return true
end

-- Goes on with what there is, whatever any node knew when it told of a loss.
local function accept()
    redis.call('HSET', FLEET, 'accepted', redis.call('HGET', FLEET, 'suspected') or 0)
    redis.call('HDEL', FLEET, 'waits')
    waits = false
    if begun == done then return end
    -- The log may have a message that is not the one that was acknowledged. The record has what was acknowledged. So no
    -- message is left, one number is left out, and every node sees a gap and rebuilds its filter from the record.
    local counts = {}
    live = 0
    for _, key in ipairs(redis.call('KEYS', PREFIX .. 'token:*')) do
        local value = redis.call('GET', key)
        local term = string.sub(value, 1, 8) == epoch and struct.unpack('<I4', value, 17) or 0
        if term > tick then
            counts[term] = (counts[term] or 0) + 1
            live = live + 1
        end
    end
    redis.call('DEL', LOG, ENDS, COUNTS)
    for term, count in pairs(counts) do
        redis.call('HSET', COUNTS, term, count)
        redis.call('ZADD', ENDS, term, term)
    end
    head = head + 1
    publish('T' .. struct.pack('<I4', tick))
    save()
end

-- Until when a record is needed: an hour longer than its token and its entry, because clocks differ.
local function needed_until(till, term)
    return math.max(till, term * resolution) + 3600
end

-- Notes that a key is not needed any more after this time. (No key that matters expires by itself: then the engine's
-- clock alone would decide. A caller's clocks have agreed to the time at which `forget` runs.)
local function remember_until(seconds, kind, name)
    local minute = string.format('%.0f', math.ceil(seconds / 60))
    redis.call('ZADD', OVER, minute, minute)
    redis.call('RPUSH', PREFIX .. 'over:' .. minute, kind .. name)
end

-- Removes some keys whose time is over.
local function forget(limit)
    local minute = redis.call('ZRANGEBYSCORE', OVER, '-inf', math.floor(clock / 60000), 'LIMIT', 0, 1)[1]
    if not minute then return end
    local names = redis.call('LPOP', PREFIX .. 'over:' .. minute, limit)
    if not names then return redis.call('ZREM', OVER, minute) end
    for _, name in ipairs(names) do
        local kind, rest = string.sub(name, 1, 1), string.sub(name, 2)
        if kind == 'i' then
            redis.call('DEL', PREFIX .. 'id:' .. rest)
        else
            local value = redis.call('GET', PREFIX .. 'token:' .. rest)
            if value and string.len(value) == 20 then
                local till, term = struct.unpack('<I8I4', value, 9)
                -- If it was revoked for longer since, it is noted once more.
                if needed_until(till, term) <= clock / 1000 then redis.call('DEL', PREFIX .. 'token:' .. rest) end
            end
        end
    end
end

load()
