-- Registers a lease. ARGV[4..12]: the user, conn_id, user_id, device, server, connected_at, last_heartbeat,
-- idle, and since when the gateway has had the user connected, by Redis's own clock ('': it has not).
--
-- A store that was emptied makes no transition of one who is known to be there: nobody was told that the user
-- had gone. A user whom a reaper turned offline meanwhile left a last_seen behind that is younger than that
-- time: then others were told, and are told again.
choose(ARGV[4])
mend_user()
local conn, server, known_since = ARGV[5], ARGV[8], ARGV[12]
local key, shown = connection_key(conn), ARGV[11] == '1' and 'away' or 'online'
mend(key, 'hash')
redis.call('HSET', key, 'user_id', ARGV[6], 'device_id', ARGV[7], 'server_id', server,
  'connected_at', ARGV[9], 'last_heartbeat', ARGV[10], 'idle', ARGV[11])
redis.call('PEXPIRE', key, window)
redis.call('SADD', user_connections, conn)
local live, idle = survey()
redis.call('PEXPIRE', user_connections, window)
redis.call('PEXPIRE', user_servers, window)
if not cluster then
  local held = 'server_connections:' .. server
  mend(held, 'set')
  redis.call('ZADD', INDEX, now + window, conn .. ':' .. user)
  redis.call('SADD', held, conn)
  redis.call('PEXPIRE', held, window)
  redis.call('SADD', ONLINE, user)
end
local assumed
if live > 1 then
  assumed = idle == live and 'away' or 'online'
elseif known_since ~= '' then
  local seen = time_of(redis.call('GET', last_seen) or '')
  assumed = (not seen or seen < known_since) and shown or 'offline'
end
return settle(live, idle, nil, 'connected', assumed)
