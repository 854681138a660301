"""The linear system behind prices: which columns a kind of construct has, and what they are at a measured point.

A price is ``constant + sum over sizes of a piecewise-linear curve``, whose parts never fall. With ramps

    r_j(x) = min(max((t(x) - t_j) / (t_{j+1} - t_j), 0), 1),    t = x or log x

for the parts between knots t_j (the last ramp goes on beyond its end) it is linear in numbers that are not negative:
the constant, and how much the price grows over each part. Both are in cycles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from p4perf.models.bases import FloatArray
from p4perf.models.program.constructs import Construct
from p4perf.models.program.prices import (
    HIT,
    LAYOUT,
    MISPREDICTION,
    Curve,
    changes_layout,
    guess_key,
    miss_key,
    numeric_sizes,
    price_key,
    surplus,
)
from p4perf.models.quantities import Scale

FREE = ("drop",)
"""Kinds without a price of their own: a packet is dropped where it misses, and what that saves belongs to the miss."""


STRUCTURE = frozenset({"extract", "select", "emit", "add header", "remove header", "set egress", LAYOUT, MISPREDICTION})
"""What every program has in the same combinations: a header that is parsed or added is emitted or removed. How their
cost is divided among them does not matter to the cost of a program."""


@dataclass(frozen=True, slots=True)
class PriceRow:
    """One measured point.

    Args:
        experiment: name of the experiment.
        point: its swept values, for people.
        met: constructs that a packet meets beyond the baseline, in order, and how often (less than zero: fewer times).
        cycles: what they cost together, median over the starts, per packet.
        starts: of every start of the process.
        baseline: what the baseline costs, in cycles per packet.
        mispredicted: decisions per packet that cannot be predicted.
    """

    experiment: str
    point: str
    met: tuple[tuple[Construct, float], ...]
    cycles: float
    starts: tuple[float, ...] = ()
    baseline: float = 0.0
    mispredicted: float = 0.0

    @property
    def noise(self) -> float:
        """Half of the range of the starts, in cycles per packet."""
        return (max(self.starts) - min(self.starts)) / 2 if self.starts else 0.0


@dataclass(frozen=True, slots=True)
class Axis:
    """The parts of a curve over one size: their scale, and the knots between them."""

    scale: Scale
    knots: tuple[float, ...]

    def ramps(self, x: FloatArray) -> FloatArray:
        """The value of every ramp at some sizes, shape (sizes, ramps)."""
        knots = np.array(self.knots)
        at = np.maximum(x, knots[0])
        if self.scale == "log":
            knots, at = np.log(knots), np.log(at)
        found: FloatArray = (at[:, None] - knots[:-1]) / np.diff(knots)
        found[:, :-1] = np.minimum(found[:, :-1], 1.0)
        return np.maximum(found, 0.0)

    def curve(self, size: str, growth: Sequence[float]) -> Curve:
        """The curve with so much growth over each part."""
        return Curve(size, self.scale, self.knots, (0.0, *np.cumsum(growth).tolist()))


@dataclass(frozen=True, slots=True)
class Part:
    """A construct at a measured point, by the name of its price."""

    times: float
    sizes: Mapping[str, float]


def parts_of(row: PriceRow) -> dict[str, list[Part]]:
    """What a packet of a point pays for, by the names of prices. A lookup pays for hits and misses in their shares."""
    found: dict[str, list[Part]] = {}
    for what, times in row.met:
        if what.kind in FREE:
            continue
        sizes = numeric_sizes(what)
        if what.kind != "lookup":
            found.setdefault(price_key(what), []).append(Part(times, sizes))
            continue
        share = what.number(HIT)
        shares = {price_key(what): share, miss_key(what): 1 - share, guess_key(what): min(share, 1 - share)}
        for key, part in shares.items():
            if part:
                found.setdefault(key, []).append(Part(part * times, {} if key == guess_key(what) else sizes))
    if row.mispredicted:
        found[MISPREDICTION] = [Part(row.mispredicted, {})]
    if changed := changes_layout(row.met):
        found[LAYOUT] = [Part(changed, {})]
    return found


Axes = Mapping[tuple[str, str], Axis]
"""The axis of every price and size over which it is a curve."""

Factors = Mapping[str, tuple[Curve, ...]]
"""By the names of prices, what all that depends on the axes is multiplied by."""


@dataclass(frozen=True)
class Points:
    """Who pays for what, as arrays: of one price every construct, the point that it is of, how often, and its sizes."""

    rows: npt.NDArray[np.int64]
    times: FloatArray
    sizes: Mapping[str, FloatArray]


@dataclass(frozen=True)
class Design:
    """All measured points as a linear system.

    Args:
        rows: the points.
        axes: over which sizes prices are curves.
        factors: of prices that are products.
        many: of prices that rise where there are more than so many in a row.
    """

    rows: Sequence[PriceRow]
    axes: Axes = field(default_factory=dict)
    factors: Factors = field(default_factory=dict)
    many: Mapping[str, float] = field(default_factory=dict)

    def changed(
        self, axes: Axes | None = None, factors: Factors | None = None, many: Mapping[str, float] | None = None
    ) -> Design:
        """The same points with other shapes."""
        given = (self.axes if axes is None else axes, self.factors if factors is None else factors)
        found = Design(self.rows, *given, self.many if many is None else many)
        for name in ("parts", "points"):
            found.__dict__[name] = getattr(self, name)
        return found

    @cached_property
    def parts(self) -> Sequence[Mapping[str, Sequence[Part]]]:
        """What a packet of every point pays for."""
        return [parts_of(row) for row in self.rows]

    def beyond(self, key: str, many: float) -> FloatArray:
        """How many of a price are too many in a row, at every point."""
        return np.array([sum(surplus(row.met, {key: many})) for row in self.rows])

    @cached_property
    def points(self) -> Mapping[str, Points]:
        """All constructs, by the names of prices."""
        found = {}
        for key in dict.fromkeys(key for parts in self.parts for key in parts):
            items = [(n, item) for n, parts in enumerate(self.parts) for item in parts.get(key, ())]
            sizes = {size: np.array([item.sizes[size] for _, item in items]) for size in items[0][1].sizes}
            rows = np.array([n for n, _ in items], dtype=np.int64)
            found[key] = Points(rows, np.array([item.times for _, item in items]), sizes)
        return found

    @property
    def keys(self) -> list[str]:
        """Names of the prices, in the order in which points have them."""
        return list(self.points)

    def sizes(self, key: str) -> list[str]:
        """The sizes over which a price is a curve."""
        return [size for k, size in self.axes if k == key]

    @cached_property
    def columns(self) -> Mapping[str, slice]:
        """Where each price stands: its constant, what too many cost, then the parts of its curves."""
        found, at = {}, 0
        for key in self.keys:
            width = 1 + (key in self.many) + sum(len(self.axes[key, size].knots) - 1 for size in self.sizes(key))
            found[key] = slice(at, at + width)
            at += width
        return found

    @cached_property
    def matrix(self) -> FloatArray:
        """What multiplies the numbers, shape (points, columns)."""
        found = np.zeros((len(self.parts), max((s.stop for s in self.columns.values()), default=0)))
        for key, columns in self.columns.items():
            points = self.points[key]
            times = points.times.copy()
            for factor in self.factors.get(key, ()):
                times *= [factor.at(x) for x in points.sizes[factor.size]]
            ramps = [self.axes[key, size].ramps(points.sizes[size]) for size in self.sizes(key)]
            more = [np.zeros(len(times))] if key in self.many else []
            features = np.column_stack([np.ones(len(times)), *more, *ramps])
            np.add.at(found[:, columns], points.rows, times[:, None] * features)
            if more:
                found[:, columns.start + 1] = self.beyond(key, self.many[key])
        return found

    def curves(self, key: str, numbers: FloatArray) -> tuple[Curve, ...]:
        """The curves of a price, given its numbers."""
        found, at = [], 1 + (key in self.many)
        for size in self.sizes(key):
            axis = self.axes[key, size]
            width = len(axis.knots) - 1
            found.append(axis.curve(size, numbers[at : at + width].tolist()))
            at += width
        return tuple(found)
