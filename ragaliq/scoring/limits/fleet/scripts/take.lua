-- Spend `cost` in every window, or in none. Answers 0, and in which slots it was counted, or the
-- milliseconds after which there will be room.
local function wait(i, window)
  local total, counted = spent(i, window.length)
  local missing = total + window.cost - window.limit
  if missing <= 0 or window.cost == 0 then return 0 end
  table.sort(counted, function(a, b) return a[1] < b[1] end)
  for _, slot in ipairs(counted) do
    missing = missing - slot[2]
    if missing <= 0 then return math.max(1, slot[1] + window.length - now) end
  end
  return window.length
end

local longest, slots = 0, {}
for i, window in ipairs(request.windows) do longest = math.max(longest, wait(i, window)) end
if longest == 0 then
  for i, window in ipairs(request.windows) do
    slots[i] = slot_at(now, window.length)
    spend(i, window.length, slots[i], window.cost)
  end
end
return { longest, now, figures(), slots }
