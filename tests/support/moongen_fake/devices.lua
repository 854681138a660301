-- Devices, queues and buffers.

local ffi = require "ffi"
local strict = require "strict"
local wire = require "wire"

local devices = {}

local FCS_BYTES = 4
local POOL_BUFFERS, BUFFER_BYTES, BATCH = 2047, 2048, 63
local MIN_FRAME_BYTES = 60
local MAX_QUEUES = 64

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

-- Puts one frame of a queue on the wire; the time passes for the running task. Returns the device that receives it.
function devices.transmit(queue, frame)
  local to = wire.transmit(queue.wire, frame)
  return to and configured[to.number]
end

local queueMethods = {}

function queueMethods.setRate(self, mbit)
  assert(type(mbit) == "number" and mbit > 0, "fake: a rate is a positive number")
  wire.limit(self.wire, mbit)
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
    error(("fake: device %d has no %s %s"):format(self.port.number, side, tostring(number)), 3)
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
  return self.port.tx.packets, self.port.tx.bytes
end

function deviceMethods.getRxStats(self)
  return self.port.rx.packets, self.port.rx.bytes
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
  wire.setUp(chosen)
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
  local device = {port = wire.open(port), kind = "device", txQueues = {}, rxQueues = {}}
  local public = publish(device, deviceMethods, {id = port}, "a device")
  for side, count in pairs{txQueues = settings.txQueues or 1, rxQueues = settings.rxQueues or 1} do
    assert(count >= 1 and count <= MAX_QUEUES, "fake: " .. side .. " must be 1 to " .. MAX_QUEUES)
    for number = 0, count - 1 do
      local queue = {device = device, number = number, wire = wire.newQueue(device.port, number), kind = side}
      local methods = side == "txQueues" and queueMethods or {}
      publish(queue, methods, {qid = number, id = port, dev = public}, "a queue")
      device[side][number] = queue
    end
  end
  configured[port] = device
  return public
end

function devices.waitForLinks()
  print("\27[1;37m[INFO]  Waiting for devices to come up...\27[0m")
  local count = 0
  for _, device in pairs(configured) do
    count = count + 1
    print(("\27[1;37m[INFO]  Device %d (02:00:00:00:00:%02X) is up: %d MBit/s\27[0m"):format(
      device.port.number, device.port.number, options.linkMbit))
  end
  local text = count == 1 and "%d device is up." or "%d devices are up."
  print(("\27[1;37m[INFO]  \27[0;32m" .. text .. "\27[0m\27[0m"):format(count))
end

return devices
