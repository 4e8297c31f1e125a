-- A connection's record: its user, its gateway, and whether routing finds it.
if not is(key, 'hash') then return answer end
lives_at_most(key, window, 'routing_ttl_bounded')
answer[3] = 1
local owner, server = unpack(redis.call('HMGET', key, 'user_id', 'server_id'))
local user, id = owner, name
if cluster then user, id = string.match(name, '^({[^}]+}):(.+)$') end
if not user or not owner or not server or user ~= name_of(owner) then
  found('well_formed', key .. ' does not name its user and gateway, or names another user')
  return answer
end
for _, field in ipairs({'connected_at', 'last_heartbeat'}) do
  if not string.match(redis.call('HGET', key, field) or '', TIME) then
    found('well_formed', key .. ': ' .. field .. ' is not a time')
  end
end
local siblings = 'user_connections:' .. user
if not is(siblings, 'set') or redis.call('SISMEMBER', siblings, id) == 0 then
  found('multi_device_delivery', siblings .. ' lacks ' .. id .. ', which lives')
end
local held = 'server_connections:' .. server
found_unless('routing_denormalization_consistent', held .. ' lacks ' .. id .. ', which is on that gateway', '1', held,
  'SISMEMBER', held, id)
if cluster then
  local mark = 'connection_user:' .. id
  found_unless('conn_id_uniqueness', mark .. ' does not name ' .. owner, owner, mark, 'GET', mark)
end
local index = 'presence:v_heartbeat' .. shard
found_unless('zombie_prevention', index .. ' lacks ' .. id .. ', so nobody would notice its end', '*', index,
  'ZSCORE', index, id .. ':' .. owner)
return answer
