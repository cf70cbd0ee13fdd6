-- Fixed window: headgate/algorithm/fixed_window.h. `edge` is the end of the open window, `count` the hits in it.
local EPOCH, FIRST_HIT, MONTH, YEAR, WEEK, DAY = 0, 1, 2, 3, 4, 5
local capacity, cost_hi, cost, align, count_denied, period_hi, period_lo, zone_at =
  struct.unpack('>I4I4I4BBI4I4', ARGV[2], at)
cost = cost_hi * TWO32 + cost
-- No window is longer than 2^60 ns.
if edge_hi > now_hi + (set_back and back_hi or 0) + 268436000 then return DAMAGED end

-- Days since the epoch of the first day of a month; months are counted from January of year 0, and may be beyond 12.
-- Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms": years that begin in March.
local function first_day(year, month)
  year = year + math.floor((month - 1) / 12)
  month = (month - 1) % 12
  if month < 2 then year = year - 1 end
  local era = math.floor(year / 400)
  local year_of_era = year - era * 400
  local day_of_year = math.floor((153 * ((month + 10) % 12) + 2) / 5)
  return era * 146097 + year_of_era * 365 + math.floor(year_of_era / 4) - math.floor(year_of_era / 100) +
    day_of_year - 719468
end

-- The time zone of a calendar window (time_zone.h): its changes, oldest first. From `since` on, in seconds, local time is
-- `offset` seconds ahead of UTC; the first change holds for all earlier times, too.
local changes = align >= MONTH and struct.unpack('>I4', ARGV[2], zone_at)
local function change(i)
  local since, offset = struct.unpack('>I4I4', ARGV[2], zone_at + 4 + 8 * i)
  return since, offset < 2147483648 and offset or offset - TWO32
end
-- The last change before or at this time.
local function change_at(seconds)
  local first, last = 0, changes - 1
  while first < last do
    local middle = math.ceil((first + last) / 2)
    if change(middle) <= seconds then first = middle else last = middle - 1 end
  end
  return first
end

-- The time at which the local date becomes this day for good.
local function begin_of(day)
  local midnight = day * 86400
  local i = change_at(midnight + 172800)
  local since, offset = change(i)
  while i > 0 and midnight - offset < since do
    i = i - 1
    since, offset = change(i)
  end
  local begin = midnight - offset
  return i + 1 < changes and math.min(begin, (change(i + 1))) or begin
end

-- The first days of the calendar window with this day, and of the next one.
local function first_days(day)
  if align == DAY then return day, day + 1 end
  if align == WEEK then
    local monday = day - (day + 3) % 7 -- day 0 is a Thursday
    return monday, monday + 7
  end
  local year = 1970 + math.floor(day / 366)
  while first_day(year + 1, 1) <= day do year = year + 1 end
  if align == YEAR then return first_day(year, 1), first_day(year + 1, 1) end
  local month = 1 + math.floor((day - first_day(year, 1)) / 31)
  if first_day(year, month + 1) <= day then month = month + 1 end
  return first_day(year, month), first_day(year, month + 1)
end

-- The end of the window that holds this time; a first_hit window would begin at it.
local function window_end(hi, lo)
  if align == FIRST_HIT then return later(hi, lo, period_hi, period_lo, 0, 0) end
  if align == EPOCH then
    return later(hi, lo, period_hi, period_lo, into(hi, lo, period_hi, period_lo))
  end
  -- A second is 1953125·2^9 ns, so whole seconds in ns are exact in a double.
  local x_hi, x_lo = into(hi, lo, 0, 1000000000)
  local seconds = ((hi - x_hi) * TWO32 + (lo - x_lo)) / 1000000000
  local _, offset = change(change_at(seconds))
  local first, next_first = first_days(math.floor((seconds + offset) / 86400))
  local edge = begin_of(first)
  if edge <= seconds then edge = begin_of(next_first) end
  local units = edge * 1953125
  local end_hi = math.floor(units / 8388608)
  return end_hi, (units - end_hi * 8388608) * 512
end

