-- Ends a lease. ARGV[5]: conn_id. An unknown one changes nothing.
if redis.call('SISMEMBER', user_connections, ARGV[5]) == 0 then
  local record = redis.call('HMGET', user_presence, 'status', 'in_call', 'last_seen', 'version')
  return {0, record[1] or 'offline', record[2] or '0', record[3] or '', tonumber(record[4] or '0'), now, 0}
end
redis.call('DEL', connection_key(ARGV[5]))
local live, idle = survey()
return settle(live, idle, now)
