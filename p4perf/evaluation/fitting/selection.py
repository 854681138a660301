"""Information criteria, and eq. 3 of Scholz et al. 2021: which of two curves wins.

Each is minus twice the logarithm of a likelihood plus a penalty for the number of free parameters. Values have no
meaning by themselves; differences between curves for the same samples do.

The number of free parameters ``m`` counts the parameters of all segments and two for every breakpoint: its place, and
that it is there at all.

Two likelihoods are in use:

- Errors with a Laplace distribution, whose likelihood depends on the mean absolute error, here the error metric itself
  (theta): :func:`l1_bic`. It is robust against outliers, and is what chooses the number of segments.
- Independent Gaussian errors: AIC, AICc and BIC. For relative metrics with a standard deviation proportional to the
  curve, ``y_i ~ N(f_i, (c |f_i|)^2)`` (a constant coefficient of variation c); for metrics in the unit of y, and for
  masses, with a constant one, ``y_i ~ N(f_i, s^2)``. The estimate of c or s is one more parameter, so ``K = m + 1``.
  With the maximum-likelihood estimates, ``s^2 = mean (y_i - f_i)^2`` and ``c^2 = mean ((y_i - f_i) / f_i)^2``,

      -2 ln L = n ln(2 pi s^2) + n                          constant standard deviation
      -2 ln L = n ln(2 pi c^2) + n + 2 sum ln |f_i|         constant coefficient of variation
      AIC     = -2 ln L + 2 K                               Akaike 1974
      AICc    = AIC + 2 K (K + 1) / (n - K - 1)             Hurvich and Tsai 1989
      BIC     = -2 ln L + K ln n                            Schwarz 1978

The curves were fitted by least squares and chosen by the error metric, not by either likelihood, so the values are not
quite the smallest that their parameters could give. AIC and AICc tend to more segments than there are: their penalty
does not know that the places of the breakpoints were searched for.

The pairwise rule of the paper is not transitive: with errors 0, 0.004, 0.008 and ranks 5, 3, 1 the second beats the
first, the third beats the second and the first beats the third, so the winner depends on the order of comparison.
:class:`ExactRule` says the same thing without an order; :class:`PairwiseRule` follows the paper to the letter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from p4perf.errors import DataError
from p4perf.evaluation.fitting.engine import BatchFit, Choice, IndexArray, SegmentBatch, can_bulge
from p4perf.evaluation.fitting.error_metrics import ErrorMetric
from p4perf.models.component import PiecewiseFitting
from p4perf.models.templates import BasisTemplate, Exponential, FloatArray, Polynomial, Template

ERROR_FLOOR = 1e-6
"""Relative errors below one in a million are all the same when the number of segments is chosen."""
TINY = 1e-300
EVIDENCE = 2.0
"""A criterion that is lower by less is not worth more than a bare mention (Kass and Raftery 1995, Bayes Factors)."""


@dataclass(frozen=True)
class Criteria:
    """The criteria of one curve; infinite where the samples are too few for its parameters."""

    l1_bic: float
    aic: float
    aicc: float
    bic: float


def criteria(fitting: PiecewiseFitting, x: npt.ArrayLike, y: npt.ArrayLike, metric: ErrorMetric) -> Criteria:
    """All criteria of a curve; the error metric of the fitting decides which Gaussian likelihood is taken."""
    at, samples = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    n = fitting.points
    if at.shape != (n,) or samples.shape != (n,):
        raise DataError(f"the curve was fitted to {n} samples, not to {at.size} abscissae and {samples.size} samples")
    m = free_parameters(fitting)
    k = m + 1
    aic = aicc = bic = math.inf
    if n > m:
        proportional = metric.relative and not metric.masses
        deviance = _deviance(samples, fitting.evaluate(at), metric.floor, proportional=proportional)
        aic, bic = deviance + 2 * k, deviance + k * math.log(n)
    if n > k + 1:
        aicc = aic + 2 * k * (k + 1) / (n - k - 1)
    return Criteria(l1_bic(fitting, metric, samples), aic, aicc, bic)


def free_parameters(fitting: PiecewiseFitting) -> int:
    return fitting.free_parameters + 2 * len(fitting.breakpoints)


def l1_bic(fitting: PiecewiseFitting, metric: ErrorMetric, y: FloatArray, points: int | None = None) -> float:
    """Criterion by which the number of segments is chosen: ``2 n ln(theta) + m ln(n) n / (n - m - 1)``.

    It is the Bayesian information criterion (Schwarz 1978) for errors with a Laplace distribution, whose likelihood
    depends on the mean absolute error theta. The factor ``n / (n - m - 1)`` is what the correction of Hurvich and Tsai
    1989 makes of the penalty of AIC (McQuarrie 1999 gives the like for BIC); it matters for few samples only: without
    it, seven samples and six parameters would look like a discovery.

    Args:
        y: the samples; they give the unit in which an error is negligible (:data:`ERROR_FLOOR`).
        points: number of samples that is assumed, of the same error; default: that of the fitting.

    Returns:
        The criterion; infinite if there are not two samples more than free parameters.
    """
    n, m = fitting.points, free_parameters(fitting)
    if n <= m + 1:
        return math.inf
    theta = max(fitting.error, ERROR_FLOOR * metric.scale(y), TINY)
    n = points or n
    return 2 * n * math.log(theta) + m * math.log(n) * n / (n - m - 1)


def _deviance(y: FloatArray, f: FloatArray, least: float, *, proportional: bool) -> float:
    """Minus twice the logarithm of the Gaussian likelihood, with the spread floored.

    Where the curve is (almost) zero, its value is replaced by the floor of the metric, a millionth of the largest
    sample at least: a spread of zero would make a single sample infinitely likely or unlikely.
    """
    largest = float(np.abs(y).max())
    size = np.maximum(np.abs(f), max(ERROR_FLOOR * largest, least, TINY)) if proportional else np.ones_like(f)
    floor = ERROR_FLOOR if proportional else max(ERROR_FLOOR * float(np.sqrt(np.mean(y * y))), TINY)
    with np.errstate(over="ignore", invalid="ignore"):
        spread = max(float(np.sqrt(np.mean(((y - f) / size) ** 2))), floor)
    if not math.isfinite(spread):
        return math.inf
    return len(y) * (math.log(2 * math.pi) + 2 * math.log(spread) + 1) + 2 * float(np.log(size).sum())


KAPPA = 0.005
"""Absolute margin: half a point of sMAPE, about 1 % of relative error; what the authors of the paper used."""
KAPPA_POINTS = 20
"""The absolute margin holds for segments of this many samples. In longer ones it shrinks as their number grows: a slope
that ten samples hardly show is beyond doubt with two hundred. Only in the profile exact."""
KAPPA_REL = 0.005
"""Margin relative to the smaller error; what the authors of the paper used."""
NOISE_MARGIN = 0.3
"""Share of the error of a whole curve that the absolute margin is at least, in a second search. Errors of a few samples
differ by that much between curves that follow the noise and those that do not."""
GAMMA = 1e-5
"""Smallest magnitude of a parameter (Eq. 2); what the authors of the paper used."""
SAMPLES_PER_PARAMETER = 2
"""Fewest samples for every parameter of a polynomial of degree two and more: with fewer it follows the noise."""

MAX_BULGE = 0.1
"""How far a curve may leave the range of its samples between them, as a fraction of that range."""
STEPS_BETWEEN = 4
"""Steps between neighbouring samples in which the curve of a few samples is looked at."""


@dataclass(frozen=True)
class ExactRule:
    """The lowest rank among all fittings within the margin of the best error; of equal ranks the lower error.

    Args:
        kappa: absolute margin, in units of the error metric; for segments of more than :data:`KAPPA_POINTS` samples it
            is multiplied by that number over theirs.
        cautious: refuse as well what few samples cannot support: growing exponentials, poles near the segment, and
            curves that wave between samples (:func:`_is_daring`).
    """

    kappa: float = KAPPA
    kappa_rel: float = KAPPA_REL
    cautious: bool = False

    def admit(self, template: Template, fit: BatchFit, batch: SegmentBatch) -> BatchFit:
        """Refuse polynomials (and their reciprocals) of degree two and more that bulge, or that have too few samples.

        A curve bulges if, halfway between two samples, it leaves the range of the samples of the segment by more than
        :data:`MAX_BULGE` of that range: no measurement supports what it says there. Parameters are not capped: a cap
        acts on the unit of x, not on the accuracy of the curve.
        """
        fit = fit.only(~_has_pole(template, fit, batch))
        if self.cautious:
            fit = fit.only(~_is_daring(template, fit, batch))
        if not can_bulge(template):
            return fit
        value = fit.values(template, batch.between())
        low, high = batch.y.min(axis=1), batch.y.max(axis=1)
        room = MAX_BULGE * (high - low) + 1e-9 * np.maximum(np.abs(low), np.abs(high))
        calm = (value.min(axis=1) >= low - room) & (value.max(axis=1) <= high + room)
        calm &= batch.points >= SAMPLES_PER_PARAMETER * len(template.parameter_names)
        return fit.only(calm)

    def in_noise(self, error: float) -> ExactRule:
        """The same with an absolute margin that suits a curve of this error."""
        return replace(self, kappa=max(self.kappa, NOISE_MARGIN * error))

    def choice(self, metric: ErrorMetric | str) -> Choice:
        name, floor = (metric, 0.0) if isinstance(metric, str) else (metric.name, metric.floor)
        return Choice(name, self.kappa, self.kappa_rel, KAPPA_POINTS, MAX_BULGE, SAMPLES_PER_PARAMETER, floor)

    def choose(self, errors: FloatArray, ranks: FloatArray, points: IndexArray) -> IndexArray:
        """Index of the chosen column of every row; the first of equals.

        Args:
            errors: shape (segments, templates); not finite where a template does not apply.
        """
        finite = np.where(np.isfinite(errors), errors, np.inf)
        best = finite.min(axis=1)
        kappa = self.kappa * np.minimum(1.0, KAPPA_POINTS / points)
        limit = best + np.maximum(self.kappa_rel * best, kappa)
        near = finite <= limit[:, None]
        lowest = np.where(near, ranks, np.inf).min(axis=1)
        candidates = near & (ranks == lowest[:, None])
        return np.asarray(np.where(candidates, finite, np.inf).argmin(axis=1))


@dataclass(frozen=True)
class PairwiseRule:
    """Eq. 2 and Eq. 3 as printed, comparing a champion (F1) with one challenger after the other (F2).

    Challengers come in the order of the templates, combinations in lexicographic order of their breakpoints.

    Args:
        gamma: smallest magnitude of a parameter. It acts on polynomials about zero in the unit of the data; for
            reciprocal forms on the denominator of ``max|y| / q(x)``.
    """

    kappa: float = KAPPA
    kappa_rel: float = KAPPA_REL
    gamma: float = GAMMA

    def admit(self, template: Template, fit: BatchFit, batch: SegmentBatch) -> BatchFit:
        """Raise every parameter to the magnitude gamma at least, keeping its sign; zero stays zero (Eq. 2)."""
        fit = fit.only(~_has_pole(template, fit, batch))
        values, origin = fit.parameters, fit.origin
        basis = template.basis if isinstance(template, BasisTemplate) else None
        inverse = isinstance(template, BasisTemplate) and template.inverse
        if isinstance(basis, Polynomial):
            values, origin = basis.about(values, origin, 0.0), np.zeros_like(origin)
        limit = np.full((len(values), 1), self.gamma)
        if inverse:
            limit /= np.maximum(np.abs(batch.y).max(axis=1), 1e-300)[:, None]
        small = np.abs(values) < limit
        if inverse and basis is not None and basis.shape_name:
            small[:, -1] = np.abs(values[:, -1]) < self.gamma
            limit = np.where(np.arange(values.shape[1]) == values.shape[1] - 1, self.gamma, limit)
        return BatchFit(np.where(small, np.sign(values) * limit, values), origin)

    def challenger_wins(self, champion: tuple[float, float], challenger: tuple[float, float]) -> bool:
        """Eq. 3 for two pairs of error and rank."""
        (error_1, rank_1), (error_2, rank_2) = champion, challenger
        margin = max(min(error_1, error_2) * self.kappa_rel, self.kappa)
        if abs(error_1 - error_2) <= margin:
            return rank_1 >= rank_2
        return error_1 >= error_2

    def choose(self, errors: FloatArray, ranks: FloatArray, points: IndexArray) -> IndexArray:
        """Index of the last champion of every row; arguments as of :meth:`ExactRule.choose`."""
        champion = np.zeros(len(errors), dtype=np.intp)
        best = np.where(np.isfinite(errors[:, 0]), errors[:, 0], np.inf)
        for index in range(1, errors.shape[1]):
            error = errors[:, index]
            valid = np.isfinite(error)
            with np.errstate(invalid="ignore"):
                margin = np.maximum(np.minimum(best, error) * self.kappa_rel, self.kappa)
                near = np.abs(best - error) <= margin
                wins = np.where(near, ranks[champion] >= ranks[index], best >= error)
            wins = valid & (wins | ~np.isfinite(best))
            champion = np.where(wins, index, champion)
            best = np.where(wins, error, best)
        return champion


def _has_pole(template: Template, fit: BatchFit, batch: SegmentBatch) -> npt.NDArray[np.bool_]:
    """Rows of a reciprocal whose curve changes its sign at or between the samples, or before the next segment."""
    if not (isinstance(template, BasisTemplate) and template.inverse):
        return np.zeros(len(batch.points), dtype=np.bool_)
    last = batch.x[:, -1:]
    behind = batch.after[:, None]
    value = fit.values(template, np.concatenate([batch.x, batch.between(), (last + behind) / 2, behind], axis=1))
    return np.asarray(~((value > 0).all(axis=1) | (value < 0).all(axis=1)))


def _is_daring(template: Template, fit: BatchFit, batch: SegmentBatch) -> npt.NDArray[np.bool_]:
    """Rows whose curve says more than a few samples can: for series of fewer than ten.

    That is: an exponential that grows with x, or a reciprocal of one that falls whose end is above twice the last
    sample; a reciprocal with a pole less than half a gap before the first sample, or
    less than the length of the segment behind the last; a polynomial or reciprocal that, between neighbouring samples,
    leaves what lies between its values there by more than :data:`MAX_BULGE` of the range of the samples.
    """
    rows = len(batch.points)
    none = np.zeros(rows, dtype=np.bool_)
    if not isinstance(template, BasisTemplate):
        return none
    growth = fit.parameters[:, -1] if isinstance(template.basis, Exponential) else np.zeros(rows)
    if isinstance(template.basis, Exponential) and not template.inverse:
        return np.asarray(growth > 0)
    if not (template.inverse or can_bulge(template)):
        return none
    every = np.arange(rows)
    last = batch.x[every, batch.points - 1]
    steps = np.linspace(0, 1, STEPS_BETWEEN + 1)
    left, right = batch.x[:, :-1, None], batch.x[:, 1:, None]
    value = fit.values(template, (left + (right - left) * steps).reshape(rows, -1)).reshape(rows, -1, len(steps))
    ends = value[..., [0, -1]]
    room = MAX_BULGE * (batch.y.max(axis=1) - batch.y.min(axis=1))[:, None]
    waves = ((value.max(axis=2) > ends.max(axis=2) + room) | (value.min(axis=2) < ends.min(axis=2) - room)).any(axis=1)
    if not template.inverse:
        return np.asarray(waves)
    first, second = batch.x[:, 0], batch.x[:, min(1, batch.x.shape[1] - 1)]
    before = first - (second - first) / 2
    if not isinstance(template.basis, Polynomial):
        positive = np.where(first > 0, first, 1.0)
        before = np.where(
            first > 0, np.maximum(before, first * np.sqrt(positive / np.maximum(second, positive))), before
        )
    behind = last + (last - first)
    reach = np.linspace(0, 1, 4 * STEPS_BETWEEN + 1)
    around = np.concatenate(
        [before[:, None] + (first - before)[:, None] * reach, last[:, None] + (behind - last)[:, None] * reach], axis=1
    )
    beyond = fit.values(template, around)
    same = (beyond > 0).all(axis=1) | (beyond < 0).all(axis=1)
    falling = growth < 0
    settled = last + np.where(falling, 40 / np.where(falling, -growth, 1.0), 0.0)  # exp(-40) of it is left there
    at_last, end = np.abs(fit.values(template, np.stack([last, settled], axis=1))).T
    grows = falling & ~(end <= 2 * at_last)
    return np.asarray(waves | grows | ~(same & np.isfinite(beyond).all(axis=1)))
