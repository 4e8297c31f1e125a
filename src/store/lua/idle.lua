-- The user is idle on this connection, or active again. ARGV[5..6]: conn_id, '1' or '0'.
local key = connection_key(ARGV[5])
if redis.call('EXISTS', key) == 1 then redis.call('HSET', key, 'idle', ARGV[6]) end
local live, idle = survey()
return settle(live, idle, now)
