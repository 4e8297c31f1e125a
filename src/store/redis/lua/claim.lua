-- The call a user claims to be in. KEYS[1]: user:<user>:call, a string: the claim of that call (26 characters)
-- and its id. A claim says nothing by itself; whether its call lives is the call's to say (calls.lua).
--
-- ARGV: operation, then its own. What is no claim under this key is not ours and goes.
local key = KEYS[1]
local CLAIM_LEN, ID_LEN_MAX = 26, 128
local held = redis.pcall('GET', key)
if type(held) == 'table' or held and (#held <= CLAIM_LEN or #held > CLAIM_LEN + ID_LEN_MAX) then
  redis.call('DEL', key)
  held = false
end

local operations = {}

-- With a time, the claim lasts that much longer. '': there is none.
function operations.read(ttl)
  if held and ttl ~= '' then redis.call('PEXPIRE', key, ttl) end
  return held or ''
end

-- Claims, over nothing or over what was found to be dead. '' or the claim that stands in the way.
function operations.take(value, dead, ttl)
  if held and held ~= value and held ~= dead then return held end
  redis.call('SET', key, value, 'PX', ttl)
  return ''
end

function operations.release(value)
  if held == value then redis.call('DEL', key) end
  return ''
end

return operations[ARGV[1]](unpack(ARGV, 2))
