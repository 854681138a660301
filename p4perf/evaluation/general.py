"""Templates that the fit engine does not know: scipy's ``curve_fit``, one part after the other.

This is what Scholz et al. 2021 use for every template (section 2.2). It is some thousand times slower than the engine.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from p4perf.evaluation.batch import Batch, BatchFit
from p4perf.evaluation.engine import least_samples
from p4perf.models.bases import FloatArray
from p4perf.models.functions import FunctionTemplate
from p4perf.models.templates import Template

MAX_CALLS_PER_PARAMETER = 200


def fit_general(batch: Batch, template: Template, *, robust: bool = False) -> BatchFit:
    """Fit a template to every row of a batch with Levenberg-Marquardt, or a trust region where it has bounds.

    Rows with too few samples, and those on which the solver fails, get NaN.

    Args:
        batch: the samples.
        template: what to fit.
        robust: minimise a soft L1 loss of relative residuals instead of their squares.
    """
    rows, count = len(batch.points), len(template.parameter_names)
    parameters = np.full((rows, count), np.nan)
    for row in np.flatnonzero(batch.points >= least_samples(template)):
        points = int(batch.points[row])
        parameters[row] = _fit_one(template, batch.x[row, :points], batch.y[row, :points], robust)
    return BatchFit(parameters, np.zeros(rows))


def _fit_one(template: Template, x: FloatArray, y: FloatArray, robust: bool) -> FloatArray:
    from scipy.optimize import OptimizeWarning, curve_fit

    count = len(template.parameter_names)
    start: tuple[float, ...] = (1.0,) * count
    bounds: Any = (-np.inf, np.inf)
    if isinstance(template, FunctionTemplate):
        start = template.start_values(x, y)
        if template.bounds is not None:
            low, high = np.array(template.bounds).T
            start, bounds = tuple(np.clip(start, low, high)), (low, high)
    options: dict[str, Any] = {"maxfev": MAX_CALLS_PER_PARAMETER * (count + 1), "check_finite": False}
    scale = np.abs(y)
    scale[scale == 0] = scale.max() or 1.0
    distances: dict[str, Any] = {"method": "trf", "loss": "soft_l1", "f_scale": 1e-3, "sigma": scale, "x_scale": "jac"}

    def curve(at: FloatArray, *p: float) -> FloatArray:
        return template.evaluate(at, p)

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("error", OptimizeWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            found, _ = curve_fit(curve, x, y, p0=start, bounds=bounds, **options)
            if robust:
                # From anywhere else the distances lead astray.
                found, _ = curve_fit(curve, x, y, p0=found, bounds=bounds, **options, **distances)
        except (RuntimeError, ValueError, OptimizeWarning, np.linalg.LinAlgError):
            return np.full(count, np.nan)
    return np.asarray(found, dtype=np.float64)
