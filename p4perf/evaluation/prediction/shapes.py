"""Which shape a price has over each of its sizes: chosen by the error at points that it was not learnt from."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from p4perf.evaluation.prediction.design import STRUCTURE, Axes, Axis, Design
from p4perf.evaluation.prediction.solving import Problem, loss, solve
from p4perf.models.bases import FloatArray
from p4perf.models.program.prices import Curve

MOST_KNOTS = 12
GAIN = 0.03
"""By so much every further number of a shape has to bring down the sum of the relative errors of all points."""

MANY_IN_A_ROW = (2.0, 4.0, 8.0, 16.0)
FEWEST_BEYOND = 2
"""So many points have to have more than that in a row."""

SPANS = 100.0
"""A size that was measured over so wide a range begins with a logarithmic axis."""


def measured_sizes(design: Design) -> dict[tuple[str, str], tuple[float, ...]]:
    """The values of every size at which each price was measured, ascending."""
    return {
        (key, size): tuple(np.unique(values).tolist())
        for key, points in design.points.items()
        for size, values in points.sizes.items()
    }


def choose_axes(design: Design, problem: Problem) -> Design:
    """Find the axes of all curves, one after another, beginning with the plainest."""
    sizes = {place: values for place, values in _sizes_of_axes(design).items() if len(values) > 1}
    room = {key: _points(design, key) for key in design.keys}
    axes: dict[tuple[str, str], Axis] = {}
    for place in sorted(sizes, key=lambda p: -len(sizes[p])):
        first = _shapes(sizes[place])[0]
        if _width(axes, place[0]) + len(first.knots) - 1 <= room[place[0]]:
            axes[place] = first
    best = design.changed(axes)
    error = loss(best, problem) if axes else 0.0
    for place in axes:
        before = best
        others = _width({p: a for p, a in best.axes.items() if p != place}, place[0])
        for shape in _shapes(sizes[place])[1:]:
            more = len(shape.knots) - len(before.axes[place].knots)
            if others + len(shape.knots) - 1 > room[place[0]]:
                continue
            candidate = before.changed({**before.axes, place: shape})
            found = loss(candidate, problem) + GAIN * (1 + more)
            if found < error + GAIN * (len(best.axes[place].knots) - len(before.axes[place].knots)):
                best, error = candidate, found - GAIN * (1 + more)
    return best


def _sizes_of_axes(design: Design) -> dict[tuple[str, str], tuple[float, ...]]:
    """The sizes between which a price is told apart.

    A header that is hashed or summed grows with what is done with it: how its own price grows is told by points with
    headers only, and goes on beyond them.
    """
    pure = [row for row, parts in zip(design.rows, design.parts, strict=True) if set(parts) <= STRUCTURE]
    known = measured_sizes(Design(pure))
    return {
        place: known.get(place, values) if place[0] in STRUCTURE else values
        for place, values in measured_sizes(design).items()
    }


def _points(design: Design, key: str) -> int:
    """How many points with this price differ in what they say of it."""
    told = {tuple((i.times, *i.sizes.values()) for i in parts[key]) for parts in design.parts if key in parts}
    return len(told)


def _width(axes: Axes, key: str) -> int:
    return 1 + sum(len(axis.knots) - 1 for (k, _), axis in axes.items() if k == key)


def _shapes(values: Sequence[float]) -> list[Axis]:
    """Shapes over a size, the plainest first: straight, two straight parts, a step, one part from point to point."""
    first, last = values[0], values[-1]
    wide = first > 0 and last / first >= SPANS
    found = [Axis("log" if wide else "linear", (first, last))]
    if len(values) == 2:
        return found
    if first > 0:
        found.append(Axis("linear" if wide else "log", (first, last)))
    found.append(Axis("linear", (first, values[len(values) // 2], last)))
    places = np.unique(np.linspace(0, len(values) - 1, MOST_KNOTS).round().astype(int))
    knots = tuple(values[n] for n in places)
    found += [Axis("linear", tuple(dict.fromkeys((first, *pair, last)))) for pair in pairwise(knots)]
    found += [Axis(scale, knots) for scale in ("linear", "log") if scale == "linear" or first > 0]
    return list(dict.fromkeys(found))


def choose_many(design: Design, problem: Problem) -> Design:
    """Find the prices that rise where there are too many in a row."""
    best, error = design, loss(design, problem)
    for key in design.keys:
        start, least = best, error
        for many in MANY_IN_A_ROW:
            if np.count_nonzero(start.beyond(key, many)) < FEWEST_BEYOND:
                continue
            candidate = start.changed(many={**start.many, key: many})
            if (found := loss(candidate, problem)) < min(error, least - 2 * GAIN):
                best, error = candidate, found
    return best


def choose_products(design: Design, problem: Problem) -> Design:
    """Let prices of lookups be products of what depends on entries and of the rest, where that has less error.

    The factors are those that the sums have at the number of entries at which the other sizes were varied.
    """
    best, error = design, None
    for key in design.keys:
        if not key.startswith("lookup ") or "entries" not in design.sizes(key):
            continue
        others = [size for size in design.sizes(key) if size != "entries" and _crossed(design, key, size)]
        if not others:
            continue
        error = loss(best, problem) if error is None else error
        numbers = solve(best, problem)[best.columns[key]]
        curves = {curve.size: curve for curve in best.curves(key, numbers)}
        factors: list[Curve] = []
        points = best.points[key]
        usual = {s: _commonest(points.sizes[s]) for s in curves}
        for size in others:
            entries = _commonest(points.sizes["entries"][points.sizes[size] != usual[size]])
            rest = numbers[0] + sum(curves[s].at(usual[s] if s != "entries" else entries) for s in curves if s != size)
            if (unit := rest + curves[size].at(usual[size])) > 0:
                values = tuple((rest + value) / unit for value in curves[size].values)
                factors.append(Curve(size, curves[size].scale, curves[size].knots, values))
        if not factors:
            continue
        axes = {p: a for p, a in best.axes.items() if p[0] != key or p[1] not in {f.size for f in factors}}
        candidate = best.changed(axes, {**best.factors, key: tuple(factors)})
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
