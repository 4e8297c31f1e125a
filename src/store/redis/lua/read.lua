-- What others see of users (ARGV from 4 on): of each status, in_call, last_seen and version.
local seen = {}
for at = 4, #ARGV do
  choose(ARGV[at])
  seen[#seen + 1] = {view()}
end
return seen
