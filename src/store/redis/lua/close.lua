-- Ends a lease. ARGV[4..6]: the user, conn_id, the gateway. An unknown one, or another user's, changes nothing
-- but that the gateway no longer holds what was reaped before it let go. It stays in the index: should its open
-- still be on its way, on a connection that was lost, somebody must miss it later.
choose(ARGV[4])
mend_user()
local conn = ARGV[5]
local key = connection_key(conn)
mend(key, 'hash')
if redis.call('SISMEMBER', user_connections, conn) == 0 then
  local result = unchanged()
  if redis.call('EXISTS', key) == 0 then
    if not cluster then redis.pcall('SREM', 'server_connections:' .. ARGV[6], conn) end
    result[10] = ARGV[6]
  end
  return result
end
local server = redis.call('HGET', key, 'server_id') or ARGV[6]
redis.call('DEL', key)
if not cluster then
  redis.call('ZREM', INDEX, conn .. ':' .. user)
  redis.call('SREM', 'server_connections:' .. server, conn)
end
local live, idle = survey()
local result = settle(live, idle, time_text(now), 'disconnected', 'online')
result[10], result[11] = server, 1
return result
