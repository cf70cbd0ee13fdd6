-- The block of a bucket: headgate/algorithm/block.h. It stands between the limit and the state: its end, and a byte with
-- its level and, as the highest bit, whether anything has been taken since its end. All of it is 0 if there was none.
local block_hi, block_lo, block_byte = 0, 0, 0
local found_block = ''         -- its bytes, for the answer
local blocked = false
local matters_hi, matters_lo   -- until when the block matters to a full bucket; nil: not any more
local read_block, find_block, next_block
if lengths > 0 then
  -- The end of a block of this level that begins at (hi, lo). A second is 1953125·2^9 ns.
  local function after(hi, lo, level)
    local units = struct.unpack('>I4', prefix, #prefix + 1 - 4 * (lengths - level)) * 1953125
    hi, lo = hi + math.floor(units / 8388608), lo + units % 8388608 * 512
    if lo >= TWO32 then hi, lo = hi + 1, lo - TWO32 end
    return hi, lo
  end
  local function is_ahead(hi, lo) return hi > now_hi or hi == now_hi and lo > now_lo end

  read_block = function(value) block_hi, block_lo, block_byte = struct.unpack('>I4I4B', value, #prefix + 1) end

  -- Called when the bucket's time is known; `back` is by how much it was set back. Returns false if the block is damaged.
  find_block = function(back_hi, back_lo)
    if block_hi > 0 or block_lo > 0 then
      if block_byte % 128 >= lengths or block_hi >= 2147483648 then return false end
      if back_hi then
        block_hi, block_lo = block_hi - back_hi, block_lo - back_lo
        if block_lo < 0 then block_hi, block_lo = block_hi - 1, block_lo + TWO32 end
        if block_hi < 0 or block_hi == 0 and block_lo == 0 then block_hi, block_lo = 0, 1 end
      end
      blocked = is_ahead(block_hi, block_lo)
    end
    found_block = struct.pack('>I4I4B', block_hi, block_lo, block_byte)
    return true
  end

  -- The block after this call.
  next_block = function(operation, allowed)
    local exists = block_hi > 0 or block_lo > 0
    local level = math.min(block_byte % 128 + 1, lengths - 1)
    if operation == CHARGE or operation == TAKE and allowed == 1 then
      if exists and not blocked then block_byte = block_byte % 128 + 128 end
    elseif operation == TAKE and fits and not blocked and (not exists or block_byte >= 128) then
      if not exists or not is_ahead(after(block_hi, block_lo, level)) then level = 0 end
      block_hi, block_lo = after(now_hi, now_lo, level)
      block_byte = level
      exists = true
    end
    if not exists then return end
    local hi, lo = block_hi, block_lo
    if lengths > 1 then hi, lo = after(hi, lo, math.min(block_byte % 128 + 1, lengths - 1)) end
    if is_ahead(hi, lo) then matters_hi, matters_lo = hi, lo end
  end
end
