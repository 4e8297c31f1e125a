-- The set of users who are online, or in a call: each has a presence record that agrees. One page at a time.
if not is(key, 'set') then return answer end
local in_call = string.sub(key, 1, 15) == 'presence:incall'
local page = redis.call('SSCAN', key, scan_position, 'COUNT', PAGE)
answer[1] = page[1]
for _, user in ipairs(page[2]) do
  local record = 'user_presence:' .. name_of(user)
  found_unless('presence_derives_from_connections', key .. ' holds ' .. user .. ', whose record disagrees',
    in_call and '1' or '+', record, 'HGET', record, in_call and 'in_call' or 'device_count')
end
return answer
