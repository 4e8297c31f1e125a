-- A shard of the index of leases on a cluster. KEYS: the shard, who reaps it. ARGV[1]: whoever is done with
-- reaping it, or ''; then of each entry: member, for how many ms from now ('': it goes), and the score it
-- must still have ('': any), so that what was reaped takes nothing away that came back meanwhile.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'zset' and kind ~= 'none' then redis.call('UNLINK', KEYS[1]) end
local entered, left = {}, {}
for at = 2, #ARGV, 3 do
  local member, ms, score = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  if score == '' or redis.call('ZSCORE', KEYS[1], member) == score then
    if ms == '' then
      left[#left + 1] = member
    else
      entered[#entered + 1], entered[#entered + 2] = now + ms, member
    end
  end
end
if #left > 0 then redis.call('ZREM', KEYS[1], unpack(left)) end
if #entered > 0 then redis.call('ZADD', KEYS[1], unpack(entered)) end
if ARGV[1] ~= '' and redis.call('GET', KEYS[2]) == ARGV[1] then redis.call('DEL', KEYS[2]) end
return 1
