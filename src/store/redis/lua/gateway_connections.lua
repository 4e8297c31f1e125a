-- Adds connections to a gateway's set of them, on a cluster. KEYS[1]: the set. ARGV: window in ms, connections.
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'set' and kind ~= 'none' then redis.call('UNLINK', KEYS[1]) end
redis.call('SADD', KEYS[1], unpack(ARGV, 2))
return redis.call('PEXPIRE', KEYS[1], ARGV[1])
