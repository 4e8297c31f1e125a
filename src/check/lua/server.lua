-- A gateway's connections: each has a record, and the record says that it is there. A page at a time.
if not is(key, 'set') then return answer end
if cursor == '0' then lives_at_most(key, window, 'routing_ttl_bounded') end
local page = redis.call('SSCAN', key, cursor, 'COUNT', PAGE)
answer[1] = page[1]
for _, id in ipairs(page[2]) do
  local record = 'connection:' .. id
  found_unless('zombie_prevention', key .. ' holds ' .. id .. ', whose record is gone', '1', 'EXISTS', record)
  found_unless('conn_id_uniqueness', key .. ' holds ' .. id .. ', which another gateway has or nobody', name,
    'HGET', record, 'server_id')
end
return answer
