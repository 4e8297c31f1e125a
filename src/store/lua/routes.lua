-- Where users (ARGV from 4 on) are connected: of each the servers.
local servers = {}
for at = 4, #ARGV do
  choose(ARGV[at])
  local found = redis.pcall('SMEMBERS', user_servers)
  servers[#servers + 1] = found.err and {} or found
end
return servers
