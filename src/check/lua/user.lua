-- A user: user_connections, user_servers and user_presence must agree with each other and with the records of the
-- connections. Only the first of the three keys that exists is checked, so that each user is checked once.
local connections, servers, presence = 'user_connections:' .. name, 'user_servers:' .. name, 'user_presence:' .. name
for _, earlier in ipairs({connections, servers}) do
  if earlier == key then break end
  if redis.call('EXISTS', earlier) == 1 then return answer end
end
answer[2] = 1

-- The living connections: their number, their gateways, and the user's id in their records.
local live, where, id_of_user = 0, {}, nil
if is(connections, 'set') then
  lives_at_most(connections, window, 'routing_ttl_bounded')
  for _, id in ipairs(redis.call('SMEMBERS', connections)) do
    local record = connection_key(name, id)
    local server, owner = unpack(is(record, 'hash') and redis.call('HMGET', record, 'server_id', 'user_id') or {})
    if server then
      live, where[server], id_of_user = live + 1, true, owner
    elseif redis.call('EXISTS', record) == 0 then
      found('zombie_prevention', connections .. ' holds ' .. id .. ', whose record is gone')
    end
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
  local online = 'presence:online' .. (cluster and shard_of(id_of_user) or '')
  found_unless('presence_derives_from_connections', online .. ' lacks ' .. name .. ', who is ' .. status, '1', online,
    'SISMEMBER', online, id_of_user)
end
return answer
