"""The linear system behind prices: columns of each construct, solutions that are not negative, shapes over sizes.

A price is ``constant + sum over sizes of a piecewise-linear curve``, whose parts never fall. With ramps

    r_j(x) = min(max((t(x) - t_j) / (t_{j+1} - t_j), 0), 1),    t = x or log x

for the parts between knots t_j (the last ramp goes on beyond its end) it is linear in numbers that are not negative:
the constant, and how much the price grows over each part. Both are in cycles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

from p4perf.models.component import Scale
from p4perf.models.program import prices as pricing
from p4perf.models.program.graph import Construct
from p4perf.models.templates import FloatArray

FREE = ("drop",)
"""Kinds without a price of their own: a packet is dropped where it misses, and what that saves belongs to the miss."""

STRUCTURE = frozenset(
    {"extract", "select", "emit", "add header", "remove header", "set egress", pricing.LAYOUT, *pricing.MISPREDICTIONS}
)
"""What every program has in the same combinations: a header that is parsed or added is emitted or removed. How their
cost is divided among them does not matter to the cost of a program."""


@dataclass(frozen=True, slots=True)
class PriceRow:
    """One measured point.

    Args:
        met: constructs that a packet meets beyond the baseline, in order, and how often (less than zero: fewer times).
        cycles: what they cost together, median over the starts, per packet.
        whole: it is a whole program, and not a point of an experiment on one construct.
        components: the names of its components, and what a packet meets in each alone; empty: a program of others.
        source: which program of others it is, whatever its tables and packets are.
    """

    experiment: str
    point: str
    met: tuple[tuple[Construct, float], ...]
    cycles: float
    starts: tuple[float, ...] = ()
    baseline: float = 0.0
    whole: bool = False
    components: tuple[tuple[str, tuple[tuple[Construct, float], ...]], ...] = ()
    source: str = ""

    @property
    def noise(self) -> float:
        """Half of the range of the starts, in cycles per packet."""
        return (max(self.starts) - min(self.starts)) / 2 if self.starts else 0.0


@dataclass(frozen=True, slots=True)
class PriceAxis:
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

    def curve(self, size: str, growth: Sequence[float]) -> pricing.Curve:
        """The curve with so much growth over each part."""
        return pricing.Curve(size, self.scale, self.knots, (0.0, *np.cumsum(growth).tolist()))


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
        sizes = pricing.numeric_sizes(what)
        if what.kind != "lookup":
            found.setdefault(pricing.price_key(what), []).append(Part(times, sizes))
            continue
        share = what.number(pricing.HIT)
        miss, searched = pricing.missed(what)
        parts = ((pricing.price_key(what), share, sizes), (miss, 1 - share, pricing.numeric_sizes(searched)))
        for key, part, of in (*parts, (pricing.MISPREDICTION, min(share, 1 - share), {})):
            if part:
                found.setdefault(key, []).append(Part(part * times, of))
    if changed := pricing.changes_layout(row.met):
        found[pricing.LAYOUT] = [Part(changed, {})]
    return found


Axes = Mapping[tuple[str, str], PriceAxis]
"""The axis of every price and size over which it is a curve."""

Factors = Mapping[str, tuple[pricing.Curve, ...]]
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
        axes: over which sizes prices are curves.
        factors: of prices that are products.
        many: of prices that rise: how many in a row cost no more than one by one.
    """

    rows: Sequence[PriceRow]
    parts: Sequence[Mapping[str, Sequence[Part]]]
    points: Mapping[str, Points]
    axes: Axes = field(default_factory=dict)
    factors: Factors = field(default_factory=dict)
    many: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Sequence[PriceRow]) -> Design:
        """The system of prices that are constants."""
        points, every = {}, [parts_of(row) for row in rows]
        for key in dict.fromkeys(key for parts in every for key in parts):
            items = [(n, item) for n, parts in enumerate(every) for item in parts.get(key, ())]
            sizes = {size: np.array([item.sizes[size] for _, item in items]) for size in items[0][1].sizes}
            numbers = np.array([n for n, _ in items], dtype=np.int64)
            points[key] = Points(numbers, np.array([item.times for _, item in items]), sizes)
        return cls(rows, every, points)

    def beyond(self, key: str, many: float) -> FloatArray:
        """How many of a price are too many in a row, at every point."""
        return np.array([sum(pricing.surplus(row.met, {key: many})) for row in self.rows])

    def sizes(self, key: str) -> list[str]:
        return [size for k, size in self.axes if k == key]

    @cached_property
    def columns(self) -> Mapping[str, slice]:
        """Where each price stands: its constant, what too many cost, then the parts of its curves."""
        found, at = {}, 0
        for key in self.points:
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

    def curves(self, key: str, numbers: FloatArray) -> tuple[pricing.Curve, ...]:
        found, at = [], 1 + (key in self.many)
        for size in self.sizes(key):
            axis = self.axes[key, size]
            width = len(axis.knots) - 1
            found.append(axis.curve(size, numbers[at : at + width].tolist()))
            at += width
        return tuple(found)


