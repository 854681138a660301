"""The analysis of interrupt moderation against a reference, against exact identities, and against a second method."""

import math
from dataclasses import replace

import numpy as np
import pytest
from queue_cases import ARRIVALS, NEED, deviations, emp, moderated, rows, services

from p4perf.errors import UsageError
from p4perf.evaluation.papers.gebert2016 import printed_result
from p4perf.models.queue import Lattice, ModeratedQueue, distributions
from p4perf.models.queue import moderated as module
from p4perf.models.queue.distributions import objective_us
from p4perf.models.queue.moderated import second_method
from p4perf.models.queue.stationary import stationary_work
from p4perf.models.queue.work import NEGLIGIBLE, batch_kernel, collect

POINTS = [
    ("det", 8, 100, 300),
    ("pois", 7, 200, 1000),
    ("geo", 9, 50, 700),
    ("nbin", 7.4, 100, 900),
    ("nbin", 4, 60, 400),
]


def reference_queue(row, known):
    arrival = ARRIVALS[row["arrival"]](float(row["EA_us"]))
    return ModeratedQueue(arrival, known[row["service"]], int(row["tau_us"]), int(row["o_us"]), int(row["L_us"]))


@NEED
@pytest.mark.parametrize("row", rows(), ids=lambda row: row["id"])
def test_reference(row):
    result = reference_queue(row, services()).solve()
    assert deviations(row, result) == []
    assert result.packet_load == pytest.approx(float(row["rho_eq10"]), rel=2e-3)
    assert result.load == pytest.approx(float(row["rho_offered"]), rel=2e-3)
    assert result.mean_batch == pytest.approx(float(row["EX"]), rel=2e-3)


@NEED
def test_equations_as_printed_fail_the_reference():
    known = services()
    some = [row for row in rows() if row["id"] in ("R05", "R14", "R17", "R20", "R36")]
    assert all(deviations(row, printed_result(reference_queue(row, known))) for row in some)


@pytest.mark.parametrize(("arrival", "mean", "tau", "limit"), POINTS)
class TestIdentities:
    def test_wald(self, arrival, mean, tau, limit):
        found = collect(ARRIVALS[arrival](mean), distributions.deterministic(tau))
        assert found.mean_size * mean == pytest.approx(found.mean_interval, rel=1e-9)
        assert found.sizes.sum() == pytest.approx(1, abs=1e-12)
        assert found.reached.sum() == pytest.approx(found.mean_size, rel=1e-9)

    def test_loss_is_what_idle_time_leaves(self, arrival, mean, tau, limit):
        result = moderated(arrival, mean, tau, limit).solve()
        overhead = 4 / result.mean_interval
        implied = 1 - (result.utilisation - overhead) * mean / emp().mean
        assert result.loss == pytest.approx(max(implied, 0), abs=1e-9)
        assert abs(result.balance) < 1e-9
        assert result.residual < 1e-10

    def test_scaling(self, arrival, mean, tau, limit):
        """Twice as many steps of half the length; also without taking out the common divisor."""
        plain = moderated(arrival, mean, tau, limit)
        fine = ModeratedQueue(
            plain.arrival.stretched(2), plain.service.stretched(2), 2 * tau, 8, 2 * limit, step_us=0.5
        )
        once, twice = plain.solve(), fine.solve()
        reducible = fine._solve()
        for other in (twice, reducible):
            assert other.mean_us == pytest.approx(once.mean_us, rel=1e-9)
            assert other.loss == pytest.approx(once.loss, abs=1e-9)
            assert other.quantile_us(0.99) == once.quantile_us(0.99)

    def test_bounds(self, arrival, mean, tau, limit):
        result = moderated(arrival, mean, tau, limit).solve()
        assert result.delay.first * result.step_us >= 1 + 4 + 3
        assert result.max_us <= tau + limit - 1 + 16

    def test_second_method(self, arrival, mean, tau, limit):
        queue = moderated(arrival, mean, tau, limit)
        agreement = second_method(queue, queue.solve().seen)
        assert agreement.largest < 1e-9
        assert agreement.residual < 1e-11


