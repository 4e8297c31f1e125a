-- Ends overdue leases and graces of one index, at most ARGV[4] of them, unless it is later than ARGV[5] in ms. Returns how
-- many are still overdue, how many values were mended, the time in ms, and the transitions.
--
-- A user who goes offline here stays in presence:untold ("<version> <user>", by time) until the gateway that gets the
-- transition removes it. If its answer is lost, or it dies first, another reaper gets the transition again after UNTOLD_MS.
local UNTOLD, UNTOLD_MS = 'presence:untold' .. shard, 3000
local ENTRY_MAX = 26 + 1 + 128 -- a connection, a colon and the longest user id; a longer one cannot be ours
local result = {0, 0, now}

-- Returns a user's name in keys (store/redis/redis_keys.h).
local function name_of(id)
  if not cluster then return id end
  if string.find(id, '}', 1, true) or string.find(id, '%25', 1, true) or string.find(id, '%7D', 1, true) then
    id = string.gsub(string.gsub(id, '%%', '%%25'), '}', '%%7D')
  end
  return '{' .. id .. '}'
end

-- Ends one entry of the index, which it removes first.
local function reap_entry(entry, score)
  local conn, id = string.match(entry, '^([^:]*):(.+)$')
  call('ZREM', INDEX, entry)
  if not id or #entry > ENTRY_MAX then
    mended = mended + 1
    return
  end
  select_user(name_of(id))
  local made, left_ms = expire(conn, parse_due(score))
  if left_ms then call('ZADD', INDEX, now + left_ms, entry) end
  if made and made[1] > 0 then call('ZADD', UNTOLD, now + UNTOLD_MS, string.format('%.0f ', made[5]) .. user) end
  result[#result + 1] = made
end

-- Returns the transition of a user whom nobody told about, unless a later one has made it void.
local function tell_again(entry)
  local version, id = string.match(entry, '^(%d+) (.+)$')
  if id then select_user(name_of(id)) end
  local status, _, seen, current = 'online', '', '', 0
  if id then status, _, seen, current = read_presence() end
  if status ~= 'offline' or current > tonumber(version) then
    call('ZREM', UNTOLD, entry)
  else
    call('ZADD', UNTOLD, now + UNTOLD_MS, entry)
    result[#result + 1] = transition(true, 'offline', '0', seen, tonumber(version))
  end
end

local max = tonumber(ARGV[4])
if now <= tonumber(ARGV[5]) then
  local rows = call('ZRANGEBYSCORE', INDEX, '-inf', now, 'WITHSCORES', 'LIMIT', 0, max)
  for i = 1, #rows, 2 do reap_entry(rows[i], rows[i + 1]) end
  max = max - #rows / 2
  for _, entry in ipairs(max > 0 and call('ZRANGEBYSCORE', UNTOLD, '-inf', now, 'LIMIT', 0, max) or {}) do
    tell_again(entry)
  end
end
result[1], result[2] = call('ZCOUNT', INDEX, '-inf', now) + call('ZCOUNT', UNTOLD, '-inf', now), mended
return result