FLOOR_CYCLES = 3.0
"""Added to the cost of a point before errors are divided by it, so that tiny costs do not decide."""

MANY = 8
"""A point with more of one construct counts less: programs have few of each, and what costs less (or more) in hundreds
says little of them."""

WHOLE = 3.0
"""An error of a whole program counts as so many of other points: programs are what prices are for."""

HUBER = 1.5
"""Robust standard deviations beyond which an error counts linearly (Huber 1964)."""

ROUNDS = 8
RIDGE = 1e-3
RELUCTANT = {"set egress": 30.0}
"""Factors of the penalty: where points do not tell prices apart, these get less of the cost than others."""

CHEAP = ("compute", "condition", "register read", "register write")
CHEAP_PENALTY = 0.002
"""Of these kinds one costs a few cycles: a program is as wrong by this for every cycle of such a price. So a few
programs that are dear for another reason do not say that a shift costs hundreds."""

PIPELINE = dict(zip(pricing.MISPREDICTIONS, (30.0, 25.0, 30.0, 25.0), strict=True))
PIPELINE_PENALTY = 0.03
"""What a misprediction costs on processors of this age [cycles], and how much a program is as wrong by for every cycle
that the price is away from it."""

FOLDS = 4
ALWAYS = -1
"""Fold of points that are never left out."""


@dataclass(frozen=True)
class PriceProblem:
    """Measured points and how they count.

    Args:
        cycles: their cost over the baseline.
        scale: what their errors are relative to, in cycles.
        folds: which points are left out together, for errors at points that prices do not know.
    """

    rows: Sequence[PriceRow]
    cycles: FloatArray
    scale: FloatArray
    folds: npt.NDArray[np.int64]

    @classmethod
    def of(cls, rows: Sequence[PriceRow]) -> PriceProblem:
        """The problem of some points, those of one experiment in the order of its sweep."""
        cycles = np.array([row.cycles for row in rows])
        each = ([sum(abs(item.times) for item in items) for items in parts_of(row).values()] for row in rows)
        count = np.array([max(times, default=0.0) for times in each])
        noise = np.array([row.noise for row in rows])
        scale = (np.maximum(np.abs(cycles), noise) + FLOOR_CYCLES) / np.minimum(1.0, MANY / np.maximum(count, 1.0))
        scale /= np.where([row.whole for row in rows], WHOLE, 1.0)
        return cls(rows, cycles, scale, _folds(rows))


def _folds(rows: Sequence[PriceRow]) -> npt.NDArray[np.int64]:
    """The first and the last point of every experiment stay: without them the others would be extrapolated."""
    folds = np.full(len(rows), ALWAYS, dtype=np.int64)
    for name in dict.fromkeys(row.experiment for row in rows):
        places = [n for n, row in enumerate(rows) if row.experiment == name]
        for k, n in enumerate(places[1:-1]):
            folds[n] = k % FOLDS
    return folds


