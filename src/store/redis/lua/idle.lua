-- The user is idle on this connection, or active again. ARGV[4..6]: the user, conn_id, '1' or '0'.
choose(ARGV[4])
mend_user()
local key = connection_key(ARGV[5])
mend(key, 'hash')
if redis.call('SISMEMBER', user_connections, ARGV[5]) == 0 or redis.call('EXISTS', key) == 0 then
  return unchanged()
end
redis.call('HSET', key, 'idle', ARGV[6])
local live, idle = survey()
return settle(live, idle, nil, ARGV[6] == '1' and 'idle' or 'active', 'online')
