-- Extends leases. ARGV[4]: the gateway whose they are, '' where its set is kept beside; then of each user:
-- the user, how many leases, and their conn_ids.
--
-- Answers with a letter for each lease, '1' or '0'. 0: the store no longer knows it, or lost a part of what it
-- knew of the user; opening it again mends that.
local index, held, kept, heartbeat = {}, {}, {}, time_text(now)
local at = 5
while at <= #ARGV do
  choose(ARGV[at])
  local first, count = #kept + 1, tonumber(ARGV[at + 1])
  at = at + 2
  local whole = redis.call('PEXPIRE', user_connections, window) == 1
  for i = first, first + count - 1 do
    local conn = ARGV[at]
    at = at + 1
    local alive = whole and redis.pcall('SISMEMBER', user_connections, conn) == 1
      and redis.call('PEXPIRE', connection_key(conn), window) == 1
      and type(redis.pcall('HSET', connection_key(conn), 'last_heartbeat', heartbeat)) == 'number'
    kept[i] = alive and '1' or '0'
    if alive then
      index[#index + 1], index[#index + 2] = now + window, conn .. ':' .. user
      held[#held + 1] = conn
    end
  end
  whole = whole and redis.call('PEXPIRE', user_servers, window) == 1
    and redis.call('PEXPIRE', user_presence, window + RECORD_EXTRA) == 1
  for i = first, whole and 0 or #kept do kept[i] = '0' end
end
if not cluster and #index > 0 then
  mend(INDEX, 'zset')
  redis.call('ZADD', INDEX, unpack(index))
  if ARGV[4] ~= '' then
    local key = 'server_connections:' .. ARGV[4]
    mend(key, 'set')
    redis.call('SADD', key, unpack(held))
    redis.call('PEXPIRE', key, window)
  end
end
return table.concat(kept)
