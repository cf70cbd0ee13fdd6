-- The part of an answer about leases.
local said = ''
if op == LEASE then said = struct.pack('>I4I4I4I4', granted, holders, lease_hi, lease_lo) end
