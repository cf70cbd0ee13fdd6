-- The permits of a key: headgate/permit/permit.h. The twin of permit::PermitSet, at the server's clock.
--
-- KEYS[1] a sorted set: the ids by the ends of their permits, in microseconds since 1970
-- ARGV[1] 'acquire', 'release', 'look' or 'clear'; ARGV[2] the id; ARGV[3] the most in flight; ARGV[4] the ttl in microseconds
--
-- Answers with the outcome (permit::Answer::Outcome), the number in flight, the time until the first and until the last
-- end in microseconds, and the number of permits that had ended.
local GRANTED, HELD, FULL, RELEASED, UNKNOWN = 0, 1, 2, 3, 4
local key, kind, id = KEYS[1], ARGV[1], ARGV[2]
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local expired = redis.pcall('ZREMRANGEBYSCORE', key, '-inf', string.format('%.0f', now))
if type(expired) == 'table' then return expired end

local count = redis.call('ZCARD', key)
local outcome, added = FULL, false
if kind == 'acquire' then
  local score = redis.call('ZSCORE', key, id)
  local ends = now + ARGV[4]
  if score then
    outcome, added = HELD, score + 0 < ends
  elseif count < ARGV[3] + 0 then
    outcome, added, count = GRANTED, true, count + 1
  end
  if added then redis.call('ZADD', key, string.format('%.0f', ends), id) end
elseif kind == 'release' then
  local removed = redis.call('ZREM', key, id)
  outcome, count = removed == 1 and RELEASED or UNKNOWN, count - removed
elseif kind == 'clear' then
  outcome, count = redis.call('DEL', key) == 1 and RELEASED or UNKNOWN, 0
elseif count < ARGV[3] + 0 then
  outcome = GRANTED
end

local first, last = now, now
if count > 0 then
  first = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2] + 0
  last = redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')[2] + 0
  -- The key goes with its last permit, and not before: the expiry is rounded up.
  if added then redis.call('PEXPIRE', key, string.format('%.0f', math.ceil((last - now) / 1000) + 1)) end
end
return {outcome, count, string.format('%.0f', first - now), string.format('%.0f', last - now), expired}
