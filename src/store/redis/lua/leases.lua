-- Lists a user's live leases, the last refreshed first. ARGV[4..6]: the user, conn_id ('' for all), how many at most.
-- Returns for each lease: conn_id, device, server, connected_at, the time of its last refresh in ms, and whether it is
-- idle.
select_user(ARGV[4])
local found, ids, wanted, max = {}, {}, ARGV[5], tonumber(ARGV[6])
if wanted == '' then
  local members = redis.pcall('ZREVRANGE', user_leases, 0, max - 1)
  for i, member in ipairs(members.err and {} or members) do ids[i] = string.match(member, '^%S+') end
  if #ids == 0 then -- only users with several leases have an order of them
    ids = redis.pcall('SMEMBERS', user_connections)
    if ids.err or #ids > max then ids = {} end
  end
elseif redis.pcall('SISMEMBER', user_connections, wanted) == 1 then
  ids = {wanted}
end
for _, id in ipairs(ids) do
  local record = redis.pcall('HMGET', connection_key(id), 'device_id', 'server_id', 'connected_at', 'idle')
  if record[2] then
    local refreshed = now - window + redis.call('PTTL', connection_key(id))
    found[#found + 1] = {id, record[1] or '', record[2], record[3] or '', refreshed, record[4] or '0'}
  end
end
return found
