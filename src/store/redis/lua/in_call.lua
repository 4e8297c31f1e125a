-- Sets whether a user is in a call. ARGV[4..5]: the user, '1' or '0'. An offline user is in no call.
select_user(ARGV[4])
local status, in_call, _, version = read_presence()
if status == 'offline' or in_call == ARGV[5] then return no_transition() end
version = math.max(version + 1, now)
add_history(status, version, ARGV[5] == '1' and 'call started' or 'call ended')
call('HSET', user_presence, 'in_call', ARGV[5], 'version', string.format('%.0f', version),
  'updated_at', time_text(now))
call(ARGV[5] == '1' and 'SADD' or 'SREM', IN_CALL, user)
return transition(true, status, ARGV[5], '', version)
