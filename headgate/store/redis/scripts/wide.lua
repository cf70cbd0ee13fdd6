-- a·(hi, lo), exactly, for a below 2^32: three limbs.
local function times(a, hi, lo)
  local a_hi = math.floor(a / 65536)
  local a_lo = a - a_hi * 65536
  -- Each product is below 2^48, each sum below 2^49.
  local low = a_lo * lo
  local carry = math.floor(low / 65536)
  local high = a_hi * lo + carry
  low = low - carry * 65536
  carry = math.floor(high / 65536)
  local limb_0 = (high - carry * 65536) * 65536 + low
  low = a_lo * hi + carry
  carry = math.floor(low / 65536)
  high = a_hi * hi + carry
  low = low - carry * 65536
  carry = math.floor(high / 65536)
  return carry, (high - carry * 65536) * 65536 + low, limb_0
end
