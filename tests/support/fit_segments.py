"""Series and segments of them on which the fit engine is tried, and the sums of squares of its curves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from p4perf.evaluation.fitting.engine import IndexArray, fitted_templates
from p4perf.evaluation.fitting.synthetic import piecewise_series
from p4perf.models.templates import FloatArray, Template

Series = tuple[FloatArray, FloatArray]
LARGEST_X = 2e7


def noisy_series(count: int, points: int = 60) -> list[Series]:
    """Piecewise curves of one to four segments with 0.5 to 2 % noise; every other one over x from 20 to 20 million."""
    found = []
    for seed in range(count):
        scale = ("lin", "log")[seed % 2]
        series = piecewise_series(seed, points, 1 + seed // 2 % 4, noise=(0.005, 0.01, 0.02)[seed % 3], x_scale=scale)
        found.append((series.x * (LARGEST_X / 1e6 if scale == "log" else 1.0), series.y))
    return found


def random_segments(rng: np.random.Generator, points: int, count: int, least: int = 4) -> tuple[IndexArray, IndexArray]:
    """First and last samples of random segments, a third of them short."""
    lengths = np.where(
        rng.random(count) < 2 / 3, rng.integers(least, points + 1, count), rng.integers(least, 3 * least, count)
    )
    lengths = np.minimum(lengths, points)
    starts = rng.integers(0, points - lengths + 1)
    return starts, starts + lengths - 1


def squares(
    x: FloatArray, y: FloatArray, starts: IndexArray, ends: IndexArray, templates: Sequence[Template]
) -> FloatArray:
    """Sum of squares of every segment and template by the fit engine; NaN where a template does not apply."""
    fits = fitted_templates(x, y, starts, ends, templates)
    out = np.full((len(starts), len(templates)), np.nan)
    for column, template in enumerate(templates):
        fit = fits.of(column)
        for row, (a, b) in enumerate(zip(starts, ends, strict=True)):
            values = template.evaluate(x[a : b + 1], fit.parameters[row], fit.origin[row])
            out[row, column] = ((values - y[a : b + 1]) ** 2).sum()
    return out


def whole(x: FloatArray, y: FloatArray, template: Template, *, robust: bool = False) -> FloatArray:
    """Values of a template that is fitted to all samples."""
    fits = fitted_templates(x, y, np.array([0]), np.array([len(x) - 1]), [template], robust=robust)
    fit = fits.of(0)
    return template.evaluate(x, fit.parameters[0], fit.origin[0])
