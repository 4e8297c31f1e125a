-- Marks a connection as idle or active. ARGV[4..6]: the user, conn_id, '1' or '0'. An unknown lease changes nothing.
select_user(ARGV[4])
mend_user()
local key = connection_key(ARGV[5])
mend(key, 'hash')
if redis.call('SISMEMBER', user_connections, ARGV[5]) == 0 or redis.call('EXISTS', key) == 0 then
  return no_transition()
end
redis.call('HSET', key, 'idle', ARGV[6])
local live, idle = count_leases()
return update_presence(live, idle, nil, ARGV[6] == '1' and 'idle' or 'active', 'online')
