-- Token bucket, and leaky bucket as a meter: headgate/algorithm/token_bucket.h. `edge` is TAT, `count` its fraction in
-- 1/n ns. In a leased bucket, at least the granted and not yet reported requests are owed at any time:
--
--   debt = max(edge − now, owed·T), at most span
local n, span_hi, span_lo, span_fr, price_hi, price_lo, price_fr, interval_hi, interval_lo, interval_fr =
  struct.unpack('>I4I4I4I4I4I4I4I4I4I4', ARGV[2], at)
if count >= n or edge_hi >= 2147483648 then
  events = CORRUPT
  edge_hi, edge_lo, count = 0, 0, 0
end
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

  -- An empty bucket cannot owe more.
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

  not_below_owed = function()
    local hi, lo, fraction = held(owed)
    if above(hi, lo, fraction, debt_hi, debt_lo, debt_fr) then debt_hi, debt_lo, debt_fr = hi, lo, fraction end
  end

  -- The whole tokens left, at most 2^32 − 1.
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
if debt_hi >= 1073741824 then
  -- 2^62 ns: filling any bucket takes less.
  events = CORRUPT
  edge_hi, edge_lo, count, debt_hi = 0, 0, 0, -1
end
if debt_hi < 0 then debt_hi, debt_lo, debt_fr = 0, 0, 0 end
if debt_hi > span_hi or debt_hi == span_hi and (debt_lo > span_lo or debt_lo == span_lo and debt_fr > span_fr) then
  debt_hi, debt_lo, debt_fr = span_hi, span_lo, span_fr
end
local old_hi, old_lo, old_count = edge_hi, edge_lo, count

-- A lease is taken like a request once its size is known, and returned requests are refunded.
local gives_back = op == REFUND
if op == LEASE then
  local unspent = 0
  settle(function(part) unspent = unspent + part end)
  price_hi, price_lo, price_fr = cost_of(unspent)
  gives_back = true
end
if gives_back then
  debt_hi, debt_lo, debt_fr = debt_hi - price_hi, debt_lo - price_lo, debt_fr - price_fr
  if debt_fr < 0 then debt_lo, debt_fr = debt_lo - 1, debt_fr + n end
  if debt_lo < 0 then debt_hi, debt_lo = debt_hi - 1, debt_lo + TWO32 end
  if debt_hi < 0 then debt_hi, debt_lo, debt_fr = 0, 0, 0 end
  if lends then not_below_owed() end
end
if op == LEASE then price_hi, price_lo, price_fr = cost_of(ask(tokens())) end
local allowed = 1
if op ~= REFUND then
  local hi, lo, fraction = debt_hi + price_hi, debt_lo + price_lo, debt_fr + price_fr
  if fraction >= n then lo, fraction = lo + 1, fraction - n end
  if lo >= TWO32 then hi, lo = hi + 1, lo - TWO32 end
  if hi > span_hi or hi == span_hi and (lo > span_lo or lo == span_lo and fraction > span_fr) then
    allowed = 0
  else
    debt_hi, debt_lo, debt_fr = hi, lo, fraction
  end
end

local until_hi, until_lo
local drop = op ~= LOOK and debt_hi == 0 and debt_lo == 0 and debt_fr == 0 and lives == 0
if drop then
  edge_hi, edge_lo, count = now_hi, now_lo, 0
elseif op ~= LOOK then
  if allowed == 1 then
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
-- A refund and a lease report the rest after them, all other calls the rest that they found.
if op == REFUND or op == LEASE then old_hi, old_lo, old_count = edge_hi, edge_lo, count end
local old_seen_hi, old_seen_lo = seen_hi, seen_lo
