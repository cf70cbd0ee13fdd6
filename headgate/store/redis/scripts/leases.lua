-- The leases of a bucket are at the end of its value, 32 bytes each: node (8), number (8), granted (4), reported (4),
-- expires at (8). A lease granted under another limit counts as spent under this limit until it has expired.
-- Docs: docs/reference/redis-state.md.
--
-- A key may have hundreds of leases, and most calls change none. So leases are scanned as numbers, and unchanged ones
-- are copied as bytes.
--
-- ARGV[3] of a LEASE: the lease that is asked for, and the reports about older ones.
local LEASE = 4
local LEASES_MAX = 512
local owed_before, owed = 0, 0      -- granted and not reported: by all leases, by live ones
local over_hi, over_lo              -- when the last expired lease ended
local lives, kept = 0, ''           -- the number of live leases, and their bytes
local last_hi, last_lo = 0, 0       -- the latest expiry of a live lease
local granted, holders, lease_hi, lease_lo = 0, 1, 0, 0
local settle, ask, end_by
local nodes, node_hi, node_lo
if op == LEASE then
  -- The other nodes that hold leases.
  nodes = {}
  node_hi, node_lo = struct.unpack('>I4I4', ARGV[3])
end

if value and #value >= leases_at then
  if (#value - leases_at + 1) % 32 ~= 0 then
    events = CORRUPT
    edge_hi, edge_lo, count, seen_hi, seen_lo = 0, 0, 0, 0, 0
    value = ''
  else
    if set_back then
      local parts = {string.sub(value, 1, leases_at - 1)}
      for i = leases_at, #value, 32 do
        local hi, lo = struct.unpack('>I4I4', value, i + 24)
        hi, lo = math.max(0, hi - back_hi), lo - back_lo
        if lo < 0 then hi, lo = math.max(0, hi - 1), lo + TWO32 end
        parts[#parts + 1] = string.sub(value, i, i + 23) .. struct.pack('>I4I4', hi, lo)
      end
      value = table.concat(parts)
    end
    local unpack, from, parts = struct.unpack, leases_at, nil
    for i = leases_at, #value, 32 do
      local amount, reported, hi, lo = unpack('>I4I4I4I4', value, i + 16)
      local due = amount > reported and amount - reported or 0
      owed_before = owed_before + due
      if hi < now_hi or hi == now_hi and lo <= now_lo then
        if not over_hi or hi > over_hi or hi == over_hi and lo > over_lo then over_hi, over_lo = hi, lo end
        if from < i then
          parts = parts or {}
          parts[#parts + 1] = string.sub(value, from, i - 1)
        end
        from = i + 32
      else
        owed = owed + due
        lives = lives + 1
        if hi > last_hi or hi == last_hi and lo > last_lo then last_hi, last_lo = hi, lo end
        if nodes then
          local of_hi, of_lo = unpack('>I4I4', value, i)
          local known = nodes[of_lo]
          if known ~= of_hi and (of_lo ~= node_lo or of_hi ~= node_hi) then
            if not known then
              nodes[of_lo] = of_hi
              holders = holders + 1
            else
              -- Several nodes with the same lower half.
              local name = string.sub(value, i, i + 7)
              if not nodes[name] then
                nodes[name] = true
                holders = holders + 1
              end
            end
          end
        end
      end
    end
    kept = string.sub(value, from)
    if parts then
      parts[#parts + 1] = kept
      kept = table.concat(parts)
    end
  end
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
  end
end

if op == LEASE then
  -- The position of a live lease in `kept`; nil if it is not there.
  local function find(id)
    local at = 0
    repeat at = string.find(kept, id, at + 1, true) until not at or at % 32 == 1
    return at
  end

  -- Applies the caller's reports about older leases; calls `give_back` with the unspent rest of each returned lease.
  settle = function(give_back)
    local node, _, _, _, _, _, _, reports, from = struct.unpack('>c8c8I4I4I4I4I4I4', ARGV[3])
    for i = 0, reports - 1 do
      local number, spent, returned = struct.unpack('>c8I4B', ARGV[3], from + 13 * i)
      local at = find(node .. number)
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
      end
    end
  end

  -- Grants a lease of at most `tokens` that ends at `end` at the latest; returns the number of newly granted requests.
  -- A repeated ask gets the lease that was granted to it before.
  ask = function(tokens, end_hi, end_lo)
    local id, want, least, share, ttl_hi, ttl_lo = struct.unpack('>c16I4I4I4I4I4', ARGV[3])
    local at = find(id)
    if at then
      granted = struct.unpack('>I4', kept, at + 16)
      lease_hi, lease_lo = struct.unpack('>I4I4', kept, at + 24)
      return 0
    end
    if tokens < least or lives >= LEASES_MAX then return 0 end
    -- The sum of all leases stays below 2^32, as the arithmetic requires.
    granted = math.min(want, tokens, math.max(least, share, math.floor(tokens / (2 * holders))), TWO32 - 1 - owed)
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
