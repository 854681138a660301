-- Ports, the queues of theirs that send, and the link between them.

local simulation = require "simulation"

local wire = {}

local FCS_BYTES, FRAMING_BYTES = 4, 20
local DEVICE_FRAMES = 64

-- A rate limiter counts in units of a 10000th of the link, which is 1 Mbit/s of 10 Gbit/s, and in 16 bits.
local UNITS_OF_LINK, MOST_UNITS = 10000, 65536
local ROUNDING = 1e-6

local HEX = {}
for n = 0, 255 do
  HEX[n] = ("%02x"):format(n)
end

local options
local ports, opened = {}, {}
local held, lastTaken = 0, 0

function wire.setUp(chosen)
  options = chosen
end

-- Adds a port to the link: it sends to the other one, and to itself if there is no other.
function wire.open(number)
  local port = {
    number = number, free = 0, tx = {packets = 0, bytes = 0}, rx = {packets = 0, bytes = 0},
  }
  ports[number] = port
  table.insert(opened, port)
  return port
end

function wire.port(number)
  return ports[number]
end

function wire.newQueue(port, number)
  return {port = port, number = number, free = 0}
end

-- Limits a queue to so many Mbit/s of frames with FCS. The limiter takes whole units; none at all is no limit.
function wire.limit(queue, mbit)
  local unit = options.linkMbit / UNITS_OF_LINK
  local units = math.floor(mbit / unit + ROUNDING) % MOST_UNITS
  queue.limitMbit = units > 0 and units * unit or nil
end

-- Not by pairs(): some versions of LuaJIT compile it so that it ends too early at times.
local function receiver(port)
  for n = 1, #opened do
    if opened[n] ~= port then
      return opened[n]
    end
  end
  return port
end

-- Whether a device between the links, which forwards so many frames a second and holds a few, takes a frame.
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

local function hex(frame)
  local digits = {}
  for n = 1, #frame do
    digits[n] = HEX[frame:byte(n)]
  end
  return table.concat(digits)
end

local function count(counters, frame)
  counters.packets = counters.packets + 1
  counters.bytes = counters.bytes + #frame + FCS_BYTES
end

-- Puts one frame on the wire as soon as queue and link are free; the time passes for the running task. Returns the port
-- that receives the frame, nil if it is lost.
function wire.transmit(queue, frame)
  local port, now = queue.port, simulation.now()
  local free = math.max(now, queue.free, port.free)
  while free > now do
    simulation.advance(free)
    now = simulation.now()
    free = math.max(now, queue.free, port.free)
  end
  port.free = now + (#frame + FCS_BYTES + FRAMING_BYTES) * 8 / (options.linkMbit * 1e6)
  if queue.limitMbit and not options.ignoreRate then
    queue.free = now + (#frame + FCS_BYTES) * 8 / (queue.limitMbit * 1e6)
  end
  count(port.tx, frame)
  local to = taken(now) and receiver(port) or nil
  if to then
    count(to.rx, frame)
  end
  if options.times then
    options.times:write(("%.0f\n"):format(now * 1e9))
  end
  if options.dump then
    options.dump:write(("%d %d %s\n"):format(port.number, queue.number, hex(frame)))
  end
  return to
end

return wire
