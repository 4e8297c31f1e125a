-- Precedes, after time.lua, the scripts of the state store that work on users, except for the most frequent ones. One
-- script is one atomic step.
--
-- ARGV: lease window in ms, offline grace in ms, the end of the names of the lease index and of the sets of users who
-- are online or in a call; then the script's own arguments. Users are written as in keys: in braces on a cluster.
-- KEYS[1] is a key of the (first) user, or the lease index. On a cluster KEYS[2] never exists: as long as the slot moves to
-- another server, key by key, Redis refuses the script.
--
-- A single server has one index and one set of each kind, and the end of their names is ''. On a cluster each slot has
-- its own, ':{<tag>}', so that a step updates them together with the user's keys. Only the sets of gateways'
-- connections are elsewhere; the gateway updates those.
--
-- The leases of a user who has several are counted, not surveyed, so that a step costs the same however many there are:
-- user_leases orders them by expiry, and user_lease_counts counts the idle ones (idle) and those on each server
-- (on:<server>). A step first settles these: it removes what a reaper has to, and surveys all leases only when they do not
-- fit the sets: after a loss of data, or where there was one lease, which needs neither key.
--
-- A value of the wrong type under one of our keys is removed when a command meets it, and counted in `mended`.
local window, grace, shard = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
local cluster = shard ~= ''
local RECORD_EXTRA = 5000 -- the presence record outlives the leases by this many ms, so that the reaper still sees it
local HISTORY_MAX, HISTORY_TTL = 32, 3600000
local VERSION_MAX = 9e15 -- larger numbers are not exact in Lua
local COUNTS_TTL = 172800000 -- the counts go with the last lease; this is for what nobody removes
local SWEEP = 16 -- expired leases that one step removes; the reaper comes once for each
local INDEX, ONLINE, IN_CALL = 'presence:v_heartbeat' .. shard, 'presence:online' .. shard, 'presence:incall' .. shard
local STATUS = {online = 'online', away = 'away', offline = 'offline'}
local mended = 0

local now = time_now('')

local function call(command, key, ...)
  local result = redis.pcall(command, key, ...)
  if type(result) ~= 'table' or not result.err then return result end
  if string.sub(result.err, 1, 9) == 'WRONGTYPE' then
    redis.call('UNLINK', key)
    mended = mended + 1
  end
  return redis.call(command, key, ...)
end

-- Returns the id of a user from its name in keys (store/redis/redis_keys.h).
local function user_of(name)
  if not cluster then return name end
  local id = string.sub(name, 2, -2)
  if not string.find(id, '%', 1, true) then return id end
  return (string.gsub(id, '%%(%x%x)', {['25'] = '%', ['7D'] = '}'}))
end

local user, name_in_keys
local user_connections, user_leases, user_lease_counts, user_servers, user_presence, last_seen, history
local function select_user(name)
  user, name_in_keys = user_of(name), name
  user_connections, user_leases = 'user_connections:' .. name, 'user_leases:' .. name
  user_lease_counts, user_servers = 'user_lease_counts:' .. name, 'user_servers:' .. name
  user_presence, last_seen = 'user_presence:' .. name, 'last_seen:' .. name
  history = 'presence_history:' .. name
end

local function connection_key(id)
  return cluster and 'connection:' .. name_in_keys .. ':' .. id or 'connection:' .. id
end

local function later_time(one, other)
  if not parse_time_text(one) then return other end
  return one > other and one or other
end

local function parse_version(text)
  local value = tonumber(text or '0') or 0
  return value >= 0 and value <= VERSION_MAX and value or 0
end

-- Returns what others see of the user: status, in_call, last_seen, version (0 without a record).
local function read_presence()
  local record = redis.pcall('HMGET', user_presence, 'status', 'in_call', 'last_seen', 'version')
  local status = not record.err and STATUS[record[1]]
  if status and status ~= 'offline' then
    return status, record[2] == '1' and '1' or '0', '', parse_version(record[4])
  end
  local seen = status and parse_time_text(record[3])
  if not seen then
    local kept = redis.pcall('GET', last_seen)
    seen = type(kept) == 'string' and parse_time_text(kept) or ''
  end
  return 'offline', '0', seen, status and parse_version(record[4]) or 0
end

