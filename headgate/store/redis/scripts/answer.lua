-- The end of every script of a bucket that is one string. It is not a function, because each call
-- would create the function and its upvalues again.
--
-- `until_hi`, `until_lo`: when the bucket will be full under this limit; it is kept until then. nil: the bucket stays
-- unchanged. `drop`: the bucket is full now. In all cases it is kept while an earlier limit, a mark or a block matters.
local keep_hi, keep_lo = remembered_hi, remembered_lo
if marked_hi and (not keep_hi or marked_hi > keep_hi or marked_hi == keep_hi and marked_lo > keep_lo) then
  keep_hi, keep_lo = marked_hi, marked_lo
end
if keep_hi and (drop or until_hi and (keep_hi > until_hi or keep_hi == until_hi and keep_lo > until_lo)) then
  until_hi, until_lo = keep_hi, keep_lo
end
if lengths > 0 and op ~= PEEK then
  next_block(op, allowed)
  if matters_hi and (drop or until_hi) then
    if not until_hi or matters_hi > until_hi or matters_hi == until_hi and matters_lo > until_lo then
      until_hi, until_lo = matters_hi, matters_lo
    end
  end
end
if until_hi then
  local ms = math.ceil(((until_hi - clock_hi) * TWO32 + (until_lo - clock_lo)) / 1000000) + 1
  if ms < px_least then ms = px_least end
  -- The checksum, as value.lua reads it.
  local sum = limit_sum + 65521 * edge_hi + 65519 * edge_lo + 65497 * count + 65479 * now_hi + 65449 * now_lo +
    65423 * block_hi + 65419 * block_lo + 65413 * block_byte
  if kept ~= '' then sum = sum + tonumber(string.sub(redis.sha1hex(kept), 1, 8), 16) end
  first_hi, first_lo = 0, 0
  if remembered_hi then
    first_hi, first_lo = remembered_hi + hides_use, remembered_lo
    sum = (sum + 65447 * first_hi + 65437 * first_lo) % PRIME
    -- A queue has no leases, so there is no room for a checksum.
    if string.byte(prefix, 2) % 8 ~= 2 then kept = kept .. struct.pack('>I4I4I4I4I4I4I4I4', 0, 0, 0, sum, 0, 0, 0, 0) end
  else
    first_lo = sum % PRIME
  end
  local state = struct.pack('>I4I4I4I4I4I4I4', edge_hi, edge_lo, count, now_hi, now_lo, first_hi, first_lo)
  local block = lengths > 0 and struct.pack('>I4I4B', block_hi, block_lo, block_byte) or ''
  redis.call('SET', key, prefix .. block .. state .. kept, 'PX', ms)
elseif drop and existed then
  redis.call('DEL', key)
end
return struct.pack('>BBBI4I4I4I4I4I4I4', 1, allowed, events, now_hi, now_lo, old_hi, old_lo, old_count, old_seen_hi,
  old_seen_lo) .. found_block .. said
