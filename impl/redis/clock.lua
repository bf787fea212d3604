-- The server's clock, in microseconds: exact in a double until the year 2255.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
