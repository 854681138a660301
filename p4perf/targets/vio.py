"""Target vio: queues in shared memory between a host and a network function, two processes on a core each, no NIC.

What is measured is the hand-over of packets as a virtual switch and a guest do it (vhost-user and virtio), and what it
does to the caches of the two cores. The function forwards packets unread; no program runs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from p4perf.errors import CapabilityError
from p4perf.generators.base import TrafficPlan
from p4perf.generators.capabilities import CONSTRUCTS, NOT_OF_THE_LANGUAGE, Capabilities, Limit
from p4perf.generators.components.l2fwd import ETHERNET_VALUES
from p4perf.generators.program import Workload
from p4perf.targets.base import (
    Job,
    JobResult,
    MetricValue,
    NodeFacts,
    PointPlan,
    Problem,
    Target,
    TrialOptions,
    TrialRecord,
    TrialSummary,
)
from p4perf.targets.cores import share_a_core, two_cores
from p4perf.targets.dpdk_c_build import calibration_job
from p4perf.targets.outcome import harness_record
from p4perf.targets.summary import packet_rate, trial_summary
from p4perf.targets.vio_build import build_plan, queues_of
from p4perf.targets.vio_simulation import METRICS as SIMULATED
from p4perf.targets.vio_simulation import simulated_values, simulation_jobs
from p4perf.targets.windows import gate_ratio_of, window_statistics

HARNESS_VERSION = 1
HUGEPAGE_BYTES = 2 << 20
WINDOW_PACKETS = 8192
"""Packets of a window: from 45 us to a few milliseconds."""

MEMORY_SHARE = 0.9
"""Of the available memory, at most."""

_ONLY = "it measures how packets are handed to a network function, which forwards them unread; use component vio alone"

_CAPABILITIES = Capabilities(
    "vio",
    missing={
        construct: "the host sends the next packets as soon as others are back"
        if construct == "offered load"
        else _ONLY
        for construct in CONSTRUCTS
        if construct not in NOT_OF_THE_LANGUAGE
    },
    limits={
        "headers": Limit(1, "no program runs"),
        "metadata bytes": Limit(0, "no program runs"),
        "tables": Limit(0, "no program runs"),
    },
    offers=frozenset({"virtual I/O"}),
    requires={"virtual I/O": _ONLY},
)


class VioTarget(Target):
    """Host and network function, each a process on a core of its own."""

    name = "vio"
    summary = "virtual network I/O: host and network function on a core each, queues in shared memory, no NIC"
    metrics = ("cycles_per_packet", "tsc_cycles_per_packet", "packet_rate", "memory_bytes")
    simulates = SIMULATED
    capabilities: ClassVar[Capabilities] = _CAPABILITIES

    def problems(self, facts: NodeFacts) -> tuple[Problem, ...]:
        """A compiler, two CPUs, shared memory; and, not fatal, the right to real-time scheduling and hugepages."""
        found = []
        if not facts.text("cc_version"):
            found.append(Problem("no C compiler (cc) on the PATH", "install gcc"))
        cores = two_cores(facts)
        if facts.text("cpus_allowed") and cores is None:
            what = "host and network function need a CPU each, and this process may use one"
            found.append(Problem(what, "allow it two CPUs (taskset), on a machine that has them"))
        if cores is not None and share_a_core(facts, cores):
            what = f"CPUs {cores[0]} and {cores[1]} are threads of one core, and share its L1 and L2"
            found.append(Problem(what, "allow this process CPUs of two cores (taskset)", fatal=False))
        if facts.text("shared_memory") == "no":
            what = "no memory that two processes can share: neither memfd_create nor a writable /dev/shm"
            found.append(Problem(what, "use a kernel with tmpfs, or mount one at /dev/shm"))
        if facts.text("realtime") != "yes":
            found.append(Problem("no right to real-time scheduling", "run as root or grant CAP_SYS_NICE", fatal=False))
        if not (facts.number("hugepages_free") or 0):
            found.append(Problem("no free hugepages", "p4perf doctor --fix reserves some (root)", fatal=False))
        return tuple(found)

    def plan(self, workload: Workload, traffic: TrafficPlan, facts: NodeFacts) -> PointPlan:
        """Check the limits, render the sizes, add up the memory."""
        self.capabilities.check(workload.program, workload.packets, traffic)
        self._check_contents(workload)
        build = build_plan(workload, facts)
        memory = self._memory(workload, facts)
        key = hashlib.sha256(json.dumps([build.key, HARNESS_VERSION]).encode()).hexdigest()[:16]
        return PointPlan(key, build, workload, traffic, memory)

    def _check_contents(self, workload: Workload) -> None:
        """Refuse contents of packets, which nobody would look at."""
        packets = workload.packets
        own = tuple(sorted(ETHERNET_VALUES.items()))
        if packets.payload != b"\0" or any(h.values != own for h in packets.headers):
            raise CapabilityError(
                "vio fills packets itself: their number, their length, and bytes that are checked",
                key="traffic",
                hint="leave out fields and payload",
            )

    def _memory(self, workload: Workload, facts: NodeFacts) -> int:
        """Memory of pools and queues, in bytes; refused if the machine has less."""
        queues = queues_of(workload)
        memory = queues.shared_bytes + queues.private_bytes
        available = facts.number("memory_available_bytes")
        if available is not None and memory > MEMORY_SHARE * available:
            raise CapabilityError(
                f"three pools of {queues.buffers:,} buffers of {queues.stride_bytes:,} B take "
                f"{memory / 2**20:,.0f} MiB, but {available / 2**20:,.0f} MiB are available",
                key="program.parameters.buffers",
                hint="use fewer buffers or a smaller data room",
            )
        return memory

    def trial(self, plan: PointPlan, options: TrialOptions, facts: NodeFacts) -> Job:
        """One start of both processes."""
        argv = ["{build}/vio", *core_arguments(facts), "--seed", str(options.seed)]
        argv += ["--windows", str(options.windows), "--window-packets", str(WINDOW_PACKETS)]
        argv += ["--timeout-ms", str(options.timeout_ms), "--warmup-ms", str(options.warmup_ms)]
        if options.hugepages:
            argv.append("--hugepages")
        if options.mode == "plain":
            argv.append("--plain")
        elif options.gate_ratio:
            argv += ["--gate-ratio", f"{options.gate_ratio:.5f}"]
        return Job(tuple(argv), 60 + 4e-3 * options.timeout_ms, plan.build)

    def parse(self, result: JobResult) -> TrialRecord:
        """The JSON line of the harness; packets that came back wrong are an error."""
        return harness_record(result, HARNESS_VERSION)

    def summarise(self, record: TrialRecord, gate_ratio: float | None) -> TrialSummary:
        """Medians over the windows in which both cores were undisturbed."""
        statistics = window_statistics(record, gate_ratio)["vio"]
        values = (
            MetricValue("cycles_per_packet", statistics.core_cycles, "cycles/packet"),
            MetricValue("tsc_cycles_per_packet", statistics.tsc_cycles, "TSC cycles/packet"),
            packet_rate("packet_rate", record, statistics),
            MetricValue("memory_bytes", float(record["memory_bytes"]), "B"),
            *_counter_metrics(record["windows"]),
        )
        return trial_summary((statistics,), values, _environment_flags(record))

    def simulation(self, plan: PointPlan, options: TrialOptions, facts: NodeFacts) -> tuple[Job, ...]:
        """Lines that go from core to core, counted by the harness itself; misses of each core alone, by cachegrind."""
        return simulation_jobs(plan.workload, ["{build}/vio", *core_arguments(facts)], facts, options.simulated)

    def simulated(self, results: Sequence[JobResult]) -> tuple[MetricValue, ...]:
        """Counts per packet, by side."""
        return simulated_values(results)

    def calibration(self) -> Job:
        """Both calibrators on every CPU for 0.2 s."""
        return calibration_job()

    def gate_ratio(self, record: TrialRecord) -> float | None:
        """Of a trial: the ratio in force at its end. Of a calibration line: the lower mode."""
        return gate_ratio_of(record)

    def use_hugepages(self, memory_bytes: int, facts: NodeFacts) -> bool:
        """If the free 2 MiB pages hold pools and queues, each of which begins a page."""
        if facts.number("hugepage_bytes") != HUGEPAGE_BYTES:
            return False
        return (facts.number("hugepages_free") or 0) * HUGEPAGE_BYTES >= memory_bytes + 4 * HUGEPAGE_BYTES


def core_arguments(facts: NodeFacts) -> list[str]:
    """Which CPU each process gets; where that is not known the processes choose."""
    cores = two_cores(facts)
    return [] if cores is None else ["--function-cpu", str(cores[0]), "--host-cpu", str(cores[1])]


_COUNTED = {"instructions": "instructions", "llc_misses": "cache_misses"}
"""Columns of hardware counters whose sum over both sides is a metric."""


def _counter_metrics(windows: Mapping[str, Any]) -> tuple[MetricValue, ...]:
    """What hardware counters say, where the kernel offers them: medians over windows that nothing interrupted."""
    if "host_l1_misses" not in windows:
        return ()
    quiet = [not any(pair) for pair in zip(windows["preemptions"], windows["peer_preemptions"], strict=True)]

    def median(column: str) -> float:
        values = sorted(v for v, use in zip(windows[column], quiet, strict=True) if use)
        return float(values[len(values) // 2]) if values else float("nan")

    both = (
        MetricValue(metric, median(f"host_{column}") + median(f"function_{column}"), f"{metric.split('_')[-1]}/packet")
        for column, metric in _COUNTED.items()
    )
    sides = (MetricValue(f"{side}_l1_misses", median(f"{side}_l1_misses"), "misses/packet") for side in _SIDES)
    return (*both, *sides)


_SIDES = ("host", "function")


def _environment_flags(record: Mapping[str, Any]) -> set[str]:
    gated = bool(record.get("gated"))
    conditions = {
        "no_hugepages": not record.get("hugepages"),
        "no_realtime": gated and not record.get("realtime"),
        "ungated": not gated,
        "timed_out": bool(record.get("timed_out")),
    }
    return {flag for flag, present in conditions.items() if present}
