-- Counters, histograms, timers, timestamps and rate control.

local devices = require "devices"
local simulation = require "simulation"
local strict = require "strict"

local measuring = {}

local FRAMING_BITS = 160
local options

function measuring.setUp(chosen)
  options = chosen
end

-- Counters -----------------------------------------------------------------------------------------------------------

local HEADER = "Time,Device,Direction,PacketRate,Mbit,MbitWithFraming,TotalPackets,TotalBytes\n"

local counterMethods = {}

local function write(self, ...)
  local fields = {...}
  for n, field in ipairs(fields) do
    fields[n] = tostring(field)
  end
  self.file:write(table.concat(fields, ","), "\n")
  self.file:flush()
end

local function sample(self)
  local now, interval = simulation.now(), simulation.now() - self.lastTime
  local mpps = (self.counts.packets - self.lastPackets) / interval / 1e6
  local mbit = (self.counts.bytes - self.lastBytes) * 8 / interval / 1e6
  self.lastTime, self.lastPackets, self.lastBytes = now, self.counts.packets, self.counts.bytes
  table.insert(self.samples, {mpps = mpps, mbit = mbit})
  return mpps, mbit
end

local function row(self, mpps, mbit)
  local seconds = simulation.epoch + math.floor(simulation.now())
  write(self, seconds, self.name, self.direction, mpps, mbit, mbit + mpps * FRAMING_BITS, self.counts.packets,
    self.counts.bytes)
end

function counterMethods.update(self)
  if not self.lastTime then
    self.file:write(HEADER)
    self.lastTime, self.lastPackets, self.lastBytes = simulation.now(), self.counts.packets, self.counts.bytes
  elseif simulation.now() - self.lastTime > 1 then
    row(self, sample(self))
  end
end

function counterMethods.finalize(self)
  if self.direction == "RX" then
    simulation.advance(simulation.now() + 0.1)
  end
  if self.lastTime then
    sample(self)
  end
  local mpps, mbit, count = 0, 0, 0
  for n = 2, #self.samples - 1 do
    mpps, mbit, count = mpps + self.samples[n].mpps, mbit + self.samples[n].mbit, count + 1
  end
  row(self, mpps / count, mbit / count)
  self.file:close()
end

local function newCounter(direction, ...)
  local words = {...}
  local name
  if type(words[1]) == "string" then
    name = table.remove(words, 1)
  end
  local device = devices.state(words[1])
  assert(device and device.kind == "device", "fake: a device counter needs a device")
  assert(words[2] == "CSV" or words[2] == "csv", "fake: only the format CSV is implemented")
  local counts = direction == "TX" and device.tx or device.rx
  if direction == "RX" then
    counts.packets, counts.bytes = 0, 0
  end
  local state = {
    name = name or "Device: id=" .. device.port, direction = direction, counts = counts, samples = {},
    file = assert(io.open(words[3], "w")),
  }
  return devices.publish(state, counterMethods, {}, "a counter")
end

measuring.stats = strict.object({
  newDevTxCounter = function(_, ...)
    return newCounter("TX", ...)
  end,
  newDevRxCounter = function(_, ...)
    return newCounter("RX", ...)
  end,
}, "stats")

-- Histograms ---------------------------------------------------------------------------------------------------------

local histogramMethods = {}

function histogramMethods.update(self, value)
  self.counts[value] = (self.counts[value] or 0) + 1
  self.samples = self.samples + 1
end

local function sorted(self)
  local values = {}
  for value in pairs(self.counts) do
    table.insert(values, value)
  end
  table.sort(values)
  return values
end

function histogramMethods.print(self, prefix)
  local values, sum, squares, seen, quartiles = sorted(self), 0, 0, 0, {}
  for _, value in ipairs(values) do
    sum, squares = sum + value * self.counts[value], squares + value * value * self.counts[value]
    seen = seen + self.counts[value]
    while #quartiles < 3 and seen >= self.samples * (#quartiles + 1) / 4 do
      table.insert(quartiles, value)
    end
  end
  local mean = sum / self.samples
  local nan = 0 / 0
  print(("%sSamples: %d, Average: %.1f ns, StdDev: %.1f ns, Quartiles: %.1f/%.1f/%.1f ns"):format(
    prefix and prefix .. ": " or "", self.samples, mean, math.sqrt(math.max(0, squares / self.samples - mean * mean)),
    quartiles[1] or nan, quartiles[2] or nan, quartiles[3] or nan))
end

function histogramMethods.save(self, name)
  local file = assert(io.open(name, "w"))
  for _, value in ipairs(sorted(self)) do
    file:write(("%s,%s\n"):format(value, self.counts[value]))
  end
  file:close()
end

measuring.histogram = strict.object({
  new = function()
    return devices.publish({counts = {}, samples = 0}, histogramMethods, {}, "a histogram")
  end,
}, "histogram")

