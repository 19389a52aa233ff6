-- Gives the lease back, if it is still this node's.
--
-- KEYS: 1 the lease. ARGV: 1 the node.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
