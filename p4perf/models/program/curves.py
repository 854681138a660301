"""What one component costs by its parameters: measured points, and what lies between them; its memory likewise.

A component has one main axis, the parameter of which most values were measured, such as the entries of a table. Along
it the cost is piecewise linear between the measured points, over the logarithm where the values span a factor of
:data:`LOG_SPAN`: steps stay where they are. Every other parameter that was measured scales the main curve or shifts it,
whichever agrees better with the points.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

import numpy as np

from p4perf.models.program.graph import Size

LOG_SPAN = 50.0
"""Ratio of the largest to the smallest value from which on an axis is logarithmic."""

Together = Literal["product", "sum"]
"""How parameters beside the main one act: as factors of the main curve, or as terms beside it."""

Parameters = Mapping[str, Size]


@dataclass(frozen=True, slots=True)
class CostPoint:
    """A measured point of a component.

    Args:
        parameters: all of them, those at their defaults too.
        cycles, code_bytes: above the baseline, with the standard error of the cycles.
        memory_bytes: of its tables and arrays; None, as of code, if it was not measured.
    """

    parameters: Parameters
    cycles: float
    error: float
    memory_bytes: float | None = None
    code_bytes: float | None = None


@dataclass(frozen=True, slots=True)
class InterpolatedCost:
    """A cost per packet that was read off measured points.

    Args:
        error: standard error: of the points, and of what lies between them.
        on_grid: it was measured at just these parameters.
        outside: what of it is outside of what was measured, for people; empty if nothing is.
    """

    cycles: float
    error: float
    on_grid: bool = True
    outside: tuple[str, ...] = ()


@dataclass(frozen=True)
class ParameterAxis:
    """Values of one parameter, ascending, what was measured there, and standard errors."""

    name: str
    values: tuple[float, ...]
    costs: tuple[float, ...]
    errors: tuple[float, ...]

    @property
    def logarithmic(self) -> bool:
        return self.values[0] > 0 and self.values[-1] >= LOG_SPAN * self.values[0]

    def read(self, value: float) -> InterpolatedCost:
        """The cost at a value: between points on a line, above the last point on its line, below the first as there."""
        if value in self.values:
            at = self.values.index(value)
            return InterpolatedCost(self.costs[at], self.errors[at])
        first, last = self.values[0], self.values[-1]
        if len(self.values) == 1 or value < first:
            below = f"{self.name} {value:g} is below {first:g}"
            outside = below if len(self.values) > 1 else f"{self.name} was measured at {first:g} only"
            return InterpolatedCost(self.costs[0], self.errors[0], False, (outside,))
        x = [self._x(v) for v in self.values]
        at = min(int(np.searchsorted(self.values, value)), len(x) - 1)
        share = (self._x(value) - x[at - 1]) / (x[at] - x[at - 1])
        cost = self.costs[at - 1] + share * (self.costs[at] - self.costs[at - 1])
        spread = math.hypot((1 - share) * self.errors[at - 1], share * self.errors[at])
        between = self._bend(at)
        if value > last:
            # On the line of the last two points; it is unknown whether it continues.
            error = spread + between + abs(cost - self.costs[-1])
            return InterpolatedCost(cost, error, False, (f"{self.name} {value:g} is above {last:g}",))
        return InterpolatedCost(cost, math.hypot(spread, 4 * share * (1 - share) * between), False)

    def _x(self, value: float) -> float:
        return math.log(value) if self.logarithmic else value

    def _bend(self, at: int) -> float:
        """How far a line may be off halfway between points ``at - 1`` and ``at``.

        A point that is left out is predicted by its neighbours over twice the distance, so four times as badly.
        """
        found = [abs(self._left_out(n)) / 4 for n in (at - 1, at) if 0 < n < len(self.values) - 1]
        return max(found, default=abs(self.costs[at] - self.costs[at - 1]) / 4)

    def _left_out(self, n: int) -> float:
        x = [self._x(v) for v in self.values]
        share = (x[n] - x[n - 1]) / (x[n + 1] - x[n - 1])
        return self.costs[n - 1] + share * (self.costs[n + 1] - self.costs[n - 1]) - self.costs[n]


@dataclass(frozen=True)
class ComponentCosts:
    """What a component costs; ``defaults``: values of parameters that need not be named."""

    name: str
    defaults: Parameters
    points: tuple[CostPoint, ...]
    _families: dict[tuple[tuple[str, Size], ...], _Family] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    def price(self, parameters: Parameters) -> InterpolatedCost | None:
        """The cost at some parameters; None if it was not measured with such words (kinds of match, algorithms)."""
        whole = {**self.defaults, **parameters}
        words = _words(whole)
        if words not in self._families:
            points = [p for p in self.points if _words(p.parameters) == words]
            if not points:
                return None
            self._families[words] = _Family(points)
        numbers = {k: float(v) for k, v in whole.items() if not isinstance(v, str | bool)}
        return self._families[words].price(numbers)

    def span(self, parameter: str) -> tuple[float, float] | None:
        values = [float(v) for p in self.points if not isinstance(v := p.parameters.get(parameter, ""), str)]
        return (min(values), max(values)) if values else None

    def varies(self, parameter: str) -> bool:
        span = self.span(parameter)
        return span is not None and span[0] < span[1]


def _words(parameters: Parameters) -> tuple[tuple[str, Size], ...]:
    return tuple(sorted((k, v) for k, v in parameters.items() if isinstance(v, str | bool)))


class _Family:
    """The points of a component that differ in numbers only."""

    def __init__(self, points: Sequence[CostPoint]) -> None:
        rows = [({k: float(v) for k, v in p.parameters.items() if not isinstance(v, str | bool)}, p) for p in points]
        names = sorted(rows[0][0])
        self._fixed = {n: rows[0][0][n] for n in names if len({r[n] for r, _ in rows}) == 1}
        varied = [n for n in names if n not in self._fixed]
        # The most frequent value of each, the smallest of several.
        counted = {n: Counter(r[n] for r, _ in rows) for n in varied}
        self._usual = {n: min(counted[n], key=lambda v: (-counted[n][v], v)) for n in varied}
        counts = {n: len({r[n] for r, _ in rows if self._is_usual(r, n)}) for n in varied}
        self._main = max(varied, key=lambda n: counts[n]) if varied else ""
        # The usual value of another parameter is that of the points along the main axis.
        on_main = [(r, p) for r, p in rows if self._is_usual(r, self._main)]
        self._curve = _axis(self._main, [(r.get(self._main, 0.0), p.cycles, p.error) for r, p in on_main])
        self.together, self._others = self._beside(rows, [n for n in varied if n != self._main])

    def _is_usual(self, row: Mapping[str, float], *besides: str) -> bool:
        return all(row[n] == usual for n, usual in self._usual.items() if n not in besides)

    def _beside(
        self, rows: Sequence[tuple[dict[str, float], CostPoint]], names: Sequence[str]
    ) -> tuple[Together, dict[str, ParameterAxis]]:
        """The axes of the other parameters as factors and as terms; the better of both."""
        forms: list[tuple[float, Together, dict[str, ParameterAxis]]] = []
        relations: tuple[tuple[Together, Callable[[float, float], float], float], ...] = (
            ("sum", lambda cost, main: cost - main, 0.0),
            ("product", lambda cost, main: cost / main if main > 0 else 1.0, 1.0),
        )
        for together, relation, neutral in relations:
            axes, off = {}, 0.0
            for name in names:
                found: dict[float, list[tuple[float, CostPoint, float]]] = {}
                for row, point in rows:
                    if row[name] != self._usual[name] and self._is_usual(row, name, self._main):
                        main = self._curve.read(row[self._main]).cycles
                        found.setdefault(row[name], []).append((relation(point.cycles, main), point, main))
                triples = [(self._usual[name], neutral, 0.0)]
                for value, seen in found.items():
                    middle = float(np.mean([s[0] for s in seen]))
                    scale = float(np.mean([s[2] for s in seen])) if together == "product" else 1.0
                    error = float(np.mean([s[1].error for s in seen])) / max(scale, 1.0)
                    spread = float(np.std([s[0] for s in seen])) if len(seen) > 1 else 0.0
                    triples.append((value, middle, math.hypot(error, spread)))
                    for _, point, main in seen:
                        said = main + middle if together == "sum" else main * middle
                        off += ((said - point.cycles) / max(abs(point.cycles), 5.0)) ** 2
                axes[name] = _axis(name, triples)
            forms.append((off, together, axes))
        return min(forms, key=lambda f: f[0])[1:]

    def price(self, numbers: Mapping[str, float]) -> InterpolatedCost:
        main = self._curve.read(numbers.get(self._main, 0.0))
        cycles, error, on_grid, outside = main.cycles, main.error, main.on_grid, list(main.outside)
        outside += [
            f"{name} was measured at {value:g} only" for name, value in self._fixed.items() if numbers[name] != value
        ]
        moved = 0
        for name, axis in self._others.items():
            other = axis.read(numbers[name])
            if numbers[name] == self._usual[name]:
                continue
            moved += 1
            on_grid, outside = False, outside + list(other.outside)
            if self.together == "sum":
                cycles, error = cycles + other.cycles, math.hypot(error, other.error)
            else:
                error = math.hypot(error * other.cycles, cycles * other.error)
                cycles *= other.cycles
        return InterpolatedCost(max(cycles, 0.0), error, on_grid, tuple(outside))


def _axis(name: str, triples: Sequence[tuple[float, float, float]]) -> ParameterAxis:
    """An axis of points that may be there several times, in any order."""
    merged: dict[float, list[tuple[float, float]]] = {}
    for value, cost, error in triples:
        merged.setdefault(value, []).append((cost, error))
    values = sorted(merged)
    costs = [float(np.mean([c for c, _ in merged[v]])) for v in values]
    errors = [float(np.mean([e for _, e in merged[v]])) for v in values]
    return ParameterAxis(name, tuple(values), tuple(costs), tuple(errors))


MemoryBasis = Literal["measured", "interpolated", "formula", "unknown"]

ONE = {"tables": 1.0, "applications": 1.0}
"""Parameters of points that say what a single table takes."""

ENTRIES = "entries"


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


def measured_table(costs: ComponentCosts | None, sizes: Mapping[str, Size]) -> CostPoint | None:
    """The point of a single table of just these sizes whose memory was measured; None if there is none."""
    return next((p for p in _single(costs, sizes) if p.parameters[ENTRIES] == sizes[ENTRIES]), None)


def scale_of(costs: ComponentCosts | None, sizes: Mapping[str, Size], formula: Mapping[float, float]) -> float | None:
    """How many times as much as a formula says a table takes, between measured numbers of entries.

    Args:
        costs: of tables; None if none were measured.
        sizes: of the table: kind of match, entries, width of the key, action data.
        formula: what the formula says of the numbers of entries that were measured, in bytes.

    Returns:
        The factor, linear over the logarithm of entries; None outside of what was measured with such a key and data.
    """
    ratios = sorted(
        (float(p.parameters[ENTRIES]), p.memory_bytes / formula[float(p.parameters[ENTRIES])])
        for p in _single(costs, sizes)
        if p.memory_bytes is not None and formula.get(float(p.parameters[ENTRIES]), 0.0) > 0
    )
    wanted = float(sizes[ENTRIES])
    for (a, low), (b, high) in pairwise(ratios):
        if a <= wanted <= b:
            share = (math.log(wanted) - math.log(a)) / (math.log(b) - math.log(a))
            return low + share * (high - low)
    return None


def measured_entries(costs: ComponentCosts | None, sizes: Mapping[str, Size]) -> tuple[float, ...]:
    """Numbers of entries of which the memory of such tables was measured, ascending."""
    return tuple(sorted({float(p.parameters[ENTRIES]) for p in _single(costs, sizes)}))


def _single(costs: ComponentCosts | None, sizes: Mapping[str, Size]) -> list[CostPoint]:
    """Points of one table with such a key and action data."""
    if costs is None:
        return []
    same = {**{name: value for name, value in sizes.items() if name != ENTRIES}, **ONE}
    return [
        p
        for p in costs.points
        if p.memory_bytes is not None
        and float(p.parameters.get("keys", 1)) == 1
        and all(p.parameters.get(name, value) == value for name, value in same.items())
    ]


def code_costs(costs: ComponentCosts) -> ComponentCosts | None:
    """The machine code of a component above that of the baseline, as a curve in bytes; None if it was not measured."""
    points = tuple(CostPoint(p.parameters, p.code_bytes, 0.0) for p in costs.points if p.code_bytes is not None)
    return ComponentCosts(costs.name, costs.defaults, points) if points else None


def weakest(bases: Sequence[MemoryBasis]) -> MemoryBasis:
    """The basis of a sum: that of the part that is known least."""
    order: tuple[MemoryBasis, ...] = ("unknown", "formula", "interpolated", "measured")
    return min(bases, key=order.index, default="measured")
