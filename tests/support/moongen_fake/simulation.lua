-- Simulated time and the tasks that live in it: of all tasks, the one whose time is earliest runs next,
-- and of those the one that has waited longest.

local simulation = {}

-- Longest run, in simulated seconds: what lasts longer waits for something that does not happen.
local LIMIT_S = 3600

local tasks = {}
local current
local stopAt = math.huge

simulation.epoch = os.time()

function simulation.now()
  return current.time
end

function simulation.current()
  return current
end

-- Lets the running task's time pass, until `time` in seconds.
function simulation.advance(time)
  current.time = math.max(current.time, time)
  coroutine.yield()
end

-- Sets the end of the run anew, as MoonGen does.
function simulation.stop(time)
  stopAt = time
end

function simulation.stopTime()
  return stopAt
end

function simulation.isRunning(extra)
  return current.time < stopAt + (extra or 0)
end

-- Adds a task that begins now.
function simulation.spawn(name, body)
  local task = {name = name, time = current and current.time or 0, done = false, results = {}, turn = 0}
  task.thread = coroutine.create(body)
  table.insert(tasks, task)
  return task
end

-- Runs all tasks to their end; `failed(task, message)` hears of those that fail.
function simulation.run(failed)
  local turn = 0
  while #tasks > 0 do
    local first = 1
    for n = 2, #tasks do
      local a, b = tasks[n], tasks[first]
      if a.time < b.time or (a.time == b.time and a.turn < b.turn) then
        first = n
      end
    end
    current = tasks[first]
    turn = turn + 1
    current.turn = turn
    if current.time > LIMIT_S then
      io.stderr:write("fake: the run does not end: ", current.name, "\n")
      os.exit(99)
    end
    local results = {coroutine.resume(current.thread)}
    if coroutine.status(current.thread) == "dead" then
      current.done = true
      table.remove(tasks, first)
      if results[1] then
        current.results = {unpack(results, 2, table.maxn(results))}
      else
        failed(current, results[2])
      end
    end
  end
end

return simulation
