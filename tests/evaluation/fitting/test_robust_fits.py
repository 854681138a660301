"""Values near zero, outliers and few points: benchmarks/robust_fits.py with fewer draws, and the pieces of it."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import p4perf
from p4perf.evaluation.fitting.derivation import FitOptions, derive
from p4perf.evaluation.fitting.noise import error_floor, outliers
from p4perf.evaluation.fitting.synthetic import piecewise_series
from p4perf.models.templates import find_template

FOLDER = Path(__file__).resolve().parents[3] / "benchmarks"


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    if not FOLDER.exists():
        pytest.skip("the benchmarks are not here")
    sys.path.insert(0, str(FOLDER))
    try:
        return importlib.import_module("robust_fits")
    finally:
        sys.path.remove(str(FOLDER))


# --- near zero


def test_lines_through_zero_are_one_segment(benchmark: ModuleType) -> None:
    rows = list(benchmark.zero_lines(60))
    assert sum(row.hits for row in rows) >= benchmark.ZERO_SHARE * sum(row.tries for row in rows)


def test_the_floor_is_absolute_over_relative_noise() -> None:
    rng = np.random.default_rng(1)
    x = np.arange(400.0)
    truth = x - 200
    y = truth + 2 * rng.standard_normal(400) + 0.02 * truth * rng.standard_normal(400)
    assert 50 < error_floor(x, y) < 200
    repeated = (
        truth[:, None] + 2 * rng.standard_normal((400, 5)) + 0.02 * truth[:, None] * rng.standard_normal((400, 5))
    )
    assert 50 < error_floor(x, np.median(repeated, axis=1), repeated.tolist()) < 200


def test_there_is_no_floor_far_from_zero() -> None:
    for seed in range(20):
        series = piecewise_series(seed, 60, 2)
        assert error_floor(series.x, series.y) == 0
    assert error_floor(np.arange(5.0), np.zeros(5)) == 0


def test_the_floor_is_used_and_stored() -> None:
    x = np.arange(1.0, 41.0)
    y = 3 * (x - 20.4) + np.random.default_rng(2).standard_normal(40)
    fit = p4perf.fit(x, y, resamples=20)
    floor = fit.derivation.floor
    assert floor > 0
    assert fit.model.provenance["derivation"]["floor"] == floor
    curve = fit(x)
    share = np.abs(y - curve) / np.maximum(np.abs(y) + np.abs(curve), 2 * floor)
    assert fit.model.fitting.error == pytest.approx(share.mean(), rel=1e-9)
    assert any("near zero" in remark for remark in fit.remarks)
    assert fit.model.uncertainty is not None
    width = np.subtract(fit.model.uncertainty.high, fit.model.uncertainty.low)
    assert width.max() < 5
    assert p4perf.fit(x, y, floor=0.0, resamples=0).derivation.floor == 0


# --- outliers


def test_shapes_are_found_among_outliers(benchmark: ModuleType) -> None:
    rows = {row.name: row for row in benchmark.outliers(12, clean=False)}
    for shape in benchmark.SHAPES:
        segments, parameters = (rows[f"{shape}, 10% outliers: {what}"] for what in ("segments", "parameters"))
        assert segments.hits >= 0.75 * segments.tries, shape  # 85 % of 12 draws, less one standard error
        assert parameters.hits >= 0.75 * parameters.tries, shape


def test_outliers_are_named_and_left_out() -> None:
    x = np.arange(30.0)
    y = (40 + 2 * x) * (1 + 0.01 * np.random.default_rng(3).standard_normal(30))
    y[[5, 17]] *= 3
    fit = p4perf.fit(x, y, resamples=20)
    assert fit.derivation.outliers == (5, 17)
    assert fit.derivation.loss == "l1"
    assert fit.model.fitting.points == 28
    assert fit.model.provenance["derivation"]["outliers"] == [5, 17]
    assert "2 outliers at 5, 17" in fit.remarks[0]
    assert fit(np.array([5.0, 29.0])) == pytest.approx([50, 98], rel=0.02)
    squares = p4perf.fit(x, y, resamples=0, loss="squares")
    assert squares.derivation.outliers == ()
    assert "maybe 2 outliers, at 5, 17" in squares.remarks[0]


def test_what_is_no_outlier() -> None:
    x = np.arange(1.0, 61.0)
    step = np.where(x < 30, 10.0, 30.0)
    for y in (step, 5 + x**2, 1000 / x, np.exp(x / 8), 100 * np.log(x) + 5, np.where(abs(x - 30) < 2.5, 90.0, 30.0)):
        assert not outliers(x, y).any()
    for seed in range(30):
        series = piecewise_series(seed, 60, 3, noise=0.02)
        derivation = derive(series.x, series.y, FitOptions(max_segments=3))
        assert derivation.outliers == ()
        assert derivation.loss == "squares"


# --- few points


def test_three_points_are_extrapolated_as_a_line(benchmark: ModuleType) -> None:
    found, line = benchmark.three_points()
    assert found == pytest.approx(line, rel=benchmark.FEW_OFF)


def test_few_points_are_extrapolated_with_caution(benchmark: ModuleType) -> None:
    for row in list(benchmark.few_points(40))[1:]:
        assert row.hits >= 0.95 * row.tries


@pytest.mark.parametrize("n", [6, 9])
def test_few_points_of_a_growing_exponential_are_no_exponential(n: int) -> None:
    x = np.arange(1.0, n + 1)
    for name in ("exp", "inv_poly1"):
        parameters = (10.0, 1.0, 0.5) if name == "exp" else (0.1, -0.09 / n)
        y = find_template(name).evaluate(x, parameters)
        assert derive(x, y).best.segments[-1].template.name != name
        assert derive(x, y, FitOptions(templates=(find_template(name),))).best.segments[0].template.name == name


@pytest.mark.parametrize("n", [5, 6, 9])
def test_few_points_that_double_are_no_reciprocal_of_a_falling_exponential(n: int) -> None:
    x = np.arange(1.0, n + 1)
    best = derive(x, 2.0**x).best
    ends = best.evaluate(np.array([n, 3.0 * n]))
    assert ends[1] / ends[0] < 2.0**n, "a power at most"


def test_a_reciprocal_keeps_its_sign_up_to_the_next_segment() -> None:
    x = np.array([1.0, 2, 3, 4, 5, 6, 16, 17, 18, 19, 20, 21])
    y = np.where(x < 10, 1 / (0.1 - 0.0125 * x), 500.0)
    inverse, const = find_template("inv_poly1"), find_template("const")
    best = derive(x, y, FitOptions(templates=(inverse, const), segments=2, max_segments=2)).best
    assert best.segments[0].end < 6 or best.segments[0].template is const
    assert (best.evaluate(np.linspace(1, 21, 401)) > 0).all()


@pytest.mark.parametrize("loss", ["auto", "squares", "l1"])
def test_traces_of_rounding_are_zero(loss: str) -> None:
    x = np.arange(20.0)
    y = 2 * x
    for tiny in (1e-300, -1e-300, 5e-324):
        traces = p4perf.fit(np.where(x == 0, abs(tiny), x), np.where(y == 0, tiny, y), loss=loss, resamples=20)
        assert traces.model == p4perf.fit(x, y, loss=loss, resamples=20).model
        assert traces(x) == pytest.approx(y, abs=1e-9)
        assert [segment.template.name for segment in traces.model.fitting.segments] == ["poly1"]


# --- remarks


def test_each_doubt_is_one_remark() -> None:
    rng = np.random.default_rng(5)
    assert "a single point" in p4perf.fit([3], [5.0]).remarks[0]
    few = p4perf.fit([1, 2, 3], [1.0, 2.1, 2.9]).remarks
    assert "measure at least 10" in few[0]
    assert any("L1-BIC is not defined for 3 points and 2 parameters" in remark for remark in few)
    noise = p4perf.fit(np.arange(30), rng.uniform(1, 5, 30)).remarks
    assert any("above 5 %" in remark and "--template spline" in remark for remark in noise)
    x = np.arange(1.0, 41.0)
    bent = p4perf.fit(x, 100 + 40 * np.sin(x / 6), templates=(find_template("poly1"),), max_segments=1).remarks
    assert any("the band misses" in remark for remark in bent)
    repeated = np.repeat(x, 3), np.repeat(100 + 8 * np.sin(x * 2), 3) + rng.normal(0, 0.1, 120)
    assert any("up to 8 off; allow more segments" in remark for remark in p4perf.fit(*repeated, max_segments=1).remarks)
    fixed = p4perf.fit(*repeated, segments=3)  # the L1-BIC would take one
    assert any("more segments do not improve the L1-BIC" in remark for remark in fixed.remarks)
    assert not any("\n" in remark for remark in (*few, *noise, *bent))


def test_a_good_fit_has_no_remarks() -> None:
    for seed in range(10):
        series = piecewise_series(seed, 60, 2, noise=0.01)
        fit = p4perf.fit(series.x, series.y, max_segments=3, resamples=100)
        assert fit.remarks == (), seed
