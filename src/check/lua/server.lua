-- A gateway's connections: each has a record that names this gateway. One page at a time.
if not is(key, 'set') then return answer end
if scan_position == '0' then lives_at_most(key, window, 'routing_ttl_bounded') end
local page = redis.call('SSCAN', key, scan_position, 'COUNT', PAGE)
answer[1] = page[1]
for _, id in ipairs(page[2]) do
  if cluster then
    local owner = 'connection_user:' .. id
    found_unless('zombie_prevention', key .. ' holds ' .. id .. ', which has no user', '*', owner, 'GET', owner)
  else
    local record = 'connection:' .. id
    local server = is(record, 'hash') and redis.call('HGET', record, 'server_id')
    if not server then
      found('zombie_prevention', key .. ' holds ' .. id .. ', whose record is gone')
    elseif server ~= name then
      found('conn_id_uniqueness', key .. ' holds ' .. id .. ', which is on ' .. server)
    end
  end
end
return answer
