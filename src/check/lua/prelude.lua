-- Stands before every look of `rollcall check`: one instant, one key and what belongs to it. Nothing is
-- written; EVAL_RO sees to that.
--
-- KEYS[1]: the key. ARGV: lease window in ms, '1' on a cluster, how many bytes of the key are its prefix,
-- where a look at a large value goes on ('0' at first).
--
-- Answers {where to go on or '0', users, connections, rows…}. A row {invariant, what is wrong} is a
-- violation. A row {invariant, what is wrong, expected, key, command…} is one unless the command, sent where
-- the key is, answers as expected ('*': anything, '+': a number above 0): that is how other slots of a
-- cluster are asked. What is wrong names no number that changes by itself, so that a second look can find
-- the same again.
local key, window, cluster = KEYS[1], tonumber(ARGV[1]), ARGV[2] == '1'
local name, cursor = string.sub(key, tonumber(ARGV[3]) + 1), ARGV[4]
local RECORD_EXTRA = 5000 -- the presence record outlives the leases by so much
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

-- An id as it stands in a user's keys (store/redis_keys.h says how).
local function name_of(user)
  if not cluster then return user end
  if string.find(user, '}', 1, true) or string.find(user, '%25', 1, true) or string.find(user, '%7D', 1, true) then
    user = string.gsub(string.gsub(user, '%%', '%%25'), '}', '%%7D')
  end
  return '{' .. user .. '}'
end

-- The shard of a cluster's index and sets that a user is in: FNV-1a by 16, of which only the low bits matter
-- (store/redis_state_shards.c has all of it).
local function shard_of(user)
  local hash = 5
  for at = 1, #user do hash = bit.bxor(hash, string.byte(user, at)) % 16 * 3 % 16 end
  return ':{' .. hash .. '}'
end

-- Whether the key is there, as what it should be.
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

-- `user` as it stands in keys: in braces on a cluster.
local function connection_key(user, id)
  return cluster and 'connection:' .. user .. ':' .. id or 'connection:' .. id
end
