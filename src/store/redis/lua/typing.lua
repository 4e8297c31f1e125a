-- Who types in one chat. KEYS[1]: its hash, a field a user, whose value is when the user's last update was
-- taken and then, oldest first, each device that types with the end of its notice:
--   "<updated_ms> <conn_id> <ends_ms> <conn_id> <ends_ms>"
-- Redis 7.0 lets no single field expire, so every notice carries its end and the key lives as long as the
-- longest. Whoever stops has no field any more; when the last update was is kept in KEYS[2], a string (without
-- one it is forgotten). What cannot be read counts as not there.
--
-- ARGV: operation, time in ms ('': this server's), then the operation's own.
local chat, pace = KEYS[1], KEYS[2]
local DEVICES_MAX = 4
local SWEEP = 8    -- fields that an update looks at, to remove what is over
local SAMPLE = 64  -- fields that a reading looks at, at least

local now = time_now(ARGV[2])

-- A key that is no hash is not ours: it goes, so that the chat is not silent for ever.
if redis.call('TYPE', chat).ok ~= 'hash' then redis.call('DEL', chat) end

-- When it was updated, and the notices that are not over.
local function parse(value)
  local words, notices = {}, {}
  for word in string.gmatch(value or '', '%S+') do words[#words + 1] = word end
  for i = 2, #words - 1, 2 do
    local ends = tonumber(words[i + 1])
    if ends and ends > now then notices[#notices + 1] = {words[i], ends} end
  end
  return tonumber(words[1] or ''), notices
end

local function write(user, updated, notices)
  local words = {string.format('%.0f', updated)}
  for _, notice in ipairs(notices) do
    words[#words + 1] = notice[1]
    words[#words + 1] = string.format('%.0f', notice[2])
  end
  redis.call('HSET', chat, user, table.concat(words, ' '))
end

-- An empty `conn` is every device.
local function without(notices, conn)
  local left = {}
  for _, notice in ipairs(notices) do
    if conn ~= '' and notice[1] ~= conn then left[#left + 1] = notice end
  end
  return left
end

-- Some of those who went silent leave, more of them than come.
local function sweep(interval)
  local some = redis.call('HRANDFIELD', chat, SWEEP, 'WITHVALUES')
  for i = 1, #some, 2 do
    local updated, notices = parse(some[i + 1])
    if #notices == 0 and not (updated and updated + interval > now) then
      redis.call('HDEL', chat, some[i])
    end
  end
end

-- The last update of one who has stopped since.
local function paced()
  local kept = pace and redis.pcall('GET', pace)
  return type(kept) == 'string' and tonumber(kept) or nil
end

local operations = {}

-- user, conn_id, time to live, interval. Answers {'limited', retry_after_ms}, {'renewed'} or {'started'}.
function operations.start(user, conn, ttl, interval)
  ttl, interval = tonumber(ttl), tonumber(interval)
  sweep(interval)
  local updated, notices = parse(redis.call('HGET', chat, user))
  updated = updated or paced()
  local wait = updated and updated + interval - now or 0
  if wait > 0 and wait <= interval then return {'limited', wait} end -- more: the clock went back
  local result = #notices > 0 and 'renewed' or 'started'
  notices = without(notices, conn)
  if #notices == DEVICES_MAX then table.remove(notices, 1) end
  notices[#notices + 1] = {conn, now + ttl}
  write(user, now, notices)
  redis.call('PEXPIRE', chat, math.max(ttl, interval))
  return {result, 0}
end

-- user, conn_id or '' for all, time to live, interval. 1: the user typed until now.
function operations.stop(user, conn, ttl, interval)
  ttl, interval = tonumber(ttl), tonumber(interval)
  sweep(interval)
  local updated, notices = parse(redis.call('HGET', chat, user))
  if #notices == 0 then return 0 end
  local left = without(notices, conn)
  if #left == #notices then return 0 end
  updated = updated or now
  if #left > 0 then
    write(user, updated, left)
    return 0
  end
  redis.call('HDEL', chat, user)
  if pace and updated + interval > now then
    redis.call('SET', pace, string.format('%.0f', updated), 'PX', math.max(ttl, interval))
  end
  return 1
end

-- How many at most. Users and the time each has left, in turn.
function operations.read(max)
  max = tonumber(max)
  local found = {}
  if max == 0 then return found end
  local some = redis.call('HRANDFIELD', chat, math.max(4 * max, SAMPLE), 'WITHVALUES')
  for i = 1, #some, 2 do
    local _, notices = parse(some[i + 1])
    if #notices > 0 and #found < 2 * max then
      found[#found + 1] = some[i]
      found[#found + 1] = notices[#notices][2] - now
    end
  end
  return found
end

return operations[ARGV[1]](unpack(ARGV, 3))
