"""The analysis of poll mode against simulations of millions of packets, and against each other."""

import numpy as np
import pytest
from queue_cases import emp

from p4perf.errors import UsageError
from p4perf.models.queue import Bernoulli, Lattice, Poisson, PollQueue, distributions
from p4perf.models.queue.simulation import simulate

TABLE = [
    (Bernoulli(20), 10, 128, 0, 32.133, 0.010, 0.0, 0.0),
    (Bernoulli(10), 10, 128, 0, 75.730, 0.091, 0.0, 0.0),
    (Bernoulli(7.5), 10, 128, 0, 805.4, 9.1, 0.00979, 0.00041),
    (Bernoulli(7), 10, 128, 0, 1068.61, 0.47, 0.07415, 0.00043),
    (Bernoulli(8), 40, 64, 0, 643.50, 0.51, 0.05914, 0.00029),
    (distributions.deterministic(8), 10, 128, 0, 168.69, 0.30, 0.0, 0.0),
    (distributions.poisson_pmf(8), 10, 128, 0, 176.28, 0.48, 0.0, 0.0),
    (distributions.poisson_pmf(8), 40, 64, 0, 681.67, 0.15, 0.05889, 0.00018),
    (Bernoulli(20), 10, 128, 15, 40.973, 0.011, 0.0, 0.0),
    (Bernoulli(10), 10, 128, 15, 77.768, 0.059, 0.0, 0.0),
]
"""Arrivals, cost of a batch, ring, idle cost; mean and loss of 30 million simulated packets, half-widths of both."""


@pytest.mark.parametrize(("arrival", "cost", "ring", "idle", "mean", "mean_ci", "loss", "loss_ci"), TABLE)
def test_reference(arrival, cost, ring, idle, mean, mean_ci, loss, loss_ci):
    result = PollQueue(arrival, emp(), cost, ring, empty_poll=4, idle_cost=idle).solve()
    assert result.mean_us == pytest.approx(mean, abs=1.5 * mean_ci)
    assert result.loss == pytest.approx(loss, abs=1.5 * loss_ci + 1e-12)
    assert result.residual < 1e-10
    assert abs(result.balance) < 1e-9


def test_quantiles():
    result = PollQueue(Bernoulli(10), emp(), 10, 128, empty_poll=4).solve()
    assert [result.quantile_us(q) for q in (0.5, 0.99, 0.999)] == [69, 194, 259]


def test_memory_of_the_arrivals_matters():
    """Without it, the delay of constant interarrival times would be a third too long."""
    forgetful = PollQueue(Bernoulli(8), emp(), 10, 128, empty_poll=4).solve()
    constant = PollQueue(distributions.deterministic(8), emp(), 10, 128, empty_poll=4).solve()
    assert forgetful.mean_us / constant.mean_us == pytest.approx(1.31, abs=0.01)


@pytest.mark.parametrize(("mean", "ring", "burst"), [(12, 64, 8), (6, 40, 8), (9, 20, 32)])
def test_both_chains_agree(mean, ring, burst):
    """Geometric interarrival times have no memory: the chain with the residual time must say the same."""
    without = PollQueue(Bernoulli(mean), emp(), 5, ring, burst, 3).solve()
    geometric = distributions.geometric(mean)
    cut = Lattice(geometric.probabilities[:250] / geometric.probabilities[:250].sum(), 1)
    renewal = PollQueue(cut, emp(), 5, ring, burst, 3).solve()
    assert renewal.mean_us == pytest.approx(without.mean_us, rel=1e-6)
    assert renewal.loss == pytest.approx(without.loss, abs=1e-7)
    assert renewal.quantile_us(0.99) == without.quantile_us(0.99)
    assert renewal.mean_batch == pytest.approx(without.mean_batch, rel=1e-6)


def test_a_poisson_process_does_not_depend_on_the_lattice():
    coarse = PollQueue(Poisson(8), emp(), 10, 128, empty_poll=4).solve()
    fine = PollQueue(Poisson(32), emp().stretched(4), 40, 128, empty_poll=16, step_us=0.25).solve()
    assert fine.mean_us == pytest.approx(coarse.mean_us, rel=1e-3)
    assert fine.load == pytest.approx(coarse.load)


@pytest.mark.parametrize(
    "arrival", [Poisson(9), Bernoulli(9), distributions.poisson_pmf(9), distributions.negative_binomial(7)]
)
def test_simulation(arrival):
    queue = PollQueue(arrival, emp(), 10, 32, 8, 2)
    result, seen = queue.solve(), simulate(queue, 600_000, seed=3)
    assert result.mean_us == pytest.approx(seen.mean_us.value, abs=2 * seen.mean_us.half_width + 0.05)
    assert result.loss == pytest.approx(seen.loss.value, abs=2 * seen.loss.half_width + 1e-6)
    assert result.utilisation == pytest.approx(seen.utilisation.value, abs=2 * seen.utilisation.half_width + 1e-6)
    assert result.mean_batch == pytest.approx(seen.mean_batch.value, abs=2 * seen.mean_batch.half_width)
    assert result.std_us == pytest.approx(seen.std_us.value, rel=0.05)


def test_batches_behind_an_empty_look_cost_more():
    queue = PollQueue(Poisson(20), emp(), 10, 64, 8, 2, idle_cost=12)
    result, seen = queue.solve(), simulate(queue, 600_000, seed=3)
    assert result.mean_us == pytest.approx(seen.mean_us.value, abs=2 * seen.mean_us.half_width + 0.05)
    assert result.utilisation == pytest.approx(seen.utilisation.value, abs=2 * seen.utilisation.half_width + 1e-6)
    plain = PollQueue(Poisson(20), emp(), 10, 64, 8, 2).solve()
    assert 5 < result.mean_us - plain.mean_us < 12
    with pytest.raises(UsageError, match="no memory"):
        PollQueue(distributions.poisson_pmf(9), emp(), 10, idle_cost=3)


def test_one_packet_at_a_time_is_a_queue_without_batches():
    """Constant work of 3, arrivals every 5 steps: each packet waits for the next poll, then for its own service."""
    result = PollQueue(distributions.deterministic(5), distributions.deterministic(3), 0, 16, 1, 1).solve()
    assert result.delay.probabilities.tolist() == [1.0]
    assert result.mean_us == 4
    assert result.loss == 0


def test_saturated():
    """All batches are full, so the loss is what the processor cannot do."""
    queue = PollQueue(Bernoulli(4), emp(), 16, 256)
    result = queue.solve()
    assert result.load == pytest.approx((16 / 32 + 7.25) / 4, rel=1e-5)
    assert result.loss == pytest.approx(1 - 1 / result.load, rel=1e-6)
    assert result.mean_batch == pytest.approx(32)
    assert result.utilisation == pytest.approx(1)


def test_refusals():
    for wrong in ({"ring": 0}, {"burst": 0}, {"empty_poll": 0}, {"batch_cost": -1}, {"step_us": 0}):
        with pytest.raises(UsageError):
            PollQueue(Bernoulli(8), emp(), **wrong)
    for mean in (0, -1, np.inf):
        with pytest.raises(UsageError):
            Poisson(mean)
    with pytest.raises(UsageError):
        Bernoulli(0.5)
    with pytest.raises(UsageError, match="coarse"):
        PollQueue(Poisson(0.1), emp())
    with pytest.raises(UsageError, match="states"):
        PollQueue(distributions.negative_binomial(300), emp(), ring=4096).solve()
