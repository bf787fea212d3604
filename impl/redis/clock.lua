-- The server's clock in ticks of a microsecond, exact in a double until the year
-- 2255. What it cuts off is less than the way of a request takes.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
