-- A bucket that is one string: ARGV[1], then edge, count and seen as in the C++ algorithm, then perhaps 8 bytes: the
-- time until which earlier limits keep the bucket from counting as unused; then leases of 32 bytes each. Any other
-- value under the key is foreign, and counts as no bucket. A bucket of another limit is returned to the caller, which
-- carries it over and calls again.
local edge_hi, edge_lo, count, seen_hi, seen_lo = 0, 0, 0, 0, 0
local value = redis.pcall('GET', key)
local existed = value ~= false
local carried = false
if type(value) == 'table' then
  -- An error. Only WRONGTYPE says what is stored under the key. After any other error, such as a missing right, the
  -- bucket is unknown, and a script that started with an empty one would lift the limit.
  if string.sub(value.err, 1, 9) ~= 'WRONGTYPE' then return value end
  -- Not a string: perhaps a log.
  local header = redis.pcall('LINDEX', key, 0)
  if type(header) == 'table' and string.sub(header.err, 1, 9) ~= 'WRONGTYPE' then return header end
  if type(header) ~= 'string' or string.byte(header) ~= 1 then
    value = ''
  elseif header .. struct.pack('>I4', redis.call('LLEN', key)) == ARGV[4] then
    value = ARGV[5]
    carried = true
  else
    local length = redis.call('LLEN', key)
    local all = length * 12 <= VALUE_MAX and table.concat(redis.call('LRANGE', key, 0, -1))
    if all and #all <= VALUE_MAX then
      return struct.pack('>BBI4I4I4I4', 2, 1, now_hi, now_lo, #header, length) .. all
    end
    value = ''
  end
end
if value then
  if value == ARGV[4] then
    value = ARGV[5]
    carried = true
  end
  local ours = string.sub(value, 1, #prefix) == prefix
  if ours and #value >= #prefix + 20 then
    edge_hi, edge_lo, count, seen_hi, seen_lo = struct.unpack('>I4I4I4I4I4', value, #prefix + 1)
    ours = carried or seen_hi > replaced_hi or seen_hi == replaced_hi and seen_lo > replaced_lo
  end
  if not ours then
    if string.byte(value) == 1 and #value <= VALUE_MAX then
      return struct.pack('>BBI4I4', 2, 0, now_hi, now_lo) .. value
    end
    value = ''
  end
  if #value < #prefix + 20 or seen_hi >= 2147483648 then
    events = CORRUPT
    edge_hi, edge_lo, count, seen_hi, seen_lo = 0, 0, 0, 0, 0
    value = ''
  end
end
local leases_at = #prefix + 21
local remembered_hi, remembered_lo
if value and #value >= leases_at and (#value - leases_at + 1) % 32 == 8 then
  remembered_hi, remembered_lo = struct.unpack('>I4I4', value, leases_at)
  leases_at = leases_at + 8
end

-- Time does not go back within a bucket. But if a bucket is far ahead of the clock, the clock has been set back since:
-- the bucket's time becomes the present one. `back` is the difference.
local back_hi, back_lo = seen_hi - now_hi, seen_lo - now_lo
if back_lo < 0 then back_hi, back_lo = back_hi - 1, back_lo + TWO32 end
local set_back = false
if back_hi > 0 or (back_hi == 0 and back_lo > 0) then
  if back_hi > far_hi or (back_hi == far_hi and back_lo > far_lo) then
    set_back = true
    events = events + CLOCK_RESET
  else
    now_hi, now_lo = seen_hi, seen_lo
  end
end
if remembered_hi then
  if set_back then
    remembered_hi, remembered_lo = remembered_hi - back_hi, remembered_lo - back_lo
    if remembered_lo < 0 then remembered_hi, remembered_lo = remembered_hi - 1, remembered_lo + TWO32 end
  end
  if remembered_hi < now_hi or remembered_hi == now_hi and remembered_lo <= now_lo or remembered_hi >= 2147483648 then
    remembered_hi = nil
  end
end
