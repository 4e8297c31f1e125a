-- The beginning of open.lua (and its arguments): opens the first lease of a user who is offline, as most opens do, at a
-- third of the cost. Functions of the preludes are made on every run of a script, so this comes before them. Whatever
-- is not plain (another lease, a grace, a lost record, a value of the wrong type, a clock that went back) changes
-- nothing here and is left to open.lua.
--
-- Numbers are passed to commands as texts, because Redis converts numbers slowly.
--
-- There is no user_leases and no entry of the history yet: a step that needs the first surveys the leases, and the
-- record says all about the transition to online until the next one adds both to the history.
do
  local window, shard, name, conn, user, server = ARGV[1], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[8]
  local cluster = shard ~= ''
  local RECORD_EXTRA = 5000
  local connection = cluster and 'connection:' .. name .. ':' .. conn or 'connection:' .. conn
  local connections, servers, presence = 'user_connections:' .. name, 'user_servers:' .. name, 'user_presence:' .. name
  local call, pcall, mended = redis.call, redis.pcall, 0
  local record = pcall('HMGET', presence, 'status', 'version')
  local seen = pcall('GET', 'last_seen:' .. name)
  local status, before = record[1], tonumber(record[2] or '0')
  local plain = not record.err and (status == 'offline' or not status and not record[2]) and ARGV[12] == ''
    and before and before >= 0 and before <= 9e15 and type(seen) ~= 'table'
    and call('EXISTS', connection, connections, servers, 'user_leases:' .. name) == 0
  local clock = plain and call('TIME')
  local now = clock and clock[1] * 1000 + math.floor(clock[2] / 1000)
  -- Without a record the last version was at most this much later than last_seen.
  if plain and (status or not seen or seen < time_text(now - window - RECORD_EXTRA)) then
    local function put(command, key, ...)
      local done = pcall(command, key, ...)
      if type(done) ~= 'table' then return end
      call('UNLINK', key)
      mended = mended + 1
      call(command, key, ...)
    end
    local shown, version = ARGV[11] == '1' and 'away' or 'online', math.max(before + 1, now, (tonumber(ARGV[16]) or 0) + 1)
    call('HSET', connection, 'user_id', user, 'device_id', ARGV[7], 'server_id', server,
      'connected_at', ARGV[9], 'last_heartbeat', ARGV[10], 'idle', ARGV[11])
    call('PEXPIRE', connection, window)
    call('SADD', connections, conn)
    call('PEXPIRE', connections, window)
    call('SADD', servers, server)
    call('PEXPIRE', servers, window)
    if status then call('DEL', presence) end
    call('HSET', presence, 'status', shown, 'version', string.format('%.0f', version), 'device_count', '1',
      'updated_at', time_text(now))
    call('PEXPIRE', presence, string.format('%.0f', window + RECORD_EXTRA))
    put('ZADD', 'presence:v_heartbeat' .. shard, string.format('%.0f', now + window), conn .. ':' .. user)
    put('SADD', 'presence:online' .. shard, user)
    if not cluster then
      put('SADD', 'server_connections:' .. server, conn)
      call('PEXPIRE', 'server_connections:' .. server, window)
    end
    return {1, shown, '0', '', version, now, 0, mended, user, '', 0, '', ''}
  end
end
