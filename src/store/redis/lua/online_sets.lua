-- Updates one shard of the sets of users who are online and in a call, on a cluster. KEYS: both sets, and the
-- versions written recently. ARGV: user, version, '1' when online, '1' when in a call.
--
-- Updates by several gateways about one user may arrive in any order: the highest version wins. A version is
-- kept for as long as an update can be late.
local LATE_MS = 60000
for i, kind in ipairs({'set', 'set', 'zset'}) do
  local actual = redis.call('TYPE', KEYS[i]).ok
  if actual ~= kind and actual ~= 'none' then redis.call('UNLINK', KEYS[i]) end
end
local version = tonumber(ARGV[2])
if tonumber(redis.call('ZSCORE', KEYS[3], ARGV[1]) or '0') > version then return 0 end
redis.call('ZADD', KEYS[3], version, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', version - LATE_MS)
redis.call(ARGV[3] == '1' and 'SADD' or 'SREM', KEYS[1], ARGV[1])
redis.call(ARGV[4] == '1' and 'SADD' or 'SREM', KEYS[2], ARGV[1])
return 1
