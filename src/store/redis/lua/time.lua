-- Follows time_text.lua in the scripts that also read times.
local TIME_MAX = 253402300799999 -- the last millisecond of the year 9999

-- Returns the text if it has the form of a time, otherwise nil.
local function parse_time_text(text)
  return text and string.match(text, '^%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%d%.%d%d%dZ$')
end

local function parse_time(text)
  local year, month, day, hour, minute, second, milli =
    string.match(text, '^(%d%d%d%d)%-(%d%d)%-(%d%d)T(%d%d):(%d%d):(%d%d)%.(%d%d%d)Z$')
  if not year then return nil end
  year, month = tonumber(year), tonumber(month)
  if month <= 2 then year = year - 1 end
  local era = math.floor(year / 400)
  local yoe = year - era * 400
  local doy = math.floor((153 * ((month + 9) % 12) + 2) / 5) + day - 1
  local doe = yoe * 365 + math.floor(yoe / 4) - math.floor(yoe / 100) + doy
  local days = era * ERA_DAYS + doe - EPOCH_DAYS
  return days * DAY_MS + hour * 3600000 + minute * 60000 + second * 1000 + milli
end

-- Returns the time in ms, 0 when the text is not a time. A bare number counts as ms: earlier gateways wrote times so,
-- and what they wrote is still there after a fleet was upgraded.
local function time_ms(text)
  local ms = text and (parse_time(text) or tonumber(text)) or 0
  return ms >= 0 and ms <= TIME_MAX and ms or 0
end

-- Returns the time passed in ms, or this server's time for ''.
local function time_now(passed)
  local clock = passed == '' and redis.call('TIME')
  return clock and clock[1] * 1000 + math.floor(clock[2] / 1000) or tonumber(passed)
end
