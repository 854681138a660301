-- MoonGen's rate control in software: a ring of frames, and the loops that its C++ runs over it.

local prng = require "prng"
local simulation = require "simulation"

local limiter = {}

-- A DPDK ring of 512 places holds one less. It takes and gives either all frames of a call or none.
limiter.RING_FRAMES = 511
local BATCH = 64

-- Schedules of "cbr" and "poisson" begin anew after so long without a frame; that of "custom" never does.
local RESTART_S = 0.01
local POLL_S = 1e-4
local CRC_FRAMING_BYTES = 24

local ring = {}
ring.__index = ring

function limiter.newRing()
  return setmetatable({items = {}, first = 1, count = 0}, ring)
end

function ring:put(items)
  if self.count + #items > limiter.RING_FRAMES then
    return false
  end
  for _, item in ipairs(items) do
    self.items[self.first + self.count] = item
    self.count = self.count + 1
  end
  return true
end

function ring:take(number)
  if self.count < number then
    return nil
  end
  local items = {}
  for n = 1, number do
    items[n] = self.items[self.first]
    self.items[self.first] = nil
    self.first, self.count = self.first + 1, self.count - 1
  end
  return items
end

local loops = {}

local function waitUntil(time)
  if simulation.now() < time then
    simulation.advance(time)
  end
end

-- The delay of a frame is the time since the frame before, in bytes at the speed of the link.
function loops.custom(self)
  local due = simulation.now()
  return function(items)
    for _, item in ipairs(items) do
      assert(item.delay, "fake: a frame without a delay, which would have one of another frame")
      due = due + item.delay * 8 / (self.linkMbit * 1e6)
      waitUntil(due)
      self.transmit(item)
    end
  end, function(take)
    local number = BATCH
    local items = take(number)
    while not items and number > 1 do
      number = number / 2
      items = take(number)
    end
    return items
  end
end

local function restarting(gap)
  local due = 0
  return function(items, self)
    if simulation.now() - due > RESTART_S then
      due = simulation.now()
    end
    for _, item in ipairs(items) do
      due = gap(self, item, due)
    end
  end, function(take)
    return take(BATCH)
  end
end

function loops.cbr()
  return restarting(function(self, item, due)
    waitUntil(due)
    self.transmit(item)
    return due + self.delayNs * 1e-9
  end)
end

-- The time between two frames is that of the frame on the link and an exponentially distributed gap.
function loops.poisson()
  local random = prng.new()
  return restarting(function(self, item, due)
    local wireS = (item.length + CRC_FRAMING_BYTES) * 8 / (self.linkMbit * 1e6)
    local mean = self.delayNs * 1e-9 - wireS
    waitUntil(due)
    self.transmit(item)
    return due + wireS + (mean > 0 and -math.log(1 - random()) * mean or 0)
  end)
end

-- Sends what is in the ring until the end of the run, or until nothing is left and it is told to stop.
--
-- `settings`: mode, delayNs (whole nanoseconds, as the C interface takes it), linkMbit, ring, transmit(item),
-- stopped(). An item is a table with the length of the frame in bytes and, for "custom", its delay.
function limiter.run(settings)
  settings.delayNs = settings.delayNs and math.floor(settings.delayNs)
  local send, next = loops[settings.mode](settings)
  while simulation.isRunning() do
    local items = next(function(number)
      return settings.ring:take(number)
    end)
    if items then
      send(items, settings)
    elseif settings.stopped() then
      return
    else
      simulation.advance(simulation.now() + POLL_S)
    end
  end
end

return limiter
