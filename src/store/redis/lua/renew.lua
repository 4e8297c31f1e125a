-- Extends leases. ARGV[1]: lease window in ms; ARGV[3]: as in user_prelude.lua; ARGV[4]: the gateway that has them; then
-- for each user: the user as written in keys, how many leases, and their conn_ids. This is the most frequent script, so it needs no prelude but time_text.lua.
--
-- Returns one character per lease, '1' or '0'. '0': Redis no longer has the lease, or lost a part of the user's
-- keys; opening the lease again restores them. Only users with several leases have user_leases.
local window, shard = ARGV[1], ARGV[3]
local cluster = shard ~= ''
local record_window = string.format('%.0f', window + 5000) -- user_prelude.lua: RECORD_EXTRA
local call, pcall = redis.call, redis.pcall
local clock = call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local due, heartbeat = string.format('%.0f', now + window), time_text(now) -- texts: Redis converts numbers slowly
local index, conns, renewed, names, starts, orders = {}, {}, {}, {}, {}, {}

local at = 5
while at <= #ARGV do
  local user = #names + 1
  names[user], starts[user], orders[user] = ARGV[at], at, 'user_leases:' .. ARGV[at]
  at = at + 2 + ARGV[at + 1]
end
local any_ordered = #orders == 1 or #orders > 1 and call('EXISTS', unpack(orders)) > 0

for user, name in ipairs(names) do
  local first, start, count = #renewed, starts[user] + 1, tonumber(ARGV[starts[user] + 1])
  local connections, order, id = 'user_connections:' .. name, orders[user], name
  if cluster then
    id = string.sub(name, 2, -2)
    if string.find(id, '%', 1, true) then id = string.gsub(id, '%%(%x%x)', {['25'] = '%', ['7D'] = '}'}) end
  end
  local ordered = any_ordered and call('PEXPIRE', order, window) == 1
  local complete = call('PEXPIRE', connections, window) == 1 and call('PEXPIRE', 'user_servers:' .. name, window) == 1
    and call('PEXPIRE', 'user_presence:' .. name, record_window) == 1
  for i = 1, count do
    local conn = ARGV[start + i]
    local connection = cluster and 'connection:' .. name .. ':' .. conn or 'connection:' .. conn
    local alive = complete and pcall('SISMEMBER', connections, conn) == 1 and call('PEXPIRE', connection, window) == 1
      and type(pcall('HSET', connection, 'last_heartbeat', heartbeat)) == 'number'
    if alive and ordered then
      local record = call('HMGET', connection, 'idle', 'server_id')
      local member = record[2] and conn .. (record[1] == '1' and ' 1 ' or ' 0 ') .. record[2]
      alive = member and type(pcall('ZSCORE', order, member)) == 'string' and call('ZADD', order, due, member)
    end
    renewed[first + i] = alive and '1' or '0'
    if alive then
      local n = #conns + 1
      index[2 * n - 1], index[2 * n], conns[n] = due, conn .. ':' .. id, conn
    end
  end
end

if #conns > 0 then
  local leases = 'presence:v_heartbeat' .. shard
  if type(pcall('ZADD', leases, unpack(index))) ~= 'number' then -- of the wrong type
    call('UNLINK', leases)
    call('ZADD', leases, unpack(index))
  end
  if not cluster and ARGV[4] ~= '' then
    local key = 'server_connections:' .. ARGV[4]
    local held = call('PEXPIRE', key, window) == 1 and pcall('SMISMEMBER', key, unpack(conns)) or {0}
    local complete = not held.err
    for i = 1, #held do complete = complete and held[i] == 1 end
    if not complete then -- it was lost, or a part of it
      if type(pcall('SADD', key, unpack(conns))) ~= 'number' then
        call('UNLINK', key)
        call('SADD', key, unpack(conns))
      end
      call('PEXPIRE', key, window)
    end
  end
end
return table.concat(renewed)
