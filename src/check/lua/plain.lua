-- A key that is checked by itself. ARGV[5..7]: its type ('': any), its longest time to live in ms ('': forever), its
-- kind of value ('time', 'visibility', 'graph': a key of a user's social graph, or '').
local GRAPH_KEYS = {friends = true, circle = true, blocked = true, blocked_by = true, chats = true}
local what = ARGV[7]
if what == 'graph' and not GRAPH_KEYS[string.match(name, ':(%a+)$') or ''] then return answer end
if ARGV[5] ~= '' and not is(key, ARGV[5]) then return answer end
if ARGV[6] ~= '' then lives_at_most(key, tonumber(ARGV[6]), 'cache_ttl_bounded') end
local value = (what == 'time' or what == 'visibility') and redis.call('GET', key)
if what == 'time' and not string.match(value, TIME) then
  found('well_formed', key .. ' is not a time')
elseif what == 'visibility' and value ~= 'everyone' and value ~= 'contacts_only' and value ~= 'nobody' then
  found('privacy_enforced', key .. ' is not a visibility')
end
return answer
