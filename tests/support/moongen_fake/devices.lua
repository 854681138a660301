-- Devices, queues, buffers and frames on the wire.

local ffi = require "ffi"
local simulation = require "simulation"
local strict = require "strict"

local devices = {}

local FCS_BYTES, FRAMING_BYTES = 4, 20
local POOL_BUFFERS, BUFFER_BYTES, BATCH = 2047, 2048, 63
local MIN_FRAME_BYTES = 60
local MAX_QUEUES = 64
local DEVICE_FRAMES = 64

local HEX = {}
for n = 0, 255 do
  HEX[n] = ("%02x"):format(n)
end

-- Objects that tasks may hand to each other: their states by their public tables.
local states = setmetatable({}, {__mode = "k"})

local function publish(state, methods, fields, what)
  local all = {}
  for name, value in pairs(fields) do
    all[name] = value
  end
  for name, method in pairs(methods) do
    all[name] = function(self, ...)
      if states[self] ~= state then
        error(("fake: %s of %s is called with a dot instead of a colon"):format(name, what), 2)
      end
      return method(state, ...)
    end
  end
  state.public = strict.object(all, what)
  states[state.public] = state
  return state.public
end

function devices.publish(state, methods, fields, what)
  return publish(state, methods, fields, what)
end

-- The state behind a device, queue or limiter; nil for anything else.
function devices.state(object)
  return type(object) == "table" and states[object] or nil
end

-- Buffers ------------------------------------------------------------------------------------------------------------

local bufferMethods = {}

function bufferMethods.getBytes(self)
  return ffi.cast("uint8_t*", self.bytes)
end

function bufferMethods.setDelay(self, bytes)
  assert(type(bytes) == "number" and bytes >= 0 and bytes % 1 == 0, "fake: a delay is a whole number of bytes")
  self.delay = bytes
end

function devices.newBuffer()
  local state = {bytes = ffi.new("uint8_t[?]", BUFFER_BYTES), length = 0, kind = "buffer"}
  publish(state, bufferMethods, {}, "a buffer")
  return state
end

local batchMethods = {}

function batchMethods.alloc(self, length)
  if length < MIN_FRAME_BYTES or length > BUFFER_BYTES then
    error(("fake: a buffer of %s B without FCS"):format(length), 3)
  end
  if self.allocated then
    error("fake: buffers are allocated again without having been sent", 3)
  end
  self.allocated = true
  for n = 1, self.size do
    local buffer = table.remove(self.pool.free, 1)
    buffer.length = length
    self.buffers[n] = buffer
    self.public[n] = buffer.public
  end
end

local function newBatch(pool, size)
  local state = {pool = pool, size = size, buffers = {}, allocated = false, kind = "batch"}
  local public = {size = size}
  for name, method in pairs(batchMethods) do
    public[name] = function(_, ...)
      return method(state, ...)
    end
  end
  state.public = setmetatable(public, {__index = function(_, key)
    if type(key) ~= "number" then
      error("fake: a buffer array has no " .. tostring(key), 2)
    end
  end})
  states[state.public] = state
  return state.public
end

local poolMethods = {}

function poolMethods.bufArray(self, size)
  return newBatch(self, size or BATCH)
end

function devices.newPool(options)
  options = type(options) == "function" and {func = options} or options or {}
  local pool = {free = {}, kind = "pool"}
  for n = 1, options.n or POOL_BUFFERS do
    pool.free[n] = devices.newBuffer()
    if options.func then
      options.func(pool.free[n].public)
    end
  end
  return publish(pool, poolMethods, {}, "a memory pool")
end

-- The frames of a batch that is being sent, and their delays in bytes; its buffers go back to their pool.
function devices.takeFrames(batch)
  local state = devices.state(batch)
  if not state or state.kind ~= "batch" or not state.allocated then
    error("fake: only allocated buffers can be sent", 3)
  end
  state.allocated = false
  local frames, delays = {}, {}
  for n, buffer in ipairs(state.buffers) do
    frames[n] = ffi.string(buffer.bytes, buffer.length)
    delays[n] = buffer.delay
    table.insert(state.pool.free, buffer)
  end
  return frames, delays
end

-- Devices and queues -------------------------------------------------------------------------------------------------

local configured = {}
local options

local function hex(frame)
  local digits = {}
  for n = 1, #frame do
    digits[n] = HEX[frame:byte(n)]
  end
  return table.concat(digits)
end

local function receiver(device)
  for _, other in pairs(configured) do
    if other ~= device then
      return other
    end
  end
  return device
end

-- Whether a device between the links, which forwards so many frames a second and holds a few, takes a frame.
local held, lastTaken = 0, 0
local function taken(now)
  if not options.capacityPps then
    return true
  end
  held = math.max(0, held - (now - lastTaken) * options.capacityPps)
  lastTaken = now
  if held + 1 > DEVICE_FRAMES then
    return false
  end
  held = held + 1
  return true
