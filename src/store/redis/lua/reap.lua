-- Ends overdue leases and graces, at most ARGV[4] of them, on a single server, unless it is later than ARGV[5] in ms.
-- Returns how many are still overdue, how many values were mended, the time in ms, and the transitions.
mend(INDEX, 'zset')
if now > tonumber(ARGV[5]) then return {redis.call('ZCOUNT', INDEX, '-inf', now), mended, now} end
local result = {0, 0, now}
local rows = redis.call('ZRANGEBYSCORE', INDEX, '-inf', now, 'WITHSCORES', 'LIMIT', 0, tonumber(ARGV[4]))
for i = 1, #rows, 2 do
  local conn, name = string.match(rows[i], '^([^:]*):(.+)$')
  redis.call('ZREM', INDEX, rows[i])
  if name then
    select_user(name)
    mend_user()
    if conn ~= '' then mend(connection_key(conn), 'hash') end
    local made, left_ms = expire(conn, parse_due(rows[i + 1]))
    if left_ms then redis.call('ZADD', INDEX, now + left_ms, rows[i]) end
    result[#result + 1] = made
  else
    mended = mended + 1
  end
end
result[1], result[2] = redis.call('ZCOUNT', INDEX, '-inf', now), mended
return result
