"""Large systems on two grids against a direct solution, and the sums in C against plain numpy."""

import numpy as np
import pytest
from queue_cases import ARRIVALS, emp, moderated

from p4perf.models.queue import Lattice, ModeratedQueue, _sums, convolve, distributions, stationary, twogrid
from p4perf.models.queue.direct import Changes, admit, bands, cross, mixture, powers_direct, smear
from p4perf.models.queue.distributions import powers
from p4perf.models.queue.moderated import second_method
from p4perf.models.queue.work import batch_kernel, collect, follow

LARGE = [
    ("det", 7.4, 200, 2000),
    ("pois", 7.6, 100, 2000),
    ("geo", 7.35, 200, 1500),
    ("nbin", 7.15, 300, 2500),
    ("nbin", 8, 200, 5200),
    ("nbin", 5, 200, 5200),
    ("geo", 7, 100, 3000),
]
"""Loads from 0.93 to 1.47, most of them near one."""


def kernel_of(queue):
    batches = collect(queue.arrival, queue.tau)
    return batches, batch_kernel(batches, queue.service, queue.interrupt, queue.limit)


def both(kernel, theta=None):
    """The stationary work by two grids and by one LU, from the same window."""
    change, first = kernel.unlimited
    theta = stationary.decay(change, first) if theta is None else theta
    low, high = stationary._window(kernel, theta, stationary._highest(kernel))
    direct = np.maximum(stationary._solve(kernel, change, first, low, high), 0)
    found = twogrid.stationary_by_two_grids(kernel, low, high, theta)
    return None if found is None else found / found.sum(), direct / direct.sum()


@pytest.mark.parametrize(("arrival", "mean", "tau", "limit"), LARGE)
def test_two_grids_and_one_lu_agree(arrival, mean, tau, limit):
    found, direct = both(kernel_of(moderated(arrival, mean, tau, limit))[1])
    assert np.abs(np.cumsum(found) - np.cumsum(direct)).max() < 1e-11


def test_small_probabilities_are_exact():
    """Far up, where the work comes once in 1e12 batches, two grids are as exact as near zero."""
    kernel = kernel_of(moderated("nbin", 8, 200, 5200))[1]
    found, direct = both(kernel)
    for share in (1e-3, 1e-6, 1e-9, 1e-12):
        at = int(np.flatnonzero(found > share)[-1])
        assert found[at] == pytest.approx(direct[at], rel=1e-6)


@pytest.mark.parametrize("theta", [0.0, -1e-3, 2e-3])
def test_the_weights_do_not_matter(theta):
    kernel = kernel_of(moderated("geo", 7.4, 100, 1200))[1]
    change, first = kernel.unlimited
    states = (0, stationary._highest(kernel))
    found = twogrid.stationary_by_two_grids(kernel, *states, theta)
    direct = np.maximum(stationary._solve(kernel, change, first, *states), 0)
    assert np.abs(np.cumsum(found) / found.sum() - np.cumsum(direct) / direct.sum()).max() < 1e-10


def test_a_random_overhead_and_interval_near_the_limit():
    spread = Lattice(np.array([0.4, 0, 0.3, 0.3]), 2)
    queue = ModeratedQueue(ARRIVALS["nbin"](7.5), emp(), Lattice(np.array([0.5, 0.5]), 200), spread, 1500)
    found, direct = both(kernel_of(queue)[1])
    assert np.abs(np.cumsum(found) - np.cumsum(direct)).max() < 1e-11


def test_a_large_system_near_a_load_of_one_against_the_second_method(monkeypatch):
    """It is solved on two grids, not by the LU that stands behind them."""
    queue = moderated("nbin", 7.45, 100, 1000)
    monkeypatch.setattr(stationary, "_solve", lambda *_: pytest.fail("two grids did not find it"))
    result = queue.solve()
    assert result.residual < 1e-12
    assert abs(result.balance) < 1e-11
    agreement = second_method(queue, result.seen)
    assert agreement.largest < 1e-9


def test_changes_that_are_not_smooth_are_left_to_the_direct_solution():
    """Nearly all times are multiples of ten steps: the states of a cell are not reached alike."""
    queue = ModeratedQueue(
        distributions.from_samples([10, 20], [0.5, 0.5]),
        distributions.from_samples([10, 21], [0.99, 0.01]),
        100,
        0,
        3000,
    )
    kernel = kernel_of(queue)[1]
    change, first = kernel.unlimited
    assert twogrid._cell_width(change, first) < 10
    result = queue.solve()
    assert result.residual < 1e-10


