#!lua
-- Takes the lease. One node at a time has it.
--
-- KEYS: 1 the lease. ARGV: 1 the node; 2 for how many milliseconds, or 0 to give it back.
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
if ARGV[2] == '0' then return redis.call('DEL', KEYS[1]) end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
