"""Targets that take the place of real ones under their names, in one process: instant, and with made-up numbers.

Everything else of a command stays what it is: the real target says which metrics and capabilities it has, so that it is
planned and refused as the real one is. Where the place of a trial is this machine no process is started for it, files
are not forced to disk, and no figures are drawn: tests of their own do all that.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from support.command import BLANK_PNG, BLANK_SVG

from p4perf import plugins
from p4perf.errors import CapabilityError, MeasurementError
from p4perf.specs import METRICS
from p4perf.targets.base import BuildPlan, Job, JobResult, MetricValue, NodeFacts, PointPlan, Target, TrialSummary
from p4perf.targets.roles import Measures

BASELINE_CYCLES = 60.0
CLOCK_MHZ = 2000.0
POINTS = int(os.environ.get("P4PERF_TEST_POINTS", "4"))
"""Points of each experiment."""
STARTS = os.environ.get("P4PERF_TEST_STARTS")
"""Starts of each point, where it is not what the experiment says."""


class StandIn(Measures):
    """Tables cost 40 cycles and 10 more for a factor of ten of entries, headers 5, statements 1, each byte 0.01."""

    real: ClassVar[type[Target]]
    in_a_campaign = False

    def problems(self, facts):
        return ()

    def plan(self, workload, traffic, facts):
        program = workload.program
        if self.in_a_campaign and not self.is_sampled(program):
            raise CapabilityError("the stand-in has one exact table, or headers only, in campaigns")
        entries = sum(t.entries.count for t in program.tables)
        text = repr((program, traffic.frame_size_bytes))
        key = hashlib.sha256(text.encode()).hexdigest()[:16]
        return PointPlan(key, BuildPlan({"stand-in": "nothing\n"}, (), "stand-in"), workload, traffic, entries)

    @staticmethod
    def is_sampled(program):
        """Whether a campaign measures it: all experiments are planned, and some are measured."""
        statements = sum(len(action.body) for action in program.actions)
        externs = program.counters or program.meters or program.registers or program.verified or program.updated
        if not program.tables:
            return len(program.headers) > 1 and statements <= 1 and not externs
        return len(program.tables) == 1 and program.match_kind(program.tables[0]) == "exact"

    def trial(self, plan, options, facts):
        program = plan.workload.program
        statements = sum(len(action.body) for action in program.actions)
        cost = 40 * len(program.tables) + 10 * math.log10(max(plan.memory_bytes, 1)) + 5 * (len(program.headers) - 1)
        cost += statements + 0.01 * plan.traffic.frame_size_bytes + (options.seed * 7919 % 11) / 100
        return made_up(cost, plan.memory_bytes)

    def parse(self, result):
        if not result.stdout.startswith("{"):
            raise MeasurementError(f"the program ended with status {result.returncode} and no result")
        return json.loads(result.stdout)

    def summarise(self, record, gate_ratio):
        cost = record["cost"]
        known = {
            "baseline_cycles_per_packet": BASELINE_CYCLES,
            "cost_cycles_per_packet": cost,
            "cost_tsc_cycles_per_packet": cost,
            "cost_resolution_cycles_per_packet": 0.5,
            "packet_rate": CLOCK_MHZ / (BASELINE_CYCLES + cost),
            "baseline_packet_rate": CLOCK_MHZ / BASELINE_CYCLES,
            "memory_bytes": float(record["entries"]),
            "core_frequency": CLOCK_MHZ / 1000,
            "tsc_frequency": CLOCK_MHZ / 1000,
        }
        values = tuple(MetricValue(m, known.get(m, BASELINE_CYCLES + cost), METRICS[m].unit) for m in self.real.metrics)
        return TrialSummary(values, True, ())

    def capabilities_at(self, facts):
        return self.real.capabilities

    def load(self, plan, link, facts):
        return Job(("true",), 1.0)

    def simulation(self, plan, options, facts):
        return ()

    def calibration(self):
        return None

    def undisturbed(self, record):
        return None

    def use_hugepages(self, memory_bytes, facts):
        return False

    def bytes_per_entry(self, workload):
        return None

    def is_served(self, facts):
        return False


def made_up(cost: float, entries: int) -> Job:
    """A trial that prints what was made up for it."""
    return Job(("printf", "%s\n", json.dumps({"cost": cost, "entries": entries})), 10.0)


def stand_in(real: type[Target]) -> type[Target]:
    """The stand-in of a target."""
    return type(f"StandInFor{real.__name__}", (StandIn, real), {"real": real})


class _Registered:
    """As an entry point, already loaded."""

    def __init__(self, name: str, found: Any) -> None:
        self.name, self.found = name, found

    def load(self) -> Any:
        return self.found


def _register(group: str, name: str, found: Any) -> None:
    plugins._found()[group][name] = _Registered(name, found)  # type: ignore[assignment]


def install(names: Iterable[str]) -> None:
    """Let stand-ins take the place of these targets, and of the native load generator, in this process."""
    from support.load_session import FakeGenerator

    from p4perf.experiment import operations
    from p4perf.targets import nfp4000, t4p4s_service

    for name in set(names) - {"-"}:
        _register("p4perf.targets", name, stand_in(plugins.load_plugin("p4perf.targets", name)))
    _register("p4perf.load_generators", "native", FakeGenerator)
    _hurry()
    operations._Runner.measure = _case  # type: ignore[method-assign]
    operations._Runner.chase = _chase  # type: ignore[method-assign]
    if sysfs := os.environ.get("P4PERF_TEST_SYSFS"):
        t4p4s_service.ServedT4P4S.sysfs = sysfs
        t4p4s_service.PERF_S = 0.1
    t4p4s_service.MIN_LOSS_PPS = 0.0
    t4p4s_service.SETTLE_S = nfp4000.SETTLE_S = 0.0


def _case(runner: Any, case: Any, seed: int) -> tuple[float, float]:
    """A start of a micro-benchmark: what the pretended machine of the tests of calibration takes."""
    from support.eo_machine import BASE, cost

    runner._clocks.append(1e6 * CLOCK_MHZ)
    base = BASE + case.vary_bytes / 4 + case.restore / 16
    return base + (0.0 if case.operation == "nothing" else cost(case)), base


def _chase(runner: Any, sizes: dict[str, int]) -> Any:
    from support.eo_machine import chases

    return chases()


def _hurry() -> None:
    from matplotlib.figure import Figure

    from p4perf.cli import measure
    from p4perf.experiment import compare, evaluate, factors, generation
    from p4perf.experiment.campaign import Campaign
    from p4perf.specs import source
    from p4perf.testbeds.local import LocalTestbed

    os.fsync = lambda handle: None
    LocalTestbed.facts = _once(LocalTestbed.facts)  # type: ignore[method-assign]
    run: Callable[[LocalTestbed, Job, Path], JobResult] = LocalTestbed.run

    def quick(testbed: LocalTestbed, job: Job, folder: Path) -> JobResult:
        if job.argv[0] == "printf":
            return JobResult(0, job.argv[2] + "\n", "", 0.0)
        return run(testbed, job, folder)

    LocalTestbed.run = quick  # type: ignore[method-assign]
    measure.load = _few(measure.load)
    generate_all = generation.generate_all
    generation.generate_all = lambda names, points, *rest: generate_all(names, points or 1, *rest)
    begin = Campaign.__init__

    def few(campaign, *arguments):
        begin(campaign, *arguments)
        campaign._points = min(campaign._points or POINTS, POINTS)
        for device in campaign._devices:
            type(device.target).in_a_campaign = True  # a cell that goes on has a new target

    Campaign.__init__ = few  # type: ignore[method-assign]
    source.parse_text = cache(source.parse_text)
    evaluate.load_figures = lambda *given, **named: ()
    compare._figures = lambda *given, **named: ()
    evaluate.DerivedModel.draw = lambda *given, **named: ()  # type: ignore[method-assign]
    evaluate.save = factors.save = lambda *given, **named: ()
    evaluate.model_figure = lambda *given, **named: Figure()
    Figure.savefig = _blank  # type: ignore[method-assign]


def _few(load: Callable[..., Any]) -> Callable[..., Any]:
    starts = [f"trials.repetitions={STARTS}"] if STARTS else []
    return lambda spec, sets, points, **named: load(
        spec, [*(sets or ()), *starts], min(points or POINTS, POINTS), **named
    )


def _blank(figure: Any, buffer: Any, **options: Any) -> None:
    buffer.write(BLANK_PNG if options["format"] == "png" else BLANK_SVG)


def _once(facts: Callable[[Any], NodeFacts]) -> Callable[[Any], NodeFacts]:
    known: list[NodeFacts] = []

    def again(testbed: Any) -> NodeFacts:
        if not known:
            known.append(facts(testbed))
        return known[0]

    return again
