-- Registers a lease. ARGV[5..11]: conn_id, user, device, server, connected_at, last_heartbeat, idle;
-- ARGV[12]: '1' when the connection held this lease before and the store lost it.
--
-- A store that was emptied makes no transition of a return: nobody was told that the user had gone. A
-- user whom a reaper turned offline meanwhile left a last_seen behind that is younger than the
-- connection: then others were told, and are told again.
local conn, connected_at = ARGV[5], ARGV[9]
local known = redis.call('EXISTS', user_presence) == 1
if ARGV[12] == '1' and not known then
  local seen = redis.call('GET', last_seen)
  if not seen or seen < connected_at then
    redis.call('HSET', user_presence, 'status', ARGV[11] == '1' and 'away' or 'online', 'version', now,
      'updated_at', time_text(now))
  end
end
local key = connection_key(conn)
redis.call('HSET', key, 'user_id', ARGV[6], 'device_id', ARGV[7], 'server_id', ARGV[8],
  'connected_at', connected_at, 'last_heartbeat', ARGV[10], 'idle', ARGV[11])
redis.call('PEXPIRE', key, window)
redis.call('SADD', user_connections, conn)
local live, idle = survey()
refresh_sets()
return settle(live, idle, now)
