-- The parked sessions of one user: sessions that lost their connection. One script is one atomic step.
--
-- KEYS[1] is recoveries:<user>, a sorted set: private ids by the time each expires. A session is a hash
-- recovery:<user>:<pid> (its data, and one field per event id) and a list recovery_events:<user>:<pid>.
-- All are in the user's slot and expire with the recovery time.
--
-- ARGV: the operation, the time or '' for the server's; then the operation's own arguments. An event is 16
-- hexadecimal digits of offset, 16 of id, and the frames. Such texts sort as the numbers do.
local sessions = KEYS[1]
local user = string.sub(sessions, #'recoveries:' + 1)
local EVENTS_MAX, BYTES_MAX, SESSIONS_MAX, TOPICS_MAX = 100, 65536, 16, 64 -- the same as in recovery_store.h
local HEAD_BYTES = 32
local MISSED, NO_ID = 'ffffffffffffffff', '0000000000000000'

local now = time_now(ARGV[2])

local function session_keys(pid)
  return 'recovery:' .. user .. ':' .. pid, 'recovery_events:' .. user .. ':' .. pid
end

local function remove_session(pid)
  redis.call('ZREM', sessions, pid)
  redis.call('UNLINK', session_keys(pid))
end

-- Drops the oldest events beyond the limits. Once a missed event is dropped, the session cannot be recovered any
-- more and is removed.
local function trim_events(pid, bytes)
  local record, events = session_keys(pid)
  local count = redis.call('LLEN', events)
  while count > EVENTS_MAX or bytes > BYTES_MAX do
    local dropped = redis.call('LPOP', events)
    local offset = string.sub(dropped, 1, 16)
    if offset == MISSED then return remove_session(pid) end
    count = count - 1
    bytes = redis.call('HINCRBY', record, 'bytes', HEAD_BYTES - #dropped)
    redis.call('HSET', record, 'floor', offset)
  end
end

local function add_event(pid, event)
  local record, events = session_keys(pid)
  local id = string.sub(event, 17, HEAD_BYTES)
  if id ~= NO_ID and redis.call('HSETNX', record, id, '') == 0 then return end
  redis.call('RPUSH', events, event)
  trim_events(pid, redis.call('HINCRBY', record, 'bytes', #event - HEAD_BYTES))
end

local operations = {}

-- recovery time in ms, pid, sid, floor, ceiling, the number of topics, the topics, the events.
function operations.park(recovery_ms, pid, sid, floor, ceiling, topic_count, ...)
  local rest, topics = {...}, {}
  recovery_ms, topic_count = tonumber(recovery_ms), tonumber(topic_count)
  for at = 1, math.min(topic_count, TOPICS_MAX) do topics[at] = rest[at] end
  local record, events = session_keys(pid)
  redis.call('UNLINK', record, events)
  redis.call('HSET', record, 'sid', sid, 'floor', floor, 'ceiling', ceiling, 'bytes', 0,
    'parked_at', time_text(now), 'topics', cmsgpack.pack(topics))
  redis.call('ZADD', sessions, now + recovery_ms, pid)
  for at = topic_count + 1, #rest do add_event(pid, rest[at]) end
  for _, key in ipairs({sessions, record, events}) do redis.call('PEXPIRE', key, recovery_ms) end
  while redis.call('ZCARD', sessions) > SESSIONS_MAX do
    remove_session(redis.call('ZRANGE', sessions, 0, 0)[1])
  end
  return 1
end

-- Adds an event to every parked session of the user. Returns how many sessions there are.
function operations.append(event)
  local parked = redis.call('ZRANGE', sessions, 0, -1)
  for _, pid in ipairs(parked) do
    local record, events = session_keys(pid)
    local left_ms = redis.call('PTTL', record)
    if left_ms > 0 then
      add_event(pid, event)
      redis.call('PEXPIRE', events, left_ms)
    else
      remove_session(pid)
    end
  end
  return #parked
end

-- pid, offset, and how many ms ago this gateway may have missed events ('' for never): a session that was parked
-- before then is not recovered. Returns the session's sid and ceiling, its topics and its events beyond the offset;
-- nil when there is nothing to recover.
function operations.take(pid, offset, since_missed_ms)
  if redis.call('ZREM', sessions, pid) == 0 then return false end
  local record, events = session_keys(pid)
  local record_fields = redis.call('HMGET', record, 'sid', 'floor', 'ceiling', 'parked_at', 'topics')
  local kept, owed = redis.call('LRANGE', events, 0, -1), {}
  redis.call('UNLINK', record, events)
  if not record_fields[1] or record_fields[2] > offset then return false end
  if since_missed_ms ~= '' and now - time_ms(record_fields[4]) > tonumber(since_missed_ms) then return false end
  for _, event in ipairs(kept) do
    if string.sub(event, 1, 16) > offset then owed[#owed + 1] = event end
  end
  return {record_fields[1], record_fields[3], cmsgpack.unpack(record_fields[5]), owed}
end

local kind = redis.call('TYPE', sessions).ok
if kind ~= 'zset' and kind ~= 'none' then redis.call('UNLINK', sessions) end -- a foreign value
redis.call('ZREMRANGEBYSCORE', sessions, '-inf', now)
return operations[ARGV[1]](unpack(ARGV, 3))
