-- admit says whether a token may still write, and remembers it: the rule of
-- fence.Guard. It returns nil, or the error that the script must return, having
-- written nothing. Tokens are compared as decimal strings: a Lua number is a
-- double, and takes 2^53 and the next for equal.
local function admit(key, token)
  local highest = redis.call('GET', key) or '0'
  if not string.find(token, '^[1-9][0-9]*$') or #token < #highest or (#token == #highest and token < highest) then
    return {err = 'STALETOKEN ' .. highest}
  end
  if token ~= highest then redis.call('SET', key, token) end
end
