-- Sliding window log: headgate/algorithm/sliding_window_log.h. A list: first a header (ARGV[1], the sum of the costs,
-- seen, and perhaps 8 bytes: the time until which earlier limits keep the bucket from counting as unused), then one hit
-- of 12 bytes each (at, cost), the oldest first.
local capacity, cost_hi, cost, period_hi, period_lo = struct.unpack('>I4I4I4I4I4', ARGV[2], at)
cost = cost_hi * TWO32 + cost
local count, seen_hi, seen_lo = 0, 0, 0
local header = redis.pcall('LINDEX', key, 0)
local existed = header ~= false
local sound = true
local carried = false
local ours = type(header) == 'string' and string.sub(header, 1, #prefix) == prefix
if ours and #header >= #prefix + 12 then
  local hi, lo = struct.unpack('>I4I4', header, #prefix + 5)
  ours = hi > replaced_hi or hi == replaced_hi and lo > replaced_lo
end
if type(header) == 'table' then
  -- An error. Only WRONGTYPE says what is stored under the key. After any other error, such as a missing right, the log
  -- is unknown. The script must not start with an empty log then, because that would lift the limit.
  if string.sub(header.err, 1, 9) ~= 'WRONGTYPE' then return header end
  -- Not a list: perhaps a bucket of another algorithm.
  header = redis.pcall('GET', key)
  if type(header) == 'table' and string.sub(header.err, 1, 9) ~= 'WRONGTYPE' then return header end
  if type(header) ~= 'string' then
    sound = false
  elseif header == ARGV[4] then
    header = ARGV[5]
    if op ~= LOOK then redis.call('DEL', key) end
    existed = false
  elseif string.byte(header) == 1 and #header <= VALUE_MAX then
    return struct.pack('>BBI4I4', 2, 0, now_hi, now_lo) .. header
  else
    sound = false
  end
elseif header and not ours then
  if ARGV[4] and header .. struct.pack('>I4', redis.call('LLEN', key)) == ARGV[4] then
    header = ARGV[5]
    carried = true
    if (#header == #prefix + 12 or #header == #prefix + 20) and struct.unpack('>I4', header, #prefix + 1) > 0 then
      -- The hits stay unchanged.
      redis.call('LSET', key, 0, header)
    else
      redis.call('DEL', key)
      existed = false
    end
  elseif string.byte(header) == 1 then
    local length = redis.call('LLEN', key)
    local all = length * 12 <= VALUE_MAX and table.concat(redis.call('LRANGE', key, 0, -1))
    if all and #all <= VALUE_MAX then
      return struct.pack('>BBI4I4I4I4', 2, 1, now_hi, now_lo, #header, length) .. all
    end
    sound = false
  else
    sound = false
  end
end
-- A carried-over value may contain one hit.
local brought
local remembered_hi, remembered_lo
if header and sound then
  local size = #header - #prefix
  if size == 12 or size == 20 or size == 24 or size == 32 then
    count, seen_hi, seen_lo = struct.unpack('>I4I4I4', header, #prefix + 1)
    if size % 12 == 8 then remembered_hi, remembered_lo = struct.unpack('>I4I4', header, #prefix + 13) end
    if size >= 24 then brought = string.sub(header, -12) end
  else
    sound = false
  end
end
if seen_hi >= 2147483648 then sound = false end

local back_hi, back_lo = seen_hi - now_hi, seen_lo - now_lo
if back_lo < 0 then back_hi, back_lo = back_hi - 1, back_lo + TWO32 end
if sound and (back_hi > 0 or back_hi == 0 and back_lo > 0) then
  if back_hi > far_hi or back_hi == far_hi and back_lo > far_lo then
    -- All hits become one hit at the present time.
    events = events + CLOCK_RESET
    if count > 0 then brought = struct.pack('>I4I4I4', now_hi, now_lo, count) end
    if existed and op ~= LOOK then redis.call('DEL', key) end
    existed = false
    if remembered_hi then
      remembered_hi, remembered_lo = remembered_hi - back_hi, remembered_lo - back_lo
      if remembered_lo < 0 then remembered_hi, remembered_lo = remembered_hi - 1, remembered_lo + TWO32 end
    end
  else
    now_hi, now_lo = seen_hi, seen_lo
  end
end
if remembered_hi and (remembered_hi < now_hi or remembered_hi == now_hi and remembered_lo <= now_lo or
    remembered_hi >= 2147483648) then
  remembered_hi = nil
end

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
if not sound then
  events = CORRUPT
  if existed and op ~= LOOK then redis.call('DEL', key) end
  existed, brought, count, seen_hi, seen_lo = false, nil, 0, 0, 0
  newest_hi, newest_lo, newest_cost = 0, 0, 0
  live = 1
end

-- The hits that the caller needs to answer like the C++ algorithm: the newest and, for a denial, the hit after whose
-- end enough hits have ended.
local allowed = count + cost <= capacity and 1 or 0
local freeing_hi, freeing_lo = newest_hi, newest_lo
if op ~= REFUND and allowed == 0 and cost <= capacity then
  local surplus = count + cost - capacity
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

if op ~= LOOK then
  local added
  if op == TAKE and allowed == 1 then
    added = struct.pack('>I4I4I4', now_hi, now_lo, cost)
    count = count + cost
  end
  local ends_hi, ends_lo
  if added then
    ends_hi, ends_lo = now_hi, now_lo
  elseif op == REFUND then
    while cost > 0 and count > 0 do
      local last = brought or redis.call('LINDEX', key, -1)
      if #last ~= 12 then
        -- The sum was larger than the stored hits.
        events, count = CORRUPT, 0
        break
      end
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

  if count == 0 and not remembered_hi then
    if existed then redis.call('DEL', key) end
  else
    local head = prefix .. struct.pack('>I4I4I4', count, now_hi, now_lo)
    if remembered_hi then head = head .. struct.pack('>I4I4', remembered_hi, remembered_lo) end
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
    elseif ends_hi then
      until_hi, until_lo = ends_hi + period_hi, ends_lo + period_lo
      if until_lo >= TWO32 then until_hi, until_lo = until_hi + 1, until_lo - TWO32 end
      if remembered_hi and
          (remembered_hi > until_hi or remembered_hi == until_hi and remembered_lo > until_lo) then
        until_hi, until_lo = remembered_hi, remembered_lo
      end
    end
    if until_hi then
      local ms = math.ceil(((until_hi - clock_hi) * TWO32 + (until_lo - clock_lo)) / 1000000) + 1
      if ms < px_least then ms = px_least end
      redis.call('PEXPIRE', key, ms)
    end
  end
end
return struct.pack('>BBBI4I4I4I4I4I4I4I4', 1, allowed, events, now_hi, now_lo, newest_hi, newest_lo, old_count,
                   freeing_hi, freeing_lo, newest_cost)
