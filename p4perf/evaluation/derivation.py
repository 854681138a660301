"""Model derivation (Scholz et al. 2021, section 2.2): from samples to the best piecewise curve of each number of parts.

Two profiles:

``exact``
    In each part the lowest rank among all templates whose error is within the margin of the best one; the splits of
    the lowest combined error, found exactly by dynamic programming; at least ``min_points`` samples per part.
``scholz2021``
    The paper to the letter: parameters capped at gamma (Eq. 2), Eq. 3 pairwise in template order within parts and
    again in lexicographic order between combinations, parts of any length. All combinations are tried where the
    paper uses a heuristic above three parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt

from p4perf.errors import DataError, UsageError
from p4perf.evaluation.error_metrics import ErrorMetric, error_metric
from p4perf.evaluation.intervals import IntervalTable, all_intervals, interval_table, prefixes_and_suffixes
from p4perf.evaluation.segmentation import lowest_error_splits, pairwise_splits
from p4perf.evaluation.selection import GAMMA, KAPPA, KAPPA_REL, ExactRule, PairwiseRule
from p4perf.models.bases import FloatArray
from p4perf.models.fitting import PiecewiseFitting
from p4perf.models.templates import Template, registered_templates, scholz2021_templates

Profile = Literal["exact", "scholz2021"]
MIN_POINTS = 5
ERROR_FLOOR = 1e-6
"""Relative errors below one in a million are all the same when the number of parts is chosen."""


@dataclass(frozen=True)
class Derivation:
    """Every curve that was derived, and the chosen one.

    Args:
        x: abscissae, ascending, without duplicates.
        y: samples (medians where an abscissa was given more than once).
        fittings: best piecewise fitting of each number of parts that the samples allow, ascending. In the profile
            exact, a number of parts whose error is above that of fewer parts is left out unless it was asked for: the
            margin of Eq. 3 within parts makes that possible, and nobody would want the split.
        criteria: L1-BIC of each of them; the lowest is chosen.
        chosen: index of the chosen one.
        error: name of the error metric.
        profile: name of the profile.
        settings: margins and limits that were used.
    """

    x: tuple[float, ...]
    y: tuple[float, ...]
    fittings: tuple[PiecewiseFitting, ...]
    criteria: tuple[float, ...]
    chosen: int
    error: str
    profile: Profile
    settings: tuple[tuple[str, float], ...]

    @property
    def best(self) -> PiecewiseFitting:
        """The chosen fitting."""
        return self.fittings[self.chosen]

    def of_parts(self, parts: int) -> PiecewiseFitting:
        """The best fitting of that number of parts.

        Raises:
            UsageError: it was not derived, or the samples are too few.
        """
        for fitting in self.fittings:
            if len(fitting.parts) == parts:
                return fitting
        known = ", ".join(str(len(f.parts)) for f in self.fittings)
        raise UsageError(f"there is no fitting of {parts} parts", hint=f"derived: {known}")


def derive(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    max_parts: int = 2,
    parts: int | None = None,
    error: str = "smape",
    profile: Profile = "exact",
    min_points: int | None = None,
    templates: Sequence[Template] | None = None,
    kappa: float = KAPPA,
    kappa_rel: float = KAPPA_REL,
    gamma: float = GAMMA,
) -> Derivation:
    """Derive the best piecewise curve for every number of parts up to ``max_parts``, and choose one.

    Args:
        x: abscissae in any order; where one occurs more than once, the median of its samples is used.
        y: samples.
        max_parts: largest number of parts.
        parts: take this number of parts instead of choosing one.
        error: error metric: ``smape``, ``mape`` or ``rmse``.
        profile: ``exact`` or ``scholz2021``.
        min_points: smallest number of samples of a part. Default: 5, of fewer than ten samples half (two at least);
            1 in the profile scholz2021.
        templates: function templates; default all registered ones, in the profile scholz2021 those of the paper.
        kappa: absolute margin of Eq. 3 (for an error metric with a unit: as a fraction of the RMS of y).
        kappa_rel: relative margin of Eq. 3.
        gamma: smallest magnitude of a parameter (Eq. 2); only in the profile scholz2021.

    Raises:
        UsageError: an option is wrong.
        DataError: there are no samples, x and y differ in length, or a value is not finite.
    """
    metric = error_metric(error)
    xs, ys = checked_samples(x, y)
    n = len(xs)
    if profile not in ("exact", "scholz2021"):
        raise UsageError(f"there is no profile {profile!r}", hint="known: exact, scholz2021")
    if min_points is None:
        min_points = 1 if profile == "scholz2021" else MIN_POINTS if n >= 2 * MIN_POINTS else max(2, n // 2)
    most = max(max_parts, parts or 1)
    if min(max_parts, min_points, 1 if parts is None else parts) < 1:
        raise UsageError("max_parts, parts and min_points must be 1 at least")
    if parts is not None and parts > 1 and parts * min_points > n:
        raise UsageError(f"{n} samples cannot make {parts} parts of {min_points} samples at least")
    most = max(1, min(most, n // min_points))
    margin = kappa * metric.scale(ys)
    if templates is None:
        templates = scholz2021_templates() if profile == "scholz2021" else registered_templates()
    chosen_templates = tuple(templates)
    if not chosen_templates:
        raise UsageError("there must be one template at least")
    rule = ExactRule(margin, kappa_rel) if profile == "exact" else PairwiseRule(margin, kappa_rel, gamma)
    wanted = all_intervals(n, min_points) if most > 2 else prefixes_and_suffixes(n, min_points)
    table = interval_table(xs, ys, wanted, chosen_templates, metric, rule)
    fittings = _search(table, most, min_points, rule)
    if profile == "exact":
        fittings = _improving(fittings, parts)
    if not fittings:
        raise DataError("no template fits the samples", hint="add the template const")
    criteria = tuple(l1_bic(f, metric, ys) for f in fittings)
    chosen = int(np.argmin(criteria))
    if parts is not None:
        chosen = next((i for i, f in enumerate(fittings) if len(f.parts) == parts), -1)
        if chosen < 0:
            raise DataError(f"no template fits the samples in {parts} parts", hint="add the template const")
    settings = {"kappa": kappa, "kappa_rel": kappa_rel, "min_points": float(min_points)}
    if profile == "scholz2021":
        settings["gamma"] = gamma
    return Derivation(
        x=tuple(xs.tolist()),
        y=tuple(ys.tolist()),
        fittings=fittings,
        criteria=criteria,
        chosen=chosen,
        error=metric.name,
        profile=profile,
        settings=tuple(settings.items()),
    )


def _search(
    table: IntervalTable, parts: int, min_points: int, rule: ExactRule | PairwiseRule
) -> tuple[PiecewiseFitting, ...]:
    """Best splits for each number of parts, as fittings."""
    cost, n = table.cost(), len(table.x)
    if isinstance(rule, PairwiseRule):
        found = pairwise_splits(cost, table.ranks(), parts, min_points, rule)
    else:
        found = lowest_error_splits(cost, parts, min_points)
    fittings = []
    for splits in found:
        if splits is not None:
            bounds = [-1, *splits, n - 1]
            fittings.append(PiecewiseFitting.join(tuple(table.fitting(a + 1, b) for a, b in pairwise(bounds))))
    return tuple(fittings)


def _improving(fittings: tuple[PiecewiseFitting, ...], wanted: int | None) -> tuple[PiecewiseFitting, ...]:
    """Those that are no worse than all with fewer parts, and the wanted one."""
    kept: list[PiecewiseFitting] = []
    lowest = float("inf")
    for fitting in fittings:
        if fitting.error <= lowest + 1e-12 or len(fitting.parts) == wanted:
            kept.append(fitting)
        lowest = min(lowest, fitting.error)
    return tuple(kept)


def l1_bic(fitting: PiecewiseFitting, metric: ErrorMetric, y: FloatArray) -> float:
    """Criterion by which the number of parts is chosen: ``2 n ln(theta) + m ln(n)``, the lowest wins.

    It is the Bayesian information criterion for errors with a Laplace distribution, whose likelihood depends on the
    mean absolute error; ``m`` counts the parameters and two for every split (its place and that it is there). The
    second term is multiplied by ``n / (n - m - 1)``, which matters for few samples only: without it, seven samples
    and six parameters would look like a discovery.
    """
    n = fitting.points
    free = fitting.free_parameters + 2 * (len(fitting.parts) - 1)
    theta = max(fitting.error, ERROR_FLOOR * metric.scale(y), 1e-300)
    if free >= n - 1:
        return float("inf") if len(fitting.parts) > 1 else 1e300
    return float(2 * n * np.log(theta) + free * np.log(n) * n / (n - free - 1))


def checked_samples(x: npt.ArrayLike, y: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Samples in ascending order of x, one per abscissa (the median of its samples).

    Raises:
        DataError: there are none, x and y differ in shape, or a value is not finite.
    """
    try:
        xs, ys = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as exc:
        raise DataError("x and y must be numbers") from exc
    if xs.ndim != 1 or xs.shape != ys.shape:
        raise DataError(f"x and y must be of the same length, not {xs.shape} and {ys.shape}")
    if xs.size == 0:
        raise DataError("there are no samples")
    for name, values in (("x", xs), ("y", ys)):
        bad = np.flatnonzero(~np.isfinite(values))
        if bad.size:
            raise DataError(f"sample {bad[0]}: {name} is {values[bad[0]]}, not a finite number")
    unique, where = np.unique(xs, return_inverse=True)
    if len(unique) == len(xs):
        order = np.argsort(xs)
        return xs[order], ys[order]
    return unique, np.array([np.median(ys[where == k]) for k in range(len(unique))])
