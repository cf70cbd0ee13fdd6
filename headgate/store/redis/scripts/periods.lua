-- now mod period, exactly. Both are below 2^63.
local function into(hi, lo, period_hi, period_lo)
  local period = period_hi * TWO32 + period_lo
  if period_hi < 1048576 then
    -- Below 2^52 ns (52 days) fmod and its operands are exact.
    local rest = math.fmod(math.fmod(hi * TWO32, period) + math.fmod(lo, period), period)
    local rest_hi = math.floor(rest / TWO32)
    return rest_hi, rest - rest_hi * TWO32
  end
  -- The quotient is below 2^11, and its estimate at most one off.
  local quotient = math.floor((hi * TWO32 + lo) / period)
  local taken = quotient * period_lo
  local taken_hi = math.floor(taken / TWO32)
  hi, lo = hi - quotient * period_hi - taken_hi, lo - (taken - taken_hi * TWO32)
  if lo < 0 then hi, lo = hi - 1, lo + TWO32 end
  if hi < 0 then
    hi, lo = hi + period_hi, lo + period_lo
    if lo >= TWO32 then hi, lo = hi + 1, lo - TWO32 end
  elseif hi > period_hi or hi == period_hi and lo >= period_lo then
    hi, lo = hi - period_hi, lo - period_lo
    if lo < 0 then hi, lo = hi - 1, lo + TWO32 end
  end
  return hi, lo
end

-- from + period − x, in two limbs.
local function later(hi, lo, period_hi, period_lo, x_hi, x_lo)
  hi, lo = hi + period_hi - x_hi, lo + period_lo - x_lo
  if lo < 0 then return hi - 1, lo + TWO32 end
  if lo >= TWO32 then return hi + 1, lo - TWO32 end
  return hi, lo
end
