"""Where a growing working set fills the caches, and which breakpoints that explains."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from p4perf.errors import SpecError, UsageError
from p4perf.models.notation import number

if TYPE_CHECKING:
    from p4perf.results import Run

SCHOLZ2021_FIXED_BYTES = 128.0
SCHOLZ2021_BYTES_PER_ENTRY = 72.0
NEAR = 3.0
"""A breakpoint within this factor of a mark is explained by it: caches are shared and hold more than entries."""


@dataclass(frozen=True)
class WorkingSet:
    """Memory that is touched as x grows: ``fixed_bytes + x * bytes_per_entry``."""

    fixed_bytes: float
    bytes_per_entry: float

    def size_bytes(self, x: float) -> float:
        return self.fixed_bytes + x * self.bytes_per_entry

    def x_at(self, size_bytes: float) -> float | None:
        """The x at which the working set has that size, or None if it is larger from the start."""
        if self.bytes_per_entry <= 0 or size_bytes <= self.fixed_bytes:
            return None
        return (size_bytes - self.fixed_bytes) / self.bytes_per_entry


def scholz2021_exact_table(key_bytes: float, action_data_bytes: float) -> WorkingSet:
    """Exact match table of t4p4s on DPDK: ``m = 128 B + e (r_k + r_a + 72 B)`` (Scholz et al. 2021, Eq. 5)."""
    return WorkingSet(SCHOLZ2021_FIXED_BYTES, key_bytes + action_data_bytes + SCHOLZ2021_BYTES_PER_ENTRY)


def parse_working_set(text: str) -> WorkingSet:
    """Read ``FIXED+PER_X`` in bytes, or ``scholz2021:KEY,ACTION_DATA`` (:func:`scholz2021_exact_table`)."""
    numbers = r"(\d+(?:\.\d+)?)"
    if found := re.fullmatch(rf"{numbers}\+{numbers}", text.replace(" ", "")):
        return WorkingSet(float(found[1]), float(found[2]))
    if found := re.fullmatch(rf"scholz2021:{numbers},{numbers}", text.replace(" ", "")):
        return scholz2021_exact_table(float(found[1]), float(found[2]))
    hint = "FIXED+PER_X in bytes, such as 128+80, or scholz2021:KEY,ACTION_DATA"
    raise UsageError(f"{text!r} is not a working set", hint=hint)


def parse_cache(text: str) -> tuple[str, float]:
    """Read the level and the size in bytes of a cache, such as ``L2=256KiB``."""
    from p4perf.specs.units import parse_quantity  # here, because specs are slow to load

    level, equals, size = (segment.strip() for segment in text.partition("="))
    if not (level and equals):
        raise UsageError(f"{text!r} is not a cache", hint="level and size, such as L2=256KiB")
    try:
        return level, float(parse_quantity(size, "data size"))
    except SpecError as exc:
        raise UsageError(f"cache {level}: {exc.message}", hint=exc.hint) from exc


@dataclass(frozen=True)
class CacheMark:
    """The x at which the working set is as large as a cache (``level``, such as ``L2``)."""

    level: str
    size_bytes: float
    x: float


def cache_marks(working_set: WorkingSet, caches: Mapping[str, float]) -> tuple[CacheMark, ...]:
    """Marks of all caches that the working set can fill, ascending."""
    marks = []
    for level, size in caches.items():
        if not size > 0:
            raise UsageError(f"the size of the cache {level} must be positive, not {size}")
        x = working_set.x_at(size)
        if x is not None:
            marks.append(CacheMark(level, float(size), x))
    return tuple(sorted(marks, key=lambda m: m.x))


def run_marks(run: Run) -> tuple[CacheMark, ...]:
    """Where the tables fill the caches, if the number of entries is what is swept."""
    figures = run.manifest.working_set
    if figures is None or run.variable != "entries":
        return ()
    return cache_marks(WorkingSet(figures["fixed_bytes"], figures["bytes_per_entry"]), run.node.cache_bytes)


@dataclass(frozen=True)
class Explanation:
    """What a breakpoint may come from: the nearest cache mark within the factor; without one it is unexplained."""

    breakpoint_x: float
    mark: CacheMark | None
    ratio: float | None

    def text(self, x: str = "") -> str:
        """One line for people, such as ``breakpoint at 2000: explained, L2 full at 1.68e+03 entries (ratio 1.2)``."""
        if self.mark is None or self.ratio is None:
            return f"breakpoint at {number(self.breakpoint_x)}: unexplained, no cache is full near it"
        place = f"{number(self.mark.x, 3)} {x}".rstrip()
        at = number(self.breakpoint_x)
        return f"breakpoint at {at}: explained, {self.mark.level} full at {place} (ratio {self.ratio:.2g})"


def explain(breakpoints: Sequence[float], marks: Sequence[CacheMark]) -> tuple[Explanation, ...]:
    """Assign each breakpoint to the nearest mark (on a logarithmic scale) within the factor :data:`NEAR`."""
    out = []
    for breakpoint in breakpoints:
        ratios = [(max(breakpoint / m.x, m.x / breakpoint), m) for m in marks if m.x > 0 and breakpoint > 0]
        nearest = min(ratios, key=lambda r: r[0], default=None)
        if nearest is None or nearest[0] > NEAR:
            out.append(Explanation(breakpoint, None, None))
        else:
            out.append(Explanation(breakpoint, nearest[1], breakpoint / nearest[1].x))
    return tuple(out)
