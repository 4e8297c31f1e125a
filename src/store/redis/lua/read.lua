-- Reads the presence of users (ARGV from 4 on). Returns for each: status, in_call, last_seen and version.
local presences = {}
for at = 4, #ARGV do
  select_user(ARGV[at])
  presences[#presences + 1] = {read_presence()}
end
return presences
