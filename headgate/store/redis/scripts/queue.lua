-- Leaky bucket as a queue: headgate/algorithm/leaky_queue.h. `edge` is free_at, `count` its fraction in 1/n ns.
local n, span_hi, span_lo, span_fr, ahead_hi, ahead_lo, ahead_fr, interval_hi, interval_lo, interval_fr =
  struct.unpack('>I4I4I4I4I4I4I4I4I4I4', ARGV[2], at)
if count >= n or edge_hi >= 2147483648 or value and #value >= leases_at then return DAMAGED end
if set_back then
  edge_hi, edge_lo = edge_hi - back_hi, edge_lo - back_lo
  if edge_lo < 0 then edge_hi, edge_lo = edge_hi - 1, edge_lo + TWO32 end
  if edge_hi < 0 then edge_hi, edge_lo, count = 0, 0, 0 end
end

local wait_hi, wait_lo, wait_fr = edge_hi - now_hi, edge_lo - now_lo, count
if wait_lo < 0 then wait_hi, wait_lo = wait_hi - 1, wait_lo + TWO32 end
-- 2^62 ns: no limit has a longer wait.
if wait_hi >= 1073741824 then return DAMAGED end
if wait_hi < 0 then wait_hi, wait_lo, wait_fr = 0, 0, 0 end
local empty = wait_hi == 0 and wait_lo == 0 and wait_fr == 0

local old_hi, old_lo, old_count = edge_hi, edge_lo, count
-- The time at which the last turn of the request would begin.
local last_hi, last_lo, last_fr = wait_hi + ahead_hi, wait_lo + ahead_lo, wait_fr + ahead_fr
if last_fr >= n then last_lo, last_fr = last_lo + 1, last_fr - n end
if last_lo >= TWO32 then last_hi, last_lo = last_hi + 1, last_lo - TWO32 end
local allowed = 1
if op == CHARGE then
  -- All turns are before this time, which is at most 2^62 − 1 ns ahead.
  if last_hi >= 1073741824 or last_hi == 1073741823 and last_lo == TWO32 - 1 then
    last_hi, last_lo, last_fr = 1073741823, TWO32 - 1, 0
  end
elseif last_hi > span_hi or last_hi == span_hi and (last_lo > span_lo or last_lo == span_lo and last_fr > span_fr) then
  allowed = 0
end
if blocked and op == TAKE then allowed = 0 end

local until_hi, until_lo
local drop = op == TAKE and allowed == 0 and empty
if op == CHARGE then interval_hi, interval_lo, interval_fr = 0, 0, 0 end
if op ~= PEEK and not drop then
  if allowed == 1 then
    count = last_fr + interval_fr
    edge_lo = last_lo + interval_lo + now_lo
    if count >= n then edge_lo, count = edge_lo + 1, count - n end
    local carry = math.floor(edge_lo / TWO32)
    edge_hi, edge_lo = last_hi + interval_hi + now_hi + carry, edge_lo - carry * TWO32
  end
  until_hi, until_lo = edge_hi, edge_lo
end
if op == CHARGE then old_hi, old_lo, old_count = edge_hi, edge_lo, count end
local old_seen_hi, old_seen_lo = seen_hi, seen_lo
local kept, said = '', ''
local marked_hi, marked_lo
