-- Marks a connection as idle or active. ARGV[4..8]: the user, conn_id, '1' or '0', the store that asks, and the number of
-- its request. An unknown lease changes nothing. Nor does a request that comes after a later one of the same store: it was
-- written to a connection that was cut, and arrived all the same.
select_user(ARGV[4])
local key = connection_key(ARGV[5])
if call('SISMEMBER', user_connections, ARGV[5]) == 0 or call('EXISTS', key) == 0 then
  return no_transition()
end
local store, number = string.match(call('HGET', key, 'idle_request') or '', '^(%x+):(%d+)$')
if store == ARGV[7] and tonumber(number) >= tonumber(ARGV[8]) then return no_transition() end
settle_leases()
call('HSET', key, 'idle_request', ARGV[7] .. ':' .. ARGV[8])
local before = call('HMGET', key, 'idle', 'server_id')
if before[2] and before[1] ~= ARGV[6] then
  local member = lease_member(ARGV[5], before[1], before[2])
  local due = call('ZSCORE', user_leases, member)
  call('HSET', key, 'idle', ARGV[6])
  if due then -- first the new one: a key that is emptied in between would come back without its lifetime
    count_lease(ARGV[5], ARGV[6], before[2], due)
    uncount_lease(member)
  end
end
return update_presence(nil, ARGV[6] == '1' and 'idle' or 'active', 'online')
