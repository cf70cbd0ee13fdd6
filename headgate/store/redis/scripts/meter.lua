-- Token bucket, and leaky bucket as a meter: headgate/algorithm/token_bucket.h. `edge` is TAT, `count` its fraction in
-- 1/n ns. In a leased bucket, at least the granted and not yet reported requests are owed at any time:
--
--   debt = max(edge − now, owed·T)
--
-- After a charge it may owe more than span. Then the bucket is overdrawn.
local n, span_hi, span_lo, span_fr, price_hi, price_lo, price_fr, interval_hi, interval_lo, interval_fr =
  struct.unpack('>I4I4I4I4I4I4I4I4I4I4', ARGV[2], at)
if count >= n or edge_hi >= 2147483648 then return DAMAGED end
if set_back then
  -- The bucket owes as much as at its latest time.
  edge_hi, edge_lo = edge_hi - back_hi, edge_lo - back_lo
  if edge_lo < 0 then edge_hi, edge_lo = edge_hi - 1, edge_lo + TWO32 end
  if edge_hi < 0 then edge_hi, edge_lo, count = 0, 0, 0 end
end

local debt_hi, debt_lo, debt_fr
local cost_of, held, not_below_owed, tokens
-- A bucket without leases needs none of the following.
local lends = op == LEASE or owed_before > 0 or lives > 0
if lends then
  -- k·T, for k below 2^32; after a change of the limit, k may exceed the capacity.
  cost_of = function(k)
    local top, hi, lo = times(k, interval_hi, interval_lo)
    if top > 0 or hi >= 1073741824 then return 1073741824, 0, 0 end
    if interval_fr == 0 then return hi, lo, 0 end
    -- k·fraction / n in two steps of 16 bits; the quotient is below k.
    local _, rest, low = times(k, 0, interval_fr)
    local digit = math.floor(low / 65536)
    rest = rest * 65536 + digit
    local quotient = math.floor(rest / n)
    rest = (rest - quotient * n) * 65536 + low - digit * 65536
    local second = math.floor(rest / n)
    lo = lo + quotient * 65536 + second
    if lo >= TWO32 then
      local carry = math.floor(lo / TWO32)
      hi, lo = hi + carry, lo - carry * TWO32
    end
    return hi, lo, rest - second * n
  end

  local function above(a_hi, a_lo, a_fr, b_hi, b_lo, b_fr)
    return a_hi > b_hi or a_hi == b_hi and (a_lo > b_lo or a_lo == b_lo and a_fr > b_fr)
  end

  -- k·T, but at most span: an empty bucket cannot owe more.
  held = function(k)
    local hi, lo, fraction = cost_of(k)
    if above(hi, lo, fraction, span_hi, span_lo, span_fr) then return span_hi, span_lo, span_fr end
    return hi, lo, fraction
  end

  -- Sets the bucket's edge to at least (hi, lo) + k·T.
  local function hold(hi, lo, k)
    local add_hi, add_lo, add_fr = held(k)
    hi, lo = hi + add_hi, lo + add_lo
    if lo >= TWO32 then hi, lo = hi + 1, lo - TWO32 end
    if above(hi, lo, add_fr, edge_hi, edge_lo, count) then edge_hi, edge_lo, count = hi, lo, add_fr end
  end

  if owed_before > 0 then
    -- The requests of an expired lease count as spent when it expired; their refill begins then.
    if over_hi then hold(over_hi, over_lo, owed_before) end
    hold(now_hi, now_lo, owed)
  end
  if some_end then
    -- A bucket that is never full would remember all ended leases. The ones that have refilled
    -- since are forgotten.
    local parts = {}
    for i = 1, #ended, 32 do
      local amount, _, at_hi, at_lo = struct.unpack('>I4I4I4I4', ended, i + 16)
      local add_hi, add_lo, add_fr = held(amount)
      local hi, lo = at_hi + add_hi, at_lo + add_lo
      if lo >= TWO32 then hi, lo = hi + 1, lo - TWO32 end
      if above(hi, lo, add_fr, now_hi, now_lo, 0) then parts[#parts + 1] = string.sub(ended, i, i + 31) end
    end
    ended = table.concat(parts)
  end

  not_below_owed = function()
    local hi, lo, fraction = held(owed)
    if above(hi, lo, fraction, debt_hi, debt_lo, debt_fr) then debt_hi, debt_lo, debt_fr = hi, lo, fraction end
  end

  -- The whole tokens left, at most 2^32 − 1; 0 or less if there are none.
  tokens = function()
    local hi, lo, fraction = span_hi - debt_hi, span_lo - debt_lo, span_fr - debt_fr
    if fraction < 0 then lo, fraction = lo - 1, fraction + n end
    if lo < 0 then hi, lo = hi - 1, lo + TWO32 end
    -- The estimate is at most one off.
    local interval = interval_hi * TWO32 + interval_lo + interval_fr / n
    local whole = math.min(TWO32 - 1, math.floor((hi * TWO32 + lo + fraction / n) / interval) + 1)
    while whole > 0 do
      local cost_hi, cost_lo, cost_fr = cost_of(whole)
      if not above(cost_hi, cost_lo, cost_fr, hi, lo, fraction) then break end
      whole = whole - 1
    end
    return whole
  end
end

debt_hi, debt_lo, debt_fr = edge_hi - now_hi, edge_lo - now_lo, count
if debt_lo < 0 then debt_hi, debt_lo = debt_hi - 1, debt_lo + TWO32 end
-- 2^62 ns: filling any bucket takes less.
if debt_hi >= 1073741824 then return DAMAGED end
if debt_hi < 0 then debt_hi, debt_lo, debt_fr = 0, 0, 0 end
local old_hi, old_lo, old_count = edge_hi, edge_lo, count

if op == REFUND or op == UNDO or op == LEASE then
  local function give_back(hi, lo, fraction)
    debt_hi, debt_lo, debt_fr = debt_hi - hi, debt_lo - lo, debt_fr - fraction
    if debt_fr < 0 then debt_lo, debt_fr = debt_lo - 1, debt_fr + n end
    if debt_lo < 0 then debt_hi, debt_lo = debt_hi - 1, debt_lo + TWO32 end
    if debt_hi < 0 then debt_hi, debt_lo, debt_fr = 0, 0, 0 end
  end
  -- The part that has refilled since then is not missing any more.
  local function give_back_since(hi, lo, fraction, at_hi, at_lo)
    local ago_hi, ago_lo = now_hi - at_hi, now_lo - at_lo
    if ago_lo < 0 then ago_hi, ago_lo = ago_hi - 1, ago_lo + TWO32 end
    if ago_hi >= 0 then
      hi, lo = hi - ago_hi, lo - ago_lo
      if lo < 0 then hi, lo = hi - 1, lo + TWO32 end
    end
    if hi >= 0 then give_back(hi, lo, fraction) end
  end
  if op == REFUND then
    give_back(price_hi, price_lo, price_fr)
  elseif op == UNDO then
    give_back_since(price_hi, price_lo, price_fr, taken_hi, taken_lo)
  else
    local unspent = 0
    settle(function(part) unspent = unspent + part end, function(part, at_hi, at_lo)
      local hi, lo, fraction = held(part)
      give_back_since(hi, lo, fraction, at_hi, at_lo)
    end)
    give_back(cost_of(unspent))
  end
  if lends then not_below_owed() end
end
-- A full bucket takes nothing back.
if debt_hi == 0 and debt_lo == 0 and debt_fr == 0 then ended = '' end
if op == LEASE and is_granted() then price_hi, price_lo, price_fr = 0, 0, 0 end
local allowed = 1
if op ~= REFUND and op ~= UNDO then
  local hi, lo, fraction = debt_hi + price_hi, debt_lo + price_lo, debt_fr + price_fr
  if fraction >= n then lo, fraction = lo + 1, fraction - n end
  if lo >= TWO32 then hi, lo = hi + 1, lo - TWO32 end
  local function more(a_hi, a_lo, a_fr)
    return a_hi > span_hi or a_hi == span_hi and (a_lo > span_lo or a_lo == span_lo and a_fr > span_fr)
  end
  local fits = not more(hi, lo, fraction)
  if op == CHARGE or overdraw and (op == TAKE or op == LEASE) and not more(debt_hi, debt_lo, debt_fr) then
    -- At most 2^62 − 1 ns.
    if hi >= 1073741824 or hi == 1073741823 and lo == TWO32 - 1 then
      hi, lo, fraction = 1073741823, TWO32 - 1, 0
    end
    debt_hi, debt_lo, debt_fr = hi, lo, fraction
  elseif not fits or blocked and op == TAKE then
    -- A message that takes nothing is not denied.
    if op ~= LEASE or price_hi > 0 or price_lo > 0 or price_fr > 0 then allowed = 0 end
    if op == LEASE and allowed == 0 and others > 0 and not overdraw and not more(price_hi, price_lo, price_fr) then
      local left = math.max(0, tokens())
      hi, lo, fraction = cost_of(math.min(left + others, TWO32 - 2))
      if price_hi < hi or price_hi == hi and (price_lo < lo or price_lo == lo and price_fr <= fraction) then mark(left) end
    end
  else
    debt_hi, debt_lo, debt_fr = hi, lo, fraction
  end
end
if op == LEASE and allowed == 1 then
  local hi, lo, fraction = cost_of(ask(math.max(0, tokens())))
  debt_hi, debt_lo, debt_fr = debt_hi + hi, debt_lo + lo, debt_fr + fraction
  if debt_fr >= n then debt_lo, debt_fr = debt_lo + 1, debt_fr - n end
  if debt_lo >= TWO32 then debt_hi, debt_lo = debt_hi + 1, debt_lo - TWO32 end
end

local until_hi, until_lo
local drop = op ~= PEEK and debt_hi == 0 and debt_lo == 0 and debt_fr == 0 and lives == 0
if drop then
  edge_hi, edge_lo, count = now_hi, now_lo, 0
elseif op ~= PEEK then
  if allowed == 1 or op == LEASE then
    edge_hi, edge_lo, count = now_hi + debt_hi, now_lo + debt_lo, debt_fr
    if edge_lo >= TWO32 then edge_hi, edge_lo = edge_hi + 1, edge_lo - TWO32 end
  end
  until_hi, until_lo = edge_hi, edge_lo
  if lives > 0 then
    -- Requests owed until the last lease expires begin to refill only then.
    local owed_hi, owed_lo = held(owed)
    local hi, lo = last_hi + owed_hi, last_lo + owed_lo + 1
    if lo >= TWO32 then hi, lo = hi + 1, lo - TWO32 end
    if hi > until_hi or hi == until_hi and lo > until_lo then until_hi, until_lo = hi, lo end
  end
end
-- A take and a peek report the rest that they found, all other calls the rest after them.
if op ~= TAKE and op ~= PEEK then old_hi, old_lo, old_count = edge_hi, edge_lo, count end
local old_seen_hi, old_seen_lo = seen_hi, seen_lo
