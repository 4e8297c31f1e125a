-- Ends one overdue lease or grace, on a cluster, where the index is in another slot. ARGV[4..6]: the user, conn_id
-- ('' for a grace), and for how many ms it has been overdue. Returns a transition, or {'later', ms} when it is
-- still alive, or {'nothing'} when there is nothing to end.
select_user(ARGV[4])
mend_user()
if ARGV[5] ~= '' then mend(connection_key(ARGV[5]), 'hash') end
local made, left_ms = expire(ARGV[5], parse_due(now - ARGV[6]))
return made or left_ms and {'later', left_ms} or {'nothing'}
