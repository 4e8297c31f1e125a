-- The index says that a lease (ARGV[5]) ran out at ARGV[6] ms; or, with an empty ARGV[5], that a grace
-- did. Answers {'later', time} when it did not after all, else a transition.
local conn, due = ARGV[5], tonumber(ARGV[6])
if conn == '' then
  local record = redis.call('HMGET', user_presence, 'linger_until', 'left_at', 'status', 'version')
  local lingers = tonumber(record[1] or '0')
  if lingers == 0 or redis.call('SCARD', user_connections) > 0 then return {'done'} end
  if lingers > now then return {'later', lingers} end
  local version = math.max(tonumber(record[4] or '0') + 1, now)
  redis.call('HSET', user_presence, 'status', 'offline', 'version', version, 'updated_at', time_text(now),
    'last_seen', record[2])
  redis.call('HDEL', user_presence, 'linger_until', 'left_at', 'in_call')
  redis.call('PEXPIRE', user_presence, window + RECORD_EXTRA)
  redis.call('SET', last_seen, record[2])
  return {1, 'offline', '0', record[2], version, now, 0}
end
local left = redis.call('PTTL', connection_key(conn))
if left > 0 then return {'later', now + left} end
redis.call('SREM', user_connections, conn)
local live, idle = survey()
local before = redis.call('HGET', user_presence, 'status')
if not before and live == 0 then
  -- the record went first: whoever reads it sees offline already, only the time is still missing
  redis.call('HSET', user_presence, 'status', 'online', 'version', 0)
end
return settle(live, idle, due - window)
