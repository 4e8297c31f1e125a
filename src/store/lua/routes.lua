-- Where users (ARGV from 4 on) are connected: of each the servers, and '' when a session of theirs waits to be
-- recovered (recovery.lua).
local servers = {}
for at = 4, #ARGV do
  choose(ARGV[at])
  local found = redis.pcall('SMEMBERS', user_servers)
  if found.err then found = {} end
  if redis.call('EXISTS', 'recoveries:' .. user) == 1 then found[#found + 1] = '' end
  servers[#servers + 1] = found
end
return servers
