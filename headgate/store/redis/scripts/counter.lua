-- Changes a counter: headgate/algorithm/counter.h. The value under the key is its decimal text; its expiry is the key's.
--
-- KEYS[1] the counter
-- ARGV[1] 'int' or 'dec'; ARGV[2] the increment, ARGV[3] and ARGV[4] the least and the most value; ARGV[5] '1' to saturate
-- ARGV[6] 'keep', 'remove', 'in' or 'at'; ARGV[7] the expiry's ms; ARGV[8] '1' to set it only if there is none
--
-- A number is three numbers in units of 10^-17, since a Lua number is a double and exact only below 2^53:
-- a·10^24 + b·10^12 + c, with b and c in [0, 10^12) and the sign in a.
local LIMB = 1000000000000
local APPLIED, REFUSED, NOT_AN_INTEGER, NOT_A_NUMBER, APPLIED_OVERFLOW, TOO_MANY_DIGITS, WRONG_TYPE = 0, 1, 2, 3, 4, 5, 6
local key, integers, saturates = KEYS[1], ARGV[1] == 'int', ARGV[5] == '1'

local function carried(a, b, c)
  local carry = math.floor(c / LIMB)
  b, c = b + carry, c - carry * LIMB
  carry = math.floor(b / LIMB)
  return a + carry, b - carry * LIMB, c
end
local function below(a, b, c, x, y, z) return a < x or a == x and (b < y or b == y and c < z) end

-- Nothing if the text is not such a number.
local function read(text)
  local sign, whole = string.match(text, '^(%-?)(%d+)$')
  local fraction = ''
  if not whole then sign, whole, fraction = string.match(text, '^(%-?)(%d+)%.(%d+)$') end
  if not whole or #whole > 19 or #fraction > 17 then return end
  local digits = string.rep('0', 19 - #whole) .. whole .. fraction .. string.rep('0', 17 - #fraction)
  local a, b, c = string.sub(digits, 1, 12) + 0, string.sub(digits, 13, 24) + 0, string.sub(digits, 25) + 0
  if sign == '-' then return carried(0 - a, 0 - b, 0 - c) end
  return a, b, c
end

-- Nothing if the digits need more than 64 bits.
local function text_of(a, b, c)
  local sign, most = '', '9223372036854775807'
  if a < 0 then
    sign, most = '-', '9223372036854775808'
    a, b, c = carried(0 - a, 0 - b, 0 - c)
  end
  if a >= LIMB then return end
  local digits = string.format('%012.0f%012.0f%012.0f', a, b, c)
  local whole, fraction = string.match(string.sub(digits, 1, 19), '^0*(%d+)$'), string.match(string.sub(digits, 20), '^(%d-)0*$')
  local units = string.match(whole .. fraction, '^0*(%d+)$')
  if #units > 19 or #units == 19 and units > most then return end
  return sign .. whole .. (fraction == '' and '' or '.' .. fraction)
end

local text = redis.pcall('GET', key)
if type(text) == 'table' then
  -- An error. After any other than this one, such as a missing right, the counter is unknown.
  if string.sub(text.err, 1, 9) ~= 'WRONGTYPE' then return text end
  return {WRONG_TYPE}
end
local a, b, c = read(text or '0')
local old = a and text_of(a, b, c)
if integers and (not old or string.find(old, '.', 1, true)) then return {NOT_AN_INTEGER} end
if not old then return {NOT_A_NUMBER} end

local by_a, by_b, by_c = read(ARGV[2])
local x, y, z = carried(a + by_a, b + by_b, c + by_c)
local least_a, least_b, least_c = read(ARGV[3])
local most_a, most_b, most_c = read(ARGV[4])
local under, over = below(x, y, z, least_a, least_b, least_c), below(most_a, most_b, most_c, x, y, z)
if (under or over) and not saturates then return {REFUSED, old, '0'} end
if under then x, y, z = least_a, least_b, least_c elseif over then x, y, z = most_a, most_b, most_c end
local value = text_of(x, y, z)
if not value then return {TOO_MANY_DIGITS} end
local applied = text_of(carried(x - a, y - b, z - c))
if not applied then return {APPLIED_OVERFLOW} end

local expiry, ms = ARGV[6], ARGV[7] + 0
if ARGV[8] == '1' and text and redis.call('PTTL', key) >= 0 then expiry = 'keep' end
if expiry == 'at' then
  local time = redis.call('TIME')
  ms = ms - time[1] * 1000 - math.floor(time[2] / 1000)
end
if expiry == 'in' or expiry == 'at' then
  if ms > 0 then redis.call('SET', key, value, 'PX', ms) else redis.call('DEL', key) end
elseif expiry == 'keep' and text then
  -- Redis 5 does not know KEEPTTL.
  local kept = redis.pcall('SET', key, value, 'KEEPTTL')
  if kept.err then
    ms = redis.call('PTTL', key)
    if ms >= 0 then redis.call('SET', key, value, 'PX', math.max(ms, 1)) else redis.call('SET', key, value) end
  end
else
  redis.call('SET', key, value)
end
return {APPLIED, value, applied}
