-- The cached social graph of one user: settings, contacts, blocks and chats, copied from the ledger.
--
-- KEYS of the user: graph (hash: both settings, the length of each list, and the server), friends (set), blocked and chats
-- (lists), presence_visibility (string), ticket (string), blocked_by (list: who blocked the user); then, on a single
-- server, the set of all online users.
-- ARGV: operation, then its own arguments.
--
-- The ticket is a random number that the first miss writes and a drop removes. So a graph that was read from the
-- ledger before a drop is refused after it, even when Redis lost its data in between. The lengths turn a graph that
-- lost one of its keys, or has a foreign value under one, into a miss.
--
-- A graph and a ticket are good only on the server that stored them, as long as it serves without a break: a replica that
-- took over, or a server that read its data again, may have lost a drop, and would show a user to people from whom the
-- user hides by now. Each is stored with the server's replication id, which is another one after either.
local graph, friends, blocked, chats, visibility, ticket, blocked_by, online =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local KEEP_MS = 24 * 60 * 60 * 1000
local FRESH_MS = 300 * 1000
local TICKET_MS = 60 * 1000 -- longer than any read of the ledger takes
local CHUNK = 1000          -- ids per command

local server = '' -- without the right to ask it is always the same one
if ARGV[1] ~= 'drop' then
  local info = redis.pcall('INFO', 'replication')
  local at = type(info) == 'string' and string.find(info, 'master_replid:', 1, true)
  if at then server = string.sub(info, at + 14, at + 53) end
end

-- Most users who connect have no cached graph: they need none of the functions, which are made on every run.
if ARGV[1] == 'lookup' and redis.call('EXISTS', graph) == 0 then
  local current = redis.pcall('GET', ticket)
  local number = type(current) == 'string' and string.match(current, '^(%d+) ' .. server .. '$')
  if type(current) ~= 'table' then
    if not number then redis.call('SET', ticket, ARGV[2] .. ' ' .. server, 'PX', tostring(TICKET_MS)) end
    return {0, number or ARGV[2]}
  end
end

local VISIBILITIES = {everyone = true, contacts_only = true, nobody = true}

local function remove_graph()
  redis.call('DEL', graph, friends, blocked, blocked_by, chats, visibility, ticket)
end

local function get_ticket(fresh)
  local number = string.match(redis.call('GET', ticket) or '', '^(%d+) ' .. server .. '$')
  if number then return number end
  redis.call('SET', ticket, fresh .. ' ' .. server, 'PX', TICKET_MS)
  return fresh
end

local function is_complete(record)
  return VISIBILITIES[record[1]] and VISIBILITIES[record[2]]
    and tonumber(record[3]) == redis.call('SCARD', friends)
    and tonumber(record[4]) == redis.call('LLEN', blocked)
    and tonumber(record[5]) == redis.call('LLEN', blocked_by)
    and tonumber(record[6]) == redis.call('LLEN', chats)
    and record[7] == server
end

local function extend()
  for _, key in ipairs({graph, friends, blocked, blocked_by, chats}) do redis.call('PEXPIRE', key, KEEP_MS) end
end

local operations = {}

-- fresh: a ticket to write if there is none. Returns {0, ticket} on a miss; otherwise {1, ticket, aged,
-- presence_visibility, last_seen_visibility, contacts (only online ones when KEYS has the online set), blocked, blocked_by, chats}.
function operations.lookup(fresh)
  local record = redis.call('HMGET', graph, 'presence_visibility', 'last_seen_visibility',
    'friends', 'blocked', 'blocked_by', 'chats', 'server')
  if not is_complete(record) then return {0, get_ticket(fresh)} end
  local shown = redis.call('GET', visibility)
  local aged = not VISIBILITIES[shown or '']
  if redis.call('PTTL', graph) < KEEP_MS / 2 then extend() end
  return {1, aged and get_ticket(fresh) or '0', aged and 1 or 0, aged and record[1] or shown, record[2],
    online and redis.call('SINTER', friends, online) or redis.call('SMEMBERS', friends),
    redis.call('LRANGE', blocked, 0, -1), redis.call('LRANGE', blocked_by, 0, -1), redis.call('LRANGE', chats, 0, -1)}
end

local function add_ids(command, key, first, count)
  for at = first, first + count - 1, CHUNK do
    redis.call(command, key, unpack(ARGV, at, math.min(at + CHUNK, first + count) - 1))
  end
end

-- ticket, presence_visibility, last_seen_visibility, the number of contacts, blocked users, users who
-- blocked this user, and chats, then their ids.
function operations.put(held, presence, last_seen, contact_count, blocked_count, blocked_by_count, chat_count)
  if redis.call('GET', ticket) ~= held .. ' ' .. server then return 0 end
  contact_count, blocked_count = tonumber(contact_count), tonumber(blocked_count)
  blocked_by_count, chat_count = tonumber(blocked_by_count), tonumber(chat_count)
  redis.call('DEL', graph, friends, blocked, blocked_by, chats)
  local blocked_at = 9 + contact_count
  add_ids('SADD', friends, 9, contact_count)
  add_ids('RPUSH', blocked, blocked_at, blocked_count)
  add_ids('RPUSH', blocked_by, blocked_at + blocked_count, blocked_by_count)
  add_ids('RPUSH', chats, blocked_at + blocked_count + blocked_by_count, chat_count)
  redis.call('HSET', graph, 'presence_visibility', presence, 'last_seen_visibility', last_seen,
    'friends', redis.call('SCARD', friends), 'blocked', blocked_count, 'blocked_by', blocked_by_count,
    'chats', chat_count, 'server', server)
  extend()
  redis.call('SET', visibility, presence, 'PX', FRESH_MS)
  return 1
end

function operations.drop()
  remove_graph()
  return 1
end

-- An operation fails on a foreign value under these keys: remove all of them and report a miss.
local ok, answer = pcall(operations[ARGV[1]], unpack(ARGV, 2, 8))
if ok then return answer end
remove_graph()
return ARGV[1] == 'lookup' and {0, get_ticket(ARGV[2])} or 0
