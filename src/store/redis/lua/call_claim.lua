-- The call that a user claims to be in. KEYS[1]: user:<user>:call, a string: a random nonce (26 characters) and the
-- call's id. A claim proves nothing by itself: only the call's record decides whether the call is alive (calls.lua).
--
-- ARGV: operation, then its own arguments. A value under this key that is not a claim is not ours and is removed.
local key = KEYS[1]
local NONCE_LEN, ID_LEN_MAX = 26, 128
local current = redis.pcall('GET', key)
if type(current) == 'table' or current and (#current <= NONCE_LEN or #current > NONCE_LEN + ID_LEN_MAX) then
  redis.call('DEL', key)
  current = false
end

if not current and ARGV[1] == 'read' then return '' end -- most users are in no call: make no functions for them

local operations = {}

-- Returns the claim, or '' without one. With a ttl, the claim lasts that many ms from now.
function operations.read(ttl)
  if current and ttl ~= '' then redis.call('PEXPIRE', key, ttl) end
  return current or ''
end

-- Sets the claim if there is none, or if the current one was found dead. Returns '' or the claim in the way.
function operations.take(value, dead, ttl)
  if current and current ~= value and current ~= dead then return current end
  redis.call('SET', key, value, 'PX', ttl)
  return ''
end

function operations.release(value)
  if current == value then redis.call('DEL', key) end
  return ''
end

return operations[ARGV[1]](unpack(ARGV, 2))
