-- The head of every script: reads the arguments of the call and the time. A time in ns is two numbers, hi·2^32 + lo,
-- since a Lua number is a double and exact only below 2^53.
--
-- KEYS[1] the bucket
-- ARGV[1] the beginning of a value of this limit: the format's version and the limit (bucket_codec.h)
-- ARGV[2] numbers: those of this head, then from `at` on those of the algorithm
-- ARGV[3] the ask of a LEASE, else empty (leases.lua)
-- ARGV[4] a value of another limit, as read by an earlier call; ARGV[5] the same value carried over to this limit
--
-- Docs: docs/reference/redis-state.md.
local TWO32 = 4294967296
local TAKE, LOOK, REFUND, RESET = 0, 1, 2, 3
local CORRUPT, CLOCK_RESET = 1, 2
-- No valid bucket is longer: kValueBytesMax in bucket_codec.h.
local VALUE_MAX = 1200128
local key, prefix = KEYS[1], ARGV[1]
local op, timed, now_hi, now_lo, far_hi, far_lo, ago_hi, ago_lo, px_least, at =
  struct.unpack('>BBI4I4I4I4I4I4I4', ARGV[2])
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
