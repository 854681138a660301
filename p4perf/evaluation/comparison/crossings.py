"""Where two curves cross: by a sign change of their difference, within a part or by a step at a split.

All crossings within the shared domain are found as long as two of them, within the same parts, are further apart than a
step of the search: each part is searched at :data:`STEPS` places. Curves that touch do not cross.

The interval of a crossing is what the bands do not exclude (a test, inverted): all x around it, without a gap, at which
the band of the ratio of the curves holds 1. If that reaches an end of the shared domain, the interval is open there. A
crossing is sure if the bands exclude 1 on both sides of its interval, on one side with one curve above and on the other
side with the other.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from p4perf.evaluation.comparison.ratios import model_ratio, shared_domain
from p4perf.models.bases import FloatArray
from p4perf.models.component import ComponentModel

STEPS = 400
EQUAL = 1e-9
"""Curves that differ by less than this share of their size are equal there."""


@dataclass(frozen=True)
class Crossing:
    """A place where two curves cross.

    Args:
        x: where.
        low: lower end of its interval; None if it is open, or if a model has no band.
        high: upper end, likewise.
        above: whether the curve of the run lies above that of the reference beyond x.
        sure: whether the bands exclude that the curves do not cross.
        step: whether a curve steps over the other at a split.
    """

    x: float
    low: float | None
    high: float | None
    above: bool
    sure: bool
    step: bool


def crossings(run: ComponentModel, reference: ComponentModel) -> tuple[Crossing, ...]:
    """All crossings of two curves in their shared domain, by ascending x; none if they share no domain."""
    domain = shared_domain(run, reference)
    if domain is None:
        return ()
    x, segment = _places(run, reference, domain)
    sign = _signs(run, reference, x)
    ratio = model_ratio(run, reference, x)
    known = np.isfinite(ratio.low) & np.isfinite(ratio.high)
    excluded = np.where(known, (ratio.low > 1).astype(int) - (ratio.high < 1), 0)
    found = []
    places = np.flatnonzero(sign)
    for i, j in itertools.pairwise(places):
        if sign[i] == sign[j]:
            continue
        step = bool(j == i + 1 and segment[i] != segment[j])
        at = float(x[j]) if step else _root(run, reference, x, int(i), int(j))
        low, high, sure = _interval(x, excluded, int(i), int(j)) if known.any() else (None, None, False)
        if step:
            low, high = _with_split(at, low, high, (run, reference))
        found.append(Crossing(at, low, high, above=bool(sign[j] > 0), sure=sure, step=step))
    return tuple(found)


def _places(
    run: ComponentModel, reference: ComponentModel, domain: tuple[float, float]
) -> tuple[FloatArray, npt.NDArray[np.intp]]:
    """Where to look: dense in each segment in which both curves are smooth; and the number of the segment."""
    splits = {x for model in (run, reference) for x in model.fitting.split_x if domain[0] < x < domain[1]}
    edges = [domain[0], *sorted(splits), domain[1]]
    measured = np.concatenate([_abscissae(run), _abscissae(reference)])
    pieces = []
    for number, (start, end) in enumerate(itertools.pairwise(edges)):
        last = end if number == len(edges) - 2 else float(np.nextafter(end, start))
        even = np.geomspace if run.x.scale == "log" and start > 0 else np.linspace
        inner = measured[(measured > start) & (measured < last)]
        pieces.append(np.unique(np.clip([*even(start, last, STEPS), *inner, start, last], start, last)))
    segment = np.concatenate([np.full(len(piece), number) for number, piece in enumerate(pieces)])
    return np.concatenate(pieces), segment


def _abscissae(model: ComponentModel) -> FloatArray:
    return np.asarray(model.uncertainty.x if model.uncertainty is not None else model.domain, dtype=np.float64)


def _signs(run: ComponentModel, reference: ComponentModel, x: FloatArray) -> FloatArray:
    """Sign of the difference of the curves, 0 where they are equal or not defined."""
    a, b = run.evaluate(x), reference.evaluate(x)
    difference = a - b
    same = np.abs(difference) <= EQUAL * np.maximum(np.abs(a), np.abs(b))
    return np.where(same | ~np.isfinite(difference), 0.0, np.sign(difference))


def _root(run: ComponentModel, reference: ComponentModel, x: FloatArray, i: int, j: int) -> float:
    """The crossing between two places; where the curves are equal over a stretch, its middle."""
    if j > i + 1:
        return float((x[i + 1] + x[j - 1]) / 2)
    from scipy.optimize import brentq

    root = brentq(lambda at: float(run.evaluate(at) - reference.evaluate(at)), float(x[i]), float(x[j]))
    return float(root)


def _interval(x: FloatArray, excluded: npt.NDArray[np.int_], i: int, j: int) -> tuple[float | None, float | None, bool]:
    """The stretch around places i and j in which 1 is not excluded, and whether it is with opposite signs beyond."""
    before, after = np.flatnonzero(excluded[: i + 1]), np.flatnonzero(excluded[j:])
    low = float(x[before[-1]]) if len(before) else None
    high = float(x[j + after[0]]) if len(after) else None
    sure = bool(len(before) and len(after)) and int(excluded[before[-1]]) == -int(excluded[j + after[0]])
    return low, high, sure


def _with_split(
    x: float, low: float | None, high: float | None, models: Sequence[ComponentModel]
) -> tuple[float | None, float | None]:
    """The interval of a step is at least as wide as that of the split that makes it."""
    for model in models:
        splits = model.uncertainty.splits if model.uncertainty is not None else ()
        for at, known in zip(model.fitting.split_x, splits, strict=False):
            if at == x:
                low = None if low is None else min(low, known.low)
                high = None if high is None else max(high, known.high)
    return low, high
