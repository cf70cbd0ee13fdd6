-- Leases of a bucket, at the end of its value, 32 bytes for each: node and number (16), granted, reported, expires at
-- (8). One that was given under another limit counts as spent under this one until it has expired.
-- Docs: docs/reference/redis-state.md.
--
-- ARGV[3] of a LEASE: which lease is asked for, and what is reported of older ones.
local LEASE = 4
local LEASES_MAX = 512
local leases = {}
local owed_before, owed = 0, 0      -- granted and not reported: of all, of those that have not expired
local over_hi, over_lo              -- when the last of the expired ones did
local granted, holders, lease_hi, lease_lo = 0, 0, 0, 0
local settle, ask, end_by

if value and #value >= leases_at then
  if (#value - leases_at + 1) % 32 ~= 0 then
    events = CORRUPT
    edge_hi, edge_lo, count, seen_hi, seen_lo = 0, 0, 0, 0, 0
    value = ''
  else
    for i = leases_at, #value, 32 do
      local id, amount, reported, hi, lo = struct.unpack('>c16I4I4I4I4', value, i)
      if set_back then
        hi, lo = hi - back_hi, lo - back_lo
        if lo < 0 then hi, lo = hi - 1, lo + TWO32 end
      end
      reported = math.min(reported, amount)
      owed_before = owed_before + amount - reported
      if hi < now_hi or hi == now_hi and lo <= now_lo then
        if not over_hi or hi > over_hi or hi == over_hi and lo > over_lo then over_hi, over_lo = hi, lo end
      else
        owed = owed + amount - reported
        leases[#leases + 1] = {id = id, granted = amount, reported = reported, hi = hi, lo = lo}
      end
    end
  end
end

-- A lease ends with its window at the latest; a clock that was set back has put it into another one.
if set_back then
  end_by = function(end_hi, end_lo)
    for _, lease in ipairs(leases) do
      if lease.hi > end_hi or lease.hi == end_hi and lease.lo > end_lo then lease.hi, lease.lo = end_hi, end_lo end
    end
  end
end

if op == LEASE then
  -- Takes in what the caller says of older leases; `give_back` is told what was returned unspent.
  settle = function(give_back)
    local node, _, _, _, _, _, reports, from = struct.unpack('>c8c8I4I4I4I4I4', ARGV[3])
    for i = 0, reports - 1 do
      local number, spent, returned = struct.unpack('>c8I4B', ARGV[3], from + 13 * i)
      for j, lease in ipairs(leases) do
        if lease.id == node .. number then
          owed = owed - (lease.granted - lease.reported)
          lease.reported = math.min(lease.granted, math.max(lease.reported, spent))
          if returned == 1 then
            table.remove(leases, j)
            give_back(lease.granted - lease.reported)
          else
            owed = owed + (lease.granted - lease.reported)
          end
          break
        end
      end
    end
  end

  -- Grants of `tokens`, until `end` at the latest; returns how much is newly granted. One that was granted before, to a
  -- request that comes twice, is the same.
  ask = function(tokens, end_hi, end_lo)
    local node, number, want, least, ttl_hi, ttl_lo = struct.unpack('>c8c8I4I4I4I4', ARGV[3])
    local id = node .. number
    local nodes = {[node] = true}
    holders = 1
    for _, lease in ipairs(leases) do
      if lease.id == id then granted, lease_hi, lease_lo = lease.granted, lease.hi, lease.lo end
      local holder = string.sub(lease.id, 1, 8)
      if not nodes[holder] then
        nodes[holder] = true
        holders = holders + 1
      end
    end
    if granted > 0 then return 0 end
    if tokens < least or #leases >= LEASES_MAX then return 0 end
    -- All together stay below 2^32, which the arithmetic counts on.
    granted = math.min(want, math.max(least, math.floor(tokens / (2 * holders))), TWO32 - 1 - owed)
    if granted == 0 then return 0 end
    lease_hi, lease_lo = now_hi + ttl_hi, now_lo + ttl_lo
    if lease_lo >= TWO32 then lease_hi, lease_lo = lease_hi + 1, lease_lo - TWO32 end
    if end_hi and (lease_hi > end_hi or lease_hi == end_hi and lease_lo > end_lo) then
      lease_hi, lease_lo = end_hi, end_lo
    end
    leases[#leases + 1] = {id = id, granted = granted, reported = 0, hi = lease_hi, lo = lease_lo}
    owed = owed + granted
    return granted
  end
end
