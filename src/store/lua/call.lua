-- The user is in a call, or no longer. ARGV[5]: '1' or '0'.
local record = redis.call('HMGET', user_presence, 'status', 'in_call', 'version', 'last_seen')
local status, in_call, version = record[1] or 'offline', record[2] or '0', tonumber(record[3] or '0')
if status == 'offline' or in_call == ARGV[5] then
  return {0, status, in_call, record[4] or '', version, now, 0}
end
version = math.max(version + 1, now)
redis.call('HSET', user_presence, 'in_call', ARGV[5], 'version', version, 'updated_at', time_text(now))
return {1, status, ARGV[5], '', version, now, 0}