-- Timers -------------------------------------------------------------------------------------------------------------

local timerMethods = {}

function timerMethods.running(self)
  return simulation.now() < self.stop
end

function timerMethods.expired(self)
  return not timerMethods.running(self)
end

function timerMethods.wait(self)
  simulation.advance(self.stop)
end

timerMethods.busyWait = timerMethods.wait

function timerMethods.reset(self, duration)
  self.duration = duration or self.duration
  self.stop = simulation.now() + self.duration
end

measuring.timer = strict.object({
  new = function(_, duration)
    local state = {duration = duration or 0}
    timerMethods.reset(state)
    return devices.publish(state, timerMethods, {}, "a timer")
  end,
}, "timer")

-- Timestamps ---------------------------------------------------------------------------------------------------------

local ETHER_TYPE_BYTES = {0x88, 0xf7}
local timestamperMethods = {}

function timestamperMethods.measureLatency(self, size, modify, wait)
  if type(size) == "function" then
    size, modify, wait = nil, size, modify
  end
  self.probes = self.probes + 1
  local buffer = self.buffer
  buffer.length = size or 60
  assert(buffer.length >= 60, "fake: a probe of less than 60 B")
  buffer.bytes[12], buffer.bytes[13] = unpack(ETHER_TYPE_BYTES)
  if modify then
    modify(buffer.public)
  end
  devices.transmit(self.queue, require("ffi").string(buffer.bytes, buffer.length))
  if options.loseProbe > 0 and self.probes % options.loseProbe == 0 then
    simulation.advance(simulation.now() + (wait or 15) / 1000)
    return nil
  end
  local nanoseconds = 5000 + self.probes % 7 * 10
  simulation.advance(simulation.now() + nanoseconds * 1e-9)
  return nanoseconds
end

measuring.timestamping = strict.object({
  newTimestamper = function(_, txQueue, rxQueue)
    local tx, rx = devices.state(txQueue), devices.state(rxQueue)
    assert(tx and tx.kind == "txQueues", "fake: the first queue of a timestamper sends")
    assert(rx and rx.kind == "rxQueues", "fake: the second queue of a timestamper receives")
    if options.noTimestamps then
      error("fake: this device cannot timestamp packets")
    end
    local state = {queue = tx, buffer = devices.newBuffer(), probes = 0}
    return devices.publish(state, timestamperMethods, {}, "a timestamper")
  end,
}, "timestamping")

-- Rate control in software -------------------------------------------------------------------------------------------

local RING_FRAMES, POLL_S = 2048, 1e-4
local limiterMethods = {}

function limiterMethods.send(self, batch)
  local frames, delays = devices.takeFrames(batch)
  for n, frame in ipairs(frames) do
    while #self.ring - self.head >= RING_FRAMES do
      simulation.advance(simulation.now() + POLL_S)
    end
    table.insert(self.ring, {frame = frame, delay = delays[n]})
  end
end

function limiterMethods.stop(self)
  self.stopped = true
end

-- Sends what is in the ring until stop() is called.
local function limit(self)
  local due = simulation.now()
  while not self.stopped do
    if self.head == #self.ring then
      simulation.advance(simulation.now() + POLL_S)
      due = math.max(due, simulation.now())
    else
      self.head = self.head + 1
      local next = self.ring[self.head]
      if self.mode == "custom" then
        assert(next.delay, "fake: a frame has no delay, and the limiter has none either")
        due = due + devices.wireTime(next.delay)
      end
      simulation.advance(due)
      devices.transmit(self.queue, next.frame)
      if self.head == RING_FRAMES then
        self.ring, self.head = {unpack(self.ring, self.head + 1)}, 0
      end
      local gap = self.delay or 0
      if self.mode == "poisson" then
        gap = -math.log(1 - math.random()) * gap
      end
      due = due + gap
    end
  end
end

function measuring.rateControl(startInternal)
  return strict.object({
    new = function(_, txQueue, mode, delay)
      local queue = devices.state(txQueue)
      assert(queue and queue.kind == "txQueues", "fake: a limiter needs a queue that sends")
      assert(mode == "cbr" or mode == "poisson" or mode == "custom", "fake: the limiter knows cbr, poisson and custom")
      if mode == "custom" then
        assert(delay == nil, "fake: the delays are those of the frames")
      else
        assert(type(delay) == "number" and delay > 0, "fake: the delay is in nanoseconds")
        delay = delay * 1e-9
      end
      local state = {queue = queue, mode = mode, delay = delay, ring = {}, head = 0, kind = "limiter"}
      startInternal("limiter", function()
        limit(state)
      end)
      return devices.publish(state, limiterMethods, {}, "a rate limiter")
    end,
  }, "software-ratecontrol")
end

return measuring
