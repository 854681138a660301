"""What to know before using a derived model: one line each, with what to do."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from p4perf.evaluation.fitting import engine
from p4perf.evaluation.fitting.derivation import Derivation, FitOptions
from p4perf.evaluation.fitting.error_metrics import error_metric, error_text
from p4perf.evaluation.fitting.intervals import FitProblem, fit_segments
from p4perf.evaluation.fitting.noise import FEW_POINTS, MIN_REPETITIONS, outliers
from p4perf.evaluation.fitting.selection import ExactRule, free_parameters
from p4perf.models.component import ComponentModel
from p4perf.models.notation import number
from p4perf.models.spline import SPLINE
from p4perf.models.templates import registered_templates
from p4perf.records import counted
from p4perf.results.table import Samples

LARGE_ERROR = 0.05
"""A sMAPE above this, about 10 % of relative error, is no description."""
OUTSIDE = 0.36
"""Largest probability of a sample on one side of the band of a curve that is right: the band is narrower than the
scatter. The band of a line of n samples is about +-3.2 standard deviations / sqrt(n) wide."""
CHANCE = 0.01
"""A run of samples on one side of the band is remarkable if chance makes one in fewer series than this."""
MISSED = 0.2
"""Share of points whose repetitions all lie outside of the band, from which on that is said."""
LISTED = 5
"""Abscissae that a line lists; of more it says how many there are."""


def remarks(model: ComponentModel, derivation: Derivation, samples: Samples, options: FitOptions) -> tuple[str, ...]:
    """Remarks on a model, the weightiest first.

    Args:
        samples: those that count.
        options: as they were asked for.
    """
    found: list[str] = []
    if len(samples.x) == 1:
        found.append("a single point: its value is the model for every x; measure at more values of x")
    elif len(samples.x) < FEW_POINTS:
        found.append(
            f"few points ({len(samples.x)}): the shape of the curve is uncertain{_near(derivation, options)}; "
            f"measure at least {FEW_POINTS}"
        )
    found += _outliers(derivation, options)
    metric = error_metric(model.error)
    if metric.name == "smape" and model.fitting.error > LARGE_ERROR:
        near = "" if len(samples.x) < FEW_POINTS else _near(derivation, options)
        found.append(
            f"{error_text(metric.name, model.fitting.error)} is above {100 * LARGE_ERROR:.0f} %: no function "
            f"describes the points{near}; look at the residuals, allow more segments (--segments, --max-segments), or "
            "interpolate (--template spline)"
        )
    found += _missed(model, derivation, samples)
    if (
        len(samples.x) > 1
        and model.fitting.segments[0].template.family != SPLINE
        and not math.isfinite(derivation.criteria[derivation.chosen].l1_bic)
    ):
        needed = free_parameters(derivation.best) + 2
        found.append(
            f"L1-BIC is not defined for {len(samples.x)} points and {free_parameters(derivation.best)} parameters: "
            f"it did not choose the number of segments; measure at least {needed} points, or fix it (--segments)"
        )
    if derivation.floor > 0:
        floor = number(derivation.floor, 3)
        found.append(f"values below {floor} count as {floor} in relative errors: they are near zero")
    return tuple(found)


def _listed(x: Sequence[float]) -> str:
    return ", ".join(f"{at:g}" for at in x[:LISTED]) + (f" and {len(x) - LISTED} more" if len(x) > LISTED else "")


def _outliers(derivation: Derivation, options: FitOptions) -> Iterator[str]:
    if derivation.outliers:
        places = _listed(derivation.outliers)
        yield (
            f"{counted(len(derivation.outliers), 'outlier')} at {places}: left out, and the others fitted by relative "
            "distances; measure there again (--loss squares counts all)"
        )
    elif derivation.loss == "squares" and derivation.profile == "exact":
        x, y = np.array(derivation.x), np.array(derivation.y)
        off = x[outliers(x, y, derivation.floor, most_noise=math.inf)].tolist()
        if off:
            robust = "auto" if options.loss == "squares" else "l1"
            yield (
                f"maybe {counted(len(off), 'outlier')}, at {_listed(off)}: squares follow outliers; "
                f"measure there again, or use --loss {robust}"
            )


def _near(derivation: Derivation, options: FitOptions) -> str:
    """Other functions of one segment whose error is within the margin of the chosen one."""
    best = derivation.best
    if len(best.segments) != 1 or derivation.profile != "exact":
        return ""
    x, y = np.array(derivation.x), np.array(derivation.y)
    metric = error_metric(derivation.error).at_least(derivation.floor)
    given = options.templates or registered_templates()
    templates = tuple(t for t in given if engine.knows(t) and t.name != best.segments[0].template.name)
    if not templates:
        return ""
    rule = ExactRule(cautious=len(x) < FEW_POINTS)
    problem = FitProblem(
        x, y, templates, tuple(t.rank for t in templates), metric, rule, robust=derivation.loss == "l1", threads=1
    )
    first, last = np.array([0]), np.array([len(x) - 1])
    batch = engine.SegmentBatch.of_segments(x, y, first, last)
    limit = best.error + max(options.kappa * metric.scale(y), best.error * LARGE_ERROR)
    errors: list[tuple[float, str]] = []
    for template, fit in zip(templates, fit_segments(problem, templates, first, last, batch), strict=True):
        values = rule.admit(template, fit, batch).values(template, batch.x)
        error = float(metric.errors(batch.x, batch.y, values, batch.mask)[0])
        if error <= limit:
            errors.append((error, template.name))
    listed = ", ".join(f"{name} ({error_text(metric.name, error)})" for error, name in sorted(errors)[:LISTED])
    return f" (similarly good: {listed})" if listed else ""


def _missed(model: ComponentModel, derivation: Derivation, samples: Samples) -> Iterator[str]:
    """Whether the band misses the data: repetitions that all lie outside, or a long run of samples on one side."""
    if model.uncertainty is None or len(samples.x) < 2:
        return
    low, high = np.array(model.uncertainty.low), np.array(model.uncertainty.high)
    many = np.array([len(values) >= MIN_REPETITIONS for values in samples.values])
    y = samples.medians()
    room = 1e-9 * float(np.abs(y).max())
    if 2 * many.sum() >= len(many):
        out = np.array(
            [min(v) > b + room or max(v) < a - room for v, a, b in zip(samples.values, low, high, strict=True)]
        )
        missed = out & many
        wrong = missed.sum() > MISSED * many.sum()
    else:
        missed = _longest_run((y > high + room).astype(int) - (y < low - room).astype(int))
        wrong = missed.sum() >= math.log(len(y) / CHANCE) / math.log(1 / OUTSIDE)
    if wrong:
        places = np.array(samples.x)[missed]
        off = f"{number(np.abs(y - model.evaluate(samples.x))[missed].max(), 2)} {model.y.unit}".strip()
        advice = "allow more segments (--segments, --max-segments), or look at the residuals"
        scores = [c.l1_bic for c in derivation.criteria if math.isfinite(c.l1_bic)]
        if scores and min(scores) < scores[-1]:
            advice = "more segments do not improve the L1-BIC; if that is too much, interpolate (--template spline)"
        yield (
            f"the band misses {len(places)} of {len(samples.x)} points ({places[0]:g} .. {places[-1]:g}): the curve is "
            f"up to {off} off; {advice}"
        )


def _longest_run(side: npt.NDArray[np.int_]) -> npt.NDArray[np.bool_]:
    """Mask of the longest run of equal values other than zero."""
    best, begin = (0, 0), 0
    for at in range(len(side) + 1):
        if at == len(side) or side[at] != side[begin]:
            if side[begin] and at - begin > best[1] - best[0]:
                best = (begin, at)
            begin = at
    mask = np.zeros(len(side), dtype=np.bool_)
    mask[slice(*best)] = True
    return mask
