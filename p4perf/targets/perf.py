"""Hardware counters of CPUs while something else runs there: ``perf stat`` and what it prints.

Events of the caches are raw ones of Intel (``MEM_LOAD_RETIRED``, event D1, from Skylake on): misses of the first,
second and last level by loads. On other processors the same numbers are other events, which nobody asked for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from p4perf.targets.base import Job

CYCLES = "cycles"
L1_MISSES, L2_MISSES, LLC_MISSES = "r08d1", "r10d1", "r20d1"
EVENTS = (L1_MISSES, L2_MISSES, LLC_MISSES, CYCLES)
"""As Scholz et al. 2021 counted them."""

_NOT_THERE = ("<not counted>", "<not supported>")
_FIELDS = 5
_SLACK_S = 30.0


@dataclass(frozen=True, slots=True)
class Count:
    """An event on all CPUs together: how often, and for how many seconds it was asked for, summed over them."""

    value: int
    seconds: float

    @property
    def per_second(self) -> float:
        """Events in a second on one CPU, on average."""
        return self.value / self.seconds


def perf_job(cpus: Sequence[int], seconds: float) -> Job:
    """Count :data:`EVENTS` on CPUs for a time."""
    words = ("stat", "-C", ",".join(map(str, cpus)), "-x,", "-e", ",".join(EVENTS), "--", "sleep", f"{seconds:g}")
    return Job(("env", "LC_ALL=C", "perf", *words), seconds + _SLACK_S)


def perf_counts(printed: str) -> Mapping[str, Count]:
    """The counts of a table by ``perf stat -x,``; what was not counted, and every other line, is left out.

    A line is ``value,unit,event,run_time_ns,percent,,``. The value is scaled already where events took turns, so the
    time that belongs to it is the run time by the share of it.
    """
    return dict(_counts(printed))


def _counts(printed: str) -> Iterator[tuple[str, Count]]:
    for line in printed.splitlines():
        fields = line.strip().split(",")
        if len(fields) < _FIELDS or fields[0] in _NOT_THERE or fields[2] not in EVENTS:
            continue
        try:
            value, run_ns, percent = int(fields[0]), int(fields[3]), float(fields[4])
        except ValueError:
            continue
        if value >= 0 and run_ns > 0 and math.isfinite(percent) and 0 < percent <= 100:
            yield fields[2], Count(value, run_ns / 1e9 / (percent / 100))


def not_counted(printed: str) -> tuple[str, ...]:
    """The events that this machine does not count."""
    rows = (line.strip().split(",") for line in printed.splitlines())
    return tuple(row[2] for row in rows if len(row) >= _FIELDS and row[0] in _NOT_THERE and row[2] in EVENTS)
