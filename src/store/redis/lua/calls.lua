-- One call, the truth about it. KEYS[1]: the index of what falls due (sorted set: id by time in ms);
-- KEYS[2]: the call's record (hash).
-- ARGV: operation, time in ms ('': this server's), ring timeout, reconnect grace, lease window; then the
-- operation's own, the call's id first.
--
--   prepare ──► preparing ──commit──► ringing ──answer──► accepted ──► ended, kept for a minute
--                    │ abandon; or its time is over: whoever looks removes it, and commit fails
--                    ▼
--                  nothing
--
-- A call that is not ended is in the index, at the first time at which something about it may fall due. One
-- that ended stays there until the gateway that ended it says that it knows (told), so that if it died
-- before, another tells the parties.
local index, record = KEYS[1], KEYS[2]
local ring_timeout, grace, window = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local PREPARE_MS = 5000
local TOLD_MS = 5000
local KEPT_MS = 60000
local EXTRA_MS = 60000 -- a record outlives what is due about it by so much, for the reaper to find it

local now = time_now(ARGV[2])

local TEXTS = {'id', 'claim', 'state', 'reason', 'caller', 'caller_device', 'caller_conn', 'caller_held',
  'callee', 'callee_device', 'callee_conn', 'callee_held'}
local TIMES = {'due_at', 'caller_due_at', 'callee_due_at', 'started_at', 'answered_at', 'ended_at'}
local STATES = {preparing = true, ringing = true, accepted = true, ended = true}

-- Times in ms, 0 for those that have not come; nil for what is not there, is no call, or ended long ago.
local function load(key)
  local flat = redis.pcall('HGETALL', key)
  if flat.err then return nil end
  local call = {}
  for i = 1, #flat, 2 do call[flat[i]] = flat[i + 1] end
  if not STATES[call.state or ''] then return nil end
  for _, name in ipairs(TEXTS) do call[name] = call[name] or '' end
  for _, name in ipairs(TIMES) do call[name] = time_ms(call[name]) end
  if call.state == 'ended' and call.ended_at + KEPT_MS <= now then return nil end
  return call
end

local function due_at(call)
  if call.state == 'preparing' then return call.due_at end
  if call.state == 'ended' then return now + TOLD_MS end
  if call.state == 'ringing' then return math.min(call.due_at, call.caller_due_at) end
  return call.callee == '' and call.caller_due_at or math.min(call.caller_due_at, call.callee_due_at)
end

local function save(key, call)
  local flat = {}
  for _, name in ipairs(TEXTS) do
    flat[#flat + 1] = name
    flat[#flat + 1] = call[name]
  end
  for _, name in ipairs(TIMES) do
    if call[name] > 0 then
      flat[#flat + 1] = name
      flat[#flat + 1] = time_text(call[name])
    end
  end
  redis.call('HSET', key, unpack(flat))
  local due = due_at(call)
  redis.call('ZADD', index, string.format('%.0f', due), call.id)
  redis.call('PEXPIRE', key, call.state == 'ended' and KEPT_MS or math.max(due - now, 0) + window + EXTRA_MS)
end

local function forget(key, id)
  redis.call('DEL', key)
  redis.call('ZREM', index, id)
end

local function show(result, call)
  return {result, call.id, call.claim, call.state, call.reason, call.caller, call.caller_device,
    call.caller_conn, call.callee, call.callee_device, call.callee_conn, call.started_at, call.answered_at,
    call.ended_at}
end

local NOTHING = {'none'}

local function hold(call, side, device, conn)
  call[side .. '_device'], call[side .. '_conn'], call[side .. '_held'] = device, conn, '1'
  call[side .. '_due_at'] = now + window
end

local function finish(key, call, reason)
  call.state, call.reason, call.ended_at = 'ended', reason, now
  save(key, call)
end

local function accept(call, device, conn)
  hold(call, 'callee', device, conn)
  call.state, call.answered_at = 'accepted', now
  save(record, call)
  return show('done', call)
end

-- The call as a party may know it, and which party that is. With a claim it is the call the user is in, which
-- one that ended is not.
local function find(claim, user)
  local call = load(record)
  if not call or call.state == 'preparing' then return nil end
  if claim ~= '' and (call.claim ~= claim or call.state == 'ended') then return nil end
  if call.caller == user then return call, 'caller' end
  if call.callee == user then return call, 'callee' end
end

local operations = {}

function operations.prepare(id, claim, caller, device, conn, callee)
  if load(record) then return {'taken'} end
  redis.call('DEL', record)
  save(record, {id = id, claim = claim, state = 'preparing', reason = 'none', due_at = now + PREPARE_MS,
    caller = caller, caller_device = device, caller_conn = conn, caller_held = '1', caller_due_at = 0,
    callee = callee, callee_device = '', callee_conn = '', callee_held = '', callee_due_at = 0,
    started_at = 0, answered_at = 0, ended_at = 0})
  return {'prepared'}
end

function operations.commit(id, claim)
  local call = load(record)
  if not call or call.state ~= 'preparing' or call.claim ~= claim then return NOTHING end
  call.state, call.started_at, call.due_at = 'ringing', now, now + ring_timeout
  if call.callee == '' then call.state, call.answered_at = 'accepted', now end
  hold(call, 'caller', call.caller_device, call.caller_conn)
  save(record, call)
  return show('done', call)
end

function operations.abandon(id, claim)
  local call = load(record)
  if call and call.state == 'preparing' and call.claim == claim then forget(record, id) end
  return NOTHING
end

-- Whether a claim's call lives. One that was never committed in time dies here.
function operations.look(id, claim)
  local call = load(record)
  if not call or call.claim ~= claim or call.state == 'ended' then return NOTHING end
  if call.state ~= 'preparing' then return show('done', call) end
  if call.due_at > now then return {'preparing'} end
  forget(record, id)
  return NOTHING
end

function operations.get(id, claim, user)
  local call = find(claim, user)
  return call and show('done', call) or NOTHING
end

function operations.answer(id, claim, user, device, conn)
  local call, side = find(claim, user)
  if not call then return NOTHING end
  if call.state == 'accepted' and side == 'callee' and call.callee_device == device then
    return show('repeated', call)
  end
  if call.state ~= 'ringing' then return show('wrong_state', call) end
  if side ~= 'callee' then return show('wrong_party', call) end
  return accept(call, device, conn)
end

function operations.reject(id, claim, user)
  local call, side = find(claim, user)
  if not call then return NOTHING end
  if call.state ~= 'ringing' then return show('wrong_state', call) end
  if side ~= 'callee' then return show('wrong_party', call) end
  finish(record, call, 'rejected')
  return show('ended', call)
end

operations['end'] = function(id, claim, user)
  local call, side = find(claim, user)
  if not call then return NOTHING end
  if call.state == 'ended' then return show('wrong_state', call) end
  finish(record, call, call.state == 'accepted' and 'hangup' or side == 'callee' and 'rejected' or 'cancelled')
  return show('ended', call)
end

function operations.attach(id, claim, user, device, conn)
  local call, side = find(claim, user)
  if not call then return NOTHING end
  if call[side .. '_device'] ~= device then
    return show(side == 'callee' and call.state == 'ringing' and 'rings' or 'elsewhere', call)
  end
  hold(call, side, device, conn)
  save(record, call)
  return show('done', call)
end

function operations.detach(id, claim, user, conn)
  local call, side = find(claim, user)
  if not call or call[side .. '_held'] ~= '1' or call[side .. '_conn'] ~= conn then return NOTHING end
  call[side .. '_held'], call[side .. '_due_at'] = '0', now + grace
  save(record, call)
  return show('done', call)
end

-- A party whose connection went is taken over by another of the same device.
function operations.renew(id, claim, user, device, conn)
  local call, side = find(claim, user)
  if not call or call[side .. '_device'] ~= device then return NOTHING end
  hold(call, side, device, call[side .. '_held'] == '1' and call[side .. '_conn'] or conn)
  save(record, call)
  return {'renewed'}
end

-- A callee who has not answered has no device, and is not lost.
local function is_lost(call, side)
  return call[side .. '_device'] ~= '' and call[side .. '_due_at'] <= now
end

-- What is due of one call happens. Answers whether the parties are to be told that it ended.
local function reap(key, id)
  local call = load(key)
  if not call then
    forget(key, id)
  elseif call.state == 'preparing' and call.due_at <= now then
    forget(key, id)
  elseif call.state == 'ringing' and call.due_at <= now then
    finish(key, call, 'timeout')
  elseif call.state == 'ended' then
    save(key, call)
  elseif call.state ~= 'preparing' and (is_lost(call, 'caller') or is_lost(call, 'callee')) then
    finish(key, call, 'disconnected')
  else
    save(key, call)
  end
  return call and call.state == 'ended' and call
end

-- What stands before an id in a record's key, and how many at most.
function operations.reap(prefix, max)
  local ended = {}
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', index, '-inf', now, 'LIMIT', 0, max)) do
    local call = reap(prefix .. id, id)
    if call then ended[#ended + 1] = show('ended', call) end
  end
  return ended
end

function operations.told(id)
  redis.call('ZREM', index, id)
  return NOTHING
end

return operations[ARGV[1]](unpack(ARGV, 6))
