-- Extends leases of users whose slots are all on this server of a cluster. ARGV as renew.lua's, but for each user the end
-- of the names of the slot's sets stands between the user and the number of leases. KEYS[1] is a key of the first user: a
-- script may use keys of other slots that this server serves, but declares those of one.
--
-- Returns one character per lease, as renew.lua does. '?': a slot has moved away, or is moving; renew this user alone, by
-- a script that follows the slot. What was extended here before that was noticed stays so, which does no harm.
local window = ARGV[1]
local record_window = string.format('%.0f', window + 5000) -- user_prelude.lua: RECORD_EXTRA
local call, protected = redis.call, redis.pcall
local clock = call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local due, heartbeat = string.format('%.0f', now + window), time_text(now)

-- Raises the server's error about a slot.
local function renew_user(name, leases, first, count)
  local connections, order = 'user_connections:' .. name, 'user_leases:' .. name
  local id, index, renewed = string.sub(name, 2, -2), {}, {}
  if string.find(id, '%', 1, true) then id = string.gsub(id, '%%(%x%x)', {['25'] = '%', ['7D'] = '}'}) end
  local ordered = call('PEXPIRE', order, window) == 1
  local complete = call('PEXPIRE', connections, window) == 1 and call('PEXPIRE', 'user_servers:' .. name, window) == 1
    and call('PEXPIRE', 'user_presence:' .. name, record_window) == 1
  for i = 1, count do
    local conn = ARGV[first + i - 1]
    local connection = 'connection:' .. name .. ':' .. conn
    local alive = complete and protected('SISMEMBER', connections, conn) == 1
      and call('PEXPIRE', connection, window) == 1
      and type(protected('HSET', connection, 'last_heartbeat', heartbeat)) == 'number'
    if alive and ordered then
      local record = call('HMGET', connection, 'idle', 'server_id')
      local member = record[2] and conn .. (record[1] == '1' and ' 1 ' or ' 0 ') .. record[2]
      alive = member and type(protected('ZSCORE', order, member)) == 'string' and call('ZADD', order, due, member)
    end
    renewed[i] = alive and '1' or '0'
    if alive then index[#index + 1], index[#index + 2] = due, conn .. ':' .. id end
  end
  if #index > 0 and type(protected('ZADD', leases, unpack(index))) ~= 'number' then -- of the wrong type, or a moving slot
    call('UNLINK', leases)
    call('ZADD', leases, unpack(index))
  end
  return table.concat(renewed)
end

local at, replies = 5, {}
while at <= #ARGV do
  local count = tonumber(ARGV[at + 2])
  local done, renewed = pcall(renew_user, ARGV[at], 'presence:v_heartbeat' .. ARGV[at + 1], at + 3, count)
  replies[#replies + 1] = done and renewed or string.rep('?', count)
  at = at + 3 + count
end
return table.concat(replies)
