-- What others see of the user: status, in_call, last_seen, version.
local record = redis.call('HMGET', user_presence, 'status', 'in_call', 'last_seen', 'version')
local status = record[1] or 'offline'
local seen = status == 'offline' and (record[3] or redis.call('GET', last_seen)) or ''
return {0, status, record[2] or '0', seen or '', tonumber(record[4] or '0'), now, 0}
