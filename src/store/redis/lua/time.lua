-- Precedes the scripts that store times. A time in Redis is a text: RFC 3339 in UTC with milliseconds, so that texts
-- sort as times do. Days are counted as in Howard Hinnant's paper: years begin with March, in eras of 400 years.
local TIME_MAX = 253402300799999 -- the last millisecond of the year 9999
local DAY_MS = 86400000
local ERA_DAYS = 146097
local EPOCH_DAYS = 719468 -- from the first of March of the year 0 to 1970

local function time_text(ms)
  local days = math.floor(ms / DAY_MS)
  local rest = ms - days * DAY_MS
  local z = days + EPOCH_DAYS
  local era = math.floor(z / ERA_DAYS)
  local doe = z - era * ERA_DAYS
  local yoe = math.floor((doe - math.floor(doe / 1460) + math.floor(doe / 36524) - math.floor(doe / 146096)) / 365)
  local doy = doe - (365 * yoe + math.floor(yoe / 4) - math.floor(yoe / 100))
  local mp = math.floor((5 * doy + 2) / 153)
  local day = doy - math.floor((153 * mp + 2) / 5) + 1
  local month = mp < 10 and mp + 3 or mp - 9
  local year = yoe + era * 400 + (month <= 2 and 1 or 0)
  return string.format('%04d-%02d-%02dT%02d:%02d:%02d.%03dZ', year, month, day,
    math.floor(rest / 3600000), math.floor(rest / 60000) % 60, math.floor(rest / 1000) % 60, rest % 1000)
end

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
