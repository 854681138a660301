"""The compiled simulation: independent of the analysis, exact where a result is known, and able to replay traces."""

import numpy as np
import pytest
from queue_cases import emp, moderated

from p4perf.errors import UsageError
from p4perf.models.queue import ModeratedQueue, PollQueue, distributions
from p4perf.models.queue.simulation import Estimated, simulate


def test_constant_times_by_hand():
    seen = simulate(
        ModeratedQueue(distributions.deterministic(30), distributions.deterministic(7), 100, 4, 5200), 160_000
    )
    assert seen.mean_us.value == pytest.approx(76.5, rel=1e-9)
    assert seen.mean_us.half_width == pytest.approx(0, abs=1e-9)
    assert sorted(np.flatnonzero(seen.delay.probabilities) + seen.delay.first) == [42, 65, 88, 111]
    assert seen.mean_batch.value == 4
    assert seen.loss.value == 0


@pytest.mark.parametrize(("arrival", "mean", "tau", "limit"), [("nbin", 8, 100, 300), ("pois", 6, 50, 200)])
def test_it_agrees_with_the_analysis(arrival, mean, tau, limit):
    queue = moderated(arrival, mean, tau, limit)
    result, seen = queue.solve(), simulate(queue, 1_600_000, seed=2)
    assert result.mean_us == pytest.approx(seen.mean_us.value, abs=2 * seen.mean_us.half_width)
    assert result.std_us == pytest.approx(seen.std_us.value, abs=2 * seen.std_us.half_width)
    assert result.loss == pytest.approx(seen.loss.value, abs=2 * seen.loss.half_width)
    assert result.utilisation == pytest.approx(seen.utilisation.value, abs=2 * seen.utilisation.half_width + 1e-9)
    assert result.mean_batch == pytest.approx(seen.mean_batch.value, abs=2 * seen.mean_batch.half_width)
    for share, found in seen.quantiles_us.items():
        assert result.quantile_us(share) == pytest.approx(found.value, abs=max(1.0, 2 * found.half_width))
    grid = np.arange(limit + tau + 20)
    ours, theirs = (np.cumsum(d.dense(grid.size)) for d in (result.delay, seen.delay))
    assert np.abs(ours - theirs).max() < 0.01


def test_the_same_seed_gives_the_same():
    queue = moderated("nbin", 8, 100, 300)
    a, b, c = (simulate(queue, 50_000, seed=seed) for seed in (5, 5, 6))
    assert a.mean_us == b.mean_us
    assert a.mean_us != c.mean_us


def test_a_trace_of_bursts():
    """Ten packets at once and a pause: worse than independent gaps of the same distribution."""
    gaps = [0.0] * 9 + [100.0]
    queue = ModeratedQueue(distributions.from_samples(gaps), emp(), 20, 4, 300)
    burst, independent = simulate(queue, 200_000, gaps=gaps), simulate(queue, 200_000)
    assert burst.mean_batch.value == 10
    assert burst.mean_us.half_width < 0.5
    assert independent.std_us.value > burst.std_us.value
    polled = simulate(PollQueue(distributions.from_samples(gaps), emp(), 0, 8, 8), 100_000, gaps=gaps)
    assert polled.loss.value == pytest.approx(0.2, abs=0.01)


def test_gaps_between_the_steps_keep_the_rate():
    queue = ModeratedQueue(distributions.deterministic(8), emp(), 100, 4, 300)
    seen = simulate(queue, 160_000, gaps=[8.3])
    assert seen.mean_batch.value == pytest.approx(13, abs=0.2)
    rounded = simulate(queue, 160_000, gaps=[8.3] * 10)
    assert rounded.utilisation.value == pytest.approx((7.25 + 4 / 12.5) / 8.3, abs=0.01)


def test_refusals():
    queue = moderated("nbin", 8, 100, 300)
    for gaps in ([], [-1.0, 2.0], [0.0, 0.0], [float("nan")]):
        with pytest.raises(UsageError):
            simulate(queue, 1000, gaps=gaps)
    with pytest.raises(UsageError):
        simulate(queue, 3)


def test_intervals():
    found = Estimated.of([1.0, 2.0, 3.0])
    assert found.value == 2
    assert found.half_width == pytest.approx(4.303 / np.sqrt(3), rel=1e-3)
    assert Estimated.of([1.0]).half_width == float("inf")
