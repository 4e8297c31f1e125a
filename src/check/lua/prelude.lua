-- The beginning of every script of `rollcall check`. A script checks one key and the keys that belong to it at one
-- instant. EVAL_RO makes sure that nothing is written.
--
-- KEYS[1]: the key. ARGV: lease window in ms, the end of the names of the index and sets of the key's slot ('' without
-- a cluster), length of the key's prefix in bytes, scan position
-- at which the check of a large value continues ('0' at first).
--
-- Returns {next scan position or '0', users, connections, rows…}. A row {invariant, what is wrong} is a violation.
-- A row {invariant, what is wrong, expected, key, command…} is a violation unless the command, sent to the key's
-- server, returns what is expected ('*': anything, '+': a number above 0); this is how other slots of a cluster are read.
-- The text of what is wrong contains no number that changes by itself, so that the next round finds the same text.
local key, window, cluster = KEYS[1], tonumber(ARGV[1]), ARGV[2] ~= ''
local shard = ARGV[2]
local name, scan_position = string.sub(key, tonumber(ARGV[3]) + 1), ARGV[4]
local RECORD_EXTRA = 5000 -- how much longer the presence record lives than the leases
local PAGE = 100
local HOUR = 3600000
local TIME = '^%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%d%.%d%d%dZ$'
local answer = {'0', 0, 0}

local function found(invariant, text)
  answer[#answer + 1] = {invariant, text}
end

local function found_unless(invariant, text, expected, at, ...)
  answer[#answer + 1] = {invariant, text, expected, at, ...}
end

-- Returns a user's id as it is written in keys (store/redis/redis_keys.h).
local function name_of(user)
  if not cluster then return user end
  if string.find(user, '}', 1, true) or string.find(user, '%25', 1, true) or string.find(user, '%7D', 1, true) then
    user = string.gsub(string.gsub(user, '%%', '%%25'), '}', '%%7D')
  end
  return '{' .. user .. '}'
end

-- Returns whether the key exists with the expected type. Reports another type.
local function is(of, expected)
  local actual = redis.call('TYPE', of).ok
  if actual ~= 'none' and actual ~= expected then
    found('well_formed', of .. ' is a ' .. actual .. ' where a ' .. expected .. ' belongs')
  end
  return actual == expected
end

local function lives_at_most(of, limit, invariant)
  local left = redis.call('PTTL', of)
  if left == -1 then
    found(invariant, of .. ' never expires')
  elseif left > limit then
    found(invariant, of .. ' lives longer than ' .. limit .. ' ms')
  end
end

-- `user` is as written in keys: in braces on a cluster.
local function connection_key(user, id)
  return cluster and 'connection:' .. user .. ':' .. id or 'connection:' .. id
end
