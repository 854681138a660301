"""The whole analysis of a factorial experiment, with intervals from its repetitions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from p4perf.errors import DataError
from p4perf.evaluation.factors.cells import Combination, Factorial
from p4perf.evaluation.factors.effects import EffectModel, fit_effects
from p4perf.evaluation.factors.ladder import Gain, Ladder, greedy_ladder, last_pair, single_pair
from p4perf.evaluation.statistics import LEVEL, RESAMPLES, SEED
from p4perf.models.bases import FloatArray

Additivity = Literal["super-additive", "sub-additive", "as if independent", "unknown"]


@dataclass(frozen=True, slots=True)
class FactorAnalysis:
    """What the factors do.

    Args:
        factorial: the cells.
        main: main effects.
        pairs: main effects and interactions; None where the cells do not tell them apart.
        single: gain of each factor alone over the base, None where it was not measured.
        last: gain of each factor as the last one (leave-one-out ratio), None where it was not measured.
        full: gain of all factors together.
        product: product of the single gains, None if one is missing.
        synergy: full gain over that product; above 1 the factors do more together than one by one.
        ladder: the greedy order, None without a base.
    """

    factorial: Factorial
    main: EffectModel
    pairs: EffectModel | None
    single: Mapping[str, Gain | None]
    last: Mapping[str, Gain | None]
    full: Gain | None
    product: Gain | None
    synergy: Gain | None
    ladder: Ladder | None

    @property
    def additivity(self) -> Additivity:
        """Whether the factors do more together than one by one; with repetitions only if the interval says so."""
        if self.synergy is None:
            return "unknown"
        low = self.synergy.ratio if self.synergy.low is None else self.synergy.low
        high = self.synergy.ratio if self.synergy.high is None else self.synergy.high
        return "super-additive" if low > 1 else "sub-additive" if high < 1 else "as if independent"

    @property
    def without_single(self) -> tuple[str, ...]:
        """Factors that were not measured alone."""
        return tuple(name for name, gain in self.single.items() if gain is None)

    def best_without(self, factor: str) -> float | None:
        """The best value of the metric that was reached without a factor."""
        values = [cell.median for present, cell in self.factorial.cells.items() if factor not in present]
        return (max if self.factorial.higher_is_better else min)(values, default=None)


def analyse(
    factorial: Factorial, *, level: float = LEVEL, resamples: int = RESAMPLES, seed: int = SEED
) -> FactorAnalysis:
    """Analyse a factorial experiment.

    Intervals are percentiles of a bootstrap over the repetitions of each cell. With single repetitions there are none,
    and a cell with one among others with several adds nothing to their width.

    Raises:
        DataError: the cells do not even tell the main effects apart.
    """
    drawn = _resampled(factorial, resamples, seed) if factorial.repetitions[1] > 1 else None
    main = fit_effects(factorial, resampled=drawn, level=level)
    try:
        pairs = fit_effects(factorial, pairs=True, resampled=drawn, level=level)
    except DataError:
        pairs = None
    ratios = _Ratios(factorial, drawn, level)
    single = {name: ratios.gain(*single_pair(name)) for name in factorial.factors}
    last = {name: ratios.gain(*last_pair(factorial, name)) for name in factorial.factors}
    product, synergy = ratios.product()
    return FactorAnalysis(
        factorial,
        main,
        pairs,
        single,
        last,
        ratios.gain(factorial.factors, ()),
        product,
        synergy,
        greedy_ladder(factorial),
    )


def _resampled(factorial: Factorial, resamples: int, seed: int) -> Mapping[Combination, FloatArray]:
    """Logarithms of the medians of resampled repetitions, by cell."""
    generator = np.random.default_rng(seed)
    found: dict[Combination, FloatArray] = {}
    for present, cell in factorial.cells.items():
        values = np.log(np.asarray(cell.values))
        picked = values[generator.integers(0, values.size, size=(resamples, values.size))]
        found[present] = np.median(picked, axis=1)
    return found


class _Ratios:
    """Ratios of cells with intervals."""

    def __init__(self, factorial: Factorial, drawn: Mapping[Combination, FloatArray] | None, level: float) -> None:
        self._factorial, self._drawn, self._level = factorial, drawn, level
        self._sign = 1.0 if factorial.higher_is_better else -1.0

    def gain(self, new: Iterable[str], old: Iterable[str]) -> Gain | None:
        new, old = frozenset(new), frozenset(old)
        ratio = self._factorial.gain(new, old)
        if ratio is None:
            return None
        return self._with_interval(ratio, None if self._drawn is None else self._drawn[new] - self._drawn[old])

    def product(self) -> tuple[Gain | None, Gain | None]:
        """Product of the single gains, and the full gain over it."""
        factors, base = self._factorial.factors, frozenset[str]()
        gains = [self._factorial.gain((name,), ()) for name in factors]
        full = self._factorial.gain(factors, ())
        if full is None or any(gain is None for gain in gains):
            return None, None
        product = math.prod(gain for gain in gains if gain is not None)
        if self._drawn is None:
            return Gain(product), Gain(full / product)
        drawn = self._drawn
        together = sum((drawn[frozenset((name,))] - drawn[base] for name in factors), np.zeros_like(drawn[base]))
        everything = drawn[frozenset(factors)] - drawn[base]
        return self._with_interval(product, together), self._with_interval(full / product, everything - together)

    def _with_interval(self, ratio: float, logs: FloatArray | None) -> Gain:
        if logs is None:
            return Gain(ratio)
        tail = 50 * (1 - self._level)
        low, high = np.exp(np.percentile(self._sign * logs, [tail, 100 - tail]))
        return Gain(ratio, float(low), float(high))
