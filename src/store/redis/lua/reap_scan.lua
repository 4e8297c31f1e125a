-- Finds out in which slots of this server something is due for reap.lua. ARGV: the ends of the names of the slots' sets;
-- KEYS[1] is the index of the first one. Returns the time in ms, and one character per slot: '0': nothing is due.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local at, found = string.format('%.0f', now), {}
local function is_empty(key) -- false: also where the slot has moved, or the value is of the wrong type
  local due = redis.pcall('ZRANGEBYSCORE', key, '-inf', at, 'LIMIT', '0', '1')
  return not due.err and #due == 0
end
for i, suffix in ipairs(ARGV) do
  found[i] = is_empty('presence:v_heartbeat' .. suffix) and is_empty('presence:untold' .. suffix) and '0' or '1'
end
return {now, table.concat(found)}
