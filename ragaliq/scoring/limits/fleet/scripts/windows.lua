-- Put before each of the other scripts. A script runs as a whole, nothing comes between.
-- The time is that of the server, so that clocks of the processes do not matter; milliseconds.
local SLOTS = 60
local FORGET = 20
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local request = cjson.decode(ARGV[1])
local SEEN, EXPECTED = KEYS[1], KEYS[2]

-- Processes may have other limits beside a common one: all that is known is known by window.
local function slots_of(i) return KEYS[3 * i] end
local function reserved_of(i) return KEYS[3 * i + 1] end
local function leases_of(i) return KEYS[3 * i + 2] end

local function slot_at(at, length)
  local step = length / SLOTS
  return (math.floor(at / step) + 1) * step
end

-- What was spent in window i; and by which slot, as pairs of its end and the amount.
local function spent(i, length)
  local total, counted, latest = 0, {}, slot_at(now, length)
  local slots = redis.call('HGETALL', slots_of(i))
  for n = 1, #slots, 2 do
    local ends, amount = tonumber(slots[n]), tonumber(slots[n + 1])
    if ends + length <= now then
      redis.call('HDEL', slots_of(i), slots[n])
    else
      if ends > latest then
        -- The server's clock was set back: this would count until it is there again.
        redis.call('HDEL', slots_of(i), slots[n])
        redis.call('HINCRBY', slots_of(i), latest, amount)
        redis.call('PEXPIRE', slots_of(i), 2 * length)
        ends = latest
      end
      total = total + amount
      counted[#counted + 1] = { ends, amount }
    end
  end
  return total, counted
end

local function spend(i, length, slot, amount)
  if slot + length <= now then return end
  if amount < 0 then
    -- Given back elsewhere, it would make room that is still there when the slot is gone.
    amount = math.max(amount, -(tonumber(redis.call('HGET', slots_of(i), slot)) or 0))
  end
  if amount ~= 0 then
    redis.call('HINCRBY', slots_of(i), slot, amount)
    redis.call('PEXPIRE', slots_of(i), 2 * length)
  end
end

local function release(i, id)
  redis.call('ZREM', leases_of(i), id)
  redis.call('HDEL', reserved_of(i), id)
end

local function reserved(i)
  -- What is set aside for the runs of a process that died is free again after a while.
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', leases_of(i), '-inf', now)) do release(i, id) end
  local total = 0
  for _, amount in ipairs(redis.call('HVALS', reserved_of(i))) do total = total + amount end
  return total
end

-- What a run is expected to cost; less than nothing where that is not known.
local function expected(i)
  local window = request.windows[i]
  return tonumber(redis.call('HGET', EXPECTED, window.name)) or window.expected or -1
end

-- For each window: what was spent, what is set aside, what a run is expected to cost, and the slots.
local function figures()
  local all = {}
  for i, window in ipairs(request.windows) do
    local total, counted = spent(i, window.length)
    all[i] = { total, reserved(i), expected(i), counted }
  end
  return all
end
