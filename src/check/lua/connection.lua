-- A connection's record: whose and where it is, and whether routing would find it.
if not is(key, 'hash') then return answer end
lives_at_most(key, window, 'routing_ttl_bounded')
answer[3] = 1
local user, id
if cluster then
  user, id = string.match(name, '^({[^}]+}):(.+)$')
else
  user, id = redis.call('HGET', key, 'user_id'), name
end
local server = redis.call('HGET', key, 'server_id')
if not user or not server then
  found('well_formed', key .. ' does not say whose or where it is')
  return answer
end
for _, field in ipairs({'connected_at', 'last_heartbeat'}) do
  if not string.match(redis.call('HGET', key, field) or '', TIME) then
    found('well_formed', key .. ': ' .. field .. ' is no time')
  end
end
local siblings = 'user_connections:' .. user
if not is(siblings, 'set') or redis.call('SISMEMBER', siblings, id) == 0 then
  found('multi_device_delivery', siblings .. ' lacks ' .. id .. ', which lives')
end
return answer
