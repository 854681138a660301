from __future__ import annotations

import numpy as np
import pytest

from p4perf.errors import UsageError
from p4perf.evaluation.error_metrics import MAPE, RMSE, SMAPE, error_metric


def test_smape_is_a_mean_of_ratios() -> None:
    assert SMAPE([1.0, 3.0], [1.0, 1.0]) == pytest.approx((0 + 2 / 4) / 2)
    assert SMAPE([0.0, 0.0], [0.0, 0.0]) == 0.0
    assert SMAPE([0.0], [5.0]) == 1.0
    assert SMAPE([-1.0], [1.0]) == 1.0


def test_mape_and_rmse() -> None:
    assert MAPE([2.0, 4.0], [1.0, 4.0]) == pytest.approx(0.25)
    assert MAPE([0.0], [1.0]) == np.inf
    assert MAPE([0.0], [0.0]) == 0.0
    assert RMSE([0.0, 0.0], [3.0, 4.0]) == pytest.approx(np.sqrt(12.5))


@pytest.mark.parametrize("metric", [SMAPE, MAPE, RMSE])
def test_nan_is_not_hidden(metric) -> None:
    assert not np.isfinite(metric([1.0, 1.0], [1.0, np.nan]))


def test_mask_leaves_padding_out() -> None:
    y, f = np.array([[1.0, 9.0]]), np.array([[1.0, np.nan]])
    assert SMAPE.compute(y, f, np.array([[True, False]])).tolist() == [0.0]


def test_unknown() -> None:
    assert error_metric("mape") is MAPE
    with pytest.raises(UsageError, match="known: smape, mape, rmse"):
        error_metric("emd")
