"""Programs of components: what each of these costs alone, and what they cost beside one another.

What is known of components that were measured alone says how far the prices of their constructs are off
(:mod:`~p4perf.models.program.experience`), and what is known of programs of components, how far the sum of their
components is. Such sums (Scholz and others 2021, section 2.1) are off for several reasons: alone, a component pays for
what the first change of a packet costs, its cache misses hide behind the next packet, and it has the caches to itself.
So the features of a program are those of any other, and also the number of its components, how many of these are of
each kind, and the memory that its tables touch.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from p4perf.models.component import Reader
from p4perf.models.estimate import Estimate
from p4perf.models.program.experience import MEMORY, NORMAL_90, Experience, Features, features
from p4perf.models.program.graph import Construct
from p4perf.models.program.prices import TABLE_BYTES, numeric_sizes

EACH = 0.3
"""A component more of one kind is as unlike as this in the logarithm of the sum."""

MEMORY_BYTES = float(1 << 19)
"""The memory of tables counts by the logarithm of one more than the multiple of this: about half of a nearest cache
that has room for tables."""

FAR_BYTES = 8 * MEMORY_BYTES
"""A larger table is beyond the second-level cache: its misses are the long ones."""

NEARBY_ENTRIES = 1000
"""Entries of a table that is in the caches."""

FEW_ENTRIES, EASED = 32, 0.5
"""On dpdk-swx, a table of 100,000 entries costs 100 cycles less if one with more than ``FEW_ENTRIES`` is looked up
before it, or if the last table of the program has no more: so it was on an AMD EPYC 9004, in programs of two to four
tables in any order. Why is not known. The feature is ``EASED`` times the logarithm of the memory of tables that cost
less, minus that of the others."""


@dataclass(frozen=True, slots=True)
class LoneCost:
    """A component of a program [cycles/packet].

    Args:
        cycles: what it costs alone beyond the baseline, if all of its tables are in the caches.
        waits: what it costs more, since some are beyond them.
        misses: how many.
    """

    cycles: float
    waits: float = 0.0
    misses: int = 0


def side_by_side(baseline: float, parts: Sequence[LoneCost], saved: float, window: float) -> float:
    """What components cost together, before programs of them say more [cycles/packet].

    A processor that waits for memory works ahead until it holds all that it can: as much as it does in the window, in
    cycles. Misses that begin within a window overlap, also with those of the next packets (Karkhanis and Smith 2004,
    section 4.3). So a table beyond the caches is waited for in the share (work since the last such table) / window,
    at most one, of the wait for a lone miss; the same holds for the component alone, of which the wait is known.

    Args:
        parts: in the order of the program.
        saved: what they cost less together.
        window: zero: waits add up.
    """
    total = baseline - saved + sum(part.cycles + part.waits for part in parts)
    work = max(baseline - saved + sum(part.cycles for part in parts), baseline)
    if not window or not any(part.misses for part in parts):
        return total

    waited, here, places = 0.0, baseline, []
    for part in parts:
        if part.misses:
            lone = part.waits / _exposed((baseline + part.cycles) / part.misses, window) / part.misses
            places += [(here + part.cycles * (n + 0.5) / part.misses, lone) for n in range(part.misses)]
        here += part.cycles
    before = places[-1][0] - here
    for place, lone in places:
        waited += lone * _exposed((place - before) * work / here, window)
        before = place
    return work + waited


def _exposed(work: float, window: float) -> float:
    return min(1.0, work / window)


def nearby(path: Sequence[tuple[Construct, float]]) -> tuple[tuple[tuple[Construct, float], ...], int]:
    """The same path with tables that are in the caches, and how many were beyond them."""
    found, misses = [], 0
    for what, times in path:
        is_table = what.kind == "lookup" and what.size("match_kind") != "ternary"
        if is_table and numeric_sizes(what)[TABLE_BYTES] > FAR_BYTES:
            misses += 1
            sizes = {**dict(what.sizes), "entries": min(what.number("entries"), NEARBY_ENTRIES)}
            found.append((replace(what, sizes=tuple(sizes.items())), times))
        else:
            found.append((what, times))
    return tuple(found), misses


@dataclass(frozen=True)
class Composition:
    """What measured components, and measured programs of them, say of others.

    Args:
        baseline: cycles per packet of the program to which components are added.
        alone: how far sums of prices are off for single components.
        together: how far sums of components are off for programs of them.
        window: of :func:`side_by_side` [cycles].
    """

    baseline: float
    alone: Experience
    together: Experience
    window: float = 0.0

    def unlike(self, path: Sequence[tuple[Construct, float]], cycles: Estimate) -> tuple[float, float]:
        """How far the ends of the interval of a component are away, without what those of measured ones are, too.

        Args:
            path: what a packet meets in it.
            cycles: what it costs alone, beyond the baseline.
        """
        width = self.alone.widths[any(what.kind == "lookup" for what, _ in path)]
        measured = NORMAL_90 * width * self.alone.noise * (self.baseline + cycles.value)
        less, more = cycles.value - cycles.low, cycles.high - cycles.value
        return math.sqrt(max(less**2 - measured**2, 0.0)), math.sqrt(max(more**2 - measured**2, 0.0))

    def record(self) -> dict[str, Any]:
        """As JSON values."""
        known = {"alone": self.alone.record(), "together": self.together.record()}
        return {"baseline": self.baseline, **known, **({"window": self.window} if self.window else {})}

    @classmethod
    def from_reader(cls, reader: Reader) -> Self:
        """Read a record.

        Raises:
            DataError: it is damaged.
        """
        alone, together = (Experience.from_reader(reader.child(key)) for key in ("alone", "together"))
        found = reader.read(cls, "window", alone=alone, together=together)
        if found.window < 0:
            reader.fail("window", f"must not be below 0, not {found.window}")
        return found


def composed_features(
    names: Sequence[str], whole: Sequence[tuple[Construct, float]], tables: float, cycles: float, target: str
) -> Features:
    """The features of a program of components.

    Args:
        names: kinds of the components.
        whole: what a packet meets in all of them together, in order.
        tables: share of the memory of the tables that counts.
        cycles: what they cost alone, with the baseline.
        target: the order of large tables matters on some.
    """
    found = {f"component {name}": EACH * number for name, number in Counter(names).items()}
    lookups = [(what, min(times, 1.0)) for what, times in whole if what.kind == "lookup"]
    touched = [times * numeric_sizes(what)[TABLE_BYTES] for what, times in lookups]
    if touched:
        found[MEMORY] = math.log1p(tables * sum(touched) / MEMORY_BYTES)
    if target.partition(":")[0] == "dpdk-swx":
        few = [what.number("entries") <= FEW_ENTRIES for what, _ in lookups]
        memory = [math.log1p(tables * size / MEMORY_BYTES) for size in touched]
        found["order"] = EASED * _eased(few, memory)
    return {**features(whole, cycles), **found, "components": math.log(len(names))}


def _eased(few: Sequence[bool], memory: Sequence[float]) -> float:
    """The memory of tables that cost less for the others, minus that of the rest.

    Args:
        few: whether each has few entries, in order.
        memory: how much each counts.
    """
    eased = [not all(few[:n]) or (few[-1] and n + 1 < len(few)) for n in range(len(few))]
    return sum(size if ease else -size for size, ease in zip(memory, eased, strict=True))
