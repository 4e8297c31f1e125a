-- Extends one lease. ARGV[5..6]: conn_id, last_heartbeat. 0: the store no longer knows it.
local key = connection_key(ARGV[5])
if redis.call('PEXPIRE', key, window) == 0 then return 0 end
redis.call('HSET', key, 'last_heartbeat', ARGV[6])
refresh_sets()
redis.call('PEXPIRE', user_presence, window + RECORD_EXTRA)
return 1
