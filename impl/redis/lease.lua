-- The rules of lease.Record, on the server: one call is one atomic step. `now`
-- is set, in ticks, by what stands before this.
--
-- KEYS  1 the latest tenure (hash: token, holder, expires, status)
--       2 the counter: the last token issued
-- ARGV  1 op  2 holder  3 token  4 TTL  5 lock delay  6 the token before the first
--       7 the channel for hints  8 the resource
-- Answer: code, the last token issued, who holds it, for how long it or the delay lasts
--
-- Tokens stay strings: a Lua number is a double, and takes 2^53 and the next for
-- equal. Times are numbers of ticks, written with %.0f because tostring
-- keeps 14 digits only.

local op, holder, asked = ARGV[1], ARGV[2], ARGV[3]
local ttl, delay = tonumber(ARGV[4]), tonumber(ARGV[5])
local FOREVER = 9007199254740991 -- 2^53 - 1, the last tick that is exact
local LAST = '9223372036854775807' -- 2^63 - 1, where INCR ends

local stored = redis.call('HMGET', KEYS[1], 'token', 'holder', 'expires', 'status')
local token, current = stored[1], stored[2]
local expires, status = tonumber(stored[3] or 0), stored[4] or 'free'
-- The tenure knows its token, so that the counter survives its own key, too.
local counter = redis.call('GET', KEYS[2]) or token or ARGV[6]

local function held()
  return status == 'running' and now < expires
end

local function answer(code, remaining)
  return {code, counter, held() and current or '', string.format('%.0f', remaining or 0)}
end

local function refused(code)
  return answer(code, held() and expires - now or 0)
end

local function hint()
  redis.call('PUBLISH', ARGV[7], ARGV[8])
end

-- A lapse that is about to be answered is written down: no step of the clock
-- revives it.
local function observe()
  if status == 'running' and now >= expires then
    status = 'lapsed'
    redis.call('HSET', KEYS[1], 'status', status)
    hint()
  end
end

local function extend()
  expires = math.max(expires, math.min(now + ttl, FOREVER))
  redis.call('HSET', KEYS[1], 'expires', string.format('%.0f', expires))
  return answer('granted', expires - now)
end

local function delayed()
  return status == 'lapsed' and now < expires + delay
end

if op == 'acquire' then
  if held() then
    if holder == current then return extend() end
    return refused('held')
  end
  observe()
  if delayed() then return answer('delayed', expires + delay - now) end
  if counter == LAST then return answer('invalid') end
  redis.call('SET', KEYS[2], counter, 'NX')
  redis.call('INCR', KEYS[2])
  counter = redis.call('GET', KEYS[2]) -- what INCR returns has been a double
  token, current, status, expires = counter, holder, 'running', now
  redis.call('HSET', KEYS[1], 'token', token, 'holder', current, 'status', status)
  hint()
  return extend()
end

if op == 'get' then
  if held() then return refused('held') end
  observe()
  if delayed() then return answer('delayed', expires + delay - now) end
  return answer('free')
end

if op == 'delete' then
  redis.call('SET', KEYS[2], counter, 'NX')
  redis.call('DEL', KEYS[1])
  hint()
  status = 'free'
  return answer('released')
end

-- renew, release
local mine = holder == current and asked == token and status ~= 'free'
if not mine or not held() then
  observe()
  return refused(mine and 'lapsed' or 'lost')
end
if op == 'renew' then return extend() end
status = 'free'
redis.call('HSET', KEYS[1], 'status', status)
hint()
return answer('released')
