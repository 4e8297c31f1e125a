-- Finds where users (ARGV from 4 on) are connected. Returns for each the servers, and '' when the user has a
-- parked session (recovery.lua). Parked sessions are rare, so all users are checked for one at once first.
local servers, recoveries = {}, {}
for at = 4, #ARGV do recoveries[at - 3] = 'recoveries:' .. ARGV[at] end
local any_parked = #recoveries > 0 and redis.call('EXISTS', unpack(recoveries)) > 0
for at = 4, #ARGV do
  select_user(ARGV[at])
  local found = redis.pcall('SMEMBERS', user_servers)
  if found.err then found = {} end
  if any_parked and redis.call('EXISTS', recoveries[at - 3]) == 1 then found[#found + 1] = '' end
  servers[at - 3] = found
end
return servers
