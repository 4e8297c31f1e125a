-- Ends a lease. ARGV[4..5]: the user, conn_id. An unknown one, or another user's, changes nothing.
choose(ARGV[4])
mend_user()
local conn = ARGV[5]
local key = connection_key(conn)
mend(key, 'hash')
if redis.call('SISMEMBER', user_connections, conn) == 0 then return unchanged() end
local server = redis.call('HGET', key, 'server_id') or ''
redis.call('DEL', key)
if not cluster then
  redis.call('ZREM', INDEX, conn .. ':' .. user)
  redis.call('SREM', 'server_connections:' .. server, conn)
end
local live, idle = survey()
local result = settle(live, idle, time_text(now), 'disconnected', 'online')
result[10] = server
return result
