-- A gateway's record. KEYS[1]: the record. KEYS[2] and KEYS[3], where they are on the same server and the gateway is to be
-- listed too: the list and the hash (gateway_list_put.lua). ARGV: 'put' or 'release', the instance, window in ms, connections,
-- started_at, draining, peer_address, the process (app/process_id.h), and the instance that may be replaced, because its
-- process is gone ('' for none); then the gateway and its info for the list.
--
-- The record of any other instance is left as it is: returns {'taken', instance, started_at, ms left, process}. Otherwise
-- returns {'kept'}, or {'made'} when there was no record of this instance.
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'hash' and kind ~= 'none' then redis.call('UNLINK', KEYS[1]) end
local record = redis.call('HMGET', KEYS[1], 'instance', 'started_at', 'process')
local ours = record[1] == ARGV[2]
if record[1] and not ours and record[1] ~= ARGV[9] then
  return {'taken', record[1], record[2] or '', redis.call('PTTL', KEYS[1]), record[3] or ''}
end
if ARGV[1] == 'release' then
  redis.call('DEL', KEYS[1])
else
  redis.call('HSET', KEYS[1], 'instance', ARGV[2], 'connections', ARGV[4], 'started_at', ARGV[5], 'draining', ARGV[6],
    'peer_address', ARGV[7], 'window_ms', ARGV[3], 'process', ARGV[8])
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
  if KEYS[3] then list_gateway(KEYS[2], KEYS[3], ARGV[10], ARGV[3], ARGV[11]) end
end
return {ours and 'kept' or 'made'}
