-- The beginning of reap.lua (and its arguments): nothing is due, as in most runs. See open_first.lua.
do
  local clock = redis.call('TIME')
  local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
  local at = string.format('%.0f', now)
  local due = redis.pcall('ZRANGEBYSCORE', 'presence:v_heartbeat' .. ARGV[3], '-inf', at, 'LIMIT', '0', '1')
  local untold = redis.pcall('ZRANGEBYSCORE', 'presence:untold' .. ARGV[3], '-inf', at, 'LIMIT', '0', '1')
  if not due.err and not untold.err and #due == 0 and #untold == 0 then return {0, 0, now} end
end
