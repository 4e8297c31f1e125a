-- Reconciles a user with what a gateway knows of them and Redis may have lost: a lease ended, or viewers were told a
-- version. ARGV[4..11]: the user; conn_id of the lease that ended ('' for none) and when it ended ('' as well), the
-- gateway; since when viewers have been told that the user is connected ('' when they have not), the highest version that
-- they were told; '1' when every gateway has had the time to register its leases again; and the time in ms after which
-- nothing is done, because the gateway has given up waiting. All times are by Redis's clock.
--
-- As long as leases may be missing, nothing is decided about a user whose leases may be among them. Item 11 of the reply is
-- 1 when the lease ended just now, 2 when nothing was decided.
local CLOCK_SLACK = 1000 -- by so many ms a gateway's idea of Redis's clock may change
select_user(ARGV[4])
local conn, left_at, gateway = ARGV[5], parse_time_text(ARGV[6]), ARGV[7]
local told_since, floor = parse_time_text(ARGV[8]), parse_version(ARGV[9])
local record = call('HMGET', user_presence, 'status', 'version', 'device_count')
local status, version = STATUS[record[1]], math.max(next_version(parse_version(record[2])) - 1, floor)
local has_lease = conn ~= '' and call('SISMEMBER', user_connections, conn) == 1

local function is_certain()
  if now > tonumber(ARGV[11]) then return false end
  if ARGV[10] == '1' or status == 'offline' then return true end
  if not status then return false end
  if not has_lease then
    local other = call('SMEMBERS', user_connections)[1] -- any
    return other and call('EXISTS', connection_key(other)) == 1
  end
  local count = call('SCARD', user_connections)
  local expired = call('ZRANGEBYSCORE', user_leases, '-inf', now, 'LIMIT', 0, 2)
  return record[3] == tostring(count) and (count == 1 or call('ZCARD', user_leases) == count)
    and (#expired == 0 or #expired == 1 and string.match(expired[1], '^%S+') == conn)
end

-- The last lease is gone. A last_seen after the time since which the user was connected means that a reaper ended it, and
-- that the change was published. The gateway saw the user later than the reaper could know.
local function end_user()
  local kept = parse_time_text(call('GET', last_seen) or '')
  local is_published = status == 'offline' or not status and (not told_since or kept and kept >= told_since)
  if not is_published then
    local result = go_offline(version, left_at or kept or '', conn == '' and 'lost' or 'disconnected')
    if not (left_at or kept) then
      call('DEL', last_seen)
      call('HDEL', user_presence, 'last_seen')
    end
    return result
  end
  if left_at and (not kept or time_ms(left_at) - time_ms(kept) > CLOCK_SLACK) then
    if status then return go_offline(version, left_at, 'disconnected') end -- viewers were told an earlier time, or none
    call('SET', last_seen, left_at)
  end
  return no_transition()
end

-- Viewers were told a higher version than the record has: they would ignore the record.
local function raise_version(result)
  if result[1] ~= 0 or not status or parse_version(record[2]) >= floor then return result end
  local raised = math.max(version + 1, now)
  call('HSET', user_presence, 'version', string.format('%.0f', raised))
  return transition(true, result[2], result[3], result[4], raised, nil, true)
end

if not is_certain() then
  local result = no_transition()
  result[11] = 2
  return result
end
grace = 0 -- the gateway has waited for it
local server = ''
settle_leases()
if has_lease then
  server = remove_lease(conn) or gateway
elseif conn ~= '' and call('EXISTS', connection_key(conn)) == 0 then
  server = gateway
end
if server ~= '' and not cluster then redis.pcall('SREM', 'server_connections:' .. server, conn) end
local result
if call('ZCARD', user_leases) == 0 then
  result = end_user()
else
  result = update_presence(has_lease and left_at or nil, 'disconnected', told_since and 'online', floor)
end
result = raise_version(result)
result[10], result[11] = server, has_lease and 1 or 0
return result
