-- Set aside what a run is expected to cost, in every window or in none. Answers 1 or 0.
for i, figure in ipairs(figures()) do
  local used, aside = figure[1] + figure[2], math.max(0, figure[3])
  -- One run always fits into an unused window, however dear.
  if used > 0 and used + aside >= request.windows[i].limit then return { 0, now, figures() } end
end
for i in ipairs(request.windows) do
  redis.call('HSET', reserved_of(i), request.id, math.max(0, expected(i)))
  redis.call('ZADD', leases_of(i), now + request.lease, request.id)
  redis.call('PEXPIRE', reserved_of(i), 2 * request.lease)
  redis.call('PEXPIRE', leases_of(i), 2 * request.lease)
end
return { 1, now, figures() }
