-- The list of gateways (gateway_list_put.lua). KEYS[1]: the list, KEYS[2]: the hash. ARGV: 'put', the gateway, its ms to live
-- and its info; or 'drop' and the gateway; or 'list' and how many at most.
if ARGV[1] == 'put' then
  list_gateway(KEYS[1], KEYS[2], ARGV[2], ARGV[3], ARGV[4])
  return 1
end
if redis.call('TYPE', KEYS[1]).ok ~= 'zset' then redis.call('UNLINK', KEYS[1]) end
if ARGV[1] == 'drop' then
  redis.pcall('HDEL', KEYS[2], ARGV[2])
  return redis.call('ZREM', KEYS[1], ARGV[2])
end
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
return redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. now, '+inf', 'LIMIT', 0, ARGV[2])
