-- Updates one shard of the lease index, on a cluster. KEYS: the shard, its lock. ARGV[1]: the reaper that gives up
-- the lock, or ''; then for each entry: the set member, its ms to live from now ('' removes it), and the score it must
-- still have ('' for any). The score keeps a reaper from removing a lease that was renewed in the meantime.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'zset' and kind ~= 'none' then redis.call('UNLINK', KEYS[1]) end
local added, removed = {}, {}
for at = 2, #ARGV, 3 do
  local member, ms, score = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  if score == '' or redis.call('ZSCORE', KEYS[1], member) == score then
    if ms == '' then
      removed[#removed + 1] = member
    else
      added[#added + 1], added[#added + 2] = now + ms, member
    end
  end
end
if #removed > 0 then redis.call('ZREM', KEYS[1], unpack(removed)) end
if #added > 0 then redis.call('ZADD', KEYS[1], unpack(added)) end
if ARGV[1] ~= '' and redis.call('GET', KEYS[2]) == ARGV[1] then redis.call('DEL', KEYS[2]) end
return 1
