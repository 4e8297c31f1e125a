-- Stands behind the prelude in the scripts that reap. Ends the lease `conn` of the chosen user, of which the
-- index says that it ran out at `due`; or the user's grace, when conn is empty. Returns the transition, or
-- nil and in how many ms to look again, or nil and nil when there is nothing to end.
local function expire(conn, due)
  if conn == '' then
    local record = redis.call('HMGET', user_presence, 'linger_until', 'left_at', 'version')
    local until_ms = time_ms(record[1])
    if until_ms == 0 or redis.call('SCARD', user_connections) > 0 then return nil, nil end
    if until_ms > now then return nil, until_ms - now end
    return leave(number(record[3]), time_of(record[2]) or time_text(due - grace), 'grace over')
  end
  local left = redis.call('PTTL', connection_key(conn))
  if left == -1 then
    redis.call('PEXPIRE', connection_key(conn), window)
    left = window
  end
  if left > 0 then return nil, left end
  redis.call('SREM', user_connections, conn)
  local live, idle, seen = survey()
  seen = time_text(math.max(seen or 0, due - window))
  local assumed = 'offline'
  if live == 0 then
    -- where the record went first: whoever read it saw offline already, but nobody was told
    local told = time_of(redis.call('GET', last_seen) or '')
    assumed = told and told >= seen and 'offline' or 'online'
  end
  return settle(live, idle, seen, 'expired', assumed)
end

-- A time the index may hold: whatever else stands there counts as just over.
local function due_of(score)
  local due = tonumber(score)
  return due and due > window and due <= now and due or now
end
