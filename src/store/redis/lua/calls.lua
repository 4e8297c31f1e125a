-- The record of one call: the only authority on its state. KEYS[1]: the index of deadlines (sorted set: id by time
-- in ms); KEYS[2]: the call's record (hash).
-- ARGV: operation, time in ms ('' for this server's), ring timeout, reconnect grace, lease window; then the
-- operation's own arguments, first the call's id and the nonce of its claim, which is the record's field `claim`.
--
--   prepare ──► preparing ──commit──► ringing ──answer──► accepted ──► ended, kept for a minute
--                    │ abandon; or it timed out: the next check removes it, and its commit fails
--                    ▼
--                 removed
--
-- The callee of a call whose field `unheard` is 1 is no party of it: no operation of that user finds the call.
--
-- A call that has not ended is in the index with its earliest deadline. An ended call stays in the index until the
-- gateway that ended it acknowledges the end: if that gateway dies first, another one notifies the parties.
local index, record = KEYS[1], KEYS[2]
local ring_timeout, grace, window = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local PREPARE_MS = 5000
local ACKNOWLEDGE_MS = 5000
local KEPT_MS = 60000
local EXTRA_MS = 60000 -- a record outlives its deadline by this much, so that the reaper still finds it

local now = time_now(ARGV[2])

local TEXTS = {'id', 'claim', 'state', 'reason', 'caller', 'caller_device', 'caller_conn', 'caller_held',
  'callee', 'callee_device', 'callee_conn', 'callee_held', 'unheard'}
local TIMES = {'due_at', 'caller_due_at', 'callee_due_at', 'started_at', 'answered_at', 'ended_at'}
local STATES = {preparing = true, ringing = true, accepted = true, ended = true}

-- Returns the call with its times in ms (0 when unset); nil when there is no record, it is not a call, or it ended
-- more than KEPT_MS ago.
local function load_call(key)
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

local function deadline(call)
  if call.state == 'preparing' then return call.due_at end
  if call.state == 'ended' then return now + ACKNOWLEDGE_MS end
  if call.state == 'ringing' then return math.min(call.due_at, call.caller_due_at) end
  return call.callee == '' and call.caller_due_at or math.min(call.caller_due_at, call.callee_due_at)
end

local function save_call(key, call)
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
  local due = deadline(call)
  redis.call('ZADD', index, string.format('%.0f', due), call.id)
  redis.call('PEXPIRE', key, call.state == 'ended' and KEPT_MS or math.max(due - now, 0) + window + EXTRA_MS)
end

local function remove_call(key, id)
  redis.call('DEL', key)
  redis.call('ZREM', index, id)
end

local function reply(result, call)
  return {result, call.id, call.claim, call.state, call.reason, call.caller, call.caller_device,
    call.caller_conn, call.callee, call.callee_device, call.callee_conn, call.started_at, call.answered_at,
    call.ended_at, call.unheard}
end

local NOT_FOUND = {'none'}

local function attach_side(call, side, device, conn)
  call[side .. '_device'], call[side .. '_conn'], call[side .. '_held'] = device, conn, '1'
  call[side .. '_due_at'] = now + window
end

local function end_call(key, call, reason)
  call.state, call.reason, call.ended_at = 'ended', reason, now
  save_call(key, call)
end

local function accept(call, device, conn)
  attach_side(call, 'callee', device, conn)
  call.state, call.answered_at = 'accepted', now
  save_call(record, call)
  return reply('done', call)
end

-- Returns the call and the user's side in it, nil when the user is no party of it. With a nonce, it must also be the
-- claimed call, and one that has not ended.
local function find_call(nonce, user)
  local call = load_call(record)
  if not call or call.state == 'preparing' then return nil end
  if nonce ~= '' and (call.claim ~= nonce or call.state == 'ended') then return nil end
  if call.caller == user then return call, 'caller' end
  if call.callee == user and call.unheard == '' then return call, 'callee' end
end

local operations = {}

function operations.prepare(id, nonce, caller, device, conn, callee, unheard)
  if load_call(record) then return {'taken'} end
  redis.call('DEL', record)
  save_call(record, {id = id, claim = nonce, state = 'preparing', reason = 'none', due_at = now + PREPARE_MS,
    caller = caller, caller_device = device, caller_conn = conn, caller_held = '1', caller_due_at = 0,
    callee = callee, callee_device = '', callee_conn = '', callee_held = '', callee_due_at = 0,
    unheard = unheard, started_at = 0, answered_at = 0, ended_at = 0})
  return {'prepared'}
end

function operations.commit(id, nonce)
  local call = load_call(record)
  if not call or call.state ~= 'preparing' or call.claim ~= nonce then return NOT_FOUND end
  call.state, call.started_at, call.due_at = 'ringing', now, now + ring_timeout
  if call.callee == '' then call.state, call.answered_at = 'accepted', now end
  attach_side(call, 'caller', call.caller_device, call.caller_conn)
  save_call(record, call)
  return reply('done', call)
end

function operations.abandon(id, nonce)
  local call = load_call(record)
  if call and call.state == 'preparing' and call.claim == nonce then remove_call(record, id) end
  return NOT_FOUND
end

-- Checks whether a claim's call is alive. A call that was not committed in time is removed here, so that its commit
-- fails.
function operations.check(id, nonce)
  local call = load_call(record)
  if not call or call.claim ~= nonce or call.state == 'ended' then return NOT_FOUND end
  if call.state ~= 'preparing' then return reply('done', call) end
  if call.due_at > now then return {'preparing'} end
  remove_call(record, id)
  return NOT_FOUND
end

function operations.get(id, nonce, user)
  local call = find_call(nonce, user)
  return call and reply('done', call) or NOT_FOUND
end

function operations.answer(id, nonce, user, device, conn)
  local call, side = find_call(nonce, user)
  if not call then return NOT_FOUND end
  if call.state == 'accepted' and side == 'callee' and call.callee_device == device then
    return reply('repeated', call)
  end
  if call.state ~= 'ringing' then return reply('wrong_state', call) end
  if side ~= 'callee' then return reply('wrong_party', call) end
  return accept(call, device, conn)
end

function operations.reject(id, nonce, user)
  local call, side = find_call(nonce, user)
  if not call then return NOT_FOUND end
  if call.state ~= 'ringing' then return reply('wrong_state', call) end
  if side ~= 'callee' then return reply('wrong_party', call) end
  end_call(record, call, 'rejected')
  return reply('ended', call)
end

operations['end'] = function(id, nonce, user)
  local call, side = find_call(nonce, user)
  if not call then return NOT_FOUND end
  if call.state == 'ended' then return reply('wrong_state', call) end
  end_call(record, call, call.state == 'accepted' and 'hangup' or side == 'callee' and 'rejected' or 'cancelled')
  return reply('ended', call)
end

function operations.attach(id, nonce, user, device, conn)
  local call, side = find_call(nonce, user)
  if not call then return NOT_FOUND end
  if call[side .. '_device'] ~= device then
    return reply(side == 'callee' and call.state == 'ringing' and 'rings' or 'elsewhere', call)
  end
  attach_side(call, side, device, conn)
  save_call(record, call)
  return reply('done', call)
end

function operations.detach(id, nonce, user, conn)
  local call, side = find_call(nonce, user)
  if not call or call[side .. '_held'] ~= '1' or call[side .. '_conn'] ~= conn then return NOT_FOUND end
  call[side .. '_held'], call[side .. '_due_at'] = '0', now + grace
  save_call(record, call)
  return reply('done', call)
end

-- A party that lost its connection is attached to this other connection of the same device.
function operations.renew(id, nonce, user, device, conn)
  local call, side = find_call(nonce, user)
  if not call or call[side .. '_device'] ~= device then return NOT_FOUND end
  attach_side(call, side, device, call[side .. '_held'] == '1' and call[side .. '_conn'] or conn)
  save_call(record, call)
  return {'renewed'}
end

-- A callee who has not answered has no device yet, and cannot be lost.
local function is_lost(call, side)
  return call[side .. '_device'] ~= '' and call[side .. '_due_at'] <= now
end

-- Applies the deadlines of one call. Returns the call if the parties must be notified that it ended.
local function reap_call(key, id)
  local call = load_call(key)
  if not call then
    remove_call(key, id)
  elseif call.state == 'preparing' and call.due_at <= now then
    remove_call(key, id)
  elseif call.state == 'ringing' and call.due_at <= now then
    end_call(key, call, 'timeout')
  elseif call.state == 'ended' then
    save_call(key, call)
  elseif call.state ~= 'preparing' and (is_lost(call, 'caller') or is_lost(call, 'callee')) then
    end_call(key, call, 'disconnected')
  else
    save_call(key, call)
  end
  return call and call.state == 'ended' and call
end

-- prefix: what precedes the id in a record's key; max: how many calls at most.
function operations.reap(prefix, max)
  local ended = {}
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', index, '-inf', now, 'LIMIT', 0, max)) do
    local call = reap_call(prefix .. id, id)
    if call then ended[#ended + 1] = reply('ended', call) end
  end
  return ended
end

-- The gateway that ended the call has notified the parties.
function operations.acknowledge(id)
  redis.call('ZREM', index, id)
  return NOT_FOUND
end

return operations[ARGV[1]](unpack(ARGV, 6))
