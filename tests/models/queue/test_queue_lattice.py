"""Distributions on the lattice: moments, convolution with error control, and discretisation that keeps the mean."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p4perf.errors import NoVerdictError, UsageError
from p4perf.models.queue import Lattice, ModeratedQueue, convolve, distributions
from p4perf.models.queue.distributions import powers
from p4perf.models.queue.moderated import tune


@pytest.mark.parametrize("mean", [1.5, 8, 30.25, 400])
def test_shapes(mean):
    """Means and standard deviations as the names promise."""
    wanted = {
        distributions.poisson_pmf: np.sqrt(mean),
        distributions.geometric: mean * np.sqrt(1 - 1 / mean),
        distributions.negative_binomial: mean,
    }
    for shape, std in wanted.items():
        found = shape(mean)
        assert found.mean == pytest.approx(mean, rel=1e-9)
        assert found.std == pytest.approx(std, rel=1e-9)
    assert distributions.geometric(mean).first == 1
    assert distributions.negative_binomial(mean).first == 0
    assert distributions.deterministic(mean).mean == pytest.approx(mean, rel=1e-12)
    assert distributions.deterministic(mean).std <= 0.5


@pytest.mark.parametrize("mean", [0.6, 3.3, 8, 100])
def test_continuous_times_keep_their_mean(mean):
    for found, std in ((distributions.exponential(mean), mean), (distributions.gamma(mean, 0.5), 0.5 * mean)):
        assert found.mean == pytest.approx(mean, rel=1e-9)
        assert std**2 <= found.variance * (1 + 1e-9)
        assert found.variance <= std**2 + 0.25
    assert distributions.gamma(mean, 0).mean == pytest.approx(mean)


def test_the_lattice_of_a_poisson_process_hardly_matters():
    """Half the step changes the delay at a load of 0.94 by less than 1 %; rounding up would take a quarter off."""
    service = distributions.deterministic(7)

    def mean_us(factor, arrival):
        queue = ModeratedQueue(arrival, service.stretched(factor), 100 * factor, 4 * factor, 3000 * factor, 1 / factor)
        return queue.solve().mean_us

    coarse, fine = mean_us(1, distributions.exponential(7.8)), mean_us(2, distributions.exponential(15.6))
    assert coarse == pytest.approx(fine, rel=0.01)
    up = distributions.exponential(7.8)
    rounded_up = Lattice(np.diff(-np.exp(-np.arange(400) / 7.8)) / (1 - np.exp(-399 / 7.8)), 1)
    assert rounded_up.mean == pytest.approx(up.mean + 0.5, abs=0.02)
    assert mean_us(1, rounded_up) < 0.9 * coarse


@settings(max_examples=50)
@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=300),
    st.lists(st.floats(0, 1), min_size=1, max_size=300),
)
def test_convolution(a, b):
    a, b = np.array(a) + 1e-6, np.array(b) + 1e-6
    a, b = a / a.sum(), b / b.sum()
    found = convolve(a, b)
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(1, abs=1e-12)
    assert np.abs(found - np.convolve(a, b)).max() < 1e-14


def test_the_tail_of_a_transform_is_not_noise():
    """A sum of FFT rounding below the error bound is zero, not a small probability."""
    a = np.exp(-np.arange(400.0))
    a /= a.sum()
    found = convolve(a, a)
    exact = np.convolve(a, a)
    assert np.abs(found - exact).max() < 1e-15
    assert (found[200:] == 0).all()


def test_powers():
    base = distributions.poisson_pmf(3).dense(60)
    rows = powers(base, 4, 60)
    for i in range(1, 5):
        assert np.abs(rows[i] - distributions.poisson_pmf(3 * i).dense(60)).max() < 1e-13


def test_data():
    found = distributions.from_samples([1.5, 3.0], [1, 3])
    assert found.mean == pytest.approx((1.5 + 9) / 4)
    assert found.dense(4).tolist() == [0, 0.125, 0.125, 0.75]
    assert distributions.from_samples([0.1 * 30, 7 * 0.1 / 0.1]).dense(8)[3] == pytest.approx(0.5)
    for wrong in ([], [np.nan], [-1]):
        with pytest.raises(UsageError):
            distributions.from_samples(wrong)
    with pytest.raises(UsageError, match="counts"):
        distributions.from_samples([1, 2], [1])


def test_quantiles():
    found = Lattice(np.array([0.5, 0.25, 0.25]), 10)
    assert [found.quantile(q) for q in (0.1, 0.5, 0.51, 0.75, 0.9)] == [10, 10, 11, 11, 12]
    with pytest.raises(UsageError):
        found.quantile(1)
    assert found.cumulative[-1] == 1
    assert found.divisor() == 1
    assert found.stretched(3).divisor() == 3
    assert found.plus(found).mean == pytest.approx(2 * found.mean)


class TestTuning:
    QUEUE = ModeratedQueue(distributions.exponential(10), distributions.deterministic(7), 1, 4, 400)

    def test_the_best_interval(self):
        """No interval nearby is better, and both very short and long ones are worse."""
        found = tune(self.QUEUE, "mean", max_loss=1e-6, low=1, high=150)
        values = {steps: value for steps, value, _ in found.tried}
        assert found.objective_us == min(values.values())
        assert found.result.loss <= 1e-6
        assert values[1] > found.objective_us
        assert values[150] > 1.5 * found.objective_us
        for steps in (found.moderation - 1, found.moderation + 1):
            assert values.get(steps, np.inf) >= found.objective_us

    def test_a_bound_on_the_loss_costs_delay(self):
        loose = tune(self.QUEUE, "p99", max_loss=0.5, low=1, high=150)
        strict = tune(self.QUEUE, "p99", max_loss=1e-9, low=1, high=150)
        assert strict.objective_us >= loose.objective_us

    def test_no_answer(self):
        overloaded = ModeratedQueue(distributions.exponential(5), distributions.deterministic(7), 1, 4, 400)
        with pytest.raises(NoVerdictError, match="keeps the loss"):
            tune(overloaded, "mean", low=1, high=100)
        endless = ModeratedQueue(distributions.exponential(5), distributions.deterministic(7), 1, 4)
        with pytest.raises(NoVerdictError):
            tune(endless, "mean", low=1, high=100)
        with pytest.raises(UsageError):
            tune(self.QUEUE, "mean", low=10, high=1)
