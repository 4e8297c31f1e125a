-- Ends a lease. ARGV[4..6]: the user, conn_id, the gateway.
--
-- A lease that is unknown, or another user's, changes no presence. But when its record is gone (a reaper ended it
-- first), its connection is removed from the gateway's set. Such a lease stays in the index: its open may still be
-- under way on a connection that was lost, and then a reaper must find it later. A lease whose record is there is known,
-- also where the user's list of connections is gone.
select_user(ARGV[4])
local conn = ARGV[5]
local key = connection_key(conn)
if call('SISMEMBER', user_connections, conn) == 0 and call('HGET', key, 'user_id') ~= user then
  local result = no_transition()
  if call('EXISTS', key) == 0 then
    if not cluster then redis.pcall('SREM', 'server_connections:' .. ARGV[6], conn) end
    result[10] = ARGV[6]
  end
  return result
end
settle_leases()
local server = remove_lease(conn) or ARGV[6]
if not cluster then redis.pcall('SREM', 'server_connections:' .. server, conn) end
local result = update_presence(time_text(now), 'disconnected', 'online')
result[10], result[11] = server, 1
return result
