from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import curve_fit
from support.fit_oracle import Batch, fit_template, fitted_values

from p4perf.models import find_template, scholz2021_templates

GRIDS = {
    "linear": np.arange(1.0, 41.0),
    "log": np.array([m * 10.0**k for k in range(8) for m in range(1, 10)][:65]),
    "far": np.linspace(1e6, 1e6 + 400, 30),
    "from_zero": np.arange(0.0, 30.0),
}
TRUTH = {
    "const": (3.0,),
    "poly1": (2.0, 1.5),
    "poly2": (2.0, 1.5, 4.0),
    "poly3": (2.0, 1.5, 4.0, 3.0),
    "poly4": (2.0, 1.5, 4.0, 3.0, 2.0),
    "poly5": (2.0, 1.5, 4.0, 3.0, 2.0, 1.0),
    "log": (50.0, 3.0),
    "log_shift": (50.0, 3.0, 2.0),
    "exp": (20.0, 7.0, -3.0),
    "inv_poly1": (0.01, 0.04),
    "inv_poly2": (0.01, 0.04, 0.02),
    "inv_poly3": (0.01, 0.04, 0.02, 0.01),
    "inv_poly4": (0.01, 0.04, 0.02, 0.01, 0.02),
    "inv_poly5": (0.01, 0.04, 0.02, 0.01, 0.02, 0.03),
    "inv_log": (0.05, 0.02),
    "inv_log_shift": (0.05, 0.02, 2.0),
    "inv_exp": (0.05, 0.02, 1.5),
}


def whole(x: np.ndarray, y: np.ndarray) -> Batch:
    return Batch.of_intervals(x, y, np.array([0]), np.array([len(x) - 1]))


def rss(x: np.ndarray, y: np.ndarray, name: str) -> float:
    batch = whole(x, y)
    fit = fit_template(batch, find_template(name))
    values = fitted_values(batch, find_template(name), fit)[0, : len(x)]
    return float(((values - y) ** 2).sum())


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("name", TRUTH)
def test_recovers_exact_data(name: str, grid: str) -> None:
    x = GRIDS[grid]
    if name in ("log", "inv_log"):
        if x[0] <= 0:
            assert np.isnan(fit_template(whole(x, x + 1), find_template(name)).parameters).all()
            return
        y = find_template(name).evaluate(x, TRUTH[name])
    else:
        u = (x - x[0]) / (x[-1] - x[0])
        if grid == "log" and name in ("exp", "log_shift", "inv_log_shift"):
            u = u * 2
        y = find_template(name).evaluate(u, TRUTH[name])
    assert rss(x, y, name) <= 1e-14 * float((y**2).sum())


@pytest.mark.parametrize("degree", range(6))
def test_polynomials_are_the_least_squares_solution(degree: int) -> None:
    rng = np.random.default_rng(degree)
    for grid in GRIDS.values():
        y = 100 + rng.standard_normal(len(grid))
        u = (grid - grid[0]) / (grid[-1] - grid[0]) * 2 - 1
        basis = np.polynomial.legendre.legvander(u, degree)
        best = basis @ np.linalg.lstsq(basis, y, rcond=None)[0]
        expected = ((best - y) ** 2).sum()
        assert rss(grid, y, "const" if degree == 0 else f"poly{degree}") == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("name", "function", "start"),
    [
        ("inv_poly1", lambda x, a, b: 1 / (a + b * x), (0.01, 0.01)),
        ("exp", lambda x, c, a, k: c + a * np.exp(k * x), (20.0, 1.0, 0.05)),
        ("inv_log", lambda x, a, b: 1 / (a + b * np.log(x)), (0.01, 0.01)),
    ],
)
def test_not_worse_than_a_general_solver(name, function, start) -> None:
    x = np.arange(1.0, 41.0)
    for seed in range(20):
        y = function(x, *start) * (1 + 0.03 * np.random.default_rng(seed).standard_normal(40))
        popt, _ = curve_fit(function, x, y, p0=start)
        assert rss(x, y, name) <= ((function(x, *popt) - y) ** 2).sum() * (1 + 1e-6)


@pytest.mark.parametrize("template", scholz2021_templates(), ids=lambda t: t.name)
@pytest.mark.parametrize("n", range(1, 8))
def test_too_few_samples_are_left_out(template, n: int) -> None:
    x = np.arange(1.0, n + 1)
    fit = fit_template(whole(x, 5 + x**2), template)
    needed = 1 if template.name == "const" else len(template.parameter_names) + 1
    if n < needed:
        assert np.isnan(fit.parameters).all()
    elif not template.inverse:
        assert np.isfinite(fit.parameters).all()


@pytest.mark.parametrize("y", [[1.0, -1.0, 2.0, -3.0, 1.0], [0.0, 1.0, 2.0, 3.0, 4.0]])
def test_reciprocals_need_one_sign(y: list[float]) -> None:
    batch = whole(np.arange(5.0), np.array(y))
    assert np.isnan(fit_template(batch, find_template("inv_poly1")).parameters).all()


def test_rows_do_not_influence_each_other() -> None:
    rng = np.random.default_rng(1)
    x, y = np.arange(1.0, 31.0), rng.uniform(1, 2, 30)
    starts, ends = np.array([0, 3, 10, 0]), np.array([9, 29, 20, 29])
    many = Batch.of_intervals(x, y, starts, ends)
    for template in scholz2021_templates():
        together = fitted_values(many, template, fit_template(many, template))
        for row, (a, b) in enumerate(zip(starts, ends, strict=True)):
            alone = Batch.of_intervals(x, y, np.array([a]), np.array([b]))
            values = fitted_values(alone, template, fit_template(alone, template))[0, : b - a + 1]
            assert together[row, : b - a + 1] == pytest.approx(values, rel=1e-5, nan_ok=True)