def solve(
    design: Design, problem: PriceProblem, used: npt.NDArray[np.bool_] | None = None, *, rounds: int = 1
) -> FloatArray:
    """The numbers of all prices, as :meth:`Design.columns` orders them.

    Args:
        used: which of them; None: all.
        rounds: more than one: points with large errors count less from round to round.
    """
    matrix = design.matrix
    kept = np.ones(len(problem.rows), dtype=bool) if used is None else used
    a, b = matrix[kept] / problem.scale[kept, None], problem.cycles[kept] / problem.scale[kept]
    penalty = _penalty(design, matrix / problem.scale[:, None])
    expected = np.zeros(len(penalty))
    for key in PIPELINE.keys() & design.columns.keys():
        expected[design.columns[key].start] = PIPELINE[key]
    weight = np.ones(len(b))
    for _ in range(rounds):
        numbers = _nonnegative(a * weight[:, None], b * weight, penalty, expected)
        errors = np.abs(a @ numbers - b)
        spread = 1.4826 * float(np.median(errors)) or 1.0
        weight = np.sqrt(np.minimum(1.0, HUBER * spread / np.maximum(errors, 1e-12)))
    return numbers


def _penalty(design: Design, weighted: FloatArray) -> FloatArray:
    """A small price on every number, so that those are told that the points do not tell."""
    norms: FloatArray = RIDGE * np.linalg.norm(weighted, axis=0)
    norms[norms == 0] = RIDGE
    for key, columns in design.columns.items():
        norms[columns] *= RELUCTANT.get(key, 1.0)
        if key.startswith(CHEAP):
            norms[columns] = np.maximum(norms[columns], CHEAP_PENALTY)
        if key in PIPELINE:
            norms[columns] = np.maximum(norms[columns], PIPELINE_PENALTY)
    return norms


def _nonnegative(a: FloatArray, b: FloatArray, penalty: FloatArray, expected: FloatArray) -> FloatArray:
    """The numbers, none negative, with the least ``|a x - b|^2 + |penalty (x - expected)|^2``.

    The method is that of Lawson and Hanson (1974, chapter 23).

    With the triangle of Cholesky in place of the system this takes as many rows as there are numbers.
    """
    unit = 1 / penalty
    scaled = a * unit
    triangle = np.linalg.cholesky(scaled.T @ scaled + np.eye(len(penalty)))
    right = np.linalg.solve(triangle, scaled.T @ b + penalty * expected)
    numbers, _ = nnls(triangle.T, right, maxiter=50 * len(penalty) + 100)
    return np.asarray(numbers * unit)


def left_out(design: Design, problem: PriceProblem) -> FloatArray:
    """What prices say of every point that were learnt without it; of the ends of sweeps, with it."""
    predicted = design.matrix @ solve(design, problem)
    for fold in range(FOLDS):
        inside = problem.folds == fold
        if inside.any():
            predicted[inside] = design.matrix[inside] @ solve(design, problem, ~inside)
    return predicted


def loss(design: Design, problem: PriceProblem) -> float:
    """Sum of the errors at points that prices do not know, each one counted as 1 at most."""
    errors = np.abs((left_out(design, problem) - problem.cycles) / problem.scale)
    return float(np.sum(np.minimum(errors, 1.0)))


def told_apart(matrix: FloatArray, columns: slice) -> bool:
    """Whether the points determine each of some columns, whatever the others are.

    Column j is determined if its unit vector lies in the row space of the matrix.
    """
    norms = np.linalg.norm(matrix, axis=0)
    if not matrix.size or (norms[columns] == 0).any():
        return False
    _, values, rows = np.linalg.svd(matrix / np.where(norms == 0, 1.0, norms), full_matrices=False)
    space = rows[values > 1e-9 * values[0]]
    # The squared length of what the row space holds of each unit vector.
    held = np.sum(space**2, axis=0)
    return bool((held[columns] > 1 - 1e-6).all())


MOST_KNOTS = 12
MOST_SPREAD_KNOTS = 18
GAIN = 0.03
"""By so much every further number of a shape has to bring down the sum of the relative errors of all points."""

MANY_IN_A_ROW = (2.0, 4.0, 8.0, 16.0)
FEWEST_BEYOND = 2
"""Fewest points with more than that in a row."""

SPANS = 100.0
"""A size that was measured over so wide a range begins with a logarithmic axis."""


def measured_sizes(design: Design) -> dict[tuple[str, str], tuple[float, ...]]:
    """The values of every size at which each price was measured, ascending.

    Action data count by entry, not by table: what their memory costs is not learnt, and a table without any is no
    smaller one than was measured.
    """
    return {
        (key, size): tuple(np.unique(values).tolist())
        for key, points in design.points.items()
        for size, values in points.sizes.items()
        if size != pricing.DATA_BYTES
    }


