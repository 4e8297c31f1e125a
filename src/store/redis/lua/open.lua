-- Registers a lease. ARGV[4..12]: the user, conn_id, user_id, device, server, connected_at, last_heartbeat,
-- idle, and since when the gateway has had the user connected, by Redis's clock ('' when it has not).
--
-- When Redis lost its data, opening a lease of a user whom the gateway has had connected makes no transition: no
-- change to offline was published. But when a reaper turned the user offline in the meantime, it wrote a last_seen
-- later than that time: then the change was published, so the return is a transition.
select_user(ARGV[4])
mend_user()
local conn, server, known_since = ARGV[5], ARGV[8], ARGV[12]
local key, shown = connection_key(conn), ARGV[11] == '1' and 'away' or 'online'
mend(key, 'hash')
redis.call('HSET', key, 'user_id', ARGV[6], 'device_id', ARGV[7], 'server_id', server,
  'connected_at', ARGV[9], 'last_heartbeat', ARGV[10], 'idle', ARGV[11])
redis.call('PEXPIRE', key, window)
redis.call('SADD', user_connections, conn)
local live, idle = count_leases()
redis.call('PEXPIRE', user_connections, window)
redis.call('PEXPIRE', user_servers, window)
if not cluster then
  local server_connections = 'server_connections:' .. server
  mend(server_connections, 'set')
  redis.call('ZADD', INDEX, now + window, conn .. ':' .. user)
  redis.call('SADD', server_connections, conn)
  redis.call('PEXPIRE', server_connections, window)
  redis.call('SADD', ONLINE, user)
end
local assumed
if live > 1 then
  assumed = idle == live and 'away' or 'online'
elseif known_since ~= '' then
  local seen = parse_time_text(redis.call('GET', last_seen) or '')
  assumed = (not seen or seen < known_since) and shown or 'offline'
end
return update_presence(live, idle, nil, 'connected', assumed)
