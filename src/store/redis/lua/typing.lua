-- The typing notices of one chat. KEYS[1]: its hash, with one field per user. The value is the time of the user's last
-- accepted update, and then for each typing device, oldest first, its connection and the end of its notice:
--   "<updated_ms> <conn_id> <ends_ms> <conn_id> <ends_ms>"
-- Redis 7.0 cannot expire a single field, so every notice carries its end, and the key lives as long as the longest.
-- A user who stops has no field any more; the time of the last update is then kept in KEYS[2], a string (without that
-- key it is forgotten). A value that cannot be parsed counts as absent.
--
-- ARGV: operation, time in ms ('' for this server's), then the operation's own arguments.
local chat, pace = KEYS[1], KEYS[2]
local DEVICES_MAX = 4
local SWEEP = 8    -- fields that an update checks for notices that ended
local SAMPLE = 64  -- fields that a read samples, at least

local now = time_now(ARGV[2])

-- Remove a foreign value, so that typing works again in this chat.
if redis.call('TYPE', chat).ok ~= 'hash' then redis.call('DEL', chat) end

-- Returns the time of the last update, and the notices that have not ended.
local function parse_notices(value)
  local parts, notices = {}, {}
  for part in string.gmatch(value or '', '%S+') do parts[#parts + 1] = part end
  for i = 2, #parts - 1, 2 do
    local ends = tonumber(parts[i + 1])
    if ends and ends > now then notices[#notices + 1] = {parts[i], ends} end
  end
  return tonumber(parts[1] or ''), notices
end

local function write_notices(user, updated, notices)
  local parts = {string.format('%.0f', updated)}
  for _, notice in ipairs(notices) do
    parts[#parts + 1] = notice[1]
    parts[#parts + 1] = string.format('%.0f', notice[2])
  end
  redis.call('HSET', chat, user, table.concat(parts, ' '))
end

-- An empty `conn` means all devices.
local function remove_device(notices, conn)
  local left = {}
  for _, notice in ipairs(notices) do
    if conn ~= '' and notice[1] ~= conn then left[#left + 1] = notice end
  end
  return left
end

-- Removes users who no longer type, on average more than one update adds.
local function sweep(interval)
  local some = redis.call('HRANDFIELD', chat, SWEEP, 'WITHVALUES')
  for i = 1, #some, 2 do
    local updated, notices = parse_notices(some[i + 1])
    if #notices == 0 and not (updated and updated + interval > now) then
      redis.call('HDEL', chat, some[i])
    end
  end
end

-- Returns the time of the last update of a user who has stopped since.
local function last_update()
  local kept = pace and redis.pcall('GET', pace)
  return type(kept) == 'string' and tonumber(kept) or nil
end

local operations = {}

-- user, conn_id, time to live, interval. Returns {'limited', retry_after_ms}, {'renewed', 0} or {'started', 0}.
function operations.start(user, conn, ttl, interval)
  ttl, interval = tonumber(ttl), tonumber(interval)
  sweep(interval)
  local updated, notices = parse_notices(redis.call('HGET', chat, user))
  updated = updated or last_update()
  local wait = updated and updated + interval - now or 0
  if wait > 0 and wait <= interval then return {'limited', wait} end -- longer: the clock went back
  local result = #notices > 0 and 'renewed' or 'started'
  notices = remove_device(notices, conn)
  if #notices == DEVICES_MAX then table.remove(notices, 1) end
  notices[#notices + 1] = {conn, now + ttl}
  write_notices(user, now, notices)
  redis.call('PEXPIRE', chat, math.max(ttl, interval))
  return {result, 0}
end

-- user, conn_id ('' for all), time to live, interval. Returns 1 when the user was typing and stopped with this.
function operations.stop(user, conn, ttl, interval)
  ttl, interval = tonumber(ttl), tonumber(interval)
  sweep(interval)
  local updated, notices = parse_notices(redis.call('HGET', chat, user))
  if #notices == 0 then return 0 end
  local left = remove_device(notices, conn)
  if #left == #notices then return 0 end
  updated = updated or now
  if #left > 0 then
    write_notices(user, updated, left)
    return 0
  end
  redis.call('HDEL', chat, user)
  if pace and updated + interval > now then
    redis.call('SET', pace, string.format('%.0f', updated), 'PX', math.max(ttl, interval))
  end
  return 1
end

-- max: how many users at most. Returns alternately a user and the ms left of the user's notice.
function operations.read(max)
  max = tonumber(max)
  local found = {}
  if max == 0 then return found end
  local sample = redis.call('HRANDFIELD', chat, math.max(4 * max, SAMPLE), 'WITHVALUES')
  for i = 1, #sample, 2 do
    local _, notices = parse_notices(sample[i + 1])
    if #notices > 0 and #found < 2 * max then
      found[#found + 1] = sample[i]
      found[#found + 1] = notices[#notices][2] - now
    end
  end
  return found
end

return operations[ARGV[1]](unpack(ARGV, 3))
