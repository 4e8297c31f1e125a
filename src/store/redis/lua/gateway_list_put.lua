-- Precedes the scripts that list gateways. Enters a gateway into the list, a sorted set by the time at which each counts
-- as dead, and what others need to know about it into a hash. The hash is written only when something in it changes, so that
-- whoever has read it with tracking need not read it again; removes dead gateways from both.
local SWEEP = 64 -- dead gateways that one put removes
local function list_gateway(list, infos, gateway, ttl, info)
  local clock = redis.call('TIME')
  local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
  if redis.call('TYPE', list).ok ~= 'zset' then redis.call('UNLINK', list) end
  redis.call('ZADD', list, now + ttl, gateway)
  local known = redis.pcall('HGET', infos, gateway)
  if type(known) == 'table' then redis.call('UNLINK', infos) end
  for _, dead in ipairs(redis.call('ZRANGEBYSCORE', list, '-inf', now, 'LIMIT', 0, SWEEP)) do
    redis.call('ZREM', list, dead)
    redis.call('HDEL', infos, dead)
  end
  if known ~= info then redis.call('HSET', infos, gateway, info) end
end

