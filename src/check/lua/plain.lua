-- A value that stands for itself. ARGV[5..7]: its type, how long it may live in ms ('' : for ever), what it may
-- be ('time', 'visibility' or '').
if not is(key, ARGV[5]) then return answer end
if ARGV[6] ~= '' then lives_at_most(key, tonumber(ARGV[6]), 'cache_ttl_bounded') end
local value = ARGV[7] ~= '' and redis.call('GET', key)
if ARGV[7] == 'time' and not string.match(value, TIME) then
  found('well_formed', key .. ' is no time')
elseif ARGV[7] == 'visibility' and value ~= 'everyone' and value ~= 'contacts_only' and value ~= 'nobody' then
  found('privacy_enforced', key .. ' is no visibility')
end
return answer