def test_what_does_not_converge_is_not_given_out(monkeypatch):
    kernel = kernel_of(moderated("geo", 7.4, 100, 1200))[1]
    highest = stationary._highest(kernel)
    monkeypatch.setattr(twogrid, "_MOST", 2)
    assert twogrid.stationary_by_two_grids(kernel, 0, highest, 0.0) is None
    monkeypatch.undo()
    monkeypatch.setattr(twogrid, "_WRONG", 1e-30)
    assert twogrid.stationary_by_two_grids(kernel, 0, highest, 0.0) is None


@pytest.mark.parametrize("limit", [200, 300, 5200])
def test_the_residual_sees_a_wrong_work(limit):
    """Moving a thousandth of the mass is seen in the equations, near the limit and far from it."""
    queue = moderated("nbin", 7.4, 100, limit)
    batches, kernel = kernel_of(queue)
    right = stationary.stationary_work(kernel)
    assert follow(right, kernel, batches).residual < 1e-12
    for share in (0.1, 0.5, 0.9):
        wrong = right.copy()
        at = int(np.searchsorted(np.cumsum(right), share))
        moved = 1e-3 * wrong[at]
        wrong[at] -= moved
        wrong[at + 20 if at + 20 < wrong.size else at - 20] += moved
        assert follow(wrong, kernel, batches).residual > 0.5 * moved


@pytest.mark.parametrize("theta", [-0.02, -1e-3, 0.01])
@pytest.mark.parametrize(("arrival", "mean", "tau"), [("nbin", 7.15, 500), ("pois", 7.6, 100), ("det", 7.5, 50)])
def test_weighted_changes_are_the_changes_with_weights(arrival, mean, tau, theta):
    batch = kernel_of(moderated(arrival, mean, tau, 5200))[1].batch
    plain, weighted = batch.changes(300), batch.changes(300, theta)
    at = 1 - batch.closed.size - batch.interval + np.arange(plain.steps.shape[1])
    wanted = plain.steps * np.exp(theta * (at + np.arange(plain.steps.shape[0])[:, None]))
    assert np.abs(weighted.steps - wanted).max() < 1e-15 * max(np.abs(wanted).max(), 1)
    assert np.abs(weighted.refused - plain.refused * np.exp(theta * at[: batch.closed.size])).max() < 1e-15


