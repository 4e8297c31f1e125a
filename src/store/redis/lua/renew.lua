-- Extends leases. ARGV[4]: the gateway that has them, or '' where its set of connections is kept elsewhere; then
-- for each user: the user, how many leases, and their conn_ids.
--
-- Returns one character per lease, '1' or '0'. '0': Redis no longer has the lease, or lost a part of the user's
-- keys; opening the lease again restores them.
local index, conns, renewed, heartbeat = {}, {}, {}, time_text(now)
local at = 5
while at <= #ARGV do
  select_user(ARGV[at])
  local first, count = #renewed + 1, tonumber(ARGV[at + 1])
  at = at + 2
  local complete, due = redis.call('PEXPIRE', user_connections, window) == 1, {}
  for i = first, first + count - 1 do
    local conn = ARGV[at]
    at = at + 1
    local alive = complete and redis.pcall('SISMEMBER', user_connections, conn) == 1
      and redis.call('PEXPIRE', connection_key(conn), window) == 1
      and type(redis.pcall('HSET', connection_key(conn), 'last_heartbeat', heartbeat)) == 'number'
    local record = alive and redis.call('HMGET', connection_key(conn), 'idle', 'server_id')
    local member = record and record[2] and lease_member(conn, record[1], record[2])
    alive = member and type(redis.pcall('ZSCORE', user_leases, member)) == 'string'
    renewed[i] = alive and '1' or '0'
    if alive then
      index[#index + 1], index[#index + 2] = now + window, conn .. ':' .. user
      conns[#conns + 1] = conn
      due[#due + 1], due[#due + 2] = now + window, member
    end
  end
  if #due > 0 then
    redis.call('ZADD', user_leases, unpack(due))
    redis.call('PEXPIRE', user_leases, window)
  end
  complete = complete and redis.call('PEXPIRE', user_servers, window) == 1
    and redis.call('PEXPIRE', user_presence, window + RECORD_EXTRA) == 1
  for i = first, complete and 0 or #renewed do renewed[i] = '0' end
end
if not cluster and #index > 0 then
  mend(INDEX, 'zset')
  redis.call('ZADD', INDEX, unpack(index))
  if ARGV[4] ~= '' then
    local key = 'server_connections:' .. ARGV[4]
    mend(key, 'set')
    redis.call('SADD', key, unpack(conns))
    redis.call('PEXPIRE', key, window)
  end
end
return table.concat(renewed)
