-- Counters, histograms, timers, timestamps and rate control.

local devices = require "devices"
local limiter = require "limiter"
local simulation = require "simulation"
local strict = require "strict"

local measuring = {}

local FRAMING_BITS = 160
local FINALIZE_MS = {TX = 50, RX = 100}
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

local function begin(self)
  self.file:write(HEADER)
  self.lastTime, self.lastPackets, self.lastBytes = simulation.now(), self.counts.packets, self.counts.bytes
end

-- The first call only begins the first interval; a row is written when more than a second has passed.
function counterMethods.update(self)
  if not self.lastTime then
    begin(self)
  elseif simulation.now() - self.lastTime > 1 then
    row(self, sample(self))
    return true
  end
  return false
end

-- The last interval is counted, but neither written nor part of the average, and neither is the first one.
function counterMethods.finalize(self, sleepMs)
  simulation.advance(simulation.now() + (sleepMs or FINALIZE_MS[self.direction]) / 1000)
  if self.lastTime then
    sample(self)
  else
    begin(self)
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
  local counts = direction == "TX" and device.port.tx or device.port.rx
  if direction == "RX" then
    counts.packets, counts.bytes = 0, 0
  end
  local state = {
    name = name or "Device: id=" .. device.port.number, direction = direction, counts = counts, samples = {},
    file = assert(io.open(words[3], "w+")),
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

local NAN = 0 / 0
local histogramMethods = {}

function histogramMethods.update(self, value)
  if not value then
    return
  end
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

-- Quartile q is the first sample with at least q quarters of all before it; each sample is only one of them.
local function quartiles(self, values)
  local found, before = {}, 0
  for _, value in ipairs(values) do
    for _ = 1, self.counts[value] do
      if #found < 3 and before >= self.samples * (#found + 1) / 4 then
        table.insert(found, value)
      end
      before = before + 1
    end
  end
  return found[1] or NAN, found[2] or NAN, found[3] or NAN
end

function histogramMethods.print(self, prefix)
  local values, sum, squares = sorted(self), 0, 0
  for _, value in ipairs(values) do
    sum = sum + value * self.counts[value]
  end
  local mean = sum / self.samples
  for _, value in ipairs(values) do
    squares = squares + self.counts[value] * (value - mean) ^ 2
  end
  print(("%sSamples: %d, Average: %.1f ns, StdDev: %.1f ns, Quartiles: %.1f/%.1f/%.1f ns"):format(
    prefix and "[" .. prefix .. "] " or "", self.samples, mean, (squares / (self.samples - 1)) ^ 0.5,
    quartiles(self, values)))
end

function histogramMethods.save(self, name)
  print(("\27[1;37m[INFO]  Saving histogram to '%s'\27[0m"):format(name))
  local file = assert(io.open(name, "w+"))
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

function timerMethods.timeLeft(self)
  return self.stop - simulation.now()
end

-- Waits until the time is over or the run ends.
function timerMethods.busyWait(self)
  simulation.advance(math.min(self.stop, simulation.stopTime()))
  return simulation.isRunning()
end

timerMethods.wait = timerMethods.busyWait

function timerMethods.reset(self, duration)
  self.stop = simulation.now() + (duration or self.duration)
end

measuring.timer = strict.object({
  new = function(_, duration)
    local state = {duration = duration or 0}
    timerMethods.reset(state)
    return devices.publish(state, timerMethods, {}, "a timer")
  end,
}, "timer")

-- Timestamps ---------------------------------------------------------------------------------------------------------

-- The PTP frame of the timestamper: source address and type, version 2, length 44, node port 1, interval 0x7f.
local PTP = {[12] = 0x88, [13] = 0xf7, [15] = 0x02, [17] = 0x2c, [43] = 0x01, [47] = 0x7f}
local SEQUENCE_BYTE = 44
local timestamperMethods = {}

local function newProbe(queue)
  local buffer = devices.newBuffer()
  for at, value in pairs(PTP) do
    buffer.bytes[at] = value
  end
  buffer.bytes[6], buffer.bytes[11] = 0x02, queue.device.port.number
  return buffer
end

-- Returns the latency in ns, nil if the probe was lost, and how many packets the queue has received meanwhile.
function timestamperMethods.measureLatency(self, size, modify, waitMs)
  if type(size) == "function" then
    size, modify, waitMs = nil, size, modify
  end
  local buffer, sequence = self.buffer, self.sequence
  self.sequence = (sequence + 1) % 65536
  buffer.length = size or 60
  assert(buffer.length >= 60, "fake: a probe of less than 60 B")
  buffer.bytes[SEQUENCE_BYTE], buffer.bytes[SEQUENCE_BYTE + 1] = math.floor(sequence / 256), sequence % 256
  if modify then
    modify(buffer.public)
  end
  local arrived = devices.transmit(self.queue, require("ffi").string(buffer.bytes, buffer.length))
  self.probes = self.probes + 1
  if not arrived or (options.loseProbe > 0 and self.probes % options.loseProbe == 0) then
    simulation.advance(simulation.now() + (waitMs or 15) / 1000)
    return nil, 0
  end
  local nanoseconds = 5000 + self.probes % 7 * 10
  simulation.advance(simulation.now() + nanoseconds * 1e-9)
  return nanoseconds, 1
end

measuring.timestamping = strict.object({
  newTimestamper = function(_, txQueue, rxQueue)
    local tx, rx = devices.state(txQueue), devices.state(rxQueue)
    assert(tx and tx.kind == "txQueues", "fake: the first queue of a timestamper sends")
    assert(rx and rx.kind == "rxQueues", "fake: the second queue of a timestamper receives")
    if options.noTimestamps then
      error("fake: this device cannot timestamp packets")
    end
    local state = {queue = tx, buffer = newProbe(tx), sequence = 1, probes = 0}
    return devices.publish(state, timestamperMethods, {}, "a timestamper")
  end,
}, "timestamping")

-- Rate control in software -------------------------------------------------------------------------------------------

local POLL_S = 1e-5
local limiterMethods = {}

-- Puts all frames into the ring at once; what finds no room until the end of the run is not sent.
function limiterMethods.send(self, batch)
  local frames, delays = devices.takeFrames(batch)
  local items = {}
  for n, frame in ipairs(frames) do
    items[n] = {frame = frame, length = #frame, delay = delays[n]}
  end
  while not self.ring:put(items) and simulation.isRunning() do
    simulation.advance(simulation.now() + POLL_S)
  end
end

function limiterMethods.stop(self)
  self.stopped = true
end

local function limit(self)
  limiter.run{
    mode = self.mode, delayNs = self.delayNs, linkMbit = options.linkMbit, ring = self.ring,
    transmit = function(item)
      devices.transmit(self.queue, item.frame)
    end,
    stopped = function()
      return self.stopped
    end,
  }
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
        assert(type(delay) == "number" and delay >= 1 and delay < 2 ^ 32, "fake: the delay is in nanoseconds")
      end
      local state = {queue = queue, mode = mode, delayNs = delay, ring = limiter.newRing(), kind = "limiter"}
      startInternal("limiter", function()
        limit(state)
      end)
      return devices.publish(state, limiterMethods, {}, "a rate limiter")
    end,
  }, "software-ratecontrol")
end

return measuring
