-- Registers a lease. ARGV[4..16]: the user, conn_id, user_id, device, server, connected_at, last_heartbeat,
-- idle, since when the gateway has had the user connected, by Redis's clock ('' when it has not); how many leases the
-- user may have ('0' for any number); and of the user's other connections to this gateway the one that has been silent
-- longest ('' for none), with its last sign of life in ms by Redis's clock; and the highest version of the user that the
-- gateway knows of.
--
-- When Redis lost its data, opening a lease of a user whom the gateway has had connected makes no transition: no
-- change to offline was published. But when a reaper turned the user offline in the meantime, it wrote a last_seen
-- later than that time: then the change was published, so the return is a transition.
--
-- When the user has too many leases, the one that was refreshed longest ago is removed, on whichever gateway. A gateway
-- knows its own connections better than the store does, so its own candidate goes instead of its own lease, or of one
-- that was heard later.
select_user(ARGV[4])
local conn, server, known_since = ARGV[5], ARGV[8], ARGV[12]
local key, shown = connection_key(conn), ARGV[11] == '1' and 'away' or 'online'
settle_leases()
local before = call('HMGET', key, 'idle', 'server_id')
if before[2] then uncount_lease(lease_member(conn, before[1], before[2])) end
call('HSET', key, 'user_id', ARGV[6], 'device_id', ARGV[7], 'server_id', server,
  'connected_at', ARGV[9], 'last_heartbeat', ARGV[10], 'idle', ARGV[11])
call('PEXPIRE', key, window)
call('SADD', user_connections, conn)
count_lease(conn, ARGV[11], server, now + window)
call('PEXPIRE', user_connections, window)
call('PEXPIRE', user_leases, window)
call('PEXPIRE', user_lease_counts, COUNTS_TTL)
call('PEXPIRE', user_servers, window)
call('ZADD', INDEX, now + window, conn .. ':' .. user)
call('SADD', ONLINE, user)
if not cluster then
  local server_connections = 'server_connections:' .. server
  call('SADD', server_connections, conn)
  call('PEXPIRE', server_connections, window)
end

-- Returns the lease that gives way to the new one.
local function choose_displaced()
  local oldest = call('ZRANGE', user_leases, 0, 1, 'WITHSCORES')
  local at = string.match(oldest[1], '^%S+') == conn and 3 or 1
  local id, on = string.match(oldest[at], '^(%S+) [01] (.*)$')
  local own, heard = ARGV[14] or '', tonumber(ARGV[15]) or now
  local is_better = own ~= '' and (on == server or heard < tonumber(oldest[at + 1]) - window)
  return is_better and call('SISMEMBER', user_connections, own) == 1 and own or id
end

local live, limit, displaced, displaced_on = call('ZCARD', user_leases), tonumber(ARGV[13] or '0'), '', ''
if limit > 0 and live > limit and live > 1 then
  displaced = choose_displaced()
  displaced_on = remove_lease(displaced) or ''
end
local assumed
if live > 1 then
  assumed = call('HGET', user_lease_counts, 'idle') == tostring(live) and 'away' or 'online'
elseif known_since ~= '' then
  local seen = parse_time_text(call('GET', last_seen) or '')
  assumed = (not seen or seen < known_since) and shown or 'offline'
end
local result = update_presence(nil, 'connected', assumed, parse_version(ARGV[16]))
call(result[3] == '1' and 'SADD' or 'SREM', IN_CALL, user)
result[12], result[13] = displaced, displaced_on
return result
