"""A core that polls: batches of packets from a ring, without interrupts, as DPDK's programs do.

Whenever it is free, the core takes n <= ``burst`` packets from a ring of ``ring`` places and works on them for
T_n = c0 + B_1 + .. + B_n, after which all of them are sent; a look at the ring that finds nothing takes ``empty_poll``.
A batch behind such a look takes ``idle_cost`` more: nothing of it is in the pipeline of the processor yet. Packets that
find the ring full are lost. The load is (c0 / burst + E[B]) / E[A]: near saturation all batches are full.

What a poll finds is a Markov chain on the number of packets in the ring, and on whether the poll before found any, if
the arrivals have no memory; else on that number and the time until the next arrival. Then the k-th arrival of a cycle,
at offset x, at position pos = Q - n + k behind what stays in the ring, has the delay

    D = (T_n - x) + floor((pos - 1) / burst) full batches + T_m,
    m = min((pos - 1) mod burst + 1 + K, burst),

K the packets that come after it until its own batch begins. Behind full batches K is that of a time of their mean
length; all else is exact on the lattice.

On the lattice a packet that comes at the very moment of a poll is left to the next one, as one that comes when an
aggregation interval ends is left to the next interval. A Poisson process has no such moments.

No outside source: derived here, and compared with simulation (docs/estimates.md).

A poll finds Q packets, and the next arrival is r steps away, r = 1, 2, ... If the cycle takes T < r, nothing comes.
Else the first packet comes after r steps, and in the s = T - r steps that are left k more come, with the next one r'
steps after the end, with probability sum_(t <= s) f(k)(t) a(s - t + r'). Polls that find an empty ring are skipped up
to the one that finds a packet. The chain is large, so its distribution is found by iteration.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import fft, sparse, special
from scipy.sparse import linalg

from p4perf.errors import UsageError
from p4perf.models.queue import distributions as lattices
from p4perf.models.queue.stationary import stationary_by_iteration

MAX_RING = 16_384
MAX_BURST = 1024


@dataclass(frozen=True, slots=True)
class Bernoulli:
    """Arrivals without memory on the lattice: one in a step with probability 1 / mean (geometric times)."""

    mean: float

    def __post_init__(self) -> None:
        if not 1 <= self.mean < math.inf:
            raise UsageError(f"geometric times have a mean of 1 step at least, not {self.mean:g}")


@dataclass(frozen=True, slots=True)
class Poisson:
    """A Poisson process: arrivals without memory in continuous time."""

    mean: float

    def __post_init__(self) -> None:
        if not 0 < self.mean < math.inf:
            raise UsageError(f"a mean time is positive and finite, not {self.mean:g} steps")


Arrivals = lattices.Lattice | Bernoulli | Poisson


@dataclass(frozen=True, eq=False)
class PollQueue:
    """One operating point; all times in steps.

    Args:
        arrival: interarrival time, or a process without memory.
        batch_cost: work for one batch, c0.
        idle_cost: what a batch behind a look that found nothing takes more; for arrivals without memory.
        burst: most packets of a batch.
        empty_poll: time of a poll that finds nothing, one step at least.

    Raises:
        UsageError: something is negative or out of range, or the lattice is too coarse.
    """

    arrival: Arrivals
    service: lattices.Lattice
    batch_cost: lattices.Lattice | int = 0
    ring: int = 1024
    burst: int = 32
    empty_poll: int = 1
    step_us: float = 1.0
    idle_cost: lattices.Lattice | int = 0

    def __post_init__(self) -> None:
        if not 0 < self.step_us < math.inf:
            raise UsageError(f"a step of the lattice is longer than zero, not {self.step_us:g} us")
        if not 1 <= self.ring <= MAX_RING:
            raise UsageError(f"a ring has 1 to {MAX_RING} places, not {self.ring}")
        if not 1 <= self.burst <= MAX_BURST:
            raise UsageError(f"a batch has 1 to {MAX_BURST} packets, not {self.burst}")
        if self.empty_poll < 1:
            raise UsageError("an empty poll takes one step at least", hint="take a finer lattice")
        lattices.check_lattice(self.arrival.mean, "interarrival time")
        lattices.check_lattice(self.service.mean, "service time")
        if self.service.last + self.cost.last == 0 or self.service.first + self.cost.first == 0:
            raise UsageError("a batch takes one step at least", hint="take a finer lattice")
        if self.extra.last and isinstance(self.arrival, lattices.Lattice):
            raise UsageError("batches behind an empty look cost more only where arrivals have no memory")

    @cached_property
    def cost(self) -> lattices.Lattice:
        return lattices.as_lattice(self.batch_cost, "work for a batch")

    @cached_property
    def extra(self) -> lattices.Lattice:
        return lattices.as_lattice(self.idle_cost, "work for a batch behind an empty look")

    @property
    def most(self) -> int:
        """Most packets of a batch that the ring has room for."""
        return min(self.burst, self.ring)

    @property
    def load(self) -> float:
        """Offered load: the work of full batches over the time between arrivals."""
        return (self.cost.mean / self.burst + self.service.mean) / self.arrival.mean

    def solve(self) -> lattices.QueueResult:
        """Processing time, loss and load.

        Raises:
            UsageError: the stationary distribution could not be found.
        """
        work = batch_work(self)
        if isinstance(self.arrival, lattices.Lattice):
            cycle = follow_renewal(self, self.arrival, work)
        else:
            cycle = follow_memoryless(self, self.arrival, work)
        offered = cycle.mean_time / self.arrival.mean
        loss = cycle.lost / offered
        # The chain counts a packet at the moment of a poll as seen: one step earlier than it comes here.
        delay = _delays(self, cycle).shifted(0 if isinstance(self.arrival, Poisson) else 1)
        accepted = float(cycle.arrivals.sum() + cycle.first.sum())
        return lattices.QueueResult(
            delay=delay,
            loss=loss if loss >= lattices.RESOLUTION else 0.0,
            load=self.load,
            packet_load=self.service.mean / self.arrival.mean,
            utilisation=cycle.busy / cycle.mean_time,
            mean_batch=cycle.taken / cycle.full_cycles if cycle.full_cycles > 0 else 0.0,
            mean_interval=cycle.mean_time,
            step_us=self.step_us,
            residual=cycle.residual,
            balance=(accepted - cycle.taken) / offered,
            seen=lattices.Lattice(cycle.ring / cycle.ring.sum()),
        )


@dataclass(frozen=True, eq=False)
class Cycle:
    """A stationary cycle, from one poll to the next.

    Args:
        arrivals: expected accepted arrivals at position pos + 1 of the ring, y steps before the next poll.
        first: those of them that come while nothing is to do, and cost more.
        lost: expected arrivals that found the ring full.
        mean_time, busy: mean length of a cycle, and of what is work in it [steps].
        taken: mean number of packets that the poll took.
        full_cycles: share of the polls that found packets.
        ring: distribution of what a poll finds [packets].
        residual: as in :class:`~p4perf.models.queue.distributions.QueueResult`.
    """

    arrivals: lattices.FloatArray
    first: lattices.FloatArray
    lost: float
    mean_time: float
    busy: float
    taken: float
    full_cycles: float
    ring: lattices.FloatArray
    residual: float


def batch_work(queue: PollQueue) -> lattices.FloatArray:
    """Row n is the distribution of T_n, n = 0 .. burst; row 0 is that of an empty poll."""
    most = min(queue.burst, queue.ring)
    longest = queue.cost.last + most * queue.service.last
    length = max(longest, queue.empty_poll) + 1
    cost = queue.cost.dense(queue.cost.last + 1)
    out = lattices.powers(queue.service.dense(queue.service.last + 1), most, length)
    for n in range(1, most + 1):
        out[n] = lattices.convolve(out[n], cost)[:length]
    out[0] = 0.0
    out[0, queue.empty_poll] = 1.0
    tail = np.cumsum(out[:, ::-1], axis=1)[:, ::-1].max(axis=0)
    kept = out[:, : max(int(np.flatnonzero(tail > lattices.TAIL)[-1]), queue.empty_poll) + 1]
    return np.ascontiguousarray(kept / kept.sum(axis=1, keepdims=True))


def _delays(queue: PollQueue, cycle: Cycle) -> lattices.Lattice:
    """The delay of accepted packets, by FFT."""
    most = queue.most
    full = queue.cost.last + most * queue.service.last
    groups = -(-cycle.arrivals.shape[0] // most)
    size = fft.next_fast_len(cycle.arrivals.shape[1] + groups * full + queue.extra.last + 1, real=True)
    cost = fft.rfft(queue.cost.dense(size))
    service = fft.rfft(queue.service.dense(size))
    behind = _behind(queue, cycle.arrivals.shape[1])
    work, idle = (_waits(queue, came, behind, (cost, service), size) for came in (cycle.arrivals, cycle.first))
    delay = fft.irfft((work + idle * fft.rfft(queue.extra.dense(size))) * cost, size)
    delay[delay < 1e-16 * float(delay.max())] = 0.0
    return lattices.Lattice(delay / delay.sum())


Spectrum = npt.NDArray[np.complex128]


def _waits(
    queue: PollQueue,
    arrivals: lattices.FloatArray,
    behind: Callable[[int], lattices.FloatArray],
    spectra: tuple[Spectrum, Spectrum],
    size: int,
) -> Spectrum:
    """Transform of the delay without the work for the own batch itself; ``behind`` as of :func:`_behind`."""
    most, (cost, service) = queue.most, spectra
    batch = cost * service**most
    total = np.zeros(service.size, dtype=np.complex128)
    for group in reversed(range(-(-arrivals.shape[0] // most))):
        # Horner: what stands behind one full batch more waits for one more.
        total *= batch
        block = arrivals[group * most : (group + 1) * most]
        if not block.any():
            continue
        coming = behind(group)
        sized = np.zeros((most + 1, block.shape[1]))
        for place, row in enumerate(block, 1):
            more = coming[: most - place]
            sized[place:most] += row * more
            sized[most] += row * np.maximum(1.0 - more.sum(axis=0), 0.0)
        own = np.ones_like(service)
        for row in sized[1:]:
            own = own * service
            if row.any():
                total += fft.rfft(row, size) * own
    return total


def _behind(queue: PollQueue, length: int) -> Callable[[int], lattices.FloatArray]:
    """Element [k, y] for g: probability that k packets come in y steps and g full batches of mean length."""
    most, arrival = queue.most, queue.arrival
    batch = queue.cost.mean + most * queue.service.mean
    number, steps = np.arange(most)[:, None], np.arange(length)
    if isinstance(arrival, lattices.Lattice):
        # Of k packets and no more: f(k) has come by then, f(k + 1) has not.
        longest = int(most * arrival.mean + 20 * arrival.std * math.sqrt(most)) + length + 1
        came = np.cumsum(lattices.powers(arrival.dense(longest), most, longest), axis=1)
        exactly = came[:most] - came[1:]
        return lambda full: exactly[:, np.minimum(steps + round(full * batch), longest - 1)]
    if isinstance(arrival, Bernoulli):
        from scipy import stats  # slow to load, and seldom needed

        return lambda full: np.asarray(stats.binom.pmf(number, steps + round(full * batch), 1 / arrival.mean))
    return lambda full: _poisson(np.asarray((steps + full * batch) / arrival.mean), number)


def _poisson(expected: lattices.FloatArray, number: npt.NDArray[np.int64]) -> lattices.FloatArray:
    return np.asarray(np.exp(special.xlogy(number, expected) - special.gammaln(number + 1) - expected))


_RESIDUAL = 1e-9


def follow_memoryless(queue: PollQueue, arrival: Bernoulli | Poisson, work: lattices.FloatArray) -> Cycle:
    """A stationary cycle; row n of ``work`` is the distribution of T_n."""
    places, most = queue.ring, work.shape[0] - 1
    # Kinds of cycles: by the packets that a poll takes behind work, 0 for none, then 1, .. behind an empty look.
    length = work.shape[1] + queue.extra.last
    extra = queue.extra.dense(queue.extra.last + 1)
    kinds = np.zeros((2 * most + 1, length))
    kinds[: most + 1, : work.shape[1]] = work
    for n in range(1, most + 1):
        kinds[most + n] = lattices.convolve(work[n], extra)[:length]
    mean = length / arrival.mean
    count = math.ceil(mean + 10 * math.sqrt(mean) + 40)
    times = np.arange(length)
    number = np.arange(count + 1)
    if isinstance(arrival, Bernoulli):
        from scipy import stats

        given = stats.binom.pmf(number[None, :], times[:, None], 1 / arrival.mean)
    else:
        given = _poisson(times[:, None] / arrival.mean, number[None, :])
    arrivals = kinds @ given
    arrivals[arrivals < lattices.TAIL] = 0.0
    arrivals /= arrivals.sum(axis=1, keepdims=True)
    ring, residual = _stationary(arrivals, places, most, overload=queue.load >= 1)
    if residual > _RESIDUAL:
        raise UsageError(f"the stationary distribution of the ring could not be found (residual {residual:.2g})")
    mean_work = kinds @ times
    held, kind = _states(places, most)
    left = held - np.minimum(held, most)
    later = _later(arrival, kinds, min(count, places))
    placed, first = np.zeros((2, places, length))
    lost = 0.0
    for state in np.flatnonzero(ring > 0):
        fit = min(places - left[state], later.shape[1])
        goal = first if held[state] == 0 else placed
        goal[left[state] : left[state] + fit] += ring[state] * later[kind[state], :fit]
        beyond = number - (places - left[state])
        lost += float(ring[state] * (arrivals[kind[state]] @ np.maximum(beyond, 0)))
    found = np.bincount(held, ring, places + 1).astype(np.float64)
    return Cycle(
        arrivals=placed,
        first=first,
        lost=lost,
        mean_time=float(ring @ mean_work[kind]),
        busy=float(ring[1:] @ mean_work[kind[1:]]),
        taken=float(ring @ np.minimum(held, most)),
        full_cycles=float(ring[1:].sum()),
        ring=found,
        residual=residual,
    )


def _states(places: int, most: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """What a poll finds, behind work and then behind an empty look, and the kind of the cycle that it begins."""
    held = np.concatenate([np.arange(places + 1), np.arange(1, places + 1)])
    taken = np.minimum(held, most)
    return held, np.where(np.arange(held.size) <= places, taken, most + taken)


def _stationary(
    arrivals: lattices.FloatArray, places: int, most: int, *, overload: bool
) -> tuple[lattices.FloatArray, float]:
    """Distribution of the states at polls, and its residual; sparse LU with one equation replaced."""
    held, kind = _states(places, most)
    count = arrivals.shape[1]
    source = np.repeat(np.arange(held.size), count)
    goal = np.minimum((held - np.minimum(held, most))[:, None] + np.arange(count)[None, :], places)
    goal[0, 1:] += places  # a look that finds nothing: the next batch is one behind an empty look
    weights = arrivals[kind].ravel()
    chain = sparse.csr_array((weights, (source, goal.ravel())), shape=(held.size, held.size))
    chain.sum_duplicates()
    pin = places if overload else 0
    system = (sparse.eye_array(held.size, format="csr") - chain.T).tolil()
    system[[pin], :] = 0.0
    system[pin, pin] = 1.0
    right = np.zeros(held.size)
    right[pin] = 1.0
    u = np.maximum(linalg.splu(system.tocsc()).solve(right), 0.0)
    u /= u.sum()
    return u, float(np.abs(chain.T @ u - u).sum())


def _later(arrival: Bernoulli | Poisson, work: lattices.FloatArray, count: int) -> lattices.FloatArray:
    """Element [n, k, y]: probability that arrival k + 1 of a cycle with T_n comes y steps before its end."""
    length = work.shape[1]
    x = np.arange(length, dtype=np.float64)
    out = np.zeros((work.shape[0], count, length))
    if isinstance(arrival, Bernoulli):
        from scipy import stats  # slow to load, and seldom needed

        p = 1 / arrival.mean
        at = np.asarray(p * stats.binom.pmf(np.arange(count)[None, :], x[:, None] - 1, p))
        at[0] = 0.0
        last = at
    else:
        at, last = _poisson_epochs(arrival.mean, length, count)
    # y = T - x for x = 0 .. T: a correlation of T with the epoch of the arrival.
    size = fft.next_fast_len(2 * length - 1, real=True)
    epochs = np.conj(fft.rfft(at.T, size))
    for n in range(work.shape[0]):
        out[n] = np.maximum(fft.irfft(fft.rfft(work[n], size) * epochs, size)[:, :length], 0.0)
        out[n, :, 0] = work[n] @ last
    return out


def _poisson_epochs(mean: float, length: int, count: int) -> tuple[lattices.FloatArray, lattices.FloatArray]:
    """The epoch of arrival k + 1 of a Poisson process, shared between the steps around it so that its mean stays.

    Returns:
        Element [x, k] of the epochs around x, and of those before x only (of which none is behind the end x).
    """
    k = np.arange(1, count + 1, dtype=np.float64)[None, :]
    x = np.arange(length + 1, dtype=np.float64)[:, None]
    below = special.gammainc(k, x / mean)
    integral = x * below - k * mean * special.gammainc(k + 1, x / mean)
    rise = np.diff(integral, axis=0)
    right = np.maximum(rise - below[:-1], 0.0)
    left = np.zeros_like(right)
    left[1:] = np.maximum(below[1:-1] - rise[:-1], 0.0)
    return left + right, left


MAX_STATES = 400_000
_EMPTY = 1e-18


@dataclass(frozen=True, eq=False)
class _Steps:
    """What a cycle does.

    Args:
        more: element [k, s, r - 1]: k more arrivals in s steps after the first, the next one r steps after.
        sums: f(k), rows k = 0, 1, ...
        work: row n is the distribution of T_n.
        residuals: largest r.
        idle: length of an idle cycle by r, element r - 1.
        places: of the ring.
        spectra: real transforms of the rows of ``work``, of even length.
    """

    more: lattices.FloatArray
    sums: lattices.FloatArray
    work: lattices.FloatArray
    residuals: int
    idle: lattices.FloatArray
    places: int
    spectra: npt.NDArray[np.complex128]

    @property
    def most(self) -> int:
        return int(self.work.shape[0]) - 1

    def cycles(self, state: lattices.FloatArray) -> tuple[lattices.FloatArray, lattices.FloatArray]:
        """What cycles come to, by the packets that stay in the ring.

        Returns:
            Element [left, s]: weight of the cycles that have s steps left when their first packet comes; and element
            [left, r - 1]: weight of those that end r steps before the next packet.
        """
        most, length = self.most, self.more.shape[1]
        rows = np.flatnonzero(state[most:].sum(axis=1) > _EMPTY)
        active = max(int(rows[-1]) + 1 if rows.size else 0, 1)
        size = (self.spectra.shape[1] - 1) * 2
        ahead = np.zeros((most + active, size))
        ahead[:, 1 : self.residuals + 1] = state[: most + active]
        waiting = np.conj(fft.rfft(ahead, axis=1))
        product = self.spectra[most] * waiting[most:]
        product[0] += np.einsum("ij,ij->j", self.spectra[1:most], waiting[1:most])
        lags = np.maximum(fft.irfft(product, size, axis=1), 0.0)
        lags[lags < _EMPTY] = 0.0
        came = np.ascontiguousarray(lags[:, :length])
        np.add.at(came[0], (self.idle - np.arange(1, self.residuals + 1)).astype(np.int64), state[0])
        return came, lags[:, : -self.residuals - 1 : -1]

    def step(self, state: lattices.FloatArray) -> lattices.FloatArray:
        """The distribution at the next poll."""
        places = self.places
        out = np.zeros_like(state)
        came, without = self.cycles(state)
        out[: came.shape[0]] = without
        for k in range(self.more.shape[0]):
            gained = came @ self.more[k]
            room = max(min(places - k - 1, gained.shape[0]), 0)
            out[k + 1 : k + 1 + room] += gained[:room]
            out[places] += gained[room:].sum(axis=0)
        return np.asarray(out / out.sum())


def follow_renewal(queue: PollQueue, arrival: lattices.Lattice, work: lattices.FloatArray) -> Cycle:
    """A stationary cycle; row n of ``work`` is the distribution of T_n."""
    steps = _steps(queue, arrival, work)
    state = np.zeros((queue.ring + 1, steps.residuals))
    ahead = np.maximum(1.0 - np.cumsum(arrival.dense(steps.residuals)), 0.0)
    state[queue.ring if queue.load >= 1 else 0] = ahead / ahead.sum()
    state, residual = stationary_by_iteration(steps.step, state)
    if residual > _RESIDUAL:
        message = f"the stationary distribution of the ring could not be found (residual {residual:.2g})"
        raise UsageError(message, hint="change the load a little, or simulate")
    return _cycle(queue, steps, state, residual)


def _steps(queue: PollQueue, arrival: lattices.Lattice, work: lattices.FloatArray) -> _Steps:
    residuals = arrival.last
    if (queue.ring + 1) * residuals > MAX_STATES:
        message = f"ring and interarrival times give {(queue.ring + 1) * residuals} states, more than {MAX_STATES}"
        raise UsageError(message, hint="a coarser lattice, a smaller ring, or arrivals without memory (poisson)")
    r = np.arange(1, residuals + 1)
    idle = queue.empty_poll * -(-r // queue.empty_poll)
    length = max(work.shape[1], queue.empty_poll)
    a = arrival.dense(length + residuals + 1)
    count = int(2 * length / arrival.mean) + 32
    while True:
        sums = lattices.powers(a[:length], count, length)
        small = np.flatnonzero(sums.sum(axis=1) < lattices.TAIL)
        if small.size:
            sums = sums[: int(small[0])]
            break
        count *= 2
    s = np.arange(length)
    ahead = a[s[:, None] + r[None, :]]
    back = s[:, None] - s[None, :]
    more = np.stack([np.where(back >= 0, row[np.maximum(back, 0)], 0.0) @ ahead for row in sums])
    size = 2 * fft.next_fast_len((length + residuals + 2) // 2 + 1)
    spectra = fft.rfft(work, size, axis=1)
    return _Steps(more, sums, work, residuals, idle.astype(np.float64), queue.ring, spectra)


def _cycle(queue: PollQueue, steps: _Steps, state: lattices.FloatArray, residual: float) -> Cycle:
    """What an average cycle from one poll to the next that finds a packet, or from such a poll on, does."""
    came, _ = steps.cycles(state)
    sums, places, most = steps.sums, steps.places, steps.most
    length = came.shape[1]
    size = fft.next_fast_len(2 * length, real=True)
    spectra = fft.rfft(came, size, axis=1)
    back = np.conj(fft.rfft(sums, size, axis=1))
    placed = np.zeros((places, spectra.shape[1]), dtype=np.complex128)
    below = np.cumsum(sums, axis=1)
    lost = 0.0
    for left in np.flatnonzero(came.any(axis=1)):
        # Arrival k + 1 of the cycle comes s - t steps before its end, with t distributed as f(k).
        fit = max(min(places - left, sums.shape[0]), 0)
        placed[left : left + fit] += spectra[left] * back[:fit]
        lost += float((below[fit:] @ came[left]).sum())
    arrivals = np.maximum(fft.irfft(placed, size, axis=1)[:, :length], 0.0)
    mean_work = steps.work @ np.arange(steps.work.shape[1])
    taken = np.minimum(np.arange(places + 1), most)
    ring = state.sum(axis=1)
    busy = float(ring[1:] @ mean_work[taken[1:]])
    return Cycle(
        arrivals=arrivals,
        first=np.zeros_like(arrivals),
        lost=lost,
        mean_time=busy + float(state[0] @ steps.idle),
        busy=busy,
        taken=float(ring @ taken),
        full_cycles=float(ring[1:].sum()),
        ring=ring,
        residual=residual,
    )
