-- A gateway's record: who is in it lives, and hears what is sent to it.
if not is(key, 'hash') then return answer end
lives_at_most(key, window, 'routing_ttl_bounded')
local channel = 'server:' .. name .. ':deliver'
found_unless('multi_device_delivery', key .. ' is there, and nobody listens to ' .. channel, '+', channel,
  'PUBSUB', cluster and 'SHARDNUMSUB' or 'NUMSUB', channel)
return answer