class TestSums:
    RANDOM = np.random.default_rng(3)

    def rows(self, *shape):
        return self.RANDOM.random(shape)

    @pytest.mark.parametrize("taps", [1, 5, 60, 90, 600])
    def test_powers_and_mixtures(self, taps):
        base = self.rows(taps)
        base /= base.sum()
        length = 900
        wanted = [np.eye(1, length)[0]]
        for _ in range(6):
            wanted.append(np.convolve(wanted[-1], base)[:length])
        assert np.abs(powers(base, 6, length) - wanted).max() < 1e-14
        weights = self.rows(7, 11)
        found = mixture(weights, base, 10_000)
        exact = np.zeros(6 * (taps - 1) + 11)
        power = np.ones(1)
        for row in weights:
            exact[: power.size + 10] += np.convolve(row, power)
            power = np.convolve(power, base)
        assert np.abs(found - exact[: found.size]).max() < 1e-13
        assert exact[found.size :].sum() < 1e-12

    def test_powers_end_where_they_are_negligible(self):
        base = np.zeros(40)
        base[10:] = 1 / 30
        rows = powers_direct(base, 50, 100, 1e-6)
        assert rows.shape[0] < 11
        assert rows[-1].sum() >= 1e-6

    @pytest.mark.parametrize("taps", [9, 80])
    def test_smeared_rows(self, taps):
        rows, base = self.rows(3, 30), self.rows(taps)
        out = np.zeros((3, 30 + taps - 1))
        smear(rows, base, out)
        assert np.abs(out - [np.convolve(row, base) for row in rows]).max() < 1e-13

    @pytest.mark.parametrize("room", [0, 1, 3, 25])
    def test_packets_are_admitted_below_the_limit(self, room):
        service = np.array([0, 0, 0.5, 0.25, 0, 0.25])
        front, beyond = self.rows(room), self.rows(2)
        accepted, refused = admit(front, beyond, service, 4)
        before, over = front, np.pad(beyond, (0, refused.shape[1] - 2))
        for i in range(4):
            assert np.abs(accepted[i] - before).max(initial=0) < 1e-14
            assert np.abs(refused[i] - over).max() < 1e-14
            behind = convolve(before, service) if room else np.zeros(0)
            before, more = behind[:room], behind[room:]
            over = over + np.pad(more, (0, over.size - more.size))

    def test_rows_of_changes(self):
        refused, steps = self.rows(4), self.rows(6, 7)
        changes = Changes(refused, steps)
        table = np.zeros((7, changes.length))
        table[:, :4] = refused
        for d in range(6):
            table[d + 1 :, d : d + 7] += steps[d]
        rooms, cells = np.array([0, 0, 2, 5, 9]), np.array([0, 1, 1, 0, 1])
        weights, shifts = self.rows(5), np.array([3, 0, 1, 2, 0])
        wanted = np.zeros((2, changes.length + 3))
        for room, cell, weight, shift in zip(rooms, cells, weights, shifts, strict=True):
            wanted[cell, shift : shift + changes.length] += weight * table[min(room, 6)]
        found = changes.sums(rooms, weights, cells, shifts, wanted.shape)
        assert np.abs(found - wanted).max() < 1e-14

    def test_few_products_make_up_a_smooth_matrix(self):
        at = np.arange(90.0)
        matrix = np.exp(-0.05 * at[:60, None]) / (10 + at[:60, None] + at)
        found = cross(matrix.copy())
        assert found is not None
        columns, rows = found
        assert columns.shape[0] == rows.shape[0] < 18
        assert np.abs(columns.T @ rows - matrix).max() < 1e-16
        assert cross(self.rows(30, 40)) is None
        none = cross(np.zeros((6, 9)))
        assert none is not None
        assert none[0].shape == (0, 6)

    def test_bands_of_cells(self):
        rows, bounds = self.rows(2, 9), np.array([0, 1, 2, 4, 6, 9])
        which, first = np.array([0, 1, 1, 0]), np.array([-2, 0, 1, 5])
        cells = np.array([0, 1, 2, 4])
        out = np.zeros((5, 9))
        bands(np.cumsum(rows, axis=1), which, first, cells, bounds, 3, 7, out)
        wanted = np.zeros((5, 9))
        for cell, row, start in zip(cells, which, first, strict=True):
            for other in range(max(cell - 3, 0), min(cell + 4, 5)):
                states = np.arange(bounds[other], bounds[other + 1]) - start
                states = states[(states >= 0) & (states < 9)]
                wanted[cell, 2 + 3 + other - cell] = -rows[row, states].sum()
        assert np.abs(out - wanted).max() < 1e-14

    def test_arrays_that_do_not_fit_are_refused(self):
        with pytest.raises(ValueError, match="do not fit"):
            _sums.cross(np.ones((4, 5)), 5, 1e-9, np.zeros((2, 3)), np.zeros((2, 5)))
        for which, cells, span, offset in (([0, 2], [0, 1], 3, 1), ([0, 1], [0, 4], 3, 1), ([0, 1], [0, 1], 3, 2)):
            which, first, cells = (np.array(values, dtype=np.int64) for values in (which, [0, 0], cells))
            bounds = np.array([0, 2, 4])
            with pytest.raises(ValueError, match="do not fit"):
                _sums.bands(np.ones((2, 5)), 5, which, first, cells, bounds, 1, span, np.zeros((4, 4)), offset, 4)
        base, out = np.ones(3), np.zeros((4, 10))
        with pytest.raises(ValueError, match="do not fit"):
            _sums.powers(base, out, 7, 0.0)
        with pytest.raises(ValueError, match="do not fit"):
            _sums.mixture(out, 10, base, np.zeros(12), np.zeros(12))
        with pytest.raises(ValueError, match="do not fit"):
            _sums.smear(out, 10, base, np.zeros(12))
        with pytest.raises(ValueError, match="do not fit"):
            _sums.admit(base, out, out, 3)
        for rooms, cells, shifts in (([3, 1], [0, 0], [0, 0]), ([0, 1], [0, 4], [0, 0]), ([0, 1], [0, 0], [0, 6])):
            given = [np.array(values, dtype=np.int64) for values in (rooms, cells, shifts)]
            with pytest.raises(ValueError, match="do not fit"):
                _sums.cumulate(
                    np.ones(3), np.ones((2, 5)), 5, np.zeros(6), given[0], np.ones(2), given[1], given[2], out, 10
                )