def test_constant_times_by_hand():
    """Delays are 100, 70, 40 and 10 plus the overhead and one to four service times."""
    result = ModeratedQueue(distributions.deterministic(30), emp(), 100, 4, 5200).solve()
    assert result.mean_us == pytest.approx(77.125, rel=1e-9)
    assert result.mean_batch == pytest.approx(4, rel=1e-9)
    assert result.mean_interval == pytest.approx(120, rel=1e-9)
    alone = ModeratedQueue(distributions.deterministic(100), emp(), 100, 4, 5200).solve()
    assert alone.mean_us == pytest.approx(111.25, rel=1e-9)


def test_half_of_the_packets_are_lost_in_overload():
    result = moderated("nbin", 4, 200, 5200).solve()
    assert result.utilisation == pytest.approx(1, abs=1e-9)
    assert result.loss == pytest.approx(0.45912, abs=1e-5)


def test_a_random_interval_and_overhead():
    """An interval that is random with one value is that value; mixtures lie between."""
    queue = moderated("geo", 9, 50, 700)
    low, high = queue.solve(), replace(queue, moderation=60).solve()
    both = np.zeros(11)
    both[[0, 10]] = 0.5
    mixed = replace(queue, moderation=Lattice(both, 50)).solve()
    assert low.mean_us < mixed.mean_us < high.mean_us
    assert abs(mixed.balance) < 1e-9
    spread = replace(queue, overhead=Lattice(np.array([0.5, 0, 0, 0, 0, 0, 0, 0, 0.5]))).solve()
    assert spread.mean_us > low.mean_us
    assert abs(spread.balance) < 1e-9


def test_a_large_limit_is_as_good_as_none():
    with_limit = moderated("nbin", 9, 100, 5200).solve()
    without = moderated("nbin", 9, 100, None).solve()
    assert without.mean_us == pytest.approx(with_limit.mean_us, rel=1e-9)
    assert without.loss == 0


@pytest.mark.parametrize("mean", [7.2, 7.45, 7.54, 7.6])
def test_near_a_load_of_one(mean):
    result = moderated("nbin", mean, 100, 3000).solve()
    assert result.residual < 1e-10
    assert abs(result.balance) < 1e-9


def test_the_class_of_states_that_is_reached():
    """Constant times: the work runs through a few states for ever, and all others are never reached."""
    for mean, tau, limit in ((10, 100, 300), (3, 50, 200), (5, 41, 333)):
        queue = ModeratedQueue(distributions.deterministic(mean), distributions.deterministic(7), tau, 3, limit)
        result = queue._solve()
        assert result.residual < 1e-12
        assert abs(result.balance) < 1e-12


class TestMutations:
    """Each wrong equation moves the result out of the tolerance: the checks can fail."""

    @pytest.fixture
    def right(self):
        return moderated("nbin", 8, 100, 300).solve()

    def test_without_overhead(self, right):
        wrong = moderated("nbin", 8, 100, 300, overhead=0).solve()
        assert wrong.mean_us < 0.9 * right.mean_us
        assert wrong.loss < 0.5 * right.loss

    def test_interval_independent_of_the_size(self, monkeypatch):
        """Eq. 4: with constant interarrival times, a recurrence time in equilibrium breaks Wald's identity."""

        def equilibrium(arrival, moderation):
            found = collect(arrival, moderation)
            ahead = np.maximum(1 - np.cumsum(arrival.dense(arrival.last)), 0) / arrival.mean
            return replace(found, size_interval=found.sizes[:, None] * ahead, first_interval=moderation.first)

        right = moderated("det", 7, 100, 5200).solve()
        monkeypatch.setattr(module, "collect", equilibrium)
        wrong = moderated("det", 7, 100, 5200)._solve()
        assert right.loss == pytest.approx(0.0713, rel=2e-3)
        assert wrong.loss == pytest.approx(0.0897, rel=2e-3)

    @pytest.mark.parametrize(("mean", "limit", "change"), [(8, 300, -0.02), (30, 5200, -0.093)])
    def test_waiting_swept_instead_of_conditioned(self, mean, limit, change, monkeypatch):
        """Eq. 5: packets that are not in the batch count as not waiting."""

        def swept(arrival, moderation):
            found = collect(arrival, moderation)
            waiting = found.waiting.copy()
            waiting[:, 0] = 1 - found.reached
            return replace(found, waiting=waiting * found.reached[:, None])

        right = moderated("nbin", mean, 100, limit).solve()
        monkeypatch.setattr(module, "collect", swept)
        wrong = moderated("nbin", mean, 100, limit).solve()
        assert wrong.mean_us / right.mean_us - 1 == pytest.approx(change, abs=0.003)


