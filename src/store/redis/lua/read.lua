-- Reads the presence of users (ARGV from 4 on, as user_prelude.lua describes). Returns for each: status, in_call,
-- last_seen and version, which is 0 without a record. It is frequent, so it needs no prelude.
local STATUS = {online = true, away = true, offline = true}
local TIME = '^%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%d%.%d%d%dZ$'
local presences = {}
for at = 4, #ARGV do
  local record = redis.pcall('HMGET', 'user_presence:' .. ARGV[at], 'status', 'in_call', 'last_seen', 'version')
  local status = not record.err and STATUS[record[1]] and record[1]
  local version = status and tonumber(record[4] or '0') or 0
  if version < 0 or version > 9e15 then version = 0 end
  if status and status ~= 'offline' then
    presences[at - 3] = {status, record[2] == '1' and '1' or '0', '', version}
  else
    local seen = status and record[3] and string.match(record[3], TIME)
    if not seen then
      local kept = redis.pcall('GET', 'last_seen:' .. ARGV[at])
      seen = type(kept) == 'string' and string.match(kept, TIME) or ''
    end
    presences[at - 3] = {'offline', '0', seen, version}
  end
end
return presences
