-- Locks one shard of the lease index for a reaper and lists its overdue entries, on a cluster. KEYS: the shard,
-- its lock. ARGV: the reaper, how long it may hold the lock in ms, how many entries at most, and the longest
-- set member allowed. A longer one cannot be ours and is removed at once.
--
-- Returns how many entries are overdue, how many were removed, and then for each entry its set member, its score and
-- for how many ms it has been overdue. Returns no entries while another reaper holds the lock.
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
if #result == 2 then redis.call('DEL', KEYS[2]) end -- nothing to reap: unlock at once
return result
