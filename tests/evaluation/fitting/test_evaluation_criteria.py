from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from p4perf.errors import DataError
from p4perf.evaluation.fitting.derivation import FitOptions, derive
from p4perf.evaluation.fitting.error_metrics import EMD, RMSE, SMAPE
from p4perf.evaluation.fitting.selection import Criteria, criteria, free_parameters
from p4perf.models import Fitting, PiecewiseFitting
from p4perf.models.templates import find_template

X = np.arange(1.0, 31.0)


def noisy(seed: int = 1) -> np.ndarray:
    generator = np.random.default_rng(seed)
    return np.where(X < 16, 100.0, 10 + 6 * X) * (1 + 0.01 * generator.standard_normal(len(X)))


def piecewise(*segments: tuple[str, tuple[float, ...], float, float, int], error: float = 0.01) -> PiecewiseFitting:
    return PiecewiseFitting.join(
        tuple(Fitting(find_template(name), values, a, b, error, n) for name, values, a, b, n in segments)
    )


LINE = piecewise(("poly1", (60.0, 3.0), 1, 30, 30))
TWO = piecewise(("const", (100.0,), 1, 15, 15), ("poly1", (10.0, 6.0), 16, 30, 15))


def test_breakpoints_count_twice() -> None:
    assert free_parameters(LINE) == 2
    assert free_parameters(TWO) == 1 + 2 + 2


@pytest.mark.parametrize("curve", [LINE, TWO])
def test_constant_coefficient_of_variation(curve: PiecewiseFitting) -> None:
    y, f = noisy(), curve.evaluate(X)
    c = np.sqrt(np.mean(((y - f) / f) ** 2))
    deviance = -2 * norm.logpdf(y, f, c * np.abs(f)).sum()
    k, n = free_parameters(curve) + 1, len(X)
    found = criteria(curve, X, y, SMAPE)
    assert found.aic == pytest.approx(deviance + 2 * k)
    assert found.bic == pytest.approx(deviance + k * math.log(n))
    assert found.aicc == pytest.approx(found.aic + 2 * k * (k + 1) / (n - k - 1))


@pytest.mark.parametrize("metric", [RMSE, EMD])
def test_constant_deviation(metric) -> None:
    y, f = noisy(), LINE.evaluate(X)
    deviance = -2 * norm.logpdf(y, f, np.sqrt(np.mean((y - f) ** 2))).sum()
    assert criteria(LINE, X, y, metric).aic == pytest.approx(deviance + 2 * 3)


def test_aicc_is_that_of_hurvich_and_tsai() -> None:
    # Their equation for a regression with m coefficients: n ln s^2 + n (1 + m / n) / (1 - (m + 2) / n).
    y, n, m = noisy(), len(X), 2
    s2 = np.mean((y - LINE.evaluate(X)) ** 2)
    theirs = n * math.log(s2) + n * (1 + m / n) / (1 - (m + 2) / n)
    assert criteria(LINE, X, y, RMSE).aicc == pytest.approx(theirs + n * math.log(2 * math.pi))


@pytest.mark.parametrize("seed", range(4))
def test_the_right_number_of_segments_wins(seed: int) -> None:
    y = noisy(seed)
    found = derive(X, y, FitOptions(max_segments=4))
    scores = {len(f.segments): criteria(f, X, y, SMAPE) for f in found.fittings}
    assert min(scores, key=lambda segments: scores[segments].l1_bic) == 2
    assert all(getattr(scores[1], name) > getattr(scores[2], name) for name in ("l1_bic", "aic", "aicc", "bic"))


@pytest.mark.parametrize("error", ["smape", "rmse"])
def test_l1_bic_is_what_the_derivation_chooses_by(error: str) -> None:
    derivation = derive(X, noisy(3), FitOptions(max_segments=3, error=error))
    lowest = min(range(len(derivation.criteria)), key=lambda k: derivation.criteria[k].l1_bic)
    assert derivation.chosen == lowest


def test_too_few_samples() -> None:
    def line_through(n: int) -> Criteria:
        curve = piecewise(("poly1", (0.0, 1.0), 1, n, n))
        return criteria(curve, X[:n], X[:n] * 1.01, SMAPE)

    inf = math.inf
    assert line_through(2) == Criteria(inf, inf, inf, inf)
    assert [math.isinf(v) for v in vars(line_through(3)).values()] == [True, False, True, False]
    assert [math.isinf(v) for v in vars(line_through(4)).values()] == [False, False, True, False]
    assert [math.isinf(v) for v in vars(line_through(5)).values()] == [False, False, False, False]


def test_perfect_curves_differ_by_their_penalty_only() -> None:
    y = 2 * X
    one = piecewise(("poly1", (0.0, 2.0), 1, 30, 30), error=0.0)
    two = piecewise(("poly1", (0.0, 2.0), 1, 15, 15), ("poly1", (0.0, 2.0 + 1e-9), 16, 30, 15), error=1e-12)
    for metric in (SMAPE, RMSE):
        a, b = criteria(one, X, y, metric), criteria(two, X, y, metric)
        assert a.aic == pytest.approx(b.aic - 2 * 4, abs=1e-6)
        assert a.l1_bic < b.l1_bic
    zero = criteria(piecewise(("const", (0.0,), 1, 30, 30), error=0.0), X, np.zeros(30), SMAPE)
    assert all(math.isfinite(v) for v in vars(zero).values())


def test_one_sample_off_a_zero_is_not_infinitely_bad() -> None:
    curve = piecewise(("const", (0.0,), 1, 30, 30), error=0.05)
    assert math.isfinite(criteria(curve, X, np.where(X == 3, 1.0, 0.0), SMAPE).bic)


def test_wrong_samples() -> None:
    with pytest.raises(DataError, match="fitted to 30 samples, not to 29 abscissae and 30"):
        criteria(LINE, X[1:], noisy(), SMAPE)
