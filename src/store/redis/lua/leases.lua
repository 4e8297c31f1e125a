-- Lists a user's live leases. ARGV[4..6]: the user, conn_id ('' for all), how many at most. Returns for each lease:
-- conn_id, device, server, connected_at, the time of its last refresh in ms, and whether it is idle.
select_user(ARGV[4])
local found, wanted, max = {}, ARGV[5], tonumber(ARGV[6])
local ids = redis.pcall('SMEMBERS', user_connections)
for _, id in ipairs(ids.err and {} or ids) do
  if #found == max then break end
  if wanted == '' or wanted == id then
    local record = redis.pcall('HMGET', connection_key(id), 'device_id', 'server_id', 'connected_at', 'idle')
    if record[2] then
      local refreshed = now - window + redis.call('PTTL', connection_key(id))
      found[#found + 1] = {id, record[1] or '', record[2], record[3] or '', refreshed, record[4] or '0'}
    end
  end
end
return found
