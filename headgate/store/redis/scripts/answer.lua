-- The end of every script of a bucket that is one string. It is not a function, because each call would create the
-- function and its upvalues anew.
--
-- `until_hi`, `until_lo`: when the bucket will be full under this limit; it is kept until then. nil: the bucket stays
-- unchanged. `drop`: the bucket is full now. In all cases it is kept as long as an earlier limit matters.
local remembered = ''
if remembered_hi then
  if drop or until_hi and (remembered_hi > until_hi or remembered_hi == until_hi and remembered_lo > until_lo) then
    until_hi, until_lo = remembered_hi, remembered_lo
  end
  remembered = struct.pack('>I4I4', remembered_hi, remembered_lo)
end
if until_hi then
  local ms = math.ceil(((until_hi - clock_hi) * TWO32 + (until_lo - clock_lo)) / 1000000) + 1
  if ms < px_least then ms = px_least end
  local state = struct.pack('>I4I4I4I4I4', edge_hi, edge_lo, count, now_hi, now_lo)
  redis.call('SET', key, prefix .. state .. remembered .. kept, 'PX', ms)
elseif drop and existed then
  redis.call('DEL', key)
end
return struct.pack('>BBBI4I4I4I4I4I4I4', 1, allowed, events, now_hi, now_lo, old_hi, old_lo, old_count, old_seen_hi,
  old_seen_lo) .. said
