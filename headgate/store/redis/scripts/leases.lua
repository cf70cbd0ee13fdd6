-- The leases of a bucket are at the end of its value, 32 bytes each: node (8), number (8), granted (4), reported (4),
-- expires at (8). A lease granted under another limit counts as spent under this limit until it has expired.
-- A lease that has ended with requests not reported has 2^32 − 1 in place of `reported`, and stands
-- before the live ones. It is remembered as long as a late report could give something back. A
-- lease of nothing is a mark: while it lives, leases are granted only to nodes for which the key is
-- overloaded. Docs: docs/reference/redis-state.md.
--
-- A key may have hundreds of leases, and most calls change none. So leases that live are scanned as numbers, and
-- unchanged ones are copied as bytes. Leases that had ended before are not scanned.
--
-- ARGV[3] of a LEASE: the lease that is asked for, and the reports about older ones.
local LEASE = 4
local LEASES_MAX, ENDED_MAX, FEW_LEFT, WITHHELD_LONGER = 512, 128, 64, 500000000
local ENDED = '\255\255\255\255'
local owed_before, owed = 0, 0      -- granted and not reported: by all leases that had not ended, by live ones
local over_hi, over_lo              -- when the last lease ended that had not ended before
local lives, kept, ended = 0, '', ''  -- the number of live leases, their bytes, and those of the ended ones
local some_end = false              -- whether a lease has ended since, with requests not reported
local last_hi, last_lo = 0, 0       -- the latest expiry of a live lease
local granted, others, lease_hi, lease_lo = 0, 0, 0, 0
local others_hi, others_lo = 0, 0   -- when the last lease of others ends
local marked_hi, marked_lo          -- the end of a mark; nil: there is none
local settle, is_granted, ask, mark, end_by
local node_hi, node_lo
if op == LEASE then node_hi, node_lo = struct.unpack('>I4I4', ARGV[3]) end

