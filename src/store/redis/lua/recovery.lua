-- Sessions of one user that lost their connection a moment ago. One call is one atomic step.
--
-- KEYS[1] is recoveries:<user>, a sorted set: private ids by the time each ends. A session is a hash
-- recovery:<user>:<pid> (what it was, and a field for each event's id) and a list recovery_events:<user>:<pid>.
-- They are in the user's slot, and all end with the window.
--
-- ARGV: the operation, the time or '' for the server's; then the operation's own. An event is 16 hexadecimal
-- digits of offset, 16 of id, and the frames. Texts of this form sort as the numbers do.
local sessions = KEYS[1]
local user = string.sub(sessions, #'recoveries:' + 1)
local EVENTS_MAX, BYTES_MAX, SESSIONS_MAX, TOPICS_MAX = 100, 65536, 16, 64 -- recovery_store.h has the same
local HEAD = 32
local MISSED, NO_ID = 'ffffffffffffffff', '0000000000000000'

local now = time_now(ARGV[2])

local function keys_of(pid)
  return 'recovery:' .. user .. ':' .. pid, 'recovery_events:' .. user .. ':' .. pid
end

local function forget(pid)
  redis.call('ZREM', sessions, pid)
  redis.call('UNLINK', keys_of(pid))
end

-- The oldest make room. When one of those goes that were missed, nothing is left to recover.
local function trim(pid, bytes)
  local record, events = keys_of(pid)
  local count = redis.call('LLEN', events)
  while count > EVENTS_MAX or bytes > BYTES_MAX do
    local gone = redis.call('LPOP', events)
    local offset = string.sub(gone, 1, 16)
    if offset == MISSED then return forget(pid) end
    count = count - 1
    bytes = redis.call('HINCRBY', record, 'bytes', HEAD - #gone)
    redis.call('HSET', record, 'floor', offset)
  end
end

local function keep(pid, event)
  local record, events = keys_of(pid)
  local id = string.sub(event, 17, HEAD)
  if id ~= NO_ID and redis.call('HSETNX', record, id, '') == 0 then return end
  redis.call('RPUSH', events, event)
  trim(pid, redis.call('HINCRBY', record, 'bytes', #event - HEAD))
end

local operations = {}

-- window, pid, sid, floor, ceiling, how many topics, the topics, the events.
function operations.park(window, pid, sid, floor, ceiling, topic_count, ...)
  local rest, topics = {...}, {}
  window, topic_count = tonumber(window), tonumber(topic_count)
  for at = 1, math.min(topic_count, TOPICS_MAX) do topics[at] = rest[at] end
  local record, events = keys_of(pid)
  redis.call('UNLINK', record, events)
  redis.call('HSET', record, 'sid', sid, 'floor', floor, 'ceiling', ceiling, 'bytes', 0,
    'parked_at', time_text(now), 'topics', cmsgpack.pack(topics))
  redis.call('ZADD', sessions, now + window, pid)
  for at = topic_count + 1, #rest do keep(pid, rest[at]) end
  for _, key in ipairs({sessions, record, events}) do redis.call('PEXPIRE', key, window) end
  while redis.call('ZCARD', sessions) > SESSIONS_MAX do
    forget(redis.call('ZRANGE', sessions, 0, 0)[1])
  end
  return 1
end

-- An event. How many sessions there are.
function operations.append(event)
  local parked = redis.call('ZRANGE', sessions, 0, -1)
  for _, pid in ipairs(parked) do
    local record, events = keys_of(pid)
    local left = redis.call('PTTL', record)
    if left > 0 then
      keep(pid, event)
      redis.call('PEXPIRE', events, left)
    else
      forget(pid)
    end
  end
  return #parked
end

-- pid, offset, for how long nothing has disturbed ('': always). The session's sid and ceiling, its topics and
-- its events beyond the offset; nil: there is nothing to recover.
function operations.take(pid, offset, calm)
  if redis.call('ZREM', sessions, pid) == 0 then return false end
  local record, events = keys_of(pid)
  local told = redis.call('HMGET', record, 'sid', 'floor', 'ceiling', 'parked_at', 'topics')
  local kept, given = redis.call('LRANGE', events, 0, -1), {}
  redis.call('UNLINK', record, events)
  if not told[1] or told[2] > offset then return false end
  if calm ~= '' and now - time_ms(told[4]) > tonumber(calm) then return false end
  for _, event in ipairs(kept) do
    if string.sub(event, 1, 16) > offset then given[#given + 1] = event end
  end
  return {told[1], told[3], cmsgpack.unpack(told[5]), given}
end

local kind = redis.call('TYPE', sessions).ok
if kind ~= 'zset' and kind ~= 'none' then redis.call('UNLINK', sessions) end -- not ours
redis.call('ZREMRANGEBYSCORE', sessions, '-inf', now)
return operations[ARGV[1]](unpack(ARGV, 3))
