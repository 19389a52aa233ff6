-- The beginning of every script on the log. A script is one step: nothing comes between its commands, and the
-- append-only file has all of its writes or none.
--
-- KEYS: 1 the agreement of the fleet, and where its log ends; 2 the log; 3 the ticks at which live entries end; 4
-- how many entries end at each. (A cluster must know every key that a script may use, so each script receives all
-- four, although some use fewer.)
local FLEET, LOG, ENDS, COUNTS = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local epoch, head, tick, live, capacity, resolution, longest

local function load()
    local f = redis.call('HMGET', FLEET, 'epoch', 'head', 'tick', 'live', 'capacity', 'resolution', 'longest')
    epoch = f[1]
    head, tick, live = tonumber(f[2]), tonumber(f[3]), tonumber(f[4])
    capacity, resolution, longest = tonumber(f[5]), tonumber(f[6]), tonumber(f[7])
end

local function save()
    redis.call('HSET', FLEET, 'head', head, 'tick', tick, 'live', live)
end

local function id(position)
    return string.format('%.0f-0', position)
end

-- The position of the first message that is still there.
local function first()
    local messages = redis.call('XRANGE', LOG, '-', '+', 'COUNT', 1)
    return messages[1] and tonumber(string.match(messages[1][1], '^%d+')) or head + 1
end

-- The answer if this is not the log that the caller knows, or ends before what the caller knows. Otherwise nothing.
local function another(known_epoch, known_position)
    if not epoch then return {'another'} end
    if epoch ~= known_epoch or head < tonumber(known_position) then return {'another', epoch, head} end
end

local function where()
    return {'head', epoch, head, first(), tick, now}
end

-- The number is always the next one, whoever appends: this makes numbers dense. The field's name is the epoch, so a
-- follower sees to which log the message belongs.
local function publish(changes)
    head = head + 1
    redis.call('XADD', LOG, id(head), epoch, struct.pack('<I8', now) .. changes)
end

-- Appends the clock's tick if it is a later one, and subtracts the entries that have expired by it.
local function advance()
    local present = math.floor(now / 1000 / resolution)
    if present <= tick then return end
    tick = present
    publish('T' .. struct.pack('<I4', tick))
    local over = redis.call('ZRANGEBYSCORE', ENDS, '-inf', tick)
    for _, term in ipairs(over) do
        live = live - tonumber(redis.call('HGET', COUNTS, term))
        redis.call('HDEL', COUNTS, term)
    end
    redis.call('ZREMRANGEBYSCORE', ENDS, '-inf', tick)
end

load()
