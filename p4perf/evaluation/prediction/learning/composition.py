"""From measured components, and measured programs of them, to what others cost."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace

from p4perf.evaluation.prediction.learning.design import PriceRow
from p4perf.models.program.composition import Composition, LoneCost, composed_features, side_by_side
from p4perf.models.program.experience import FEWEST, Experience, KnownProgram, features
from p4perf.models.program.primitives import PrimitiveCosts

NOISES = (0.005, 0.01, 0.02, 0.03, 0.05, 0.1)
"""Standard deviations that are tried out of what is left: the same components come again and again."""

BEYONDS = (0.0, 0.3)
"""Amplitudes that are tried out of what depends on the memory of tables alone."""

ALONE = 0.02
"""That of components that were measured alone."""

WINDOWS = (0.0, 100.0, 150.0, 200.0, 250.0, 300.0, 400.0)
"""Cycles that are tried out of how far a processor works ahead of a miss."""

SURE = 5.0
"""By how much the logarithm of their likelihood has to be higher than without a window."""

SEVERAL = 3
"""Runs of which one is left out to see how well the others know it."""

DRAWN = "composition/more-components"
"""Components of all kinds with parameters that were drawn: how well others are known, which sweeps of one parameter do
not say."""


def composing(
    prices: PrimitiveCosts, rows: Sequence[PriceRow], baseline: float, elsewhere: Composition | None = None
) -> PrimitiveCosts:
    """The same prices, with what components cost alone and beside one another; without if too few were measured.

    Args:
        baseline: cycles per packet of the program to which components are added.
        elsewhere: what they cost on another machine.
    """
    prices = replace(prices, composition=None)
    single = [row for row in rows if len(row.components) == 1]
    far = () if elsewhere is None else elsewhere.alone.elsewhere()
    alone = Experience.learn(
        [*far, *(_single(prices, row, baseline) for row in single)], noises=(ALONE,), farthest=math.inf
    )
    if alone is None:
        return prices
    composition = Composition(baseline, alone, alone, 0.0 if elsewhere is None else elsewhere.window)
    programs = _apart(prices, composition, rows)
    composition = _windowed(prices.target, composition, programs)
    far = () if elsewhere is None else elsewhere.together.elsewhere()
    together = _together([*far, *_programs(prices.target, composition, programs)])
    return prices if together is None else replace(prices, composition=replace(composition, together=together))


def _together(programs: Sequence[KnownProgram]) -> Experience | None:
    return Experience.learn(programs, noises=NOISES, beyonds=BEYONDS, farthest=math.inf)


def composing_as_before(prices: PrimitiveCosts, rows: Sequence[PriceRow], baseline: float) -> PrimitiveCosts:
    """The same prices, with what components cost here, beside what they are known to cost on the same processor."""
    before = prices.composition
    if before is None:
        return composing(prices, rows, baseline)
    bare = replace(prices, composition=None)
    alone = before.alone.joined([_single(bare, row, baseline) for row in rows if len(row.components) == 1])
    composition = Composition(baseline, alone, alone, before.window)
    more = _programs(prices.target, composition, _apart(prices, composition, rows))
    return replace(prices, composition=replace(composition, together=before.together.joined(more)))


def _single(prices: PrimitiveCosts, row: PriceRow, baseline: float) -> KnownProgram:
    predicted = baseline + prices.alone(row.components[0][1]).value
    ratio = _ratio(row, predicted, baseline)
    return KnownProgram(features(row.met, predicted), ratio, judges=row.experiment == DRAWN)


Apart = tuple[PriceRow, list[LoneCost], float]
"""A measured program, its components, and what they cost less together."""


def _apart(prices: PrimitiveCosts, composition: Composition, rows: Sequence[PriceRow]) -> list[Apart]:
    known = replace(prices, composition=composition)
    several = [row for row in rows if len(row.components) > 1]
    return [(row, *known.apart([path for _, path in row.components], row.met)) for row in several]


def _programs(target: str, composition: Composition, programs: Sequence[Apart]) -> list[KnownProgram]:
    """What is known of programs. What neighbours leave of the caches is the same for all large tables of a run."""
    baseline, found = composition.baseline, []
    runs = {row.experiment for row, parts, _ in programs if any(part.misses for part in parts)}
    for row, parts, saved in programs:
        predicted = side_by_side(baseline, parts, saved, composition.window)
        starts = [math.log(max(baseline + start, 1.0)) for start in row.starts]
        scatter = statistics.stdev(starts) if starts[1:] else 0.0
        described = composed_features([name for name, _ in row.components], row.met, 1.0, predicted, target)
        source = row.experiment if len(runs) >= SEVERAL and any(part.misses for part in parts) else ""
        found.append(KnownProgram(described, _ratio(row, predicted, baseline), scatter, source))
    return found


def _windowed(target: str, composition: Composition, programs: Sequence[Apart]) -> Composition:
    """The same with the window that makes the programs most likely, if there are enough with large tables."""
    if sum(any(part.misses for part in parts) for _, parts, _ in programs) < FEWEST:
        return composition
    found = []
    for window in WINDOWS:
        tried = replace(composition, window=window)
        if (together := _together(_programs(target, tried, programs))) is not None:
            found.append((together.likelihood() - (SURE if window else 0.0), tried))
    return max(found, key=lambda each: each[0], default=(0.0, composition))[1]


def _ratio(row: PriceRow, predicted: float, baseline: float) -> float:
    return math.log(max(baseline + row.cycles, 1.0) / max(predicted, 1.0))
