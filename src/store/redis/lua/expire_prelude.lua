-- Follows user_prelude.lua in the scripts that reap. Ends the lease `conn` of the selected user, which expired at
-- `due` according to the index; with an empty `conn` it ends the user's grace. Returns the transition; or nil and
-- the ms after which to try again; or nil and nil when there is nothing to end.
local function expire(conn, due)
  if conn == '' then
    local record = call('HMGET', user_presence, 'linger_until', 'left_at', 'version')
    local until_ms = time_ms(record[1])
    if until_ms == 0 or call('SCARD', user_connections) > 0 then return nil, nil end
    if until_ms > now then return nil, until_ms - now end
    return go_offline(parse_version(record[3]), parse_time_text(record[2]) or time_text(due - grace), 'grace over')
  end
  local left_ms = call('PTTL', connection_key(conn))
  if left_ms == -1 then
    call('PEXPIRE', connection_key(conn), window)
    left_ms = window
  end
  if left_ms > 0 then return nil, left_ms end
  local seen = settle_leases(true)
  if call('ZCOUNT', user_leases, '-inf', now) == 0 and call('SREM', user_connections, conn) == 1 then
    survey_leases() -- its record is gone before its time
  end
  seen = time_text(math.max(seen or 0, due - window))
  local assumed = 'offline'
  if call('ZCARD', user_leases) == 0 then
    -- Where the presence record expired first, readers already see offline, but nobody has published it yet.
    local published = parse_time_text(call('GET', last_seen) or '')
    assumed = published and published >= seen and 'offline' or 'online'
  end
  return update_presence(seen, 'expired', assumed)
end

-- Returns the score as a time; a score that no lease can have counts as having just expired.
local function parse_due(score)
  local due = tonumber(score)
  return due and due > window and due <= now and due or now
end
