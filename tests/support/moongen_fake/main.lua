-- Runs a MoonGen script without MoonGen: see README.md.

local here = arg[0]:match("^(.*)/") or "."
package.path = here .. "/?.lua"

local arguments = require "arguments"
local devices = require "devices"
local measuring = require "measuring"
local prng = require "prng"
local readOptions = require "options"
local simulation = require "simulation"
local strict = require "strict"

local EXIT_OK, EXIT_MASTER_FAILED, EXIT_NO_SCRIPT = 0, 1, 255

-- Options of the double ----------------------------------------------------------------------------------------------

local options, words = readOptions(arg)

-- The file that --dpdk-config=FILE names, which the real one reads before the script.
local KNOWN = {cores = true, sharedCores = true, pciWhitelist = true, pciBlacklist = true, cli = true}
local function readConfiguration(name)
  local config = assert(loadfile(name))
  local found
  setfenv(config, {DPDKConfig = function(given) found = given end})()
  for key in pairs(assert(found, "fake: no DPDKConfig statement in " .. name)) do
    assert(KNOWN[key], "fake: DPDKConfig has no " .. tostring(key))
  end
  options.cores = found.cores and #found.cores - 1 or options.cores
  options.devices = found.pciWhitelist and #found.pciWhitelist or options.devices
end
for n = #words, 1, -1 do
  local name = words[n]:match("^%-%-dpdk%-config=(.+)$")
  if name then
    table.remove(words, n)
    readConfiguration(name)
  end
end
devices.setUp(options)
measuring.setUp(options)

local script = table.remove(words, 1)
if not script then
  print("Usage: main.lua [--fake-KEY[=VALUE]] SCRIPT [ARGUMENTS]")
  os.exit(EXIT_MASTER_FAILED)
end
local readable, problem = loadfile(script)
if not readable then
  io.stderr:write("Lua error: ", problem, "\n")
  os.exit(EXIT_NO_SCRIPT)
end

-- Tasks --------------------------------------------------------------------------------------------------------------

-- What a call takes at least, so that no loop goes on for ever, and how long the machine was up before.
local CALL_S, UPTIME_S = 1e-6, 1000

local newState
local coresUsed = 0
local master

local function onlyMaster(what)
  if simulation.current() ~= master then
    error("fake: only the master task can " .. what, 3)
  end
end

-- A copy of a value as serialisation makes it; devices, queues and limiters stay what they are.
local function serialised(value)
  local kind = type(value)
  if kind == "nil" or kind == "number" or kind == "string" or kind == "boolean" then
    return value
  end
  local state = devices.state(value)
  if state then
    local shared = {device = true, txQueues = true, rxQueues = true, limiter = true}
    assert(shared[state.kind], "fake: this object cannot be handed to a task")
    return value
  end
  assert(kind == "table", "fake: a " .. kind .. " cannot be handed to a task")
  local copy = {}
  for key, item in pairs(value) do
    copy[serialised(key)] = serialised(item)
  end
  return copy
end

local function startOnCore(name, body)
  if coresUsed >= options.cores then
    error("Not enough cores to start this task", 3)
  end
  coresUsed = coresUsed + 1
  return simulation.spawn(name, function()
    local results = {pcall(body)}
    coresUsed = coresUsed - 1
    if not results[1] then
      error(results[2], 0)
    end
    return unpack(results, 2, table.maxn(results))
  end)
end

local function unlessDone(task)
  while not task.done do
    simulation.advance(simulation.now() + 1e-3)
  end
end

local started = {}

local function startTask(name, ...)
  onlyMaster("start tasks")
  local count, given = select("#", ...), {}
  for n = 1, count do
    given[n] = serialised((select(n, ...)))
  end
  local task = startOnCore(name, function()
    return newState()[name](unpack(given, 1, count))
  end)
  table.insert(started, task)
  return strict.object({
    wait = function()
      onlyMaster("wait for tasks")
      unlessDone(task)
      return unpack(task.results, 1, table.maxn(task.results))
    end,
    isRunning = function()
      return not task.done
    end,
  }, "a task")
end

