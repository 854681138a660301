-- C functions of libmoon that are about tasks, time, namespaces, locks and pipes.

local ffi = require "ffi"
local simulation = require "simulation"

local WAIT, RUNNING, FINISHED = 0, 1, 2

-- What one look at the clock takes at least, so that no loop goes on for ever, and how long the machine was up before.
local CALL_S, UPTIME_S, CYCLES_PER_S = 1e-5, 1000, 1e9

ffi.cdef "void* malloc(size_t size);"

-- Numbers as pointers, which are never followed.
local function newHandles(ctype)
  local values = {}
  local pointer = ffi.typeof(ctype)
  return function(value)
    table.insert(values, value)
    return ffi.cast(pointer, ffi.cast("intptr_t", 64 * #values))
  end, function(handle)
    return values[tonumber(ffi.cast("intptr_t", handle)) / 64]
  end
end

-- Adds the functions to `c`; `launch(core, text)` starts a task, which has to call the function that it gets when it
-- has ended.
return function(c, launch)
  local cores, results, identities = {}, {}, 0

  function c.rte_eal_get_lcore_state(core)
    return cores[core] or WAIT
  end

  function c.rte_eal_wait_lcore(core)
    cores[core] = WAIT
    return 0
  end

  function c.rte_lcore_to_socket_id_export()
    return 0
  end

  function c.get_current_core()
    return simulation.current().core
  end

  function c.get_current_socket()
    return 0
  end

  function c.launch_lua_core(core, text)
    assert(c.rte_eal_get_lcore_state(core) == WAIT, "fake: a task on a core that is in use")
    cores[core] = RUNNING
    launch(core, ffi.string(text), function()
      cores[core] = FINISHED
    end)
  end

  function c.task_generate_id()
    identities = identities + 1
    return identities
  end

  function c.task_store_result(identity, text)
    results[identity] = ffi.string(text)
  end

  function c.task_get_result(identity)
    local text = results[identity]
    if not text then
      return nil
    end
    results[identity] = nil
    local copy = ffi.cast("char*", ffi.C.malloc(#text + 1))
    ffi.copy(copy, text)
    return copy
  end

  -- Time -------------------------------------------------------------------------------------------------------------

  local function pass(seconds)
    simulation.advance(simulation.now() + seconds)
  end

  function c.is_running(extraMs)
    pass(CALL_S)
    return simulation.isRunning(extraMs / 1000) and 1 or 0
  end

  function c.set_runtime(ms)
    simulation.stop(simulation.now() + math.floor(ms) / 1000)
  end

  function c.usleep(us)
    pass(math.floor(us) / 1e6)
    return 0
  end

  function c.rte_delay_ms_export(ms)
    pass(math.floor(ms) / 1e3)
  end

  function c.rte_delay_us_export(us)
    pass(math.floor(us) / 1e6)
  end

  function c.rte_rdtsc()
    return math.floor((UPTIME_S + simulation.now()) * CYCLES_PER_S)
  end

  function c.rte_get_tsc_hz()
    return CYCLES_PER_S
  end

  function c.gettimeofday(tv)
    local now = simulation.epoch + simulation.now()
    tv.tv_sec, tv.tv_usec = math.floor(now), now % 1 * 1e6
    return 0
  end

  function c.clock_gettime(_, ts)
    local now = UPTIME_S + simulation.now()
    ts.tv_sec, ts.tv_nsec = math.floor(now), now % 1 * 1e9
    return 0
  end

  -- Namespaces, locks, pipes -----------------------------------------------------------------------------------------

  local spaces = {}
  local newSpace, spaceOf, newLock

  function c.create_or_get_namespace(name)
    if not newSpace then
      newSpace, spaceOf = newHandles("struct namespace*")
      newLock = newHandles("struct lock*")
    end
    if not spaces[name] then
      spaces[name] = newSpace{texts = {}, lock = newLock(true)}
    end
    return spaces[name]
  end

  function c.namespace_store(space, key, value)
    spaceOf(space).texts[key] = value
  end

  function c.namespace_delete(space, key)
    spaceOf(space).texts[key] = nil
  end

  function c.namespace_retrieve(space, key)
    return spaceOf(space).texts[key]
  end

  function c.namespace_iterate(space, each)
    for key, value in pairs(spaceOf(space).texts) do
      each(key, value)
    end
  end
  jit.off(c.namespace_iterate)

  function c.namespace_get_lock(space)
    return spaceOf(space).lock
  end

  function c.lock_lock()
  end

  function c.lock_unlock()
  end

  function c.fence()
  end

  local newPipe
  function c.pipe_mpmc_new()
    newPipe = newPipe or newHandles("struct mpmc_ptr_queue*")
    return newPipe(true)
  end

  local messages = {}
  function c.rte_strerror(code)
    messages[code] = messages[code] or ffi.new("char[32]", ("error %d"):format(code))
    return messages[code]
  end

  return newHandles
end
