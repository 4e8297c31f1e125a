-- The circle of one user: settings, contacts, blocks and chats, a copy of what the ledger knows.
--
-- KEYS: circle (hash: both settings and how many of each list there are), friends (set), blocked and chats
-- (lists), presence_visibility (string), ticket (string) of the user; then, where a server has it, the set
-- of all who are online.
-- ARGV: operation, then the operation's own.
--
-- The ticket is a random number that the first miss writes and a drop removes: what was read from the ledger
-- before a drop is refused after it, also by a server that was emptied meanwhile. The counts make a circle of
-- which a part has gone, or never was ours, a miss.
local circle, friends, blocked, chats, visibility, ticket =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local KEPT_MS = 24 * 60 * 60 * 1000
local FRESH_MS = 300 * 1000
local TICKET_MS = 60 * 1000 -- longer than any reading of the ledger takes
local CHUNK = 1000          -- ids of one command

local VISIBILITIES = {everyone = true, contacts_only = true, nobody = true}

local function forget()
  redis.call('DEL', circle, friends, blocked, chats, visibility, ticket)
end

local function take_ticket(fresh)
  local held = redis.call('GET', ticket)
  if held then return held end
  redis.call('SET', ticket, fresh, 'PX', TICKET_MS)
  return fresh
end

local function is_whole(record)
  return VISIBILITIES[record[1]] and VISIBILITIES[record[2]]
    and tonumber(record[3]) == redis.call('SCARD', friends)
    and tonumber(record[4]) == redis.call('LLEN', blocked)
    and tonumber(record[5]) == redis.call('LLEN', chats)
end

local function keep()
  for _, key in ipairs({circle, friends, blocked, chats}) do redis.call('PEXPIRE', key, KEPT_MS) end
end

local operations = {}

-- A ticket to use if there is none. Answers {0, ticket}; or {1, ticket, aged, presence_visibility,
-- last_seen_visibility, contacts (online, where KEYS names who is), blocked, chats}.
function operations.audience(fresh)
  local record = redis.call('HMGET', circle, 'presence_visibility', 'last_seen_visibility',
    'friends', 'blocked', 'chats')
  if not is_whole(record) then return {0, take_ticket(fresh)} end
  local shown = redis.call('GET', visibility)
  local aged = not VISIBILITIES[shown or '']
  if redis.call('PTTL', circle) < KEPT_MS / 2 then keep() end
  return {1, aged and take_ticket(fresh) or '0', aged and 1 or 0, aged and record[1] or shown, record[2],
    KEYS[7] and redis.call('SINTER', friends, KEYS[7]) or redis.call('SMEMBERS', friends),
    redis.call('LRANGE', blocked, 0, -1), redis.call('LRANGE', chats, 0, -1)}
end

local function add(command, key, first, count)
  for at = first, first + count - 1, CHUNK do
    redis.call(command, key, unpack(ARGV, at, math.min(at + CHUNK, first + count) - 1))
  end
end

-- ticket, presence_visibility, last_seen_visibility, how many contacts, blocks and chats, then those.
function operations.put(held, presence, last_seen, contact_count, blocked_count, chat_count)
  if redis.call('GET', ticket) ~= held then return 0 end
  contact_count, blocked_count, chat_count =
    tonumber(contact_count), tonumber(blocked_count), tonumber(chat_count)
  redis.call('DEL', circle, friends, blocked, chats)
  add('SADD', friends, 8, contact_count)
  add('RPUSH', blocked, 8 + contact_count, blocked_count)
  add('RPUSH', chats, 8 + contact_count + blocked_count, chat_count)
  redis.call('HSET', circle, 'presence_visibility', presence, 'last_seen_visibility', last_seen,
    'friends', redis.call('SCARD', friends), 'blocked', blocked_count, 'chats', chat_count)
  keep()
  redis.call('SET', visibility, presence, 'PX', FRESH_MS)
  return 1
end

function operations.drop()
  forget()
  return 1
end

-- What is not ours under these keys goes, and counts as not there.
local done, answer = pcall(operations[ARGV[1]], unpack(ARGV, 2, 7))
if done then return answer end
forget()
return ARGV[1] == 'audience' and {0, take_ticket(ARGV[2])} or 0