local moongen = strict.object({
  startTask = startTask,
  waitForTasks = function()
    onlyMaster("wait for tasks")
    for _, task in ipairs(started) do
      unlessDone(task)
    end
  end,
  running = function(extraMs)
    simulation.advance(simulation.now() + CALL_S)
    return simulation.isRunning((extraMs or 0) / 1000)
  end,
  getTime = function()
    return UPTIME_S + simulation.now()
  end,
  setRuntime = function(seconds)
    simulation.stop(simulation.now() + seconds)
  end,
  stop = function()
    simulation.stop(simulation.now())
  end,
  sleepMillis = function(ms)
    simulation.advance(simulation.now() + ms / 1000)
  end,
  sleepMillisIdle = function(ms)
    simulation.advance(simulation.now() + ms / 1000)
  end,
}, "moongen")

-- Modules and globals ------------------------------------------------------------------------------------------------

local log = {}
for level in pairs{info = 1, warn = 1, error = 1} do
  log[level] = function(_, ...)
    print(("[%s]  %s"):format(level:upper(), string.format(...)))
  end
end
function log.fatal(_, ...)
  local message = string.format(...)
  print("[FATAL] " .. message)
  error(message, 2)
end

local modules = {
  moongen = moongen,
  libmoon = moongen,
  device = strict.object({config = devices.config, waitForLinks = devices.waitForLinks}, "device"),
  memory = strict.object({createMemPool = devices.newPool}, "memory"),
  stats = measuring.stats,
  histogram = measuring.histogram,
  timestamping = measuring.timestamping,
  timer = measuring.timer,
  log = strict.object(log, "log"),
  ["software-ratecontrol"] = measuring.rateControl(function(name, body)
    onlyMaster("create rate limiters")
    table.insert(started, startOnCore(name, body))
  end),
  ffi = require "ffi",
  bit = require "bit",
}

local function copied(library)
  local copy = {}
  for key, value in pairs(library) do
    copy[key] = value
  end
  return copy
end

-- A new Lua state in which the script has run once.
function newState()
  local mathematics = copied(math)
  mathematics.random, mathematics.randomseed = prng.new()
  local fields = {
    assert = assert, error = error, ipairs = ipairs, pairs = pairs, next = next, print = print, select = select,
    tonumber = tonumber, tostring = tostring, type = type, pcall = pcall, xpcall = xpcall, unpack = unpack,
    setmetatable = setmetatable, getmetatable = getmetatable, rawget = rawget, rawset = rawset,
    math = mathematics, string = copied(string), table = copied(table), bit = copied(bit),
    os = {remove = os.remove, time = os.time}, io = {open = io.open, lines = io.lines, write = io.write},
    printf = function(...)
      print(string.format(...))
    end,
    time = function()
      return simulation.epoch + simulation.now()
    end,
    require = function(name)
      return modules[name] or error("fake: there is no module " .. tostring(name), 2)
    end,
  }
  local environment, seal = strict.globals(fields)
  setfenv(assert(loadfile(script)), environment)()
  seal()
  return environment
end

-- The run ------------------------------------------------------------------------------------------------------------

local exitCode = EXIT_OK

master = simulation.spawn("master", function()
  local loaded, environment = pcall(newState)
  if not loaded then
    print("[FATAL] Lua error in task master: " .. tostring(environment))
    return
  end
  -- Words that look like numbers are numbers for master, and numbers written as Lua does for the parser.
  local parsed, texts = {}, {}
  for n, word in ipairs(words) do
    words[n] = tonumber(word) or word
    texts[n] = tostring(words[n])
  end
  if rawget(environment, "configure") then
    local parser = arguments.parser(texts)
    local configured, result = pcall(environment.configure, parser)
    if not configured then
      print("[FATAL] Lua error in configure: " .. tostring(result))
      return
    end
    parsed = result or parser:parse()
  end
  environment.master(parsed, unpack(words))
end)

simulation.run(function(task, message)
  print(("[FATAL] Lua error in task %s: %s"):format(task.name, tostring(message)))
  if task == master then
    exitCode = EXIT_MASTER_FAILED
  end
end)
if options.times then
  options.times:close()
end
if options.dump then
  options.dump:close()
end
os.exit(exitCode)
