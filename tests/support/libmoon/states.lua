-- Lua states: MoonGen runs every task in one of its own. Here a state is an environment with modules of its own, all in
-- one LuaJIT, so that tasks can take turns in simulated time.

local real = require "ffi"
local prng = require "prng"
local simulation = require "simulation"

local states = {}

local config

-- `settings`: path (of modules), c (functions that stand in for C), replaced (functions that return a module, by name),
-- exit(code).
function states.setUp(settings)
  config = settings
end

-- What MoonGen's LuaJIT has, which is built with the extensions of Lua 5.2, and others do not ------------------------

local function extended(name, plain)
  return function(object)
    local meta = debug.getmetatable(object)
    local iterate = type(meta) == "table" and rawget(meta, name)
    if iterate then
      return iterate(object)
    end
    return plain(object)
  end
end

local function pack(...)
  return {n = select("#", ...), ...}
end

-- The module ffi -----------------------------------------------------------------------------------------------------

-- Functions of the C library that are called as they are.
local LIBRARY = {malloc = true, free = true}

local function constant(name)
  local known, value = pcall(function()
    return real.C[name]
  end)
  return known and type(value) == "number" and value or nil
end

local functions = setmetatable({}, {
  __index = function(_, name)
    local found = config.c[name] or (LIBRARY[name] and real.C[name]) or constant(name)
    if not found then
      error("fake: there is no C function " .. tostring(name), 2)
    end
    return found
  end,
})

local declared, types = {}, {}

-- Types are of all states, but what their objects can do is that of the state which runs.
local function dispatching(key, metatable)
  local shared = {}
  for event, handler in pairs(metatable) do
    if type(handler) == "function" then
      shared[event] = function(...)
        return simulation.current().state.metatables[key][event](...)
      end
    end
  end
  shared.__index = function(object, name)
    local index = simulation.current().state.metatables[key].__index
    if type(index) == "function" then
      return index(object, name)
    end
    return index[name]
  end
  return shared
end

local EVENTS = {
  __call = true, __len = true, __eq = true, __lt = true, __le = true, __add = true, __sub = true, __newindex = true,
  __tostring = true, __concat = true, __index = true,
}

local function newFfi(state)
  local own = {C = functions}
  function own.cdef(text)
    if not declared[text] then
      real.cdef(text)
      declared[text] = true
    end
  end
  function own.metatype(ctype, metatable)
    local key = tostring(real.typeof(ctype))
    state.metatables[key] = metatable
    if not types[key] then
      local events = {}
      for event, handler in pairs(metatable) do
        events[event] = EVENTS[event] and handler or nil
      end
      types[key] = real.metatype(ctype, dispatching(key, events))
    end
    return types[key]
  end
  function own.load(name)
    error("fake: there is no library " .. tostring(name), 2)
  end
  return setmetatable(own, {__index = real})
end

-- Modules and globals ------------------------------------------------------------------------------------------------

local function copied(library)
  local copy = {}
  for key, value in pairs(library) do
    copy[key] = value
  end
  return copy
end

local function within(environment, chunk, problem)
  return chunk and setfenv(chunk, environment), problem
end

local function addModules(environment, state)
  local package = {path = config.path, loaded = {}, searchpath = _G.package.searchpath, cpath = "", preload = {}}
  environment.package = package
  for _, name in ipairs{"string", "table", "math", "io", "os", "debug", "coroutine", "bit", "jit", "package"} do
    package.loaded[name] = environment[name]
  end
  package.loaded.ffi = newFfi(state)
  function environment.require(name)
    if package.loaded[name] ~= nil then
      return package.loaded[name]
    end
    local replaced, value = config.replaced[name], nil
    if replaced then
      value = replaced(environment)
    else
      local path, problem = package.searchpath(name, package.path)
      if not path then
        error(("module '%s' not found:%s"):format(name, problem), 2)
      end
      value = assert(environment.loadfile(path))(name)
    end
    if package.loaded[name] == nil then
      package.loaded[name] = value == nil and true or value
    end
    return package.loaded[name]
  end
end

-- A new state, in which nothing has run; `environment` are its globals.
function states.new()
  local state = {metatables = {}}
  local environment = copied(_G)
  state.environment = environment
  environment._G = environment
  environment.arg = nil
  environment.ipairs, environment.pairs = extended("__ipairs", ipairs), extended("__pairs", pairs)
  for _, name in ipairs{"string", "table", "math", "io", "os", "debug", "coroutine", "bit", "jit"} do
    environment[name] = copied(_G[name])
  end
  environment.table.pack = pack
  environment.math.random, environment.math.randomseed = prng.new()
  environment.os.exit = config.exit
  function environment.loadstring(text, name)
    return within(environment, loadstring(text, name))
  end
  environment.load = environment.loadstring
  function environment.loadfile(path)
    return within(environment, loadfile(path))
  end
  addModules(environment, state)
  return state
end

return states
