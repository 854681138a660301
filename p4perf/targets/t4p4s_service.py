"""t4p4s on network interfaces: a switch on cores of its own, loaded by a load generator on another machine.

A program is compiled by ``t4p4s.sh`` in a copy of the checkout of the node, and run by it there. t4p4s has no counters
of its own in a build that is to be fast, so cycles come from the packets that come back while more are offered than the
switch takes. It polls: its cores are always busy, and in overload every cycle is one of the packets that come back.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, ClassVar

from p4perf.errors import CapabilityError, MeasurementError
from p4perf.generators.base import TrafficPlan
from p4perf.generators.p4.t4p4s import T4P4S
from p4perf.generators.program import Workload
from p4perf.targets.base import (
    BuildPlan,
    Job,
    JobResult,
    MetricValue,
    NodeFacts,
    PointPlan,
    Problem,
    Target,
    step_failed,
)
from p4perf.targets.perf import CYCLES, LLC_MISSES, not_counted, perf_counts, perf_job
from p4perf.targets.service import ServedProgram, Service, Step
from p4perf.targets.t4p4s_files import (
    BROKEN,
    OPTIONS,
    READY,
    addresses,
    build_plan,
    check_compiled,
    checkout_of,
    compiler_of,
    core_map,
    script,
)

OUTSIDE = "moongen"
"""What the fact ``load_generator`` says where load comes from another machine."""

MIN_LOSS_PPS = 0.1e6
"""Cycles per packet are those of a saturated switch only: more than so many packets a second have to be lost (Scholz et
al. 2021, plots of the published measurements: transmitted minus received rate above 0.1 Mpps)."""

PERF_S = 2.0
"""How long events are counted in a trial, as in the published measurements, in seconds."""

MAX_FRAME_BYTES = 1518
"""``RTE_ETHER_MAX_LEN``, which t4p4s sets as MTU (dpdk_lib_init_hw.c)."""

MEMORY_BYTES = 512 << 20
"""Pools of packets on up to two sockets, and tables (at most 1024 entries each), in bytes, roughly."""

READY_S = 240.0
"""t4p4s asks a helper about every option (some seconds), waits up to 9 s for links (dpdk_lib_print.c), fills tables."""

SETTLE_S = 5.0
"""Between the begin of forwarding and the first packet, as in the published measurements."""

COMPILE_S, CHECK_S, DAY_S = 900.0, 60.0, 86400.0
"""How long compiling, a short command, and the switch may take, in seconds."""

CHECKING = "checking the node for t4p4s"
COMPILING = "compiling with t4p4s"
COUNTING = "counting events with perf"
STOPPING = "stopping t4p4s"


class ServedT4P4S(Target):
    """The part of target t4p4s that a load generator on another machine needs."""

    lcores: ClassVar[int] = 1
    """Cores that forward. Frames without IP, which p4perf's programs have, are spread over no queues by RSS: more cores
    than one would be idle."""

    sysfs: ClassVar[str] = "/sys"
    """Where the node tells of its interfaces and hugepages."""

    served_gives: ClassVar[tuple[str, ...]] = (
        *("packet_rate", "cycles_per_packet", "baseline_cycles_per_packet", "cost_cycles_per_packet"),
        *("cache_misses", "core_frequency"),
    )

    def is_served(self, facts: NodeFacts) -> bool:
        """If the load generator is on another machine."""
        return facts.text("load_generator") == OUTSIDE

    def served_problems(self, facts: NodeFacts) -> tuple[Problem, ...]:
        """What is missing on the node as far as its facts tell; :meth:`service` looks closer there."""
        found = []
        for look in (checkout_of, compiler_of, addresses, lambda facts: core_map(facts, self.lcores)):
            try:
                look(facts)
            except CapabilityError as error:
                found.append(Problem(error.message, error.hint or ""))
        if not facts.text("tool_perf") and _ghz(facts.values) is None:
            what = "neither perf nor a fixed frequency of the cores: there are no cycles per packet"
            found.append(Problem(what, "install linux-perf, or write cpu_ghz in the node file", fatal=False))
        return tuple(found)

    def served_plan(self, workload: Workload, traffic: TrafficPlan, facts: NodeFacts) -> PointPlan:
        """Plan a point that is loaded from outside.

        Raises:
            CapabilityError: t4p4s cannot do it, or the node lacks cores, interfaces or the checkout.
        """
        if traffic.frame_size_bytes > MAX_FRAME_BYTES:
            raise CapabilityError(
                f"t4p4s takes frames of at most {MAX_FRAME_BYTES} B, not {traffic.frame_size_bytes} B",
                key="traffic.frame_size",
            )
        builds = self._builds(workload, traffic, facts)
        identity = ["served", *(build.key for build in builds.values()), workload.packets.frame_size_bytes]
        key = hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:16]
        return PointPlan(key, builds["program"], workload, traffic, MEMORY_BYTES)

    def _builds(self, workload: Workload, traffic: TrafficPlan, facts: NodeFacts) -> dict[str, BuildPlan]:
        """The copies of the checkout for program and baseline."""
        files = T4P4S().generate(workload, traffic)
        texts = {file.path.removesuffix(".p4"): file.text() for file in files}
        return {name: build_plan(name, text, facts, self.lcores) for name, text in texts.items()}

    def service(self, plan: PointPlan, program: ServedProgram, facts: NodeFacts) -> Service:
        """Look at the node, compile in a copy of the checkout, run the switch there, and count on its cores.

        Raises:
            CapabilityError: see :meth:`served_plan`.
        """
        build = self._builds(plan.workload, plan.traffic, facts)[program]
        cores, p4c = core_map(facts, self.lcores), compiler_of(facts)
        look = ("sh", "{folder}/check.sh", checkout_of(facts), p4c, self.sysfs, *addresses(facts))
        stop = Job(("sh", "{folder}/stop.sh", build.key), CHECK_S, None, {"stop.sh": script("stop.sh").encode()})
        here = ("{build}", program, p4c, *OPTIONS)
        main = Job(("sh", "{build}/run.sh", *here, *cores.options), DAY_S, build)
        counting = (Step(COUNTING, perf_job(cores.cpus, PERF_S)),) if facts.text("tool_perf") else ()
        return Service(
            prepare=(
                Step(CHECKING, Job(look, CHECK_S, None, {"check.sh": script("check.sh").encode()})),
                Step(STOPPING, stop),
                Step(COMPILING, Job(("sh", "{build}/compile.sh", *here), COMPILE_S, build)),
            ),
            main=main,
            ready=READY,
            broken=BROKEN,
            ready_timeout_s=READY_S + plan.setup_s,
            settle_s=SETTLE_S,
            during=counting,
            release=(Step(STOPPING, stop),),
        )

    def check_step(self, step: Step, result: JobResult) -> None:
        """By exit code and output.

        Raises:
            MeasurementError: something is missing on the node, the program was not compiled as it is (key
                ``refused`` if it is the reason), or perf has no access to the counters.
        """
        if step.what == COMPILING:
            check_compiled(step, result)
        elif result.timed_out:
            raise step_failed(step, result)
        elif step.what == CHECKING and result.returncode != 0:
            missing = [line.removeprefix("missing: ") for line in result.stdout.splitlines() if "missing: " in line]
            if not missing:
                raise step_failed(step, result)
            raise MeasurementError(f"{step.what}: it lacks {'; '.join(missing)}")
        elif step.what == COUNTING and result.returncode != 0:
            failed = step_failed(step, result)
            hint = "run as root, or sysctl kernel.perf_event_paranoid=0"
            raise MeasurementError(failed.message, hint=hint)
        else:
            super().check_step(step, result)

    def evidence(self, results: Mapping[str, JobResult]) -> Mapping[str, Any]:
        """Events as ``{"perf": {"lcores": 1, "counts": {event: [value, seconds]}, "not_counted": [event]}}``."""
        if (result := results.get(COUNTING)) is None:
            return {}
        counts = {event: [count.value, count.seconds] for event, count in perf_counts(result.stderr).items()}
        return {"perf": {"lcores": self.lcores, "counts": counts, "not_counted": list(not_counted(result.stderr))}}

    def served_metrics(self, overload: Mapping[str, Any], facts: Mapping[str, str]) -> tuple[MetricValue, ...]:
        """Cycles per packet of program and baseline, where each was saturated, and misses of the last-level cache.

        A core that polls has ``cycles_per_packet = cycles_per_second * lcores / received_packets_per_second``; the
        former is counted by perf, or is the fixed frequency of the node file.
        """
        program, baseline = (_Side(overload.get(name, {}), facts, self.lcores) for name in ("program", "baseline"))
        values = [MetricValue("packet_rate", program.rate_pps / 1e6, "Mpps")] if program.rate_pps > 0 else []
        cycles, idle = program.cycles_per_packet, baseline.cycles_per_packet
        for name, value in (("cycles_per_packet", cycles), ("baseline_cycles_per_packet", idle)):
            if value is not None:
                values.append(MetricValue(name, value, "cycles/packet"))
        if cycles is not None and idle is not None:
            values.append(MetricValue("cost_cycles_per_packet", cycles - idle, "cycles/packet"))
        if (misses := program.llc_misses_per_packet) is not None:
            values.append(MetricValue("cache_misses", misses, "misses/packet"))
        if (hz := program.events_per_second(CYCLES)) is not None:
            values.append(MetricValue("core_frequency", hz / 1e9, "GHz"))
        return tuple(values)


class _Side:
    """An overload of one of the two programs."""

    def __init__(self, counted: Mapping[str, Any], facts: Mapping[str, str], lcores: int) -> None:
        self._facts, self._lcores = facts, lcores
        self.rate_pps = float(counted.get("receive_rate_pps", 0.0))
        self.saturated = self.rate_pps > 0 and float(counted.get("rate_pps", 0.0)) - self.rate_pps > MIN_LOSS_PPS
        self._counts: Mapping[str, Any] = counted.get("evidence", {}).get("perf", {}).get("counts", {})

    def events_per_second(self, event: str) -> float | None:
        """Of one core, on average; None if they were not counted."""
        value, seconds = self._counts.get(event, (0, 0.0))
        return value / seconds if seconds > 0 else None

    @property
    def cycles_per_packet(self) -> float | None:
        """None if the switch was not saturated, or if nothing tells how many cycles there are in a second."""
        if not self.saturated:
            return None
        hz = self.events_per_second(CYCLES)
        if hz is None:
            ghz = _ghz(self._facts)
            hz = None if ghz is None else ghz * 1e9
        return None if hz is None else hz * self._lcores / self.rate_pps

    @property
    def llc_misses_per_packet(self) -> float | None:
        """None if the processor is not one of Intel, or they were not counted."""
        misses = self.events_per_second(LLC_MISSES)
        if misses is None or self.rate_pps <= 0 or "Intel" not in self._facts.get("cpu_model", ""):
            return None
        return misses * self._lcores / self.rate_pps


def _ghz(facts: Mapping[str, str]) -> float | None:
    """The fixed frequency of the cores, if the node file has one that can be."""
    try:
        ghz = float(facts.get("cpu_ghz", ""))
    except ValueError:
        return None
    return ghz if 0.1 <= ghz <= 10 else None
