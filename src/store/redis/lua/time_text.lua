-- Precedes the scripts that write times. A time in Redis is a text: RFC 3339 in UTC with milliseconds, so that texts
-- sort as times do. Days are counted as in Howard Hinnant's paper: years begin with March, in eras of 400 years. The
-- quotients are written without math.floor(), because a call takes longer than all of its arithmetic.
local DAY_MS = 86400000
local ERA_DAYS = 146097
local EPOCH_DAYS = 719468 -- from the first of March of the year 0 to 1970

local function time_text(ms)
  local rest = ms % DAY_MS
  local z = (ms - rest) / DAY_MS + EPOCH_DAYS
  local doe = z % ERA_DAYS
  local yoe = doe - (doe - doe % 1460) / 1460 + (doe - doe % 36524) / 36524 - (doe - doe % 146096) / 146096
  yoe = (yoe - yoe % 365) / 365
  local doy = doe - (365 * yoe + (yoe - yoe % 4) / 4 - (yoe - yoe % 100) / 100)
  local mp = 5 * doy + 2
  mp = (mp - mp % 153) / 153
  local days_before = 153 * mp + 2
  local day = doy - (days_before - days_before % 5) / 5 + 1
  local month = mp < 10 and mp + 3 or mp - 9
  local year = yoe + (z - doe) / ERA_DAYS * 400 + (month <= 2 and 1 or 0)
  local ms_of_hour = rest % 3600000
  local ms_of_minute = ms_of_hour % 60000
  return string.format('%04d-%02d-%02dT%02d:%02d:%02d.%03dZ', year, month, day, (rest - ms_of_hour) / 3600000,
    (ms_of_hour - ms_of_minute) / 60000, (ms_of_minute - ms_of_minute % 1000) / 1000, ms_of_minute % 1000)
end
