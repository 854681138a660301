"""Target vio: queues in shared memory between a host and a network function, two processes on a core each, no NIC.

What is measured is the hand-over of packets as a virtual switch and a guest do it (vhost-user and virtio), and what it
does to the caches of the two cores. The function forwards packets unread; no program runs.

Without hardware counters, two counts describe the cache behaviour, each of what the other leaves out.

* **Line requests**, counted by the harness itself: a directory holds for every line of the shared memory which of the
  two cores has it. A core asks for a line that it does not have, because the other one wrote it since, and for one that
  it has if it writes it and the other one has it, too. The caches of this count have no limits, so nothing is ever
  evicted: what remains is the hand-over.
* **Misses**, simulated by cachegrind for each process alone: the caches have their sizes, but no other core writes to
  them. Cachegrind knows no other core and so no invalidation: lines that go from core to core stay hits here.

Neither count is a number of misses on the machine. In both the two sides take turns: one runs until it can do nothing
more, so that as many packets are on their way as there may be; polls that find nothing are not counted. A count per
packet is a slope between two numbers of packets, as in :mod:`p4perf.targets.counters`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from typing_extensions import override

from p4perf.errors import CapabilityError, MeasurementError
from p4perf.generators.base import render
from p4perf.programs.capabilities import CONSTRUCTS, NOT_OF_THE_LANGUAGE, Capabilities, Limit
from p4perf.programs.component import TrafficPlan
from p4perf.programs.components.baseline import ETHERNET_VALUES
from p4perf.programs.ir import Workload
from p4perf.programs.packets import FCS_BYTES
from p4perf.programs.virtual_io import VirtualIo
from p4perf.results.manifest import cpu_list
from p4perf.targets import process
from p4perf.targets.base import (
    BuildPlan,
    Job,
    JobResult,
    MetricValue,
    NodeFacts,
    PointPlan,
    Problem,
    TrialOptions,
    TrialRecord,
)
from p4perf.targets.builds import NATIVE, PORTABLE, context_of, harness_text, shell
from p4perf.targets.counters import simulated_counts, simulation_jobs, simulation_record
from p4perf.targets.process import HarnessTarget
from p4perf.targets.roles import Calibrates, Simulates
from p4perf.targets.windows import WindowStatistics, cycle_metrics, packet_rate

PRODUCT = "vio"
HARNESS_FILES = ("clock.h", "thread.h", "words.h", "vio.h", "words.c", "vio_main.c", "vio_process.c", "vio_measure.c")
QUEUE_FILES = ("clock.h", "vio.h", "vio_queue.h", "vio_pool.h", "vio_host.c", "vio_function.c")

_FLAGS = 'exec "${CC:-cc}" -std=gnu11 -O3 -Wall -Wextra -Wno-type-limits -D_GNU_SOURCE "-march=$1"'
_TRACED = "-O1"
"""Counts need no speed, and compile in half of the time."""

_HARNESS = f"{_FLAGS} -r -nostdlib -o harness.o words.c vio_main.c vio_process.c vio_measure.c"
_BUILD = f'{_FLAGS} "-DVIO_TRACE=$2" "$4" -o {PRODUCT} vio_host.c vio_function.c "$3/harness.o"'


CONFIGURATION = "vio_config.h"

PACKET_HEADER_BYTES = 16
"""What the host writes in front of the body of a packet: its number and its length."""


def configuration(queues: VirtualIo, frame_size_bytes: int) -> str:
    """The header :data:`CONFIGURATION`.

    Raises:
        CapabilityError: sizes that do not go together (the key is the parameter); a packet that is too large for a
            buffer, or a body smaller than what is done with it.
    """
    _check_sizes(queues)
    size = frame_size_bytes - FCS_BYTES
    if size > queues.data_room_bytes:
        message = f"a packet of {size} B does not fit into a data room of {queues.data_room_bytes} B"
        raise CapabilityError(message, key="traffic.frame_size", hint="make data_room_bytes larger")
    body = max(queues.body_read_bytes, queues.body_write_bytes)
    if body > size - PACKET_HEADER_BYTES:
        raise CapabilityError(
            f"{body} B of the body are more than a packet of {size} B has behind its number and its length "
            f"({PACKET_HEADER_BYTES} B)",
            key="traffic.frame_size",
        )
    # A queue of free buffers that goes around: a power of two.
    waiting = 1 << (queues.buffers - 1).bit_length()
    return render("c/vio_config.h.j2", io=queues, packet_bytes=size, waiting=waiting)


def _check_sizes(q: VirtualIo) -> None:
    for name in ("rx_batch", "function_batch", "tx_batch", "queue"):
        size = getattr(q, name)
        if size & (size - 1):
            raise _refusal(f"{name}: {size} is no power of two", name)
        if size > q.queue:
            raise _refusal(f"a batch of {size} packets does not fit into a queue of {q.queue} entries", name)
    if q.stuck + q.rx_batch > q.queue:
        raise _refusal(
            f"batches of {q.rx_batch}, {q.function_batch} and {q.tx_batch} packets would wait for each other in queues "
            f"of {q.queue} entries",
            "queue",
        )
    if q.buffers < q.buffers_needed:
        raise _refusal(
            f"{q.buffers} buffers are fewer than the {q.buffers_needed} that are in queues, rings and batches at once",
            "buffers",
        )
    if q.descriptor_bytes == 4 and q.buffers > 1 << 16:
        message = f"a descriptor of 4 B has 16 bits for the number of a buffer, not {q.buffers} buffers"
        raise _refusal(message, "buffers")


def _refusal(message: str, name: str) -> CapabilityError:
    return CapabilityError(f"vio: {message}", key=f"program.parameters.{name}")


def queues_of(workload: Workload) -> VirtualIo:
    if workload.program.virtual_io is None:
        raise CapabilityError("vio measures nothing but virtual I/O", key="program.component", hint="use component vio")
    return workload.program.virtual_io


def build_plan(workload: Workload, facts: NodeFacts, *, march: str = NATIVE, trace: bool = False) -> BuildPlan:
    """The build of one set of sizes; ``trace``: with a directory of cache lines instead of speed."""
    queues = queues_of(workload)
    context = context_of(facts, "cc_version", "cpu_model", "cpu_id", "machine")
    harness = BuildPlan(harness_text(HARNESS_FILES), (shell(_HARNESS, march),), "harness.o", context)
    files = {CONFIGURATION: configuration(queues, workload.packets.frame_size_bytes), **harness_text(QUEUE_FILES)}
    command = shell(_BUILD, march, str(int(trace)), "{harness}", _TRACED if trace else "-O3")
    return BuildPlan(files, (command,), PRODUCT, context, {"harness": harness})


SIDES = ("host", "function")
LEVELS = ("l1", "l2")

MISSES = tuple(f"simulated_{side}_{level}_misses" for level in LEVELS for side in SIDES)
METRICS = (*MISSES, *(f"simulated_{side}_line_requests" for side in SIDES))

UNIT = "lines/packet"

TRACED_PACKETS = (1 << 17, 1 << 18)
"""All buffers of a pool may be on their way round once before the second number is reached."""

SIMULATED_PACKETS = 1 << 15
"""The first of two numbers for cachegrind, unless there are more buffers; the second one is twice that."""

_TRACE_TIMEOUT_S = 120.0


def _requests(record: Mapping[str, int], side: str) -> int:
    return record[f"{side}_fetched"] + record[f"{side}_upgraded"]


def _of_process(result: JobResult, side: str) -> JobResult:
    """The result with the output of valgrind for one of the two processes."""
    prefix = f"=={_record(result)[f'{side}_pid']}=="
    own = [line for line in result.stderr.splitlines() if line.startswith(prefix)]
    return replace(result, stderr="\n".join(own))


def _record(result: JobResult) -> dict[str, int]:
    record = simulation_record(result)
    try:
        return {key: int(record[key]) for key in _KEYS}
    except (ValueError, KeyError, TypeError) as error:
        raise MeasurementError(f"the simulation printed nonsense: {error}") from error


_KEYS = ("packets", *(f"{side}_{what}" for side in SIDES for what in ("pid", "fetched", "upgraded")))


HARNESS_VERSION = 1
WINDOW_PACKETS = 8192
"""Packets of a window: from 45 us to a few milliseconds."""

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


class VioTarget(HarnessTarget, Calibrates, Simulates):
    name = "vio"
    summary = "virtual network I/O: host and network function on a core each, queues in shared memory, no NIC"
    metrics = ("cycles_per_packet", "tsc_cycles_per_packet", "packet_rate", "memory_bytes")
    simulates = METRICS
    capabilities: ClassVar[Capabilities] = _CAPABILITIES
    harness_version = HARNESS_VERSION
    needs: ClassVar[tuple[process.Need, ...]] = (
        process.COMPILER,
        process.COMPILER_RUNS,
        process.Need(
            lambda facts: not facts.text("cpus_allowed") or two_cores(facts) is not None,
            "host and network function need a CPU each, and this process may use one",
            "allow it two CPUs (taskset), on a machine that has them",
        ),
        process.Need(
            lambda facts: facts.text("shared_memory") != "no",
            "no memory that two processes can share: neither memfd_create nor a writable /dev/shm",
            "use a kernel with tmpfs, or mount one at /dev/shm",
        ),
        process.REALTIME,
        process.HUGEPAGES,
    )

    @override
    def problems(self, facts: NodeFacts) -> tuple[Problem, ...]:
        found = super().problems(facts)
        cores = two_cores(facts)
        if cores is None or not share_a_core(facts, cores):
            return found
        what = f"CPUs {cores[0]} and {cores[1]} are threads of one core, and share its L1 and L2"
        return (*found, Problem(what, "allow this process CPUs of two cores (taskset)", fatal=False))

    @override
    def check(self, workload: Workload, traffic: TrafficPlan) -> None:
        super().check(workload, traffic)
        packets = workload.packets
        own = tuple(sorted(ETHERNET_VALUES.items()))
        if packets.payload != b"\0" or any(h.values != own for h in packets.headers):
            message = "vio fills packets itself: their number, their length, and bytes that are checked"
            raise CapabilityError(message, key="traffic", hint="leave out fields and payload")

    @override
    def memory_bytes(self, workload: Workload) -> int:
        queues = queues_of(workload)
        return queues.shared_bytes + queues.private_bytes

    @override
    def check_memory(self, workload: Workload, memory_bytes: int, available_bytes: int) -> None:
        if memory_bytes > process.MEMORY_SHARE * available_bytes:
            queues = queues_of(workload)
            raise CapabilityError(
                f"three pools of {queues.buffers:,} buffers of {queues.stride_bytes:,} B take "
                f"{memory_bytes / 2**20:,.0f} MiB, but {available_bytes / 2**20:,.0f} MiB are available",
                key="program.parameters.buffers",
                hint="use fewer buffers or a smaller data room",
            )

    @override
    def build(self, workload: Workload, traffic: TrafficPlan, facts: NodeFacts) -> tuple[BuildPlan, Sequence[Any]]:
        build = build_plan(workload, facts)
        return build, (build.key, HARNESS_VERSION)

    @override
    def trial(self, plan: PointPlan, options: TrialOptions, facts: NodeFacts) -> Job:
        argv = ["{build}/" + PRODUCT, *core_arguments(facts), "--seed", str(options.seed)]
        pages = ("--hugepages",) if options.hugepages else ()
        argv += process.window_arguments(options, *pages, window=("--window-packets", WINDOW_PACKETS))
        return Job(tuple(argv), 60 + 4e-3 * options.timeout_ms, plan.build)

    @override
    def values(self, record: TrialRecord, *statistics: WindowStatistics) -> Sequence[MetricValue]:
        (queues,) = statistics
        return (
            *cycle_metrics(queues),
            packet_rate("packet_rate", record, queues),
            *process.recorded(record, "memory_bytes"),
            *_counter_metrics(record["windows"]),
        )

    @override
    def simulation(self, plan: PointPlan, options: TrialOptions, facts: NodeFacts) -> tuple[Job, ...]:
        """Two jobs that trace lines, which take no time, then those of cachegrind, if wanted and the node has it."""
        command = ["{build}/" + PRODUCT, *core_arguments(facts)]
        trace = build_plan(plan.workload, facts, trace=True)
        traced = tuple(Job((*command, "--packets", str(n)), _TRACE_TIMEOUT_S, trace) for n in TRACED_PACKETS)
        if options.simulated is not None and not set(options.simulated) & set(MISSES):
            return traced
        portable = build_plan(plan.workload, facts, march=PORTABLE)
        first = max(SIMULATED_PACKETS, queues_of(plan.workload).buffers)
        packets = (first, 2 * first)
        return traced + simulation_jobs([*command, "--processes"], portable, facts, packets=packets, levels=("L2",))

    @override
    def simulated(self, results: Sequence[JobResult]) -> tuple[MetricValue, ...]:
        if not results:
            return ()
        low, high = map(_record, results[:2])
        packets = high["packets"] - low["packets"]
        asked = {side: _requests(high, side) - _requests(low, side) for side in SIDES}
        values = [MetricValue(f"simulated_{side}_line_requests", n / packets, UNIT) for side, n in asked.items()]
        for side in SIDES if len(results) > 2 else ():
            (first, few), (second, many) = (simulated_counts(_of_process(result, side)) for result in results[2:4])
            # Addresses differ between processes, so that a count near zero may come out a little below it.
            counts = {name: max(many[name] - few[name], 0) / (second - first) for name in many}
            misses = {"l1": counts["i1"] + counts["d1"], "l2": counts["ll"]}
            values += [
                MetricValue(f"simulated_{side}_{level}_misses", misses[level], "misses/packet") for level in LEVELS
            ]
        return tuple(values)

    @override
    def use_hugepages(self, memory_bytes: int, facts: NodeFacts) -> bool:
        return process.hugepages_hold(memory_bytes + 4 * process.HUGEPAGE_BYTES, facts)


def two_cores(facts: NodeFacts) -> tuple[int, int] | None:
    """Two CPUs that may be used, best first, on two cores if possible; None if there are not two.

    Isolated CPUs come first, then the last ones.
    """
    allowed = facts.cpus
    if len(allowed) < 2:
        return None
    first, others = allowed[0], allowed[1:]
    siblings = next((group for group in _cores(facts) if first in group), [])
    return first, next((cpu for cpu in others if cpu not in siblings), others[0])


def share_a_core(facts: NodeFacts, pair: tuple[int, int]) -> bool:
    """Whether two CPUs are known to be threads of one core."""
    return any(set(pair) <= set(group) for group in _cores(facts))


def _cores(facts: NodeFacts) -> list[list[int]]:
    """The CPUs of each core, as far as the facts list them."""
    return [cpu_list(group) for group in facts.text("thread_siblings").split()]


def core_arguments(facts: NodeFacts) -> list[str]:
    """Which CPU each process gets; where that is not known the processes choose."""
    cores = two_cores(facts)
    return [] if cores is None else ["--function-cpu", str(cores[0]), "--host-cpu", str(cores[1])]


_COUNTED = {"instructions": "instructions", "llc_misses": "cache_misses"}
"""Columns of hardware counters whose sum over both sides is a metric."""


def _counter_metrics(windows: Mapping[str, Any]) -> tuple[MetricValue, ...]:
    """Values of hardware counters, where the kernel offers them: medians over windows that nothing interrupted."""
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
    sides = (MetricValue(f"{side}_l1_misses", median(f"{side}_l1_misses"), "misses/packet") for side in SIDES)
    return (*both, *sides)
