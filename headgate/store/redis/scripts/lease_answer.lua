kept = ended .. kept
-- The part of the answer that is about leases.
local said = ''
if op == LEASE then said = struct.pack('>I4I4I4I4I4I4', granted, others, lease_hi, lease_lo, others_hi, others_lo) end
