-- Who is online, or in a call: each of them has a presence record that says so. A page at a time.
if not is(key, 'set') then return answer end
local field = string.sub(key, 1, 15) == 'presence:incall' and 'in_call' or 'status'
local page = redis.call('SSCAN', key, cursor, 'COUNT', PAGE)
answer[1] = page[1]
for _, user in ipairs(page[2]) do
  found_unless('presence_derives_from_connections', key .. ' holds ' .. user .. ', who has no presence', '*',
    'HGET', 'user_presence:' .. (cluster and '{' .. user .. '}' or user), field)
end
return answer