def choose_axes(design: Design, problem: PriceProblem, *, lists: bool = False, walked: Sequence[str] = ()) -> Design:
    """Find the axes of all curves, one after another, beginning with the plainest.

    A lookup grows with the entries of its table, with the bytes of it, or with both, whatever has least error; one in
    a list with its entries or with the words that are compared, with these if points hardly tell.

    Args:
        lists: ternary tables are searched entry by entry, so that they cost in proportion between two sizes.
        walked: sizes of lookups that are not known by their entries alone, where they matter.
    """
    # Of an entry in a list, it does not matter what the others mask.
    left_out = {"cells", *((pricing.MASKS,) if lists else ()), *(pricing.PLACES - {*walked})}
    found = {(k, s): vs for (k, s), vs in _sizes_of_axes(design).items() if len(vs) > 1 and s not in left_out}
    sizes = {
        place: values for place, values in found.items() if place[1] not in (pricing.TABLE_BYTES, pricing.COMPARED)
    }
    room = {key: _points(design, key) for key in design.points}
    axes: dict[tuple[str, str], PriceAxis] = {}
    for place in sorted(sizes, key=lambda p: -len(sizes[p])):
        first = _shapes(place, sizes[place], lists)[0]
        if _width(axes, place[0]) + len(first.knots) - 1 <= room[place[0]]:
            axes[place] = first
    best = replace(design, axes=axes)
    error = loss(best, problem) if axes else 0.0
    for place in axes:
        before = best
        others = _width({p: a for p, a in best.axes.items() if p != place}, place[0])
        for shape in _shapes(place, sizes[place], lists)[1:]:
            more = len(shape.knots) - len(before.axes[place].knots)
            if others + len(shape.knots) - 1 > room[place[0]]:
                continue
            candidate = replace(before, axes={**before.axes, place: shape})
            loses = loss(candidate, problem) + GAIN * (1 + more)
            if loses < error + GAIN * (len(best.axes[place].knots) - len(before.axes[place].knots)):
                best, error = candidate, loses - GAIN * (1 + more)
    for key in [key for key, size in best.axes if size == "entries"]:
        searched = lists and key == "lookup ternary"
        bulk, gain = ((key, pricing.COMPARED), -GAIN) if searched else ((key, pricing.TABLE_BYTES), GAIN)
        if bulk not in found:
            continue
        rest = {place: axis for place, axis in best.axes.items() if place != (key, "entries")}
        shape = _shapes(bulk, found[bulk], lists)[0]
        for kept in (rest,) if searched else (rest, best.axes):
            candidate = replace(best, axes={**kept, bulk: shape})
            if _width(candidate.axes, key) > room[key]:
                continue
            if (other := loss(candidate, problem)) < error - gain:
                best, error = candidate, other
    return best


def _sizes_of_axes(design: Design) -> dict[tuple[str, str], tuple[float, ...]]:
    """The sizes between which a price is separated.

    A header that is hashed or summed grows with what is done with it: points with headers only determine how its own
    price grows, also beyond them.
    """
    pure = [row for row, parts in zip(design.rows, design.parts, strict=True) if set(parts) <= STRUCTURE]
    known = measured_sizes(Design.of(pure))
    return {
        place: known.get(place, values) if place[0] in STRUCTURE else values
        for place, values in measured_sizes(design).items()
    }


def _points(design: Design, key: str) -> int:
    """How many points with this price differ in what they say of it."""
    return len({tuple((i.times, *i.sizes.values()) for i in parts[key]) for parts in design.parts if key in parts})


def _width(axes: Axes, key: str) -> int:
    return 1 + sum(len(axis.knots) - 1 for (k, _), axis in axes.items() if k == key)