local open = edge_hi > now_hi or edge_hi == now_hi and edge_lo > now_lo
if set_back and value then
  -- Carried-over hits count in the present window.
  open = count > 0 and (edge_hi > seen_hi or edge_hi == seen_hi and edge_lo > seen_lo)
  if open then
    edge_hi, edge_lo = window_end(now_hi, now_lo)
    end_by(edge_hi, edge_lo)
  else
    -- An ended window must not seem open because its end is after a clock that was set back.
    edge_hi, edge_lo, count = 0, 0, 0
  end
end
-- Nothing comes back into a window after the one in which a lease ended.
if not open and #ended > 0 then
  local parts = {}
  for i = 1, #ended, 32 do
    local hi, lo = struct.unpack('>I4I4', ended, i + 24)
    if hi > edge_hi or hi == edge_hi and lo > edge_lo then parts[#parts + 1] = string.sub(ended, i, i + 31) end
  end
  ended = table.concat(parts)
end
-- A lease ends with its window, but a lease granted under another limit may outlive it. Such a lease also counts in the
-- next window.
local outlived = owed
if over_hi and (over_hi > edge_hi or over_hi == edge_hi and over_lo > edge_lo) then outlived = owed_before end
if not open and outlived > 0 then
  edge_hi, edge_lo = window_end(now_hi, now_lo)
  count = outlived
  open = true
end
if not open then ended = '' end
local old_hi, old_lo, old_count = edge_hi, edge_lo, count
if op == REFUND then
  if open then count = math.max(owed, count - cost, 0) end
elseif op == UNDO then
  if taken_hi > now_hi or taken_hi == now_hi and taken_lo > now_lo then taken_hi, taken_lo = now_hi, now_lo end
  -- Whether the take counted in the window that is open.
  local end_hi, end_lo = window_end(taken_hi, taken_lo)
  local same = end_hi == edge_hi and end_lo == edge_lo
  if align == FIRST_HIT then same = same or end_hi > edge_hi or end_hi == edge_hi and end_lo > edge_lo end
  if open and same then count = math.max(owed, count - cost, 0) end
elseif op == LEASE then
  local unspent = 0
  local function give_back(part) unspent = unspent + part end
  settle(give_back, give_back)
  if open then count = math.max(owed, count - unspent) end
  if is_granted() then cost = 0 end
end
local hits = open and count or 0
local allowed = (op ~= TAKE and op ~= PEEK and op ~= LEASE or cost == 0 or hits + cost <= capacity or
  overdraw and hits <= capacity) and 1 or 0
if blocked and op == TAKE then allowed = 0 end
if op == CHARGE or (op == TAKE or op == LEASE) and cost > 0 and
  (allowed == 1 or count_denied == 1 and (open or align ~= FIRST_HIT)) then
  if not open then edge_hi, edge_lo = window_end(now_hi, now_lo) end
  count = math.min(hits + cost, TWO32 - 1)
  open = true
end
if op == LEASE and allowed == 0 then
  local left = math.max(0, capacity - (open and count or 0))
  if others > 0 and cost <= capacity and cost <= left + others and not overdraw then mark(left, edge_hi, edge_lo) end
elseif op == LEASE and allowed == 1 then
  local end_hi, end_lo = edge_hi, edge_lo
  if not open then end_hi, end_lo = window_end(now_hi, now_lo) end
  local newly = ask(math.max(0, capacity - (open and count or 0)), end_hi, end_lo)
  if newly > 0 then
    edge_hi, edge_lo, count = end_hi, end_lo, (open and count or 0) + newly
    open = true
  end
end
local until_hi, until_lo
local drop = op ~= PEEK and not (open and (count > 0 or align == FIRST_HIT or lives > 0))
if op ~= PEEK and not drop then
  until_hi, until_lo = edge_hi, edge_lo
  if lives > 0 and (last_hi > edge_hi or last_hi == edge_hi and last_lo > edge_lo) then
    -- At most to the end of the window in which it expires; a year is 7342618·2^32 ns.
    local hi, lo = later(last_hi, last_lo, align >= MONTH and 7400000 or period_hi, period_lo, 0, 0)
    if hi > until_hi or hi == until_hi and lo > until_lo then until_hi, until_lo = hi, lo end
  end
end
-- A take and a peek report the rest that they found, all other calls the rest after them.
if op ~= TAKE and op ~= PEEK then old_hi, old_lo, old_count = edge_hi, edge_lo, count end
local old_seen_hi, old_seen_lo = seen_hi, seen_lo
