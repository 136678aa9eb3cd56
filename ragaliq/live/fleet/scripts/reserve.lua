-- Set aside what a run is expected to cost, in every window or in none. Replies 1 or 0, then the
-- figures of each window.
local reply = figures({ 1 })
for i, window in ipairs(request.windows) do
  local used, aside = reply[3 * i - 1] + reply[3 * i], math.max(0, reply[3 * i + 1])
  -- One run always fits into an unused window, however dear.
  if used > 0 and used + aside >= window.limit then
    reply[1] = 0
    return reply
  end
end
redis.call('ZADD', LEASES, now + request.lease, request.id)
redis.call('PEXPIRE', LEASES, 2 * request.lease)
for i in ipairs(request.windows) do
  local aside = math.max(0, reply[3 * i + 1])
  redis.call('HSET', reserved_of(i), request.id, aside)
  redis.call('PEXPIRE', reserved_of(i), 2 * request.lease)
  reply[3 * i] = reply[3 * i] + aside
end
return reply
