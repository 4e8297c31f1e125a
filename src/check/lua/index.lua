-- An index of leases or calls by due time: they are reaped at once, so nothing in it is long overdue.
local OVERDUE = 2000
local SHOWN = 10
if not is(key, 'zset') then return answer end
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
for _, entry in ipairs(redis.call('ZRANGEBYSCORE', key, '-inf', now - OVERDUE, 'LIMIT', 0, SHOWN)) do
  found('zombie_prevention', key .. ' holds ' .. entry .. ', which is overdue and was not reaped')
end
return answer
