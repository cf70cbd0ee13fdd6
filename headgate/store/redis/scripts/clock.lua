-- The head of every script: reads the arguments of the call and the time. A time in ns is two numbers, hi·2^32 + lo,
-- since a Lua number is a double and exact only below 2^53.
--
-- KEYS[1] the bucket
-- ARGV[1] the beginning of a value of this limit: the format's version and the limit (bucket_codec.h)
-- ARGV[2] numbers: those of this head, then from `at` on those of the algorithm; of an UNDO at last the time of the take
-- ARGV[3] the ask of a LEASE, else empty (leases.lua)
-- ARGV[4] a value of another limit, as read by an earlier call; ARGV[5] the same value carried over to this limit
--
-- Docs: docs/reference/redis-state.md.
local TWO32 = 4294967296
local TAKE, PEEK, REFUND, RESET, CHARGE, UNDO = 0, 1, 2, 3, 5, 6
local CLOCK_RESET = 2
-- The answer about a value that is damaged or foreign. Nothing is changed then.
local DAMAGED = '\3'
-- The checksum of a value (value_checksum.h): a sum of numbers with weights, modulo a prime number. A change of one
-- number changes it, and every step is exact in a double.
local PRIME = 4294967291
-- No valid bucket is longer: kValueBytesMax in bucket_codec.h.
local VALUE_MAX = 1200128
local key, prefix = KEYS[1], ARGV[1]
local op, timed, now_hi, now_lo, far_hi, far_lo, ago_hi, ago_lo, px_least, limit_sum, at =
  struct.unpack('>BBI4I4I4I4I4I4I4I4', ARGV[2])
-- Whether the request would fit into a fresh bucket: only then may its denial begin a block.
local fits = timed >= 2
timed = timed % 2
local taken_hi, taken_lo
if op == UNDO then taken_hi, taken_lo = struct.unpack('>I4I4', ARGV[2], #ARGV[2] - 7) end
-- Whether a request that does not fit passes, unless the bucket is overdrawn already.
local overdraw = string.byte(prefix, 2) >= 128
-- The number of lengths of the limit's blocks, which are at its end; 0: denials begin no block.
local lengths = string.byte(prefix) >= 2 and string.byte(prefix, 3) or 0
-- The offset of the state in a value: it follows the limit and perhaps a block.
local state_at = #prefix + (lengths > 0 and 9 or 0)
-- A value that may be a bucket begins with its version.
local IS_BUCKET = '^[\1-\3]'
local events = 0
if timed == 0 then
  local time = redis.call('TIME')
  -- A second is 1953125·2^9 ns.
  local units = time[1] * 1953125
  now_hi = math.floor(units / 8388608)
  now_lo = units % 8388608 * 512 + time[2] * 1000
  if now_lo >= TWO32 then now_hi, now_lo = now_hi + 1, now_lo - TWO32 end
end
-- The time of the server's clock, from which TTLs count. `now` may be later, because a bucket's time does not go back.
local clock_hi, clock_lo = now_hi, now_lo
-- If this limit was in force before: when it was last replaced. A bucket that was last used before that has to be
-- carried over like one of another limit.
local replaced_hi, replaced_lo = now_hi - ago_hi, now_lo - ago_lo
if replaced_lo < 0 then replaced_hi, replaced_lo = replaced_hi - 1, replaced_lo + TWO32 end
if op == RESET then
  redis.call('DEL', key)
  return struct.pack('>BBBI4I4I4I4I4I4I4', 1, 1, 0, now_hi, now_lo, 0, 0, 0, 0, 0)
end
