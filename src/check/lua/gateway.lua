-- A gateway's record: the gateway lives and is subscribed to its deliveries.
if not is(key, 'hash') then return answer end
lives_at_most(key, window, 'routing_ttl_bounded')
local channel = 'server:' .. name .. ':deliver'
found_unless('multi_device_delivery', key .. ' exists, but nobody is subscribed to ' .. channel, '+', channel,
  'PUBSUB', cluster and 'SHARDNUMSUB' or 'NUMSUB', channel)
return answer
