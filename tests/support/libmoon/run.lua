-- Runs a MoonGen script with the real Lua modules of libmoon and, if they are there, of MoonGen: see README.md.

local here = arg[0]:match("^(.*)/") or "."
package.path = here .. "/?.lua;" .. here .. "/../moongen_fake/?.lua"

local ffi = require "ffi"
local addPackets = require "packets"
local readOptions = require "options"
local simulation = require "simulation"
local states = require "states"
local addSystem = require "system"

local EXIT_USAGE, EXIT_FAILED = 1, 255

local options, words = readOptions(arg)
local libmoon, moongen = options.libmoon, options.moongen
if not libmoon or not words[1] then
  print("Usage: run.lua --fake-libmoon=FOLDER [--fake-moongen=FOLDER] [--fake-KEY[=VALUE]] SCRIPT [ARGUMENTS]")
  os.exit(EXIT_USAGE)
end

assert(options.linkMbit % 1 == 0 and options.linkMbit < 65536, "libmoon's links have a whole number of Mbit/s, in 16 bits")

local function exit(code)
  for _, name in ipairs{"times", "dump"} do
    if options[name] then
      options[name]:close()
    end
  end
  os.exit(code)
end

-- Types that come with ljsyscall, a part of libmoon that its checkout does not hold.
ffi.cdef [[
struct timeval { long tv_sec; long tv_usec; };
struct timespec { long tv_sec; long tv_nsec; };
]]

local replaced = {
  syscall = function()
    return {c = {E = {NOTSUP = 95, NOBUFS = 105}}}
  end,
  ["pci-ids"] = function()
    return {getName = function()
      return "a simulated device"
    end}
  end,
  ["webserver-task"] = function()
    return {}
  end,
}
if not moongen then
  function replaced.moongen(environment)
    return environment.setmetatable({}, {__index = environment.require "libmoon"})
  end
  replaced["software-ratecontrol"] = function()
    return {new = function()
      error("fake: rate control in software is a part of MoonGen, not of libmoon")
    end}
  end
end

-- The path of modules, as task.cpp of libmoon makes it.
local path = ""
if moongen then
  path = ("%s/lua/?.lua;%s/lua/lib/?.lua;"):format(moongen, moongen)
end
for _, part in ipairs{"/lua/?.lua;", "/lua/?/init.lua;", "/lua/lib/?.lua;", "/lua/lib/?/init.lua;"} do
  path = path .. libmoon .. part
end

local function fail(problem)
  io.stdout:flush()
  io.stderr:write("Lua error: ", tostring(problem), "\n")
end

-- Runs main() of a new state in the running task; returns whether that came to its end.
local function launch(...)
  local state = states.new()
  simulation.current().state = state
  local arguments, count = {...}, select("#", ...)
  local done, problem = xpcall(function()
    state.environment.require(moongen and "moongen-main" or "main")
    state.environment.main(unpack(arguments, 1, count))
  end, debug.traceback)
  if not done then
    fail(problem)
  end
  return done
end

local c = {}
local newHandles = addSystem(c, function(core, text, ended)
  local task = simulation.spawn("core " .. core, function()
    launch("slave", text)
    ended()
  end)
  task.core = core
end)
addPackets(c, options, newHandles)
states.setUp{path = path, c = c, replaced = replaced, exit = function(code)
  exit(code == false and 1 or code == true and 0 or code or 0)
end}

local master = simulation.spawn("master", function()
  exit(launch("master", "MoonGen", unpack(words)) and 0 or EXIT_FAILED)
end)
master.core = 0

simulation.run(function(task, message)
  fail(task.name .. ": " .. tostring(message))
end)
exit(EXIT_FAILED)
