-- What is kept of the leases, and what an answer says of them.
local kept, said = '', ''
if until_hi and #leases > 0 then
  local parts = {}
  for i, lease in ipairs(leases) do
    parts[i] = struct.pack('>c16I4I4I4I4', lease.id, lease.granted, lease.reported, lease.hi, lease.lo)
  end
  kept = table.concat(parts)
end
if op == LEASE then said = struct.pack('>I4I4I4I4', granted, holders, lease_hi, lease_lo) end
