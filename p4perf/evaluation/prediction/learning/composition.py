"""From measured components, and measured programs of them, to what others cost."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace

from p4perf.evaluation.prediction.learning.design import PriceRow
from p4perf.models.program.composition import Composition, composed_features
from p4perf.models.program.experience import Experience, KnownProgram, features
from p4perf.models.program.primitives import PrimitiveCosts

NOISES = (0.005, 0.01, 0.02, 0.03, 0.05, 0.1)
"""Standard deviations that are tried out of what is left: the same components come again and again."""

BEYOND = 0.3
"""Amplitude of what depends on the memory of tables alone. Next to others, a table beyond the caches costs half as much
again as alone, where the next packet is already under way while the memory answers."""

ALONE = 0.02
"""That of components that were measured alone."""

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
    programs = [row for row in rows if len(row.components) > 1]
    far = (elsewhere.alone.elsewhere(), elsewhere.together.elsewhere()) if elsewhere is not None else ((), ())
    alone = Experience.learn(
        [*far[0], *(_single(prices, row, baseline) for row in single)], noises=(ALONE,), farthest=math.inf
    )
    if alone is None:
        return prices
    known = replace(prices, composition=Composition(baseline, alone, alone))
    told = [*far[1], *(_program(known, row, baseline) for row in programs)]
    together = Experience.learn(told, noises=NOISES, beyond=BEYOND, farthest=math.inf)
    return prices if together is None else replace(prices, composition=Composition(baseline, alone, together))


def composing_as_before(prices: PrimitiveCosts, rows: Sequence[PriceRow], baseline: float) -> PrimitiveCosts:
    """The same prices, with what components cost here, beside what they are known to cost on the same processor."""
    before = prices.composition
    if before is None:
        return composing(prices, rows, baseline)
    bare = replace(prices, composition=None)
    alone = before.alone.joined([_single(bare, row, baseline) for row in rows if len(row.components) == 1])
    known = replace(prices, composition=Composition(baseline, alone, alone))
    together = before.together.joined([_program(known, row, baseline) for row in rows if len(row.components) > 1])
    return replace(prices, composition=Composition(baseline, alone, together))


def _single(prices: PrimitiveCosts, row: PriceRow, baseline: float) -> KnownProgram:
    predicted = baseline + prices.alone(row.components[0][1]).value
    ratio = _ratio(row, predicted, baseline)
    return KnownProgram(features(row.met, predicted), ratio, judges=row.experiment == DRAWN)


def _program(prices: PrimitiveCosts, row: PriceRow, baseline: float) -> KnownProgram:
    names, paths = zip(*row.components, strict=True)
    learnt = sum(prices.alone(path).value - prices.added(path).value for path in paths)
    predicted = baseline + prices.added(row.met).value + learnt
    scatter = statistics.stdev(math.log(max(baseline + start, 1.0)) for start in row.starts) if row.starts[1:] else 0.0
    described = composed_features(names, row.met, 1.0, predicted, prices.target)
    return KnownProgram(described, _ratio(row, predicted, baseline), scatter)


def _ratio(row: PriceRow, predicted: float, baseline: float) -> float:
    return math.log(max(baseline + row.cycles, 1.0) / max(predicted, 1.0))
