-- The beginning of close.lua (and its arguments): ends the only lease of a user, as most closes do, without a grace.
-- See open_first.lua. Whatever is not plain changes nothing here and is left to close.lua.
do
  local shard, name, conn = ARGV[3], ARGV[4], ARGV[5]
  local cluster = shard ~= ''
  local RECORD_EXTRA, HISTORY_MAX, HISTORY_TTL = 5000, 32, '3600000'
  local connection = cluster and 'connection:' .. name .. ':' .. conn or 'connection:' .. conn
  local connections, presence, history = 'user_connections:' .. name, 'user_presence:' .. name, 'presence_history:' .. name
  local call, pcall, mended = redis.call, redis.pcall, 0
  local ids = ARGV[2] == '0' and pcall('SMEMBERS', connections) or {}
  local owner = #ids == 1 and ids[1] == conn and pcall('HMGET', connection, 'server_id', 'user_id') or {}
  local server, user = owner[1], owner[2]
  local record = server and user and call('EXISTS', 'user_leases:' .. name) == 0
    and pcall('HMGET', presence, 'status', 'version', 'device_count', 'updated_at') or {}
  local before = tonumber(record[2] or '')
  if (record[1] == 'online' or record[1] == 'away') and record[3] == '1'
    and before and before >= 0 and before <= 9e15 then
    local function put(command, key, ...)
      local done = pcall(command, key, ...)
      if type(done) ~= 'table' or not done.err then return done end
      call('UNLINK', key)
      mended = mended + 1
      return call(command, key, ...)
    end
    local clock = call('TIME')
    local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
    local seen, version = time_text(now), math.max(before + 1, now)
    local version_text = string.format('%.0f', version)
    call('DEL', connection, connections, 'user_servers:' .. name, 'user_lease_counts:' .. name, presence)
    call('HSET', presence, 'status', 'offline', 'version', version_text, 'device_count', '0', 'updated_at', seen,
      'last_seen', seen)
    call('PEXPIRE', presence, string.format('%.0f', ARGV[1] + RECORD_EXTRA))
    call('SET', 'last_seen:' .. name, seen)
    put('ZREM', 'presence:v_heartbeat' .. shard, conn .. ':' .. user)
    put('SREM', 'presence:online' .. shard, user)
    put('SREM', 'presence:incall' .. shard, user)
    if not cluster then put('SREM', 'server_connections:' .. server, conn) end
    local entry, length = seen .. ' ' .. version_text .. ' offline disconnected', nil
    local newest = put('LRANGE', history, '0', '0')[1]
    if record[4] and not (newest and string.find(newest, ' ' .. record[2] .. ' ', 1, true)) then
      length = put('LPUSH', history, record[4] .. ' ' .. record[2] .. ' ' .. record[1] .. ' connected', entry)
    else
      length = put('LPUSH', history, entry)
    end
    if length > HISTORY_MAX then call('LTRIM', history, 0, HISTORY_MAX - 1) end
    call('PEXPIRE', history, HISTORY_TTL)
    return {1, 'offline', '0', seen, version, now, 0, mended, user, server, 1, '', ''}
  end
end
