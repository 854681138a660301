"""Instructions and cache misses: simulated by cachegrind, or counted by ``perf stat``.

Cachegrind knows two levels, L1 (instructions and data) and LL. So every point is simulated with an LL of the size of
the node's L2, and again with one of the size of its L3. A count per packet is a slope,

    c = (C(n2) - C(n1)) / (n2 - n1)

where C(n) is the count of a process that runs n packets: start, population and the first misses of every line cancel
out if n1 packets have been to all of the table. The counts hold what the harness does for a packet, too. They are the
same on every repetition but for the addresses that the process gets.

The simulated caches are inclusive, replace the least recently used line, and know no prefetcher, no TLB and no other
core; valgrind has no AVX-512, so the program is built for x86-64-v3.

Events of the caches are raw ones of Intel (``MEM_LOAD_RETIRED``, event D1, from Skylake on): misses of the first,
second and last level by loads. On other processors the same numbers mean other events.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from p4perf.errors import MeasurementError
from p4perf.targets.base import BuildPlan, Job, JobResult, MetricValue, NodeFacts

LINE_BYTES = 64
I1 = "32768,8,64"
"""Instruction cache of all x86-64 cores of the last decade: 32 KiB, 8 ways."""

MIN_WAYS = 8
MAX_WAYS = 64
"""A cache whose size does not go with fewer ways is rounded down."""

FIRST_PACKETS = 50_000
MORE_PACKETS = 200_000
MOST_FIRST_PACKETS = 2_000_000
PACKET_S = 50e-6
"""Time within which a busy machine simulates a packet, in seconds; an idle one takes some 3 us."""

SLOWDOWN = 100
"""How much slower than the processor cachegrind is, at most."""

METRICS = ("simulated_instructions", "simulated_l1_misses", "simulated_l2_misses", "simulated_llc_misses")
"""What :func:`simulated_metrics` gives."""

_COUNTS = {"instructions": r"I\s+refs", "i1": r"I1\s+misses", "d1": r"D1\s+misses", "ll": r"LL\s+misses"}


def geometry(size_bytes: int) -> str:
    """A cache of that size as cachegrind takes it, ``size,ways,line``: the number of its sets is a power of two."""
    ways, sets = max(size_bytes // LINE_BYTES, MIN_WAYS), 1
    while (ways % 2 == 0 and ways // 2 >= MIN_WAYS) or ways >= MAX_WAYS:
        ways, sets = ways // 2, sets * 2
    return f"{ways * sets * LINE_BYTES},{ways},{LINE_BYTES}"


def packet_counts(entries: int) -> tuple[int, int]:
    """The two numbers of packets for a program whose largest table has that many entries."""
    first = min(max(2 * entries, FIRST_PACKETS), MOST_FIRST_PACKETS)
    return first, first + MORE_PACKETS


def simulation_jobs(
    command: Sequence[str],
    build: BuildPlan,
    facts: NodeFacts,
    *,
    entries: int = 0,
    population_s: float = 0.0,
    packets: tuple[int, int] | None = None,
    levels: Sequence[str] = ("L2", "L3"),
) -> tuple[Job, ...]:
    """Each of two numbers of packets with each size of LL: four jobs, usually. None where it cannot be simulated.

    Args:
        command: the harness without ``--packets``, which is added.
        facts: of the node: the sizes of its caches, and whether it has valgrind.
        population_s: time in which the tables are filled without a simulation, in seconds.
        packets: the two numbers, where they are others than those for that many entries.
        levels: of the node whose sizes LL has in turn.
    """
    caches = facts.cache_bytes
    if not facts.text("tool_valgrind") or facts.text("machine") != "x86_64" or not {"L1", "L2", "L3"} <= caches.keys():
        return ()
    jobs = []
    for level in levels:
        options = (f"--I1={I1}", f"--D1={geometry(caches['L1'])}", f"--LL={geometry(caches[level])}")
        for n in packets or packet_counts(entries):
            argv = ("valgrind", "--tool=cachegrind", "--cache-sim=yes", *options, "--cachegrind-out-file=/dev/null")
            timeout_s = 120 + n * PACKET_S + SLOWDOWN * population_s
            jobs.append(Job((*argv, *command, "--packets", str(n)), timeout_s, build))
    return tuple(jobs)


def simulated_metrics(results: Sequence[JobResult]) -> tuple[MetricValue, ...]:
    """Counts per packet from the results of :func:`simulation_jobs`, in their order; nothing from no results."""
    if not results:
        return ()
    (n1, low), (n2, high), (n3, low_llc), (n4, high_llc) = map(simulated_counts, results)
    # Addresses differ between processes, so that a count near zero may come out a little below it.
    per_packet = {name: max(high[name] - low[name], 0) / (n2 - n1) for name in _COUNTS}
    llc = max(high_llc["ll"] - low_llc["ll"], 0) / (n4 - n3)
    return (
        MetricValue("simulated_instructions", per_packet["instructions"], "instructions/packet"),
        MetricValue("simulated_l1_misses", per_packet["i1"] + per_packet["d1"], "misses/packet"),
        MetricValue("simulated_l2_misses", per_packet["ll"], "misses/packet"),
        MetricValue("simulated_llc_misses", llc, "misses/packet"),
    )


def simulated_counts(result: JobResult) -> tuple[int, dict[str, int]]:
    """How many packets ran, and the counts of one simulation: ``instructions``, ``i1``, ``d1``, ``ll``."""
    packets = int(simulation_record(result)["packets"])
    found = {}
    for name, pattern in _COUNTS.items():
        match = re.search(rf"==\s*{pattern}:\s*([0-9,]+)", result.stderr)
        if match is None:
            raise MeasurementError(f"cachegrind printed no {name}")
        found[name] = int(match[1].replace(",", ""))
    return packets, found


def simulation_record(result: JobResult) -> Mapping[str, Any]:
    """The last line of JSON of a simulated harness."""
    lines = [line for line in result.stdout.splitlines() if line.startswith("{")]
    if result.timed_out or result.returncode != 0 or not lines:
        tail = " / ".join((lines or result.stderr.strip().splitlines())[-2:]) or "no output"
        raise MeasurementError(f"the simulation ended with status {result.returncode}: {tail}")
    try:
        record: Mapping[str, Any] = json.loads(lines[-1])
    except ValueError as error:
        raise MeasurementError(f"the simulation printed nonsense: {error}") from error
    return record


CYCLES = "cycles"
L1_MISSES, L2_MISSES, LLC_MISSES = "r08d1", "r10d1", "r20d1"
EVENTS = (L1_MISSES, L2_MISSES, LLC_MISSES, CYCLES)
"""As Scholz et al. 2021 counted them."""

_NOT_THERE = ("<not counted>", "<not supported>")
_FIELDS = 5
_SLACK_S = 30.0


def perf_job(cpus: Sequence[int], seconds: float) -> Job:
    """Count :data:`EVENTS` on CPUs for a time."""
    words = ("stat", "-C", ",".join(map(str, cpus)), "-x,", "-e", ",".join(EVENTS), "--", "sleep", f"{seconds:g}")
    return Job(("env", "LC_ALL=C", "perf", *words), seconds + _SLACK_S)


def perf_counts(printed: str) -> dict[str, tuple[int, float]]:
    """The counts of a table by ``perf stat -x,``; what was not counted, and every other line, is left out.

    Of an event on all CPUs together: how often, and for how many seconds it was asked for, summed over them.

    A line is ``value,unit,event,run_time_ns,percent,,``. The value is scaled already where events took turns, so the
    time that belongs to it is the run time by the share of it.
    """
    found = {}
    for line in printed.splitlines():
        fields = line.strip().split(",")
        if len(fields) < _FIELDS or fields[0] in _NOT_THERE or fields[2] not in EVENTS:
            continue
        try:
            value, run_ns, percent = int(fields[0]), int(fields[3]), float(fields[4])
        except ValueError:
            continue
        if value >= 0 and run_ns > 0 and math.isfinite(percent) and 0 < percent <= 100:
            found[fields[2]] = value, run_ns / 1e9 / (percent / 100)
    return found


def not_counted(printed: str) -> tuple[str, ...]:
    rows = (line.strip().split(",") for line in printed.splitlines())
    return tuple(row[2] for row in rows if len(row) >= _FIELDS and row[0] in _NOT_THERE and row[2] in EVENTS)
