-- Where users (ARGV from 4 on) are connected: of each the servers, and '' when a session of theirs waits to be
-- recovered (recovery.lua). That is asked for all at once first, since it is hardly ever so.
local servers, recoveries = {}, {}
for at = 4, #ARGV do recoveries[at - 3] = 'recoveries:' .. ARGV[at] end
local some = #recoveries > 0 and redis.call('EXISTS', unpack(recoveries)) > 0
for at = 4, #ARGV do
  choose(ARGV[at])
  local found = redis.pcall('SMEMBERS', user_servers)
  if found.err then found = {} end
  if some and redis.call('EXISTS', recoveries[at - 3]) == 1 then found[#found + 1] = '' end
  servers[at - 3] = found
end
return servers
