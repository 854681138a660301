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
from dataclasses import dataclass
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
"""A larger table is beyond the second-level cache."""

NEXT, APART, SPACED = 17.0, 20.0, 3.0
"""On dpdk-c, the misses of two such tables overlap if one is looked up right after the other: fully with up to
``NEXT`` constructs in between, those of an action with 64 B of data, and a third as much with ``APART`` more. The
feature is ``SPACED`` for each pair of neighbours that do not overlap, and minus that for one that does."""

FEW_ENTRIES, EASED = 32, 0.5
"""On dpdk-swx, a table of 100,000 entries costs 100 cycles less if one with more than ``FEW_ENTRIES`` is looked up
before it, or if the last table of the program has no more: so it was on an AMD EPYC 9004, in programs of two to four
tables in any order. Why is not known. The feature is ``EASED`` times the logarithm of the memory of tables that cost
less, minus that of the others."""


@dataclass(frozen=True)
class Composition:
    """What measured components, and measured programs of them, say of others.

    Args:
        baseline: cycles per packet of the program to which components are added.
        alone: how far sums of prices are off for single components.
        together: how far sums of components are off for programs of them.
    """

    baseline: float
    alone: Experience
    together: Experience

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
        return {"baseline": self.baseline, "alone": self.alone.record(), "together": self.together.record()}

    @classmethod
    def from_reader(cls, reader: Reader) -> Self:
        """Read a record.

        Raises:
            DataError: it is damaged.
        """
        alone, together = (Experience.from_reader(reader.child(key)) for key in ("alone", "together"))
        return cls(reader.number("baseline"), alone, together)


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
    match target.partition(":")[0]:
        case "dpdk-c":
            found["order"] = SPACED * _spaced(whole)
        case "dpdk-swx":
            few = [what.number("entries") <= FEW_ENTRIES for what, _ in lookups]
            memory = [math.log1p(tables * size / MEMORY_BYTES) for size in touched]
            found["order"] = EASED * _eased(few, memory)
    return {**features(whole, cycles), **found, "components": math.log(len(names))}


def _spaced(whole: Sequence[tuple[Construct, float]]) -> float:
    """How many neighbours among the tables beyond the caches are looked up far from one another, minus those nearby."""
    found, between = 0.0, math.inf
    for what, times in whole:
        if what.kind != "lookup":
            between += times * (what.number("bytes") / 8 if what.kind == "hash" else 1)
        elif numeric_sizes(what)[TABLE_BYTES] > FAR_BYTES:
            found += 0.0 if math.isinf(between) else 1 - 2 * math.exp(-max(between - NEXT, 0.0) / APART)
            between = 0.0
    return found


def _eased(few: Sequence[bool], memory: Sequence[float]) -> float:
    """The memory of tables that cost less for the others, minus that of the rest.

    Args:
        few: whether each has few entries, in order.
        memory: how much each counts.
    """
    eased = [not all(few[:n]) or (few[-1] and n + 1 < len(few)) for n in range(len(few))]
    return sum(size if ease else -size for size, ease in zip(memory, eased, strict=True))
