"""Effects of factors: a linear model of the logarithm of the metric, by least squares.

ln y = b_0 + sum_i b_i x_i (+ sum_{i<j} b_ij x_i x_j), with x_i = 1 where factor i is there and 0 where not. exp(b_i) is
the factor by which i alone multiplies the metric (with interactions: from the base; without: on average), and exp(b_ij)
by how much more the two multiply it together than one by one (Box, Hunter and Hunter 2005, chapters 5 and 6; their
contrasts are -1 and 1, of which the interaction is a quarter of this one in the logarithm).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from p4perf.errors import DataError
from p4perf.evaluation.factors.cells import Combination, Factorial
from p4perf.models.bases import FloatArray


@dataclass(frozen=True, slots=True)
class Effect:
    """What a factor, or two of them together, multiply the metric by; above 1 is better.

    ``low`` and ``high`` are the interval from repetitions, None without any.
    """

    factors: tuple[str, ...]
    ratio: float
    low: float | None = None
    high: float | None = None

    @property
    def strength(self) -> float:
        """How far from no effect, whichever way: |ln ratio|."""
        return abs(math.log(self.ratio))


@dataclass(frozen=True, slots=True)
class EffectModel:
    """A fitted model of effects.

    Args:
        base: what it says of the base, in the unit of the metric.
        effects: of the factors in their order, then of their pairs if it has pairs.
        r_squared: share of the variance of the logarithms that it explains.
        n: cells.
    """

    base: float
    effects: tuple[Effect, ...]
    r_squared: float
    n: int

    def of(self, *factors: str) -> Effect:
        """The effect of a factor, or of a pair."""
        return next(effect for effect in self.effects if set(effect.factors) == set(factors))


def terms_of(factors: Sequence[str], *, pairs: bool) -> tuple[tuple[str, ...], ...]:
    """The terms of the model: factors, then pairs."""
    single = [(name,) for name in factors]
    return (*single, *(itertools.combinations(factors, 2) if pairs else ()))


def fit_effects(
    factorial: Factorial,
    *,
    pairs: bool = False,
    resampled: Mapping[Combination, FloatArray] | None = None,
    level: float = 0.95,
) -> EffectModel:
    """Fit main effects, and those of pairs.

    Args:
        factorial: the cells.
        pairs: whether there are terms of pairs.
        resampled: for each cell, logarithms of medians of resampled repetitions, for intervals.
        level: coverage of the intervals.

    Raises:
        DataError: the cells do not tell the effects apart: there are fewer than terms, or two factors are always
            together.
    """
    terms = terms_of(factorial.factors, pairs=pairs)
    order = list(factorial.cells)
    design = np.array([[1.0, *(float(set(term) <= present) for term in terms)] for present in order])
    if np.linalg.matrix_rank(design) < design.shape[1]:
        raise DataError(
            f"{len(order)} combinations do not tell {len(terms)} effects apart{', pairs included' if pairs else ''}",
            hint="measure more of them; all subsets do",
        )
    logs = np.log([factorial.cells[present].median for present in order])
    solve = np.linalg.pinv(design)
    found = solve @ logs
    residual = logs - design @ found
    total = float(np.sum((logs - logs.mean()) ** 2))
    sign = 1.0 if factorial.higher_is_better else -1.0
    spread = None
    if resampled is not None:
        drawn = sign * (solve @ np.stack([resampled[present] for present in order]))
        tail = 50 * (1 - level)
        spread = np.exp(np.percentile(drawn, [tail, 100 - tail], axis=1))
    effects = tuple(
        Effect(
            term,
            float(np.exp(sign * found[index])),
            None if spread is None else float(spread[0, index]),
            None if spread is None else float(spread[1, index]),
        )
        for index, term in enumerate(terms, start=1)
    )
    explained = 1 - float(residual @ residual) / total if total > 0 else 1.0
    return EffectModel(float(np.exp(found[0])), effects, explained, len(order))