@pytest.mark.parametrize(
    ("arrival", "mean", "tau", "limit", "delay", "loss"),
    [
        ("nbin", 8, 100, 300, -0.26, None),
        ("nbin", 8, 200, 5200, -0.11, None),
        ("pois", 7, 200, 5200, -0.95, 0.0),
        ("nbin", 30, 100, 5200, -0.20, None),
        ("nbin", 4, 200, 5200, 0.024, 0.02),
        ("det", 30, 100, 5200, -0.20, None),
    ],
)
def test_deviations_of_the_printed_equations(arrival, mean, tau, limit, delay, loss):
    queue = moderated(arrival, mean, tau, limit)
    exact, printed = queue.solve(), printed_result(queue)
    assert printed.mean_us / exact.mean_us - 1 == pytest.approx(delay, abs=0.006)
    assert printed.notes
    if loss is not None:
        assert printed.loss == pytest.approx(loss, abs=0.002)


class TestRefusals:
    def test_load_without_a_limit(self):
        with pytest.raises(UsageError, match="grows for ever"):
            moderated("nbin", 7, 100, None).solve()

    def test_negative_times(self):
        with pytest.raises(UsageError, match="negative"):
            moderated("det", 8, 100, 300, overhead=-1)
        with pytest.raises(UsageError, match="negative"):
            distributions.from_samples([1, -2])
        with pytest.raises(UsageError, match="negative"):
            Lattice(np.ones(1), -3)

    def test_probabilities(self):
        with pytest.raises(UsageError, match=r"sum to 0\.9"):
            Lattice(np.array([0.4, 0.5]))

    def test_a_coarse_lattice(self):
        with pytest.raises(UsageError, match="too coarse"):
            ModeratedQueue(distributions.deterministic(0.3), emp(), 100)
        with pytest.raises(UsageError, match="finer lattice"):
            distributions.geometric(0.7)

    def test_others(self):
        with pytest.raises(UsageError, match="one step"):
            moderated("det", 8, 0, 300).solve()
        with pytest.raises(UsageError, match="limit"):
            moderated("det", 8, 100, 0)
        with pytest.raises(UsageError, match="more than"):
            ModeratedQueue(distributions.exponential(1), distributions.deterministic(1), 100_000, 0, 100).solve()
        with pytest.raises(UsageError, match="every packet"):
            moderated("det", 8, 100, 4).solve()


def test_objectives():
    result = moderated("geo", 9, 50, 700).solve()
    assert objective_us(result, "mean") == result.mean_us
    assert objective_us(result, "p99.9") == result.quantile_us(0.999)
    for wrong in ("max", "p0", "p100", "99"):
        with pytest.raises(UsageError):
            objective_us(result, wrong)


def test_the_work_is_a_distribution():
    queue = moderated("geo", 7.5, 50, 150)
    kernel = batch_kernel(collect(queue.arrival, queue.tau), queue.service, queue.interrupt, 150)
    work = stationary_work(kernel)
    assert work.sum() == pytest.approx(1, abs=1e-12)
    assert (work >= 0).all()
    assert math.isclose(NEGLIGIBLE, 1e-17)