end

-- Puts one frame on the wire as soon as queue and link are free.
function devices.transmit(queue, frame)
  local device, now = queue.device, simulation.now()
  local free = math.max(now, queue.free, device.free)
  while free > now do
    simulation.advance(free)
    now = simulation.now()
    free = math.max(now, queue.free, device.free)
  end
  device.free = now + (#frame + FCS_BYTES + FRAMING_BYTES) * 8 / (options.linkMbit * 1e6)
  if queue.rateMbit and not options.ignoreRate then
    queue.free = now + (#frame + FCS_BYTES) * 8 / (queue.rateMbit * 1e6)
  end
  local all = {device.tx}
  if taken(now) then
    table.insert(all, receiver(device).rx)
  end
  for _, counters in ipairs(all) do
    counters.packets = counters.packets + 1
    counters.bytes = counters.bytes + #frame + FCS_BYTES
  end
  if options.times then
    options.times:write(("%.0f\n"):format(now * 1e9))
  end
  if options.dump then
    options.dump:write(("%d %d %s\n"):format(device.port, queue.number, hex(frame)))
  end
end

local queueMethods = {}

function queueMethods.setRate(self, mbit)
  assert(type(mbit) == "number" and mbit > 0, "fake: a rate is a positive number")
  self.rateMbit = mbit
end

function queueMethods.setRateMpps(self, mpps, size)
  queueMethods.setRate(self, mpps * ((size or MIN_FRAME_BYTES) + FCS_BYTES) * 8)
end

function queueMethods.send(self, batch)
  for _, frame in ipairs(devices.takeFrames(batch)) do
    devices.transmit(self, frame)
  end
end

local deviceMethods = {}

local function queueOf(self, number, side)
  local queue = self[side][number]
  if not queue then
    error(("fake: device %d has no %s %s"):format(self.port, side, tostring(number)), 3)
  end
  return queue.public
end

function deviceMethods.getTxQueue(self, number)
  return queueOf(self, number, "txQueues")
end

function deviceMethods.getLinkStatus()
  return {status = true, duplexAutoneg = true, duplex = true, speed = options.linkMbit}
end

function deviceMethods.getTxStats(self)
  return self.tx.packets, self.tx.bytes
end

function deviceMethods.getRxStats(self)
  return self.rx.packets, self.rx.bytes
end

function deviceMethods.getRxQueue(self, number)
  return queueOf(self, number, "rxQueues")
end

local SETTINGS = {
  port = true, rxQueues = true, txQueues = true, rxDescs = true, txDescs = true, numBufs = true, bufSize = true,
  mempools = true, dropEnable = true, rssQueues = true, rssBaseQueue = true, rssFunctions = true,
  disableOffloads = true, stripVlan = true, speed = true,
}

function devices.setUp(chosen)
  options = chosen
end

-- Seconds in which a link sends so many bytes.
function devices.wireTime(bytes)
  return bytes * 8 / (options.linkMbit * 1e6)
end

function devices.config(settings)
  for key in pairs(settings) do
    assert(SETTINGS[key], "fake: device.config has no setting " .. tostring(key))
  end
  local port = settings.port
  if type(port) ~= "number" or port < 0 or port >= options.devices then
    error(("fake: there is no device %s, there are %d"):format(tostring(port), options.devices), 3)
  end
  if configured[port] then
    print(("[WARN]  Device %d already configured, skipping initilization"):format(port))
    return configured[port].public
  end
  local device = {port = port, free = 0, kind = "device", txQueues = {}, rxQueues = {}}
  device.tx, device.rx = {packets = 0, bytes = 0}, {packets = 0, bytes = 0}
  local public = publish(device, deviceMethods, {id = port}, "a device")
  for side, count in pairs{txQueues = settings.txQueues or 1, rxQueues = settings.rxQueues or 1} do
    assert(count >= 1 and count <= MAX_QUEUES, "fake: " .. side .. " must be 1 to " .. MAX_QUEUES)
    for number = 0, count - 1 do
      local queue = {device = device, number = number, free = 0, kind = side}
      local methods = side == "txQueues" and queueMethods or {}
      publish(queue, methods, {qid = number, id = port, dev = public}, "a queue")
      device[side][number] = queue
    end
  end
  configured[port] = device
  return public
end

function devices.waitForLinks()
  local count = 0
  for _, device in pairs(configured) do
    count = count + 1
    print(("\27[1;37m[INFO]  Device %d (02:00:00:00:00:%02X) is up: %d MBit/s\27[0m"):format(
      device.port, device.port, options.linkMbit))
  end
  print(("\27[1;37m[INFO]  \27[0;32m%d devices are up.\27[0m\27[0m"):format(count))
end

return devices
