-- The list of gateways, each scored with the time at which it counts as dead. KEYS[1]: the list. ARGV: 'put', the
-- gateway and its ms to live; or 'drop' and the gateway; or 'list' and how many at most.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'zset' and kind ~= 'none' then redis.call('UNLINK', KEYS[1]) end
if ARGV[1] == 'put' then
  return redis.call('ZADD', KEYS[1], now + ARGV[3], ARGV[2])
elseif ARGV[1] == 'drop' then
  return redis.call('ZREM', KEYS[1], ARGV[2])
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
return redis.call('ZRANGE', KEYS[1], 0, tonumber(ARGV[2]) - 1)
