"""Cache behaviour of virtual network I/O without hardware counters: two counts, each of what the other leaves out.

* **Line requests**, counted by the harness itself: a directory holds for every line of the shared memory which of the
  two cores has it. A core asks for a line that it does not have, because the other one wrote it since, and for one that
  it has if it writes it and the other one has it, too. The caches of this count have no limits, so nothing is ever
  evicted: what remains is the hand-over.
* **Misses**, simulated by cachegrind for each process alone: the caches have their sizes, but nobody else writes to
  them. Cachegrind knows no other core and so no invalidation: lines that go from core to core stay hits here.

Neither count is a number of misses on the machine. In both the two sides take turns: one runs until it can do nothing
more, so that as many packets are on their way as there may be; polls that find nothing are not counted. A count per
packet is a slope between two numbers of packets, as in :mod:`p4perf.targets.cachegrind`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from p4perf.errors import MeasurementError
from p4perf.generators.program import Workload
from p4perf.targets.base import Job, JobResult, MetricValue, NodeFacts
from p4perf.targets.cachegrind import simulated_counts
from p4perf.targets.cachegrind import simulation_jobs as cachegrind_jobs
from p4perf.targets.dpdk_c_build import PORTABLE
from p4perf.targets.vio_build import build_plan, queues_of

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


def simulation_jobs(
    workload: Workload, command: Sequence[str], facts: NodeFacts, wanted: Sequence[str] | None = None
) -> tuple[Job, ...]:
    """Two jobs that trace lines, which take no time, then those of cachegrind, if they are wanted and the node has it.

    Args:
        workload: with queues.
        command: the harness with its cores.
        facts: of the node.
        wanted: metrics; None: all.
    """
    trace = build_plan(workload, facts, trace=True)
    traced = (Job((*command, "--packets", str(n)), _TRACE_TIMEOUT_S, trace) for n in TRACED_PACKETS)
    if wanted is not None and not set(wanted) & set(MISSES):
        return tuple(traced)
    portable = build_plan(workload, facts, march=PORTABLE)
    first = max(SIMULATED_PACKETS, queues_of(workload).buffers)
    return (
        *traced,
        *cachegrind_jobs((*command, "--processes"), portable, facts, packets=(first, 2 * first), levels=("L2",)),
    )


def simulated_values(results: Sequence[JobResult]) -> tuple[MetricValue, ...]:
    """Counts per packet from the results of :func:`simulation_jobs`, in their order.

    Raises:
        MeasurementError: a run failed or printed nonsense.
    """
    if not results:
        return ()
    low, high = map(_record, results[:2])
    packets = high["packets"] - low["packets"]
    values = [
        MetricValue(f"simulated_{side}_line_requests", (_requests(high, side) - _requests(low, side)) / packets, UNIT)
        for side in SIDES
    ]
    for side in SIDES if len(results) > 2 else ():
        (first, few), (second, many) = (simulated_counts(_of_process(result, side)) for result in results[2:4])
        # Addresses differ between processes, so that a count near zero may come out a little below it.
        counts = {name: max(many[name] - few[name], 0) / (second - first) for name in many}
        misses = {"l1": counts["i1"] + counts["d1"], "l2": counts["ll"]}
        values += [MetricValue(f"simulated_{side}_{level}_misses", misses[level], "misses/packet") for level in LEVELS]
    return tuple(values)


def _requests(record: Mapping[str, int], side: str) -> int:
    return record[f"{side}_fetched"] + record[f"{side}_upgraded"]


def _of_process(result: JobResult, side: str) -> JobResult:
    """The result with what valgrind says of one of the two processes."""
    prefix = f"=={_record(result)[f'{side}_pid']}=="
    own = [line for line in result.stderr.splitlines() if line.startswith(prefix)]
    return replace(result, stderr="\n".join(own))


def _record(result: JobResult) -> dict[str, int]:
    lines = [line for line in result.stdout.splitlines() if line.startswith("{")]
    if result.timed_out or result.returncode != 0 or not lines:
        tail = " / ".join((lines or result.stderr.strip().splitlines())[-2:]) or "no output"
        raise MeasurementError(f"the simulation ended with status {result.returncode}: {tail}")
    try:
        record = json.loads(lines[-1])
        return {key: int(record[key]) for key in _KEYS}
    except (ValueError, KeyError, TypeError) as error:
        raise MeasurementError(f"the simulation printed nonsense: {error}") from error


_KEYS = ("packets", *(f"{side}_{what}" for side in SIDES for what in ("pid", "fetched", "upgraded")))
