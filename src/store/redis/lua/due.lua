-- What has run out in a shard of the index, for one gateway at a time. KEYS: the shard, who reaps it. ARGV: who
-- asks, for how long in ms it may reap alone, how many at most, how long a member may be. One that is longer is
-- nobody's and goes at once. Answers with how many are overdue, how many went so, then of each member, score,
-- and for how many ms it has been due.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
if redis.call('TYPE', KEYS[1]).ok ~= 'zset' then return {0, 0} end
local result = {redis.call('ZCOUNT', KEYS[1], '-inf', now), 0}
if result[1] == 0 or not redis.call('SET', KEYS[2], ARGV[1], 'NX', 'PX', ARGV[2]) then return result end
local rows = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'WITHSCORES', 'LIMIT', 0, tonumber(ARGV[3]))
for i = 1, #rows, 2 do
  if #rows[i] > tonumber(ARGV[4]) then
    redis.call('ZREM', KEYS[1], rows[i])
    result[1], result[2] = result[1] - 1, result[2] + 1
  else
    local due = math.max(tonumber(rows[i + 1]), 0)
    result[#result + 1] = rows[i]
    result[#result + 1] = rows[i + 1]
    result[#result + 1] = string.format('%.0f', now - due)
  end
end
if #result == 2 then redis.call('DEL', KEYS[2]) end -- nothing is left to reap
return result
