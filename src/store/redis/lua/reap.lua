-- For a single server. Ends what has run out, at most ARGV[4] of them. Answers with how many are still
-- overdue, what was mended, and the transitions.
mend(INDEX, 'zset')
local result = {0, 0}
local rows = redis.call('ZRANGEBYSCORE', INDEX, '-inf', now, 'WITHSCORES', 'LIMIT', 0, tonumber(ARGV[4]))
for i = 1, #rows, 2 do
  local conn, name = string.match(rows[i], '^([^:]*):(.+)$')
  redis.call('ZREM', INDEX, rows[i])
  if name then
    choose(name)
    mend_user()
    if conn ~= '' then mend(connection_key(conn), 'hash') end
    local transition, left = expire(conn, due_of(rows[i + 1]))
    if left then redis.call('ZADD', INDEX, now + left, rows[i]) end
    result[#result + 1] = transition
  else
    mended = mended + 1
  end
end
result[1], result[2] = redis.call('ZCOUNT', INDEX, '-inf', now), mended
return result
