-- Count what was really spent; once, however often the same batch arrives. Answers 1 if
-- it was new.
local DAY = 86400000
local is_new = 0

local function learn(name, amount)
  local known = tonumber(redis.call('HGET', EXPECTED, name)) or 0
  if amount > known then
    known = amount
  else
    known = known - math.floor((known - amount) / FORGET)
  end
  redis.call('HSET', EXPECTED, name, known)
  redis.call('PEXPIRE', EXPECTED, 2 * DAY)
end

if request.number > (tonumber(redis.call('GET', SEEN)) or 0) then
  is_new = 1
  redis.call('SET', SEEN, request.number, 'PX', 2 * DAY)
  for _, id in ipairs(request.released) do
    for i in ipairs(request.windows) do release(i, id) end
  end
  for _, learnt in ipairs(request.learnt) do learn(request.windows[learnt[1]].name, learnt[2]) end
  for _, entry in ipairs(request.spent) do
    local i, slot, age, amount = unpack(entry)
    local length = request.windows[i].length
    if slot == 0 then slot = slot_at(now - age, length) end
    spend(i, length, slot, amount)
  end
end
return { is_new, now, figures() }
