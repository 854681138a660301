"""Whether the test double of MoonGen does what the real Lua modules of libmoon do: single calls and failures."""

import pytest
from support.moongen import Both, said, scripts, why_no_libmoon

from p4perf.formats.moongen import without_colours
from p4perf.programs.component import TrafficPlan, build_workload

pytestmark = pytest.mark.skipif(why_no_libmoon() is not None, reason=str(why_no_libmoon()))

PROBED = ("0", "1", "-t", "4", "-w", "1", "-r", "0.0005", "-i", "0.05")


@pytest.fixture
def both(tmp_path):
    return Both(tmp_path)


@pytest.fixture(scope="module")
def generated():
    """Both scripts, for a table with keys."""
    components = [("match_action_table", {"entries": 100, "action_data_bytes": 4})]
    return scripts(build_workload(components, frame_size_bytes=64), TrafficPlan(64))


# Single calls ---------------------------------------------------------------------------------------------------------

ALIKE = {
    "arguments of tasks with holes": """
        local mg, device = require "moongen", require "device"
        function show(...)
          for n = 1, select("#", ...) do
            local value = select(n, ...)
            print(n, type(value), type(value) == "table" and (value.id or value[1]) or value)
          end
          return nil, 1, nil, "x", nil
        end
        function master()
          local dev = device.config{port = 0, txQueues = 2}
          local queue = dev:getTxQueue(1)
          print(mg.startTask("show", nil, 1, nil, "a\\nb'\\"]]", 0.1, nil, nil, dev, dev, queue, nil, {7}):wait())
          print(mg.startTask("show", dev, nil, nil, queue):wait())
          print(mg.startTask("show", 2 ^ 53, -0.5, 1 / 3, math.huge, false, ""):wait())
          print(mg.startTask("show"):wait())
        end""",
    "tasks share nothing": """
        local mg = require "moongen"
        local seen = 0
        function count(given)
          seen, given.n = seen + 1, given.n + 1
          return seen, given.n
        end
        function master()
          local given = {n = 1}
          print(mg.startTask("count", given):wait())
          print(mg.startTask("count", given):wait())
          print(seen, given.n)
        end""",
    "timers": """
        local mg, timer = require "moongen", require "timer"
        function master()
          local t = timer:new(2)
          print(t:running(), t:expired(), t:wait(), t:expired())
          t:reset(1)
          print(t:running(), math.ceil(t:timeLeft()))
          t:reset()
          print(math.ceil(t:timeLeft()))
          mg.setRuntime(0.5)
          print(t:wait(), t:running(), mg.running(), mg.running(10000))
          mg.setRuntime(5)
          print(mg.running())
          mg.stop()
          print(mg.running())
        end""",
    "histograms": """
        local hist = require "histogram"
        function master()
          for n = 0, 12 do
            local h = hist:new()
            for k = 1, n do
              h:update(k * 37 % 11 + 0.25 * (k % 2))
            end
            h:update(nil)
            h:print(n > 6 and "some" or nil)
            h:save("h" .. n)
            for line in io.lines("h" .. n) do
              print(line)
            end
          end
        end""",
    "counters": """
        local mg, device, stats = require "moongen", require "device", require "stats"
        function master()
          local dev = device.config{port = 0}
          local early = stats:newDevRxCounter(dev, "CSV", "early")
          early:finalize()
          local tx = stats:newDevTxCounter("name", dev, "csv", "late")
          print(tx:update(), tx:update())
          mg.sleepMillis(900)
          print(tx:update())
          mg.sleepMillis(200)
          print(tx:update(), tx:update())
          tx:finalize()
          for _, name in ipairs{"early", "late"} do
            for line in io.lines(name) do
              print((line:gsub("^%d+,", "TIME,")))
            end
          end
          print(dev:getTxStats())
        end""",
    "buffers are recycled": """
        local device, memory, ffi = require "device", require "memory", require "ffi"
        function master()
          local dev = device.config{port = 0}
          local pool = memory.createMemPool(function(buf) ffi.fill(buf:getBytes(), 1522, 0xab) end)
          local bufs = pool:bufArray()
          local first, filled, seen = nil, 0, {}
          for round = 1, 70 do
            bufs:alloc(60)
            for n, buf in ipairs(bufs) do
              seen[buf:getBytes()[0]] = (seen[buf:getBytes()[0]] or 0) + 1
              buf:getBytes()[0] = 1
              filled = filled + buf:getBytes()[59] + buf:getBytes()[1000]
            end
            dev:getTxQueue(0):send(bufs)
          end
          print(bufs.size, filled, seen[0xab] == 2047, seen[1] == 70 * 63 - 2047)
          print(dev:getTxStats())
        end""",
}


@pytest.mark.parametrize("case", ALIKE)
def test_single_calls_are_alike(case, both):
    real, double = both(ALIKE[case])
    assert (real.exit_code, real.stderr) == (double.exit_code, double.stderr) == (0, "")
    assert "FATAL" not in real.stdout + double.stdout
    assert said(real) == said(double)
    assert real.frames == double.frames
    assert said(real)


FAILING = {
    "at the top": ("require 'no such module'", 0, "[FATAL] Lua error in task master"),
    "syntax": ("function master(", 255, "Lua error: "),
    "master": ("function master() error('boom') end", 1, "[FATAL] Lua error in task master"),
    "configure": ("function configure() error('boom') end function master() end", 0, "[FATAL] Lua error in "),
    "a task": (
        "local mg = require 'moongen'\nfunction t() error('boom') end\n"
        "function master() mg.startTask('t') mg.waitForTasks() print('on') end",
        0,
        "[FATAL] Lua error in task t",
    ),
    "queues": (
        "local d = require 'device'\nfunction master() d.config{port = 0}:getTxQueue(1) end",
        1,
        "[FATAL] Lua error in task master",
    ),
    "devices": ("local d = require 'device'\nfunction master() d.config{port = 2} end", 1, "[FATAL] Lua error in "),
    "cores": (
        "local mg = require 'moongen'\nfunction t() mg.sleepMillisIdle(1000) end\n"
        "function master() for n = 1, 17 do mg.startTask('t') end end",
        1,
        "Not enough cores to start this task",
    ),
}


@pytest.mark.parametrize("case", FAILING)
def test_failures_are_alike(case, both):
    text, code, message = FAILING[case]
    for run in both(text):
        assert run.exit_code == code, run
        assert message in without_colours(run.stdout + run.stderr)


def test_a_rate_that_limiters_do_not_take(both, generated):
    for run in both(generated["max-load.lua"], "0", "1", "-t", "4", "-r", "1e-6", "-q", "9", link_mbit=10):
        assert run.exit_code == 1
        assert "1e-06 Mpps are too few for rate limiters" in run.stdout
        assert not run.frames


def test_devices_without_timestamps(both, generated):
    for run in both(generated["latency.lua"], *PROBED, no_timestamps=True):
        assert run.exit_code == 1
        assert "[FATAL] Lua error in task probeTask" in without_colours(run.stdout)
        assert "did not finish" in run.stdout
        assert not run.complete
