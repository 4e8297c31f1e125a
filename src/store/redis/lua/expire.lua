-- For a cluster, where the index is elsewhere. ARGV[4..6]: the user, conn_id ('': a grace), and for how many ms
-- it has been due. Answers with a transition, or {'later', ms}, or {'nothing'}.
choose(ARGV[4])
mend_user()
if ARGV[5] ~= '' then mend(connection_key(ARGV[5]), 'hash') end
local transition, left = expire(ARGV[5], due_of(now - ARGV[6]))
return transition or left and {'later', left} or {'nothing'}
