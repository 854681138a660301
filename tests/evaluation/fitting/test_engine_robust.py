"""Least relative distances instead of least squares: outliers hardly move a curve."""

from __future__ import annotations

import numpy as np
import pytest
from support.fit_segments import noisy_series, whole

from p4perf.evaluation.fitting.derivation import FitOptions, derive
from p4perf.evaluation.fitting.engine import fitted_templates
from p4perf.models import standard_templates
from p4perf.models.templates import find_template

TRUTH = {
    "const": (100.0,),
    "poly1": (100.0, 50.0),
    "poly2": (100.0, -40.0, 60.0),
    "poly3": (100.0, -40.0, 120.0, -50.0),
    "log": (50.0, 10.0),
    "log_shift": (150.0, 30.0, 0.1),
    "power": (40.0, 0.3),
    "exp": (60.0, 70.0, -3.0),
    "inv_poly1": (0.01, 0.04),
    "inv_poly2": (0.01, 0.04, 0.02),
    "inv_poly3": (0.01, 0.04, 0.02, 0.01),
    "inv_log": (0.005, 0.002),
    "inv_log_shift": (0.05, 0.02, 0.2),
    "inv_exp": (0.01, 0.02, -1.5),
}
SEEDS = 20


def with_outliers(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One sample of ten is wrong by a factor of 3 to 10, most of them too large."""
    out, bad = y.copy(), rng.choice(len(y), len(y) // 10, replace=False)
    factor = rng.uniform(3, 10, len(bad))
    out[bad] *= np.where(rng.random(len(bad)) < 0.7, factor, 1 / factor)
    return out


@pytest.mark.parametrize("n", [30, 100])
@pytest.mark.parametrize("name", TRUTH)
def test_one_wrong_sample_of_ten_hardly_moves_the_curve(name: str, n: int) -> None:
    template = find_template(name)
    x = np.arange(1.0, n + 1)
    at = x if name in ("log", "inv_log", "power") else (x - 1) / (n - 1)
    truth = template.evaluate(at, TRUTH[name])
    off: dict[bool, list[float]] = {False: [], True: []}
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        y = with_outliers(truth * (1 + 0.01 * rng.standard_normal(n)), rng)
        for robust in off:
            off[robust].append(float(np.abs(whole(x, y, template, robust=robust) / truth - 1).max()))
    squares, robust_ones = np.sort(off[False]), np.sort(off[True])
    assert np.median(robust_ones) < 0.03
    assert robust_ones[SEEDS - 3] < 0.05
    assert np.median(squares) > 0.2


def test_parameters_stay_where_they_are() -> None:
    x = np.arange(1.0, 61.0)
    rng = np.random.default_rng(2)
    y = with_outliers((100 + 3 * x) * (1 + 0.005 * rng.standard_normal(60)), rng)
    line = (find_template("poly1"),)
    squares, robust = (
        derive(x, y, FitOptions(segments=1, loss=loss, templates=line)).best.segments[0] for loss in ("squares", "l1")
    )
    assert robust.parameters == pytest.approx((100, 3), rel=0.02)
    assert squares.parameters != pytest.approx((100, 3), rel=0.1)


@pytest.mark.thorough
def test_cases_with_outliers(fitcases) -> None:
    for name in fitcases.names("g_"):
        truth, x, y = fitcases.load(name)
        best = derive(x, y, FitOptions(segments=len(truth["segments"]), loss="l1")).best
        assert best.error <= 1.05 * truth["floor_combined"], name


@pytest.mark.parametrize("negative", [False, True])
def test_relative_distances_are_not_above_those_of_least_squares(negative: bool) -> None:
    templates = standard_templates()
    starts, ends = np.triu_indices(30, k=9)
    for x, y in noisy_series(4, 30):
        series = with_outliers(-y if negative else y, np.random.default_rng(1))
        squares, robust = (
            fitted_templates(x, series, starts, ends, templates, metric="smape", robust=robust).errors
            for robust in (False, True)
        )
        assert np.array_equal(np.isfinite(squares), np.isfinite(robust))
        some = np.isfinite(squares)
        assert (robust[some] <= squares[some] * (1 + 1e-12)).all()


def test_samples_of_both_signs_and_zeros() -> None:
    x = np.arange(1.0, 41.0)
    truth = 2 * x - 41.0
    y = truth.copy()
    y[[3, 30]] = 900.0
    line = find_template("poly1")
    assert whole(x, y, line, robust=True) == pytest.approx(truth, abs=0.02)
    assert np.abs(whole(x, y, line) - truth).max() > 10
    assert whole(x, np.zeros(40), line, robust=True) == pytest.approx(np.zeros(40))
