-- Lists a user's last transitions, the newest first. KEYS: presence_history, user_presence. ARGV: how many at most. That
-- a user came online stands in the record alone until the next transition (user_prelude.lua).
local found = redis.pcall('LRANGE', KEYS[1], 0, ARGV[1] - 1)
if found.err then found = {} end
local first = redis.pcall('HMGET', KEYS[2], 'updated_at', 'version', 'status')
local is_listed = found[1] and first[2] and string.find(found[1], ' ' .. first[2] .. ' ', 1, true)
if first[1] and first[2] and first[3] and first[3] ~= 'offline' and not is_listed then
  table.insert(found, 1, table.concat(first, ' ') .. ' connected')
  found[ARGV[1] + 1] = nil
end
return found
