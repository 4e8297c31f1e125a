-- Marks a connection as idle or active. ARGV[4..7]: the user, conn_id, '1' or '0', and a number that grows with each request.
-- An unknown lease changes nothing. Nor does a request that comes after a later one: it was written to a connection that was
-- cut, and arrived all the same. A number that is far behind was made by a process with another clock.
local LATE_MAX = 60000000
select_user(ARGV[4])
local key = connection_key(ARGV[5])
if call('SISMEMBER', user_connections, ARGV[5]) == 0 or call('EXISTS', key) == 0 then
  return no_transition()
end
local behind = (tonumber(call('HGET', key, 'idle_request') or '0') or 0) - tonumber(ARGV[7])
if behind >= 0 and behind < LATE_MAX then return no_transition() end
settle_leases()
call('HSET', key, 'idle_request', ARGV[7])
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
