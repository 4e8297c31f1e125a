-- Stands before every script of the state store. One call is one atomic transition of one user.
--
-- KEYS: user_connections, user_servers, user_presence, last_seen of the user; then the script's own.
-- ARGV: lease window in ms, offline grace in ms, what stands before and behind a connection's id in its
-- key; then the script's own.
local user_connections, user_servers, user_presence, last_seen = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local window, grace = tonumber(ARGV[1]), tonumber(ARGV[2])
local RECORD_EXTRA = 5000 -- the presence record outlives the leases by so much, for the reaper to see

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

local function connection_key(id)
  return ARGV[3] .. id .. ARGV[4]
end

-- RFC 3339 in UTC with milliseconds (days to civil date as in Howard Hinnant's paper).
local function time_text(ms)
  local days = math.floor(ms / 86400000)
  local rest = ms - days * 86400000
  local z = days + 719468
  local era = math.floor(z / 146097)
  local doe = z - era * 146097
  local yoe = math.floor((doe - math.floor(doe / 1460) + math.floor(doe / 36524) - math.floor(doe / 146096)) / 365)
  local doy = doe - (365 * yoe + math.floor(yoe / 4) - math.floor(yoe / 100))
  local mp = math.floor((5 * doy + 2) / 153)
  local day = doy - math.floor((153 * mp + 2) / 5) + 1
  local month = mp < 10 and mp + 3 or mp - 9
  local year = yoe + era * 400 + (month <= 2 and 1 or 0)
  return string.format('%04d-%02d-%02dT%02d:%02d:%02d.%03dZ', year, month, day,
    math.floor(rest / 3600000), math.floor(rest / 60000) % 60, math.floor(rest / 1000) % 60, rest % 1000)
end

-- Looks at every connection of the user; those whose record has gone leave the set with it. Sets
-- user_servers to what the living say. Returns how many live and how many of them are idle.
local function survey()
  local live, idle, servers, gone = 0, 0, {}, {}
  for _, id in ipairs(redis.call('SMEMBERS', user_connections)) do
    local record = redis.call('HMGET', connection_key(id), 'server_id', 'idle')
    if record[1] then
      live = live + 1
      if record[2] == '1' then idle = idle + 1 end
      servers[record[1]] = true
    else
      gone[#gone + 1] = id
    end
  end
  if #gone > 0 then redis.call('SREM', user_connections, unpack(gone)) end
  for _, server in ipairs(redis.call('SMEMBERS', user_servers)) do
    if not servers[server] then redis.call('SREM', user_servers, server) end
    servers[server] = nil
  end
  for server in pairs(servers) do redis.call('SADD', user_servers, server) end
  return live, idle
end

-- Brings the presence record in line with the leases. `seen` is the last sign of life known, for when
-- nobody lives any more. Returns what state_transition holds: changed, status, in_call, last_seen,
-- version, time; and until when the user lingers, or 0.
local function settle(live, idle, seen)
  local record = redis.call('HMGET', user_presence, 'status', 'version', 'in_call', 'last_seen')
  local before = record[1] or 'offline'
  local version = tonumber(record[2] or '0')
  local in_call = record[3] or '0'
  local status = live == 0 and 'offline' or idle == live and 'away' or 'online'
  local lingers = 0
  if live == 0 and grace > 0 and before ~= 'offline' then
    lingers = now + grace
    redis.call('HSET', user_presence, 'linger_until', lingers, 'left_at', time_text(seen), 'device_count', 0)
    redis.call('PEXPIRE', user_presence, grace + window + RECORD_EXTRA)
    return {0, before, in_call, '', version, now, lingers}
  end
  local changed = status ~= before
  if changed then
    version = math.max(version + 1, now)
    redis.call('HSET', user_presence, 'status', status, 'version', version, 'updated_at', time_text(now))
    if status == 'offline' then in_call = '0' end
  end
  redis.call('HSET', user_presence, 'device_count', live)
  redis.call('HDEL', user_presence, 'linger_until', 'left_at', unpack(status == 'offline' and {'in_call'} or {'last_seen'}))
  local last = ''
  if status == 'offline' then
    last = changed and time_text(seen) or record[4] or ''
    if changed then
      redis.call('HSET', user_presence, 'last_seen', last)
      redis.call('SET', last_seen, last)
    end
  end
  redis.call('PEXPIRE', user_presence, window + RECORD_EXTRA)
  return {changed and 1 or 0, status, in_call, last, version, now, lingers}
end

local function refresh_sets()
  redis.call('PEXPIRE', user_connections, window)
  redis.call('PEXPIRE', user_servers, window)
end
