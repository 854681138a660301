from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import wasserstein_distance

from p4perf.errors import DataError, UsageError
from p4perf.evaluation.fitting.derivation import FitOptions, derive
from p4perf.evaluation.fitting.error_metrics import (
    EMD,
    MAPE,
    RMSE,
    SMAPE,
    SMAPE_POOLED,
    ErrorMetric,
    error_metric,
    error_text,
    registered_metrics,
)

ALL = registered_metrics()
ROWS = st.integers(2, 12)
MASSES = ROWS.flatmap(lambda n: st.tuples(*(arrays(np.float64, n, elements=st.floats(0.01, 100)) for _ in range(3))))


def test_smape_is_a_mean_of_ratios() -> None:
    assert SMAPE([1.0, 3.0], [1.0, 1.0]) == pytest.approx((0 + 2 / 4) / 2)
    assert SMAPE([0.0, 0.0], [0.0, 0.0]) == 0.0
    assert SMAPE([0.0], [5.0]) == 1.0
    assert SMAPE([-1.0], [1.0]) == 1.0


def test_pooled_smape_is_a_ratio_of_sums() -> None:
    assert SMAPE_POOLED([1.0, 3.0], [1.0, 1.0]) == pytest.approx(2 / 6)
    assert SMAPE_POOLED([0.0, 0.0], [0.0, 0.0]) == 0.0
    assert SMAPE_POOLED([0.0, 1000.0], [1.0, 1000.0]) == pytest.approx(1 / 2001)  # small samples count for nothing


def test_mape_and_rmse() -> None:
    assert MAPE([2.0, 4.0], [1.0, 4.0]) == pytest.approx(0.25)
    assert MAPE([0.0], [1.0]) == np.inf
    assert MAPE([0.0], [0.0]) == 0.0
    assert RMSE([0.0, 0.0], [3.0, 4.0]) == pytest.approx(np.sqrt(12.5))


@given(MASSES)
def test_emd_is_the_wasserstein_distance_over_the_span(columns) -> None:
    y, f, steps = columns
    x = np.cumsum(steps)
    truth = wasserstein_distance(x, x, y, f) / (x[-1] - x[0])
    assert EMD(y, f, x) == pytest.approx(truth, rel=1e-9, abs=1e-12)


def test_emd_by_hand() -> None:
    assert EMD([1.0, 0.0, 0.0], [0.0, 0.0, 5.0]) == pytest.approx(1.0)  # all mass over the whole span
    assert EMD([1.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 1.0, 10.0]) == pytest.approx(0.1)
    assert EMD([1.0, 2.0], [10.0, 20.0]) == 0.0  # a common factor is not seen
    assert EMD([7.0], [3.0]) == 0.0  # nowhere to move
    assert EMD([0.0, 1.0], [0.0, 0.0]) == 1.0  # nothing to move


def test_emd_of_what_is_no_distribution() -> None:
    assert np.isnan(EMD([1.0, 2.0], [3.0, -0.1]))
    with pytest.raises(DataError, match="sample 1 is -2: the error metric emd compares distributions"):
        EMD([1.0, -2.0], [1.0, 1.0])
    with pytest.raises(DataError, match="all samples are zero"):
        EMD([0.0, 0.0], [1.0, 1.0])
    for metric in (SMAPE, SMAPE_POOLED, MAPE, RMSE):
        metric.check(np.array([-1.0, 0.0]))


def test_emd_chooses_among_templates() -> None:
    x = np.arange(1.0, 41.0)
    y = 1000 * np.exp(-x / 6) + 3
    best = derive(x, y, FitOptions(error="emd", max_segments=1)).best
    assert best.segments[0].template.family == "exp"
    assert best.error < 0.005


# --- what holds for every metric that is registered


@pytest.mark.parametrize("metric", ALL, ids=lambda m: m.name)
def test_contract(metric: ErrorMetric) -> None:
    generator = np.random.default_rng(3)
    x = np.sort(generator.uniform(0, 100, (4, 9)), axis=1)
    y, f = generator.uniform(1, 50, (2, 4, 9))
    all_of_it = np.ones(y.shape, dtype=bool)
    assert error_metric(metric.name) is metric
    assert metric.title
    exact = metric.compute(x, y, y, all_of_it)
    assert exact.shape == (4,)
    assert (exact == 0).all()
    errors = metric.compute(x, y, f, all_of_it)
    assert (errors > 0).all()
    # Rows are independent, and padding does not count whatever it holds.
    for row in range(4):
        assert metric(y[row], f[row], x[row]) == pytest.approx(errors[row])
    padded = [np.hstack([a, np.full((4, 3), bad)]) for a, bad in ((x, 1e9), (y, np.nan), (f, np.inf))]
    mask = np.hstack([all_of_it, np.zeros((4, 3), dtype=bool)])
    assert metric.compute(*padded, mask) == pytest.approx(errors)
    # What is not finite is not hidden.
    assert not np.isfinite(metric(y[0], np.where(np.arange(9) == 4, np.nan, f[0]), x[0]))
    assert not np.isfinite(metric(y[0], np.where(np.arange(9) == 4, np.inf, f[0]), x[0]))


@pytest.mark.parametrize("metric", [m for m in ALL if m.relative], ids=lambda m: m.name)
def test_ratios_know_no_unit(metric: ErrorMetric) -> None:
    y, f, x = [1.0, 2.0, 4.0], [1.5, 2.0, 3.0], [1.0, 10.0, 100.0]
    times = metric(np.multiply(y, 1e6), np.multiply(f, 1e6), np.multiply(x, 1e3))
    assert times == pytest.approx(metric(y, f, x))
    assert metric.scale(np.array(y)) == 1.0


@pytest.mark.parametrize("metric", ALL, ids=lambda m: m.name)
def test_every_metric_derives(metric: ErrorMetric) -> None:
    x = np.arange(1.0, 25.0)
    derivation = derive(x, np.where(x < 13, 50.0, 20 + 4 * x), FitOptions(error=metric.name, max_segments=2))
    assert derivation.error == metric.name
    assert derivation.best.error == pytest.approx(0.0, abs=1e-6)


# --- finding them


def test_ours() -> None:
    assert [m.name for m in ALL] == ["emd", "mape", "rmse", "smape", "smape_pooled"]


def test_unknown() -> None:
    with pytest.raises(UsageError, match=r"unknown error metric 'smap'(.|\n)*did you mean smape\?"):
        error_metric("smap")
    with pytest.raises(UsageError, match="supported: emd, mape, rmse, smape, smape_pooled"):
        error_metric("chi2")


def test_what_is_no_metric_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("p4perf.evaluation.fitting.error_metrics.load_plugin", lambda group, name: "nonsense")
    with pytest.raises(UsageError, match="not an error metric 'odd'"):
        error_metric("odd")


def test_text() -> None:
    assert error_text("smape", 0.00421) == "sMAPE 0.421 %"
    assert error_text("mape", 0.0) == "MAPE 0 %"
    assert error_text("smape", 3e-16) == "sMAPE < 0.0001 %"
    assert error_text("rmse", 1234.5, 4) == "RMSE 1234"
    assert error_text("of-another-package", 0.25) == "of-another-package 0.25"