-- The reply of a transition script: changed (2 when the user was not offline before), status, in_call, last_seen,
-- version, time, ms of grace that are left, how many values were mended, the user, the server that no longer has
-- the lease, whether the lease ended just now, and the lease that had to give way to an opened one, with its server.
local function transition(changed, status, in_call, seen, version, grace_left, was_here)
  return {changed and (was_here and 2 or 1) or 0, status, in_call, seen, version, now, grace_left or 0, mended, user,
    '', 0, '', ''}
end

local function no_transition()
  return transition(false, read_presence())
end

-- Adds to a count; a count of 0 has no field. Returns the count.
local function add_count(field, by)
  local count = tonumber(string.match(call('HGET', user_lease_counts, field) or '', '^%d+$') or '0') + by
  if count > 0 then
    call('HSET', user_lease_counts, field, count)
  else
    call('HDEL', user_lease_counts, field)
  end
  return count
end

-- Returns the set member of user_leases. It has all that is needed to remove the lease after its record has expired.
local function lease_member(conn, idle, server)
  return conn .. (idle == '1' and ' 1 ' or ' 0 ') .. server
end

local function count_lease(conn, idle, server, due)
  if call('ZADD', user_leases, due, lease_member(conn, idle, server)) == 0 then return end -- it is counted
  if idle == '1' then add_count('idle', 1) end
  if add_count('on:' .. server, 1) == 1 then call('SADD', user_servers, server) end
end

-- Returns false when this lease was not counted.
local function uncount_lease(member)
  if call('ZREM', user_leases, member) == 0 then return false end
  local idle, server = string.match(member, '^%S+ ([01]) (.*)$')
  if idle == '1' then add_count('idle', -1) end
  if server and add_count('on:' .. server, -1) <= 0 then call('SREM', user_servers, server) end
  return true
end

-- Counts from the records of all connections; removes connections without one. Returns the last sign of life of the
-- removed ones, where the index has it.
local function survey_leases()
  local seen
  call('SCARD', user_servers) -- counts a value of the wrong type before it goes
  call('DEL', user_leases, user_lease_counts, user_servers)
  for _, id in ipairs(call('SMEMBERS', user_connections)) do
    local key = connection_key(id)
    local record = call('HMGET', key, 'server_id', 'idle')
    if record[1] then
      local left = call('PTTL', key)
      count_lease(id, record[2], record[1], now + (left >= 0 and left or window))
    else
      call('SREM', user_connections, id)
      local due = call('ZSCORE', INDEX, id .. ':' .. user)
      if due then seen = math.max(seen or 0, tonumber(due) - window) end
    end
  end
  call('PEXPIRE', user_leases, window)
  call('PEXPIRE', user_lease_counts, COUNTS_TTL)
  call('PEXPIRE', user_servers, window)
  return seen
end

-- Makes the counts right before a step changes them. Returns the last sign of life of expired leases, if there are any.
--
-- Only a reaper ends leases that the index has: when this server's clock is set forward, leases of clients who are there
-- have expired, too, and their gateways renew them before a reaper may come.
local function settle_leases(is_reaper)
  local live, seen = call('ZCARD', user_leases), nil
  local counts = call('HLEN', user_lease_counts)
  if call('SCARD', user_connections) ~= live or (counts > 0) ~= (live > 0)
    or live > 0 and counts - call('HEXISTS', user_lease_counts, 'idle') ~= call('SCARD', user_servers)
    or (call('HGET', user_presence, 'device_count') or '0') ~= tostring(live) then
    seen = survey_leases()
  end
  local expired = call('ZRANGEBYSCORE', user_leases, '-inf', now, 'WITHSCORES', 'LIMIT', 0, SWEEP)
  for i = 1, #expired, 2 do
    local id = string.match(expired[i], '^%S+')
    if is_reaper or not call('ZSCORE', INDEX, id .. ':' .. user) then
      uncount_lease(expired[i])
      call('SREM', user_connections, id)
      call('DEL', connection_key(id))
      seen = math.max(seen or 0, tonumber(expired[i + 1]) - window)
    end
  end
  return seen
end

-- Removes a lease with its record; a lease without a record only where it is counted.
local function remove_lease(conn)
  local key = connection_key(conn)
  local record = call('HMGET', key, 'idle', 'server_id')
  call('DEL', key)
  local known = call('SREM', user_connections, conn) == 1
  local counted = record[2] and uncount_lease(lease_member(conn, record[1], record[2]))
  if known and not counted then survey_leases() end
  call('ZREM', INDEX, conn .. ':' .. user)
  if not cluster and record[2] then redis.pcall('SREM', 'server_connections:' .. record[2], conn) end
  return record[2]
