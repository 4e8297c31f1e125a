-- A user: user_connections, user_servers and user_presence must agree with each other and with the records of the
-- connections. Only the first of the three keys that exists is checked, so that each user is checked once.
local connections, servers, presence = 'user_connections:' .. name, 'user_servers:' .. name, 'user_presence:' .. name
for _, earlier in ipairs({connections, servers}) do
  if earlier == key then break end
  if redis.call('EXISTS', earlier) == 1 then return answer end
end
answer[2] = 1

-- The living connections: their number, how many are idle, how many are on which gateway, and the user's id in their
-- records.
local live, idle, where, id_of_user = 0, 0, {}, nil
local leases = 'user_leases:' .. name
local ordered = is(leases, 'zset')
if ordered then lives_at_most(leases, window, 'routing_ttl_bounded') end
if is(connections, 'set') then
  lives_at_most(connections, window, 'routing_ttl_bounded')
  for _, id in ipairs(redis.call('SMEMBERS', connections)) do
    local record = connection_key(name, id)
    local server, owner, flag =
      unpack(is(record, 'hash') and redis.call('HMGET', record, 'server_id', 'user_id', 'idle') or {})
    if server then
      live, where[server], id_of_user = live + 1, (where[server] or 0) + 1, owner
      if flag == '1' then idle = idle + 1 end
      local member = id .. (flag == '1' and ' 1 ' or ' 0 ') .. server
      if ordered and not redis.call('ZSCORE', leases, member) then
        found('multi_device_aggregation', leases .. ' lacks ' .. member .. ', which lives')
      end
    elseif redis.call('EXISTS', record) == 0 then
      found('zombie_prevention', connections .. ' holds ' .. id .. ', whose record is gone')
    end
  end
end

if ordered and redis.call('ZCARD', leases) ~= live then
  found('multi_device_aggregation', leases .. ' has other leases than those connected')
end

-- The counts of the leases, where there are any; without them the next step surveys the leases.
local counts = 'user_lease_counts:' .. name
if is(counts, 'hash') then
  local counted = {}
  local fields = redis.call('HGETALL', counts)
  for i = 1, #fields, 2 do counted[fields[i]] = tonumber(fields[i + 1]) end
  local expected = {idle = idle > 0 and idle or nil}
  for server, count in pairs(where) do expected['on:' .. server] = count end
  for field, count in pairs(expected) do
    if counted[field] ~= count then
      found('multi_device_aggregation', counts .. ': ' .. field .. ' is not the number of connections')
    end
    counted[field] = nil
  end
  for field in pairs(counted) do
    found('multi_device_aggregation', counts .. ': ' .. field .. ' counts connections that are not there')
  end
end

if is(servers, 'set') then
  lives_at_most(servers, window, 'routing_ttl_bounded')
  for _, server in ipairs(redis.call('SMEMBERS', servers)) do
    if not where[server] then
      found('routing_denormalization_consistent', servers .. ' holds ' .. server .. ', where no connection is')
    end
    where[server] = nil
  end
end
for server in pairs(where) do
  found('routing_denormalization_consistent', servers .. ' lacks ' .. server .. ', where a connection is')
end

local status, lingers = 'offline', false
if is(presence, 'hash') then
  local record = redis.call('HMGET', presence, 'status', 'device_count', 'last_seen', 'linger_until', 'updated_at',
    'in_call')
  status, lingers = record[1] or 'offline', record[4]
  if status ~= 'online' and status ~= 'away' and status ~= 'offline' then
    found('well_formed', presence .. ' has the status ' .. status)
  end
  for field, time in pairs({last_seen = record[3], linger_until = lingers, updated_at = record[5]}) do
    if time and not string.match(time, TIME) then found('well_formed', presence .. ': ' .. field .. ' is not a time') end
  end
  if status ~= 'offline' and record[3] then
    found('presence_derives_from_connections', presence .. ' is ' .. status .. ' and has a last_seen')
  end
  if tonumber(record[2] or '0') ~= live then
    found('multi_device_aggregation', presence .. ' counts other devices than those connected')
  end
  local claim = 'user:' .. name .. ':call'
  if record[6] == '1' and not is(claim, 'string') then
    found('in_call_by_a_call', presence .. ' is in a call, but ' .. claim .. ' names none')
  end
  if not lingers then lives_at_most(presence, window + RECORD_EXTRA, 'presence_staleness_bounded') end
end
if live > 0 and status == 'offline' then
  found('presence_derives_from_connections', presence .. ' is offline, but connections live')
elseif live == 0 and status ~= 'offline' and not lingers then
  found('presence_derives_from_connections', presence .. ' is ' .. status .. ', but no connection lives')
end
if live > 0 and status ~= 'offline' and id_of_user then
  local online = 'presence:online' .. shard
  found_unless('presence_derives_from_connections', online .. ' lacks ' .. name .. ', who is ' .. status, '1', online,
    'SISMEMBER', online, id_of_user)
end
return answer
