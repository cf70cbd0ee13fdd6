-- Fixed window: headgate/algorithm/fixed_window.h. `edge` is the end of the open window, `count` the hits in it.
local EPOCH, FIRST_HIT, MONTH, YEAR = 0, 1, 2, 3
local capacity, cost_hi, cost, align, count_denied, period_hi, period_lo =
  struct.unpack('>I4I4I4BBI4I4', ARGV[2], at)
cost = cost_hi * TWO32 + cost
-- No window is longer than 2^60 ns.
if edge_hi > now_hi + (set_back and back_hi or 0) + 268436000 then
  events = CORRUPT
  edge_hi, edge_lo, count = 0, 0, 0
end

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

-- The end of the present window; if none is open, of one that would begin now.
local function window_end()
  if align == FIRST_HIT then return later(now_hi, now_lo, period_hi, period_lo, 0, 0) end
  if align == EPOCH then
    return later(now_hi, now_lo, period_hi, period_lo, into(now_hi, now_lo, period_hi, period_lo))
  end
  -- A day is 20116·2^32 + 2437873664 ns, and 1318359375·2^16.
  local x_hi, x_lo = into(now_hi, now_lo, 20116, 2437873664)
  local day = math.floor(((now_hi - x_hi) * 65536 + (now_lo - x_lo) / 65536) / 1318359375 + 0.5)
  local year = 1970 + math.floor(day / 366)
  while first_day(year + 1, 1) <= day do year = year + 1 end
  local next_day
  if align == YEAR then
    next_day = first_day(year + 1, 1)
  else
    local month = 1 + math.floor((day - first_day(year, 1)) / 31)
    if first_day(year, month + 1) <= day then month = month + 1 end
    next_day = first_day(year, month + 1)
  end
  local units = next_day * 1318359375
  local hi = math.floor(units / 65536)
  return hi, (units - hi * 65536) * 65536
end

local open = edge_hi > now_hi or edge_hi == now_hi and edge_lo > now_lo
if set_back and value then
  -- Carried-over hits count in the present window.
  open = count > 0 and (edge_hi > seen_hi or edge_hi == seen_hi and edge_lo > seen_lo)
  if open then
    edge_hi, edge_lo = window_end()
    end_by(edge_hi, edge_lo)
  else
    -- An ended window must not seem open because its end is after a clock that was set back.
    edge_hi, edge_lo, count = 0, 0, 0
  end
end
-- A lease ends with its window, but a lease granted under another limit may outlive it. Such a lease also counts in the
-- next window.
local outlived = owed
if over_hi and (over_hi > edge_hi or over_hi == edge_hi and over_lo > edge_lo) then outlived = owed_before end
if not open and outlived > 0 then
  edge_hi, edge_lo = window_end()
  count = outlived
  open = true
end
local hits = open and count or 0
local old_hi, old_lo, old_count = edge_hi, edge_lo, count
local allowed = (op == REFUND or cost == 0 or hits + cost <= capacity) and 1 or 0

if op == REFUND then
  if open then count = math.max(owed, count - cost, 0) end
elseif op == LEASE then
  settle(function(unspent) count = math.max(owed, count - unspent) end)
  local end_hi, end_lo = edge_hi, edge_lo
  if not open then end_hi, end_lo = window_end() end
  local newly = ask(math.max(0, capacity - (open and count or 0)), end_hi, end_lo)
  if newly > 0 then
    edge_hi, edge_lo, count = end_hi, end_lo, (open and count or 0) + newly
    open = true
  end
elseif op == TAKE and (allowed == 1 or count_denied == 1 and (open or align ~= FIRST_HIT)) then
  if not open then edge_hi, edge_lo = window_end() end
  count = math.min(hits + cost, TWO32 - 1)
  open = true
end
local until_hi, until_lo
local drop = op ~= LOOK and not (open and (count > 0 or align == FIRST_HIT or lives > 0))
if op ~= LOOK and not drop then
  until_hi, until_lo = edge_hi, edge_lo
  if lives > 0 and (last_hi > edge_hi or last_hi == edge_hi and last_lo > edge_lo) then
    -- At most to the end of the window in which it expires; a year is 7342618·2^32 ns.
    local hi, lo = later(last_hi, last_lo, align >= MONTH and 7400000 or period_hi, period_lo, 0, 0)
    if hi > until_hi or hi == until_hi and lo > until_lo then until_hi, until_lo = hi, lo end
  end
end
-- A refund and a lease report the rest after them, all other calls the rest that they found.
if op == REFUND or op == LEASE then old_hi, old_lo, old_count = edge_hi, edge_lo, count end
local old_seen_hi, old_seen_lo = seen_hi, seen_lo