end

-- Adds a transition to the history, before the record shows it. That a user came online stands in the record alone
-- until this adds the next transition.
local function add_history(status, version, cause)
  local first, newest = call('HMGET', user_presence, 'updated_at', 'version', 'status'), call('LRANGE', history, 0, 0)[1]
  local is_listed = newest and first[2] and string.find(newest, ' ' .. first[2] .. ' ', 1, true)
  if first[1] and first[2] and first[3] and first[3] ~= 'offline' and not is_listed then
    call('LPUSH', history, table.concat(first, ' ') .. ' connected')
  end
  call('LPUSH', history, string.format('%s %.0f %s %s', time_text(now), version, status, cause))
  call('LTRIM', history, 0, HISTORY_MAX - 1)
  call('PEXPIRE', history, HISTORY_TTL)
end

-- Returns the version after this one. Without a record (0) the last one may have been up to last_seen, a window and
-- RECORD_EXTRA, which a server whose clock is behind has not reached yet.
local function next_version(version)
  local seen_ms = version == 0 and time_ms(call('GET', last_seen)) or 0
  return math.max(version + 1, now, seen_ms > 0 and seen_ms + window + RECORD_EXTRA or 0)
end

-- The only function that turns a user offline.
local function go_offline(version, seen, cause)
  version = next_version(version)
  add_history('offline', version, cause)
  call('HSET', user_presence, 'status', 'offline', 'version', string.format('%.0f', version), 'device_count', 0,
    'updated_at', time_text(now), 'last_seen', seen)
  call('HDEL', user_presence, 'in_call', 'left_at', 'linger_until')
  call('DEL', user_lease_counts)
  call('PEXPIRE', user_presence, window + RECORD_EXTRA)
  call('SET', last_seen, seen)
  call('SREM', ONLINE, user)
  call('SREM', IN_CALL, user)
  return transition(true, 'offline', '0', seen, version)
end

-- The last lease has ended: the grace begins, unless it runs already.
local function start_grace(before, in_call, version, seen, until_ms)
  if until_ms == 0 then
    until_ms = now + grace
    call('ZADD', INDEX, until_ms, ':' .. user)
  end
  call('HSET', user_presence, 'status', before, 'version', string.format('%.0f', version), 'device_count', 0,
    'left_at', seen, 'linger_until', time_text(until_ms))
  call('PEXPIRE', user_presence, until_ms - now + window + RECORD_EXTRA)
  return transition(false, before, in_call, '', version, math.max(until_ms - now, 1))
end

-- Updates the presence record from the counted leases. `seen` is the last sign of life of a lease that ended, nil when
-- none ended. `assumed` is the status that others see when there is no record. A new version is above `floor`, the highest
-- one that the gateway knows of, in case Redis has lost it.
local function update_presence(seen, cause, assumed, floor)
  local live = call('ZCARD', user_leases)
  local record = call('HMGET', user_presence, 'status', 'version', 'in_call', 'left_at', 'linger_until')
  local known = STATUS[record[1]]
  local before, version = known or assumed or 'offline', parse_version(record[2])
  local in_call = record[3] == '1' and '1' or '0'
  if seen then seen = later_time(record[4], seen) end
  if live == 0 then
    if before == 'offline' then return no_transition() end
    seen = seen or time_text(now)
    if grace > 0 then return start_grace(before, in_call, version, seen, time_ms(record[5])) end
    return go_offline(version, seen, cause)
  end
  local status = call('HGET', user_lease_counts, 'idle') == tostring(live) and 'away' or 'online'
  local changed = status ~= before
  if changed or not known then
    version = math.max(next_version(version), (floor or 0) + 1)
    if changed then add_history(status, version, cause) end
    call('HSET', user_presence, 'status', status, 'version', string.format('%.0f', version),
      'updated_at', time_text(now))
  end
  call('HSET', user_presence, 'device_count', live, unpack(seen and {'left_at', seen} or {}))
  call('HDEL', user_presence, 'last_seen', 'linger_until')
  call('PEXPIRE', user_presence, window + RECORD_EXTRA)
  if live == 1 then call('DEL', user_leases, user_lease_counts) end
  return transition(changed, status, in_call, '', version, nil, before ~= 'offline')
end
