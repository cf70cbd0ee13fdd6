-- Sliding window counter: headgate/algorithm/sliding_window_counter.h. `edge` has the two counts.
local capacity, cost_hi, cost, count_denied, period_hi, period_lo = struct.unpack('>I4I4I4BI4I4', ARGV[2], at)
cost = cost_hi * TWO32 + cost
local old_hi, old_lo, old_seen_hi, old_seen_lo = edge_hi, edge_lo, seen_hi, seen_lo
local previous, current = edge_hi, edge_lo
if set_back then seen_hi, seen_lo = now_hi, now_lo end

-- Advance to the present window.
local x_hi, x_lo = into(now_hi, now_lo, period_hi, period_lo)
if previous > 0 or current > 0 then
  local offset_hi, offset_lo = into(seen_hi, seen_lo, period_hi, period_lo)
  offset_hi, offset_lo = later(offset_hi, offset_lo, now_hi, now_lo, seen_hi, seen_lo)
  if offset_hi > period_hi or offset_hi == period_hi and offset_lo >= period_lo then
    offset_hi, offset_lo = offset_hi - period_hi, offset_lo - period_lo
    if offset_lo < 0 then offset_hi, offset_lo = offset_hi - 1, offset_lo + TWO32 end
    local second = offset_hi > period_hi or offset_hi == period_hi and offset_lo >= period_lo
    previous, current = second and 0 or current, 0
  end
end

-- previous·(period − x) ≤ room·period
local function fits(room)
  if room < 0 then return false end
  if previous <= room then return true end
  local a_2, a_1, a_0 = times(previous, later(0, 0, period_hi, period_lo, x_hi, x_lo))
  local b_2, b_1, b_0 = times(room, period_hi, period_lo)
  return a_2 < b_2 or a_2 == b_2 and (a_1 < b_1 or a_1 == b_1 and a_0 <= b_0)
end

-- Leases of an earlier window have ended with it, but leases granted under another limit have not. Their owed requests
-- count in the window in which they expire.
local end_hi, end_lo = later(now_hi, now_lo, period_hi, period_lo, x_hi, x_lo)
if set_back then end_by(end_hi, end_lo) end
if owed_before > 0 then
  local in_current, in_previous = owed, 0
  if over_hi then
    -- Whether the last expired lease ended in this window, or in the one before.
    local in_hi, in_lo = later(over_hi, over_lo, period_hi, period_lo, 0, 0)
    if in_hi > end_hi or in_hi == end_hi and in_lo > end_lo then
      in_current = owed_before
    else
      in_hi, in_lo = later(in_hi, in_lo, period_hi, period_lo, 0, 0)
      if in_hi > end_hi or in_hi == end_hi and in_lo > end_lo then in_previous = owed_before end
    end
  end
  if in_current > current or in_previous > previous then
    current, previous = math.max(current, in_current), math.max(previous, in_previous)
    old_hi, old_lo, old_seen_hi, old_seen_lo = previous, current, now_hi, now_lo
  end
end

-- The number of requests that still fit: the largest number with which the counts stay within the limit.
local function tokens()
  local rest_hi, rest_lo = later(0, 0, period_hi, period_lo, x_hi, x_lo)
  local carried = previous * ((rest_hi * TWO32 + rest_lo) / (period_hi * TWO32 + period_lo))
  -- The estimate is at most one off.
  local whole = math.min(capacity, math.ceil(capacity - current - carried) + 1)
  while whole > 0 and not fits(capacity - whole - current) do whole = whole - 1 end
  return math.max(0, whole)
end

-- Whether a moment lies in one of the last `windows` windows, this one included. The first instant of a window belongs
-- to the one before.
local function within(hi, lo, windows)
  for _ = 1, windows do hi, lo = later(hi, lo, period_hi, period_lo, 0, 0) end
  return hi > end_hi or hi == end_hi and lo > end_lo
end
if #ended > 0 and (over_hi or not within(seen_hi, seen_lo, 1)) then
  local parts = {}
  for i = 1, #ended, 32 do
    local hi, lo = struct.unpack('>I4I4', ended, i + 24)
    if within(hi, lo, 2) then parts[#parts + 1] = string.sub(ended, i, i + 31) end
  end
  ended = table.concat(parts)
end
if op == REFUND then
  current = math.max(owed, current - cost, 0)
elseif op == UNDO then
  -- How long before this window the take was.
  local ago_hi, ago_lo = now_hi - taken_hi - x_hi, now_lo - taken_lo - x_lo
  while ago_lo < 0 do ago_hi, ago_lo = ago_hi - 1, ago_lo + TWO32 end
  if ago_hi < 0 or ago_hi == 0 and ago_lo == 0 then
    current = math.max(owed, current - cost, 0)
  elseif ago_hi < period_hi or ago_hi == period_hi and ago_lo <= period_lo then
    previous = math.max(previous - cost, 0)
  end
elseif op == LEASE then
  local unspent = 0
  settle(function(part) unspent = unspent + part end, function(part, over_at_hi, over_at_lo)
    if within(over_at_hi, over_at_lo, 1) then
      unspent = unspent + part
    else
      previous = math.max(0, previous - part)
    end
  end)
  current = math.max(owed, current - unspent)
  if is_granted() then cost = 0 end
end
local allowed = (op ~= TAKE and op ~= PEEK and op ~= LEASE or cost == 0 or fits(capacity - cost - current) or
  overdraw and fits(capacity - current)) and 1 or 0
if blocked and op == TAKE then allowed = 0 end
if op == CHARGE or (op == TAKE or op == LEASE) and cost > 0 and (allowed == 1 or count_denied == 1) then
  current = math.min(current + cost, TWO32 - 1)
end
if op == LEASE and allowed == 0 then
  local left = tokens()
  local leases = count_denied == 0 and not overdraw
  if others > 0 and cost <= capacity and cost <= left + others and leases then mark(left, end_hi, end_lo) end
elseif op == LEASE then
  current = current + ask(tokens(), end_hi, end_lo)
end
local until_hi, until_lo
local drop = op ~= PEEK and previous == 0 and current == 0 and lives == 0
if op ~= PEEK then edge_hi, edge_lo, count = previous, current, 0 end
if op ~= PEEK and not drop then
  until_hi, until_lo = end_hi, end_lo
  if current > 0 then until_hi, until_lo = later(end_hi, end_lo, period_hi, period_lo, 0, 0) end
  if lives > 0 and (last_hi > end_hi or last_hi == end_hi and last_lo > end_lo) then
    local hi, lo = later(last_hi, last_lo, period_hi, period_lo, 0, 0)
    hi, lo = later(hi, lo, period_hi, period_lo, 0, 0)
    if hi > until_hi or hi == until_hi and lo > until_lo then until_hi, until_lo = hi, lo end
  end
end
-- A take and a peek report the rest that they found, all other calls the rest after them.
if op ~= TAKE and op ~= PEEK then old_hi, old_lo, old_seen_hi, old_seen_lo = edge_hi, edge_lo, now_hi, now_lo end
local old_count = 0
