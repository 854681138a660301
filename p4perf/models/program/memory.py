"""What the tables of a program take in memory: measured ones, and what a formula says between them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from p4perf.models.program.graph import Size

MemoryBasis = Literal["measured", "interpolated", "formula", "unknown"]

ONE = {"tables": 1.0, "applications": 1.0}
"""Parameters of points that say what a single table takes."""

TABLE, ENTRIES = "match_action_table", "entries"


@dataclass(frozen=True, slots=True)
class MemoryItem:
    """What one thing takes.

    Args:
        size_bytes: of it; None if unknown.
        basis: how it is known. ``measured``: with these sizes; ``interpolated``: between sizes that were measured, or
            a sum of such; ``formula``: from the layout of the library that holds it.
        source: of a formula where it comes from, of a measurement the component.
    """

    what: str
    size_bytes: float | None
    basis: MemoryBasis
    source: str = ""


@dataclass(frozen=True, slots=True)
class ProgramMemory:
    """What a program takes."""

    items: tuple[MemoryItem, ...]
    remarks: tuple[str, ...] = ()

    @property
    def size_bytes(self) -> float | None:
        """All that is known together; None if nothing is."""
        known = [item.size_bytes for item in self.items if item.size_bytes is not None]
        return sum(known) if known or not self.items else None

    @property
    def unknown(self) -> tuple[str, ...]:
        return tuple(item.what for item in self.items if item.size_bytes is None)

    @property
    def warnings(self) -> tuple[str, ...]:
        if not self.unknown:
            return self.remarks
        return (*self.remarks, f"memory counts without {', '.join(self.unknown)}: the size is not known")


@dataclass(frozen=True, slots=True)
class MeasuredTable:
    """A single table whose memory was measured; ``parameters``: those of its component, defaults too."""

    parameters: Mapping[str, Size]
    memory_bytes: float


def measured_table(tables: Sequence[MeasuredTable], sizes: Mapping[str, Size]) -> MeasuredTable | None:
    """The table of just these sizes; None if it was not measured."""
    return next((p for p in _single(tables, sizes) if p.parameters[ENTRIES] == sizes[ENTRIES]), None)


def scale_of(
    tables: Sequence[MeasuredTable], sizes: Mapping[str, Size], formula: Mapping[float, float]
) -> float | None:
    """How many times as much as a formula says a table takes, between measured numbers of entries.

    Args:
        sizes: of the table: kind of match, entries, width of the key, action data.
        formula: what the formula says of the numbers of entries that were measured, in bytes.

    Returns:
        The factor, linear over the logarithm of entries; None outside of what was measured with such a key and data.
    """
    ratios = sorted(
        (float(p.parameters[ENTRIES]), p.memory_bytes / formula[float(p.parameters[ENTRIES])])
        for p in _single(tables, sizes)
        if formula.get(float(p.parameters[ENTRIES]), 0.0) > 0
    )
    wanted = float(sizes[ENTRIES])
    for (a, low), (b, high) in pairwise(ratios):
        if a <= wanted <= b:
            share = (math.log(wanted) - math.log(a)) / (math.log(b) - math.log(a))
            return low + share * (high - low)
    return None


def measured_entries(tables: Sequence[MeasuredTable], sizes: Mapping[str, Size]) -> tuple[float, ...]:
    """Numbers of entries of which the memory of such tables was measured, ascending."""
    return tuple(sorted({float(p.parameters[ENTRIES]) for p in _single(tables, sizes)}))


def _single(tables: Sequence[MeasuredTable], sizes: Mapping[str, Size]) -> list[MeasuredTable]:
    """Single tables with such a key and action data."""
    same = {**{name: value for name, value in sizes.items() if name != ENTRIES}, **ONE}
    return [
        p
        for p in tables
        if float(p.parameters.get("keys", 1)) == 1
        and all(p.parameters.get(name, value) == value for name, value in same.items())
    ]