def _shapes(place: tuple[str, str], values: Sequence[float], lists: bool) -> list[PriceAxis]:
    """Shapes over a size, the plainest first: straight, two straight parts, a step, one part from point to point.

    The size of a table has a part from point to point only, over its logarithm, or straight if it is searched entry by
    entry.
    """
    first, last, (key, size) = values[0], values[-1], place
    if size in pricing.CACHED and len(values) > 2:
        axes = [PriceAxis(scale, _spread(values)) for scale in ("log", "linear")]
        return axes[1:] if lists and key == "lookup ternary" else axes
    wide = first > 0 and last / first >= SPANS
    found = [PriceAxis("log" if wide else "linear", (first, last))]
    if len(values) == 2:
        return found
    if first > 0:
        found.append(PriceAxis("linear" if wide else "log", (first, last)))
    found.append(PriceAxis("linear", (first, values[len(values) // 2], last)))
    places = np.unique(np.linspace(0, len(values) - 1, MOST_KNOTS).round().astype(int))
    knots = tuple(values[n] for n in places)
    found += [PriceAxis("linear", tuple(dict.fromkeys((first, *pair, last)))) for pair in pairwise(knots)]
    found += [PriceAxis(scale, knots) for scale in ("linear", "log") if scale == "linear" or first > 0]
    return list(dict.fromkeys(found))


def _spread(values: Sequence[float]) -> tuple[float, ...]:
    """Values that lie about evenly on a logarithmic axis, the first and the last with them."""
    logs = np.log(np.maximum(values, 1e-9))
    wanted = np.linspace(logs[0], logs[-1], MOST_SPREAD_KNOTS)
    places = np.unique(np.abs(logs[:, None] - wanted).argmin(axis=0))
    return tuple(values[n] for n in places)


def choose_many(design: Design, problem: PriceProblem) -> Design:
    """Find the prices that rise where there are too many in a row."""
    best, error = design, loss(design, problem)
    for key in design.points:
        start, least = best, error
        for many in MANY_IN_A_ROW:
            if np.count_nonzero(start.beyond(key, many)) < FEWEST_BEYOND:
                continue
            candidate = replace(start, many={**start.many, key: many})
            if (found := loss(candidate, problem)) < min(error, least - 2 * GAIN):
                best, error = candidate, found
    return best


def choose_products(design: Design, problem: PriceProblem) -> Design:
    """Let prices of lookups be products of what depends on entries and of the rest, where that has less error.

    The factors are those that the sums have at the number of entries at which the other sizes were varied.
    """
    best, error = design, None
    for key in design.points:
        grows = next((size for size in design.sizes(key) if size in pricing.CACHED.keys() - pricing.PLACES), None)
        if not key.startswith("lookup ") or grows is None:
            continue
        others = [size for size in design.sizes(key) if size not in pricing.CACHED and _crossed(design, key, size)]
        if not others:
            continue
        error = loss(best, problem) if error is None else error
        numbers = solve(best, problem)[best.columns[key]]
        curves = {curve.size: curve for curve in best.curves(key, numbers)}
        factors: list[pricing.Curve] = []
        points = best.points[key]
        usual = {s: _commonest(points.sizes[s]) for s in curves}
        for size in others:
            grown = _commonest(points.sizes[grows][points.sizes[size] != usual[size]])
            rest = numbers[0] + sum(curves[s].at(usual[s] if s != grows else grown) for s in curves if s != size)
            if (unit := rest + curves[size].at(usual[size])) > 0:
                values = tuple((rest + value) / unit for value in curves[size].values)
                factors.append(pricing.Curve(size, curves[size].scale, curves[size].knots, values))
        if not factors:
            continue
        axes = {p: a for p, a in best.axes.items() if p[0] != key or p[1] not in {f.size for f in factors}}
        candidate = replace(best, axes=axes, factors={**best.factors, key: tuple(factors)})
        if (found := loss(candidate, problem)) < error - GAIN:
            best, error = candidate, found
    return best


def _crossed(design: Design, key: str, size: str) -> bool:
    """Whether a size was varied at several numbers of entries: else the points say nothing of a product."""
    points = design.points[key]
    entries, values = points.sizes["entries"], points.sizes[size]
    return sum(len(np.unique(values[entries == at])) > 1 for at in np.unique(entries)) > 1


def _commonest(values: FloatArray) -> float:
    """The value that comes most often; of several the smallest."""
    found, counts = np.unique(values, return_counts=True)
    return float(found[int(np.argmax(counts))])
