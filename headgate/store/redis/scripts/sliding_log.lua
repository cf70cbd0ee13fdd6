-- Sliding window log: headgate/algorithm/sliding_window_log.h. A list: first a header (ARGV[1], the sum of the costs,
-- seen, and perhaps 8 bytes: the checksum of the header, or the time until which earlier limits
-- keep the bucket from being fresh), then one hit of 12 bytes each (at, cost), the oldest first.
local capacity, cost_hi, cost, period_hi, period_lo = struct.unpack('>I4I4I4I4I4', ARGV[2], at)
cost = cost_hi * TWO32 + cost
local count, seen_hi, seen_lo = 0, 0, 0
local header = redis.pcall('LINDEX', key, 0)
local existed = header ~= false
local sound = true
local carried = false
local ours = type(header) == 'string' and string.sub(header, 1, #prefix) == prefix
if ours and #header >= state_at + 12 then
  local hi, lo = struct.unpack('>I4I4', header, state_at + 5)
  ours = hi > replaced_hi or hi == replaced_hi and lo > replaced_lo
end
if type(header) == 'table' then
  -- An error. Only WRONGTYPE says what is stored under the key. After any other error, such as a missing right, the log
  -- is unknown. The script must not start with an empty log then, because that would lift the limit.
  if string.sub(header.err, 1, 9) ~= 'WRONGTYPE' then return header end
  -- Not a list: perhaps a bucket of another algorithm.
  header = redis.pcall('GET', key)
  if type(header) == 'table' and string.sub(header.err, 1, 9) ~= 'WRONGTYPE' then return header end
  if type(header) ~= 'string' then return DAMAGED end
  if header == ARGV[4] then
    header = ARGV[5]
    if op ~= PEEK then redis.call('DEL', key) end
    existed = false
  elseif string.find(header, IS_BUCKET) and #header <= VALUE_MAX then
    return struct.pack('>BBI4I4', 2, 0, now_hi, now_lo) .. header
  else
    return DAMAGED
  end
elseif header and not ours then
  if ARGV[4] and header .. struct.pack('>I4', redis.call('LLEN', key)) == ARGV[4] then
    header = ARGV[5]
    carried = true
    if (#header == state_at + 12 or #header == state_at + 20) and struct.unpack('>I4', header, state_at + 1) > 0 then
      -- The hits stay unchanged.
      redis.call('LSET', key, 0, header)
    else
      redis.call('DEL', key)
      existed = false
    end
  elseif string.find(header, IS_BUCKET) then
    local length = redis.call('LLEN', key)
    local all = length * 12 <= VALUE_MAX and table.concat(redis.call('LRANGE', key, 0, -1))
    if all and #all <= VALUE_MAX then
      return struct.pack('>BBI4I4I4I4', 2, 1, now_hi, now_lo, #header, length) .. all
    end
    return DAMAGED
  else
    return DAMAGED
  end
end
-- A carried-over value may contain one hit.
local brought
local remembered_hi, remembered_lo
local hides_use = 0 -- the highest bit, as headgate/algorithm/bucket.h has it
if header then
  local size = #header - state_at
  if size ~= 12 and size ~= 20 and size ~= 24 and size ~= 32 then return DAMAGED end
  count, seen_hi, seen_lo = struct.unpack('>I4I4I4', header, state_at + 1)
  if lengths > 0 then read_block(header) end
  if size % 12 == 8 then
    remembered_hi, remembered_lo = struct.unpack('>I4I4', header, state_at + 13)
    if remembered_hi == 0 then
      local sum = limit_sum + 65497 * count + 65479 * seen_hi + 65449 * seen_lo +
        65423 * block_hi + 65419 * block_lo + 65413 * block_byte
      if sum % PRIME ~= remembered_lo then return DAMAGED end
      remembered_hi = nil
    else
      if remembered_hi >= 2147483648 then hides_use, remembered_hi = 2147483648, remembered_hi - 2147483648 end
      -- A time that is over is not stored.
      if remembered_hi < seen_hi or remembered_hi == seen_hi and remembered_lo <= seen_lo then return DAMAGED end
    end
  end
  if size >= 24 then brought = string.sub(header, -12) end
end
if seen_hi >= 2147483648 then return DAMAGED end

local set_back = false
local back_hi, back_lo = seen_hi - now_hi, seen_lo - now_lo
if back_lo < 0 then back_hi, back_lo = back_hi - 1, back_lo + TWO32 end
if back_hi > 0 or back_hi == 0 and back_lo > 0 then
  if back_hi > far_hi or back_hi == far_hi and back_lo > far_lo then
    -- All hits become one hit at the present time.
    events = events + CLOCK_RESET
    set_back = true
    if count > 0 then brought = struct.pack('>I4I4I4', now_hi, now_lo, count) end
    if existed and op ~= PEEK then redis.call('DEL', key) end
    existed = false
    if remembered_hi then
      remembered_hi, remembered_lo = remembered_hi - back_hi, remembered_lo - back_lo
      if remembered_lo < 0 then remembered_hi, remembered_lo = remembered_hi - 1, remembered_lo + TWO32 end
    end
  else
    now_hi, now_lo = seen_hi, seen_lo
  end
end
if remembered_hi and (remembered_hi < now_hi or remembered_hi == now_hi and remembered_lo <= now_lo) then
  remembered_hi = nil
end

if lengths > 0 and not find_block(set_back and back_hi, back_lo) then return DAMAGED end

-- Hits up to this time have ended: at ≤ now − period.
local over_hi, over_lo = now_hi - period_hi, now_lo - period_lo
if over_lo < 0 then over_hi, over_lo = over_hi - 1, over_lo + TWO32 end
local function is_over(hi, lo) return hi < over_hi or hi == over_hi and lo <= over_lo end

-- Reads the hits one after another, the oldest first, in growing parts.
local step, hits, hits_from = 16, nil, 1
local function hit_at(i)
  if brought then
    if i > 1 then return nil end
    return struct.unpack('>I4I4I4', brought)
  end
  if not existed then return nil end
  if not hits or i >= hits_from + #hits then
    hits_from = i
    hits = redis.call('LRANGE', key, i, i + step - 1)
    if step < 4096 then step = step * 4 end
  end
  local hit = hits[i - hits_from + 1]
  if not hit then return nil end
  if #hit ~= 12 then
    sound = false
    return nil
  end
  return struct.unpack('>I4I4I4', hit)
end

local live = 1
while sound do
  local hi, lo, hit_cost = hit_at(live)
  if not hi or not is_over(hi, lo) then break end
  count = count - hit_cost
  live = live + 1
end
local newest_hi, newest_lo, newest_cost = 0, 0, 0
if brought and live > 1 then brought, existed = nil, false end
if sound and hit_at(live) then
  if brought then
    newest_hi, newest_lo, newest_cost = hit_at(1)
  else
    local newest = redis.call('LINDEX', key, -1)
    if #newest == 12 then newest_hi, newest_lo, newest_cost = struct.unpack('>I4I4I4', newest) else sound = false end
  end
end
if newest_hi > now_hi or newest_hi == now_hi and newest_lo > now_lo then sound = false end
if count < newest_cost or newest_cost == 0 and count > 0 then sound = false end
if not sound then return DAMAGED end

-- A charge: headgate/algorithm/sliding_window_log.cc, where the constant is kChargedHitsMin.
local added
local found = count
local overdraws = op == TAKE and overdraw and count <= capacity and count + cost > capacity
if op == CHARGE or overdraws then
  if count + cost > capacity then
    local size = brought and 1 or existed and redis.call('LLEN', key) - live or 0
    while size > math.max(capacity, 64) do
      local _, _, hit_cost = hit_at(live)
      if not hit_cost or count - hit_cost + cost <= capacity then break end
      count, live, size = count - hit_cost, live + 1, size - 1
    end
  end
  cost = math.min(cost, TWO32 - 1 - count)
  if cost > 0 then added = struct.pack('>I4I4I4', now_hi, now_lo, cost) end
end

-- Takes up to `cost` off the hits of the time of the take, from the newest on.
local function undo(cost)
  if taken_hi > now_hi or taken_hi == now_hi and taken_lo > now_lo then taken_hi, taken_lo = now_hi, now_lo end
  if is_over(taken_hi, taken_lo) then return end
  if brought then
    local hi, lo, hit_cost = struct.unpack('>I4I4I4', brought)
    if hi ~= taken_hi or lo ~= taken_lo then return end
    local taken = math.min(cost, hit_cost)
    count = count - taken
    brought = hit_cost > taken and struct.pack('>I4I4I4', hi, lo, hit_cost - taken) or nil
    return
  end
  -- Newer hits are removed first, and put back afterwards.
  local newer = {}
  for _ = live, existed and redis.call('LLEN', key) - 1 or 0 do
    local hit = redis.call('LINDEX', key, -1)
    if cost == 0 or #hit ~= 12 then break end
    local hi, lo, hit_cost = struct.unpack('>I4I4I4', hit)
    if hi < taken_hi or hi == taken_hi and lo < taken_lo then break end
    redis.call('RPOP', key)
    local taken = hi == taken_hi and lo == taken_lo and math.min(cost, hit_cost) or 0
    cost, count = cost - taken, count - taken
    if taken < hit_cost then newer[#newer + 1] = struct.pack('>I4I4I4', hi, lo, hit_cost - taken) end
  end
  for i = #newer, 1, -1 do redis.call('RPUSH', key, newer[i]) end
end

-- The hits that the caller needs to answer like the C++ algorithm: the newest and, for a denial, the hit after whose
-- end enough hits have ended.
local allowed = (op ~= TAKE and op ~= PEEK or overdraws or count + cost <= capacity) and 1 or 0
local freeing_hi, freeing_lo = newest_hi, newest_lo
if (op == TAKE or op == PEEK) and allowed == 0 and (overdraw or cost <= capacity) then
  local surplus = overdraw and math.max(1, count - capacity) or count + cost - capacity
  local i = live
  while true do
    local hi, lo, hit_cost = hit_at(i)
    if not hi then break end
    freeing_hi, freeing_lo = hi, lo
    surplus = surplus - hit_cost
    if surplus <= 0 then break end
    i = i + 1
  end
end
local old_count = count
-- During a block a request is denied whether or not it fits.
if blocked and op == TAKE then allowed = 0 end

if op ~= PEEK then
  if lengths > 0 then next_block(op, allowed) end
  if op == TAKE and allowed == 1 and not overdraws then added = struct.pack('>I4I4I4', now_hi, now_lo, cost) end
  if added then count = count + cost end
  local ends_hi, ends_lo
  if added then
    ends_hi, ends_lo = now_hi, now_lo
  elseif op == REFUND or op == UNDO then
    if op == UNDO then
      undo(cost)
      cost = 0
    end
    while cost > 0 and count > 0 do
      local last = brought or redis.call('LINDEX', key, -1)
      -- The sum was larger than the stored hits.
      if #last ~= 12 then return DAMAGED end
      local hi, lo, hit_cost = struct.unpack('>I4I4I4', last)
      local taken = math.min(cost, hit_cost)
      cost, count, hit_cost = cost - taken, count - taken, hit_cost - taken
      if brought then
        brought = hit_cost > 0 and struct.pack('>I4I4I4', hi, lo, hit_cost) or nil
      elseif hit_cost > 0 then
        redis.call('LSET', key, -1, struct.pack('>I4I4I4', hi, lo, hit_cost))
      else
        redis.call('RPOP', key)
      end
    end
    local last = brought or redis.call('LINDEX', key, -1)
    if count > 0 and #last == 12 then
      ends_hi, ends_lo, newest_cost = struct.unpack('>I4I4I4', last)
      newest_hi, newest_lo = ends_hi, ends_lo
    else
      count = 0
    end
    old_count = count
  elseif brought or carried and count > 0 then
    ends_hi, ends_lo = newest_hi, newest_lo
  end

  if count == 0 and not remembered_hi and not matters_hi then
    if existed then redis.call('DEL', key) end
  else
    local block = lengths > 0 and struct.pack('>I4I4B', block_hi, block_lo, block_byte) or ''
    local head = prefix .. block .. struct.pack('>I4I4I4', count, now_hi, now_lo)
    if remembered_hi then
      head = head .. struct.pack('>I4I4', remembered_hi + hides_use, remembered_lo)
    else
      local sum = limit_sum + 65497 * count + 65479 * now_hi + 65449 * now_lo +
        65423 * block_hi + 65419 * block_lo + 65413 * block_byte
      head = head .. struct.pack('>I4I4', 0, sum % PRIME)
    end
    if brought or not existed or old_count == 0 then
      if existed then redis.call('DEL', key) end
      redis.call('RPUSH', key, head)
      if brought then redis.call('RPUSH', key, brought) end
    else
      if live > 1 then
        redis.call('LTRIM', key, live, -1)
        redis.call('LPUSH', key, head)
      else
        redis.call('LSET', key, 0, head)
      end
    end
    if added then redis.call('RPUSH', key, added) end
    local until_hi, until_lo
    if count == 0 then
      until_hi, until_lo = remembered_hi, remembered_lo
    elseif ends_hi or matters_hi then
      if not ends_hi then ends_hi, ends_lo = newest_hi, newest_lo end
      until_hi, until_lo = ends_hi + period_hi, ends_lo + period_lo
      if until_lo >= TWO32 then until_hi, until_lo = until_hi + 1, until_lo - TWO32 end
      if remembered_hi and
          (remembered_hi > until_hi or remembered_hi == until_hi and remembered_lo > until_lo) then
        until_hi, until_lo = remembered_hi, remembered_lo
      end
    end
    if matters_hi and
        (not until_hi or matters_hi > until_hi or matters_hi == until_hi and matters_lo > until_lo) then
      until_hi, until_lo = matters_hi, matters_lo
    end
    if until_hi then
      local ms = math.ceil(((until_hi - clock_hi) * TWO32 + (until_lo - clock_lo)) / 1000000) + 1
      if ms < px_least then ms = px_least end
      redis.call('PEXPIRE', key, ms)
    end
  end
end
if op == TAKE then old_count = found end
if op == CHARGE and added then
  newest_hi, newest_lo, newest_cost, old_count = now_hi, now_lo, cost, count
  freeing_hi, freeing_lo = now_hi, now_lo
end
return struct.pack('>BBBI4I4I4I4I4I4I4I4', 1, allowed, events, now_hi, now_lo, newest_hi, newest_lo, old_count,
                   freeing_hi, freeing_lo, newest_cost) .. found_block
