-- A call: while it lives, the index has it, so that its end is found, and its users claim to be in it (the callee
-- of an unheard call does not).
local LIVES = {preparing = false, ringing = true, accepted = true}
if not is(key, 'hash') then return answer end
lives_at_most(key, HOUR, 'cache_ttl_bounded')
local record = redis.call('HMGET', key, 'id', 'claim', 'state', 'caller', 'callee', 'unheard')
local id, claim, state = record[1], record[2], record[3]
if state == 'ended' then return answer end
local place = cluster and string.match(name, '^({%d+}:)') or ''
if not id or not claim or LIVES[state or ''] == nil or place .. id ~= name then
  found('well_formed', key .. ' is not a call')
  return answer
end
for _, field in ipairs({'due_at', 'caller_due_at', 'callee_due_at', 'started_at', 'answered_at'}) do
  local time = redis.call('HGET', key, field)
  if time and not string.match(time, TIME) then found('well_formed', key .. ': ' .. field .. ' is not a time') end
end
local index = 'calls:due' .. (cluster and ':' .. string.sub(place, 1, -2) or '')
if not is(index, 'zset') or not redis.call('ZSCORE', index, id) then
  found('calls_end', index .. ' lacks ' .. id .. ', so it would never end')
end
local callee = record[6] ~= '1' and record[5] or ''
for _, user in ipairs(LIVES[state] and {record[4] or '', callee} or {}) do
  if user ~= '' then
    local held = 'user:' .. name_of(user) .. ':call'
    found_unless('one_call_a_user', held .. ' does not name ' .. id .. ', which lives', claim .. id, held, 'GET', held)
  end
end
return answer
