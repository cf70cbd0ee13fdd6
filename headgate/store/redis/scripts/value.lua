-- A bucket that is one string: ARGV[1], then edge, count and seen as in the C++ algorithm, then perhaps 8 bytes: the
-- checksum, or the time until which earlier limits keep the bucket from being fresh; then leases of
-- 32 bytes each, and after such a time perhaps the checksum in the form of a lease. Nothing is
-- decided about any other value under the key. A bucket of another limit is returned to the caller,
-- which carries it over and calls again.
local REMEMBERED_MOST = 73475000 -- ten years, in 2^32 ns
local edge_hi, edge_lo, count, seen_hi, seen_lo = 0, 0, 0, 0, 0
local value = redis.pcall('GET', key)
local existed = value ~= false
local carried = false
-- The 8 bytes that may follow the state: a checksum, or the time until which an earlier limit is
-- remembered. The leases come after them.
local first_hi, first_lo
local leases_at = state_at + 21
if type(value) == 'table' then
  -- An error. Only WRONGTYPE says what is stored under the key. After any other error, such as a missing right, the
  -- bucket is unknown, and a script that started with an empty one would lift the limit.
  if string.sub(value.err, 1, 9) ~= 'WRONGTYPE' then return value end
  -- Not a string: perhaps a log.
  local header = redis.pcall('LINDEX', key, 0)
  if type(header) == 'table' and string.sub(header.err, 1, 9) ~= 'WRONGTYPE' then return header end
  if type(header) ~= 'string' or not string.find(header, IS_BUCKET) then return DAMAGED end
  if header .. struct.pack('>I4', redis.call('LLEN', key)) == ARGV[4] then
    value = ARGV[5]
    carried = true
  else
    local length = redis.call('LLEN', key)
    local all = length * 12 <= VALUE_MAX and table.concat(redis.call('LRANGE', key, 0, -1))
    if all and #all <= VALUE_MAX then
      return struct.pack('>BBI4I4I4I4', 2, 1, now_hi, now_lo, #header, length) .. all
    end
    return DAMAGED
  end
end
if value then
  if value == ARGV[4] then
    value = ARGV[5]
    carried = true
  end
  local ours = string.sub(value, 1, #prefix) == prefix
  if ours and #value >= state_at + 20 then
    if (#value - leases_at) % 32 == 7 then
      edge_hi, edge_lo, count, seen_hi, seen_lo, first_hi, first_lo = struct.unpack('>I4I4I4I4I4I4I4', value, state_at + 1)
    else
      edge_hi, edge_lo, count, seen_hi, seen_lo = struct.unpack('>I4I4I4I4I4', value, state_at + 1)
    end
    if lengths > 0 then read_block(value) end
    ours = carried or seen_hi > replaced_hi or seen_hi == replaced_hi and seen_lo > replaced_lo
  end
  if not ours then
    if string.find(value, IS_BUCKET) and #value <= VALUE_MAX then
      return struct.pack('>BBI4I4', 2, 0, now_hi, now_lo) .. value
    end
    return DAMAGED
  end
  if #value < state_at + 20 or seen_hi >= 2147483648 then return DAMAGED end
end
local remembered_hi, remembered_lo
local hides_use = 0 -- the highest bit, as headgate/algorithm/bucket.h has it
if first_hi then
  leases_at = leases_at + 8
  local sum = limit_sum + 65521 * edge_hi + 65519 * edge_lo + 65497 * count + 65479 * seen_hi + 65449 * seen_lo +
    65423 * block_hi + 65419 * block_lo + 65413 * block_byte
  local stored
  if first_hi == 0 then
    stored = first_lo
  else
    remembered_hi, remembered_lo = first_hi, first_lo
    if first_hi >= 2147483648 then hides_use, remembered_hi = 2147483648, first_hi - 2147483648 end
    -- A time that is over is not stored.
    if remembered_hi < seen_hi or remembered_hi == seen_hi and first_lo <= seen_lo then return DAMAGED end
    sum = sum + 65447 * first_hi + 65437 * first_lo
    if #value >= leases_at + 31 then
      local number, amount, _, ends_hi = struct.unpack('>I4I4I4I4', value, #value - 19)
      -- No lease ends in 1970. A mark has the number 0.
      if ends_hi == 0 or amount == 0 and number > 0 then
        if string.sub(value, -32) ~= struct.pack('>I4I4I4I4I4I4I4I4', 0, 0, 0, number, 0, 0, 0, 0) then return DAMAGED end
        stored = number
        value = string.sub(value, 1, -33)
      end
    end
    -- Without a checksum it is of an earlier version, or a damaged one: ten years are too long then. A queue has none.
    if not stored and remembered_hi > seen_hi + REMEMBERED_MOST and string.byte(prefix, 2) % 8 ~= 2 and not carried then
      return DAMAGED
    end
  end
  if stored then
    if #value >= leases_at then sum = sum + tonumber(string.sub(redis.sha1hex(string.sub(value, leases_at)), 1, 8), 16) end
    if sum % PRIME ~= stored then return DAMAGED end
  end
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
  if remembered_hi < now_hi or remembered_hi == now_hi and remembered_lo <= now_lo then
    remembered_hi = nil
  end
end
if lengths > 0 and not find_block(set_back and back_hi, back_lo) then return DAMAGED end
