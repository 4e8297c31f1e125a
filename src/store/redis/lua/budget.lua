-- Pays for one action of a user. KEYS[1]: a string, the time in microseconds at which the budget is full again. The key
-- lives until then, so a user whose budget is full has none. A value that cannot be parsed counts as absent.
--
-- ARGV: time in ms ('' for this server's), the time in which an empty budget fills up, and the cost, in microseconds.
-- Returns {1, 0} when the action is paid for, otherwise {0, ms until the budget suffices}.
local key = KEYS[1]
local now = time_now(ARGV[1]) * 1000
local full, cost = tonumber(ARGV[2]), tonumber(ARGV[3])

if redis.call('TYPE', key).ok ~= 'string' then redis.call('DEL', key) end

-- A clock that was set back must not lock the user out for longer than an empty budget would.
local due = math.min(math.max(tonumber(redis.call('GET', key) or '') or 0, now), now + full) + math.min(cost, full)
if due - now > full then return {0, math.ceil((due - now - full) / 1000)} end
redis.call('SET', key, string.format('%.0f', due), 'PX', math.max(1, math.ceil((due - now) / 1000)))
return {1, 0}