if value and #value >= leases_at then
  if (#value - leases_at + 1) % 32 ~= 0 then return DAMAGED end
  local low, high = 0, (#value - leases_at + 1) / 32
  while low < high do
    local middle = math.ceil((low + high) / 2)
    if string.sub(value, leases_at + middle * 32 - 12, leases_at + middle * 32 - 9) == ENDED then
      low = middle
    else
      high = middle - 1
    end
  end
  local first = leases_at + low * 32
  if set_back then
    local parts = {string.sub(value, 1, leases_at - 1)}
    for i = first, #value, 32 do
      local hi, lo = struct.unpack('>I4I4', value, i + 24)
      hi, lo = math.max(0, hi - back_hi), lo - back_lo
      if lo < 0 then hi, lo = math.max(0, hi - 1), lo + TWO32 end
      parts[#parts + 1] = string.sub(value, i, i + 23) .. struct.pack('>I4I4', hi, lo)
    end
    value, first = table.concat(parts), leases_at
  end
  ended = string.sub(value, leases_at, first - 1)
  local unpack, from, parts, over = struct.unpack, first, nil, nil
  for i = first, #value, 32 do
    local amount, reported, hi, lo = unpack('>I4I4I4I4', value, i + 16)
    local due = amount > reported and amount - reported or 0
    owed_before = owed_before + due
    if hi < now_hi or hi == now_hi and lo <= now_lo then
      if amount > 0 and (not over_hi or hi > over_hi or hi == over_hi and lo > over_lo) then
        over_hi, over_lo = hi, lo
      end
      if due > 0 then
        over = over or {ended}
        over[#over + 1] = string.sub(value, i, i + 19) .. ENDED .. string.sub(value, i + 24, i + 31)
      end
      if from < i then
        parts = parts or {}
        parts[#parts + 1] = string.sub(value, from, i - 1)
      end
      from = i + 32
    else
      owed = owed + due
      if amount == 0 then
        marked_hi, marked_lo = hi, lo
      else
        lives = lives + 1
        if hi > last_hi or hi == last_hi and lo > last_lo then last_hi, last_lo = hi, lo end
      end
      if node_hi and due > 0 then
        local of_hi, of_lo = unpack('>I4I4', value, i)
        if of_hi ~= node_hi or of_lo ~= node_lo then
          others = others + due
          if hi > others_hi or hi == others_hi and lo > others_lo then others_hi, others_lo = hi, lo end
        end
      end
    end
  end
  kept = string.sub(value, from)
  if parts then
    parts[#parts + 1] = kept
    kept = table.concat(parts)
  end
  some_end = over ~= nil
  if over then ended = string.sub(table.concat(over), -32 * ENDED_MAX) end
end

-- A lease ends with its window at the latest. If the clock was set back, the lease is in another window now.
if set_back then
  end_by = function(end_hi, end_lo)
    local parts = {}
    for i = 1, #kept, 32 do
      local hi, lo = struct.unpack('>I4I4', kept, i + 24)
      if hi > end_hi or hi == end_hi and lo > end_lo then hi, lo = end_hi, end_lo end
      parts[#parts + 1] = string.sub(kept, i, i + 23) .. struct.pack('>I4I4', hi, lo)
    end
    kept = table.concat(parts)
    if last_hi > end_hi or last_hi == end_hi and last_lo > end_lo then last_hi, last_lo = end_hi, end_lo end
    if others_hi > end_hi or others_hi == end_hi and others_lo > end_lo then others_hi, others_lo = end_hi, end_lo end
    if marked_hi and (marked_hi > end_hi or marked_hi == end_hi and marked_lo > end_lo) then
      marked_hi, marked_lo = end_hi, end_lo
    end
  end
end

if op == LEASE then
  -- The position of a lease in `leases`; nil if it is not there.
  local function find(leases, id)
    local at = 0
    repeat at = string.find(leases, id, at + 1, true) until not at or at % 32 == 1
    return at
  end

  -- Applies the caller's reports about older leases. Calls `give_back` with the unspent rest of each returned lease, and
  -- `give_back_late` with that of one that has ended, and with its end.
  settle = function(give_back, give_back_late)
    local node, reports, from = struct.unpack('>c8', ARGV[3]), struct.unpack('>I4', ARGV[3], 37)
    for i = 0, reports - 1 do
      local number, spent, returned = struct.unpack('>c8I4B', ARGV[3], from + 13 * i)
      local id = node .. number
      local at = find(kept, id)
      if at then
        local amount, before = struct.unpack('>I4I4', kept, at + 16)
        local reported = math.min(amount, math.max(before, spent))
        owed = owed - math.max(0, amount - before)
        if returned == 1 then
          lives = lives - 1
          kept = string.sub(kept, 1, at - 1) .. string.sub(kept, at + 32)
          give_back(amount - reported)
        else
          owed = owed + amount - reported
          kept = string.sub(kept, 1, at + 19) .. struct.pack('>I4', reported) .. string.sub(kept, at + 24)
        end
      elseif returned == 1 then
        at = find(ended, id)
        if at then
          local amount, _, hi, lo = struct.unpack('>I4I4I4I4', ended, at + 16)
          ended = string.sub(ended, 1, at - 1) .. string.sub(ended, at + 32)
          give_back_late(math.max(0, amount - spent), hi, lo)
        end
      end
    end
  end

  -- Whether the lease that is asked for was granted before: then the request has been decided too.
  is_granted = function()
    local at = find(kept, string.sub(ARGV[3], 1, 16)) or find(ended, string.sub(ARGV[3], 1, 16))
    return at ~= nil
  end

  -- Leaves a mark if leases of others withhold a request although enough requests are left.
  mark = function(left, end_hi, end_lo)
    if marked_hi or left < FEW_LEFT then return end
    local hi, lo = others_hi, others_lo + WITHHELD_LONGER
    if lo >= TWO32 then hi, lo = hi + 1, lo - TWO32 end
    if end_hi and (hi > end_hi or hi == end_hi and lo > end_lo) then hi, lo = end_hi, end_lo end
    kept = kept .. struct.pack('>I4I4I4I4I4I4I4I4', 0, 0, 0, 0, 0, 0, hi, lo)
    marked_hi, marked_lo = hi, lo
  end

  -- Grants a lease of at most `tokens` that ends at `end` at the latest; returns the number of newly granted requests.
  -- A repeated ask gets the lease that was granted to it before.
  ask = function(tokens, end_hi, end_lo)
    local id, want, brief, parts, ttl_hi, ttl_lo = struct.unpack('>c16I4I4I4I4I4', ARGV[3])
    local at = find(kept, id)
    if at then
      granted = struct.unpack('>I4', kept, at + 16)
      lease_hi, lease_lo = struct.unpack('>I4I4', kept, at + 24)
      return 0
    end
    if want == 0 or lives >= LEASES_MAX or marked_hi and parts > 1 or find(ended, id) then return 0 end
    -- The sum of all leases stays below 2^32, as the arithmetic requires.
    tokens = math.min(tokens, TWO32 - 2)
    if end_hi then
      -- A brief lease is no more than the node can spend until the window ends.
      local left_us = math.floor(((end_hi - now_hi) * TWO32 + (end_lo - now_lo)) / 1000)
      if left_us < 100000 then brief = math.floor(brief * left_us / 100000) end
    end
    local mine = owed - others
    local all = tokens + mine
    if all < FEW_LEFT and parts > 1 then return 0 end
    local holds = math.max(math.min(want, math.floor(all / 32)), math.min(brief, math.floor(all / math.max(1, parts))))
    granted = math.max(0, math.min(tokens, holds - mine, TWO32 - 2 - owed))
    if granted == 0 then return 0 end
    lease_hi, lease_lo = now_hi + ttl_hi, now_lo + ttl_lo
    if lease_lo >= TWO32 then lease_hi, lease_lo = lease_hi + 1, lease_lo - TWO32 end
    if end_hi and (lease_hi > end_hi or lease_hi == end_hi and lease_lo > end_lo) then
      lease_hi, lease_lo = end_hi, end_lo
    end
    kept = kept .. struct.pack('>c16I4I4I4I4', id, granted, 0, lease_hi, lease_lo)
    lives = lives + 1
    owed = owed + granted
    if lease_hi > last_hi or lease_hi == last_hi and lease_lo > last_lo then last_hi, last_lo = lease_hi, lease_lo end
    return granted
  end
end
