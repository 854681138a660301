"""What a batch does to the unfinished work of the processor, and the card that collects packets until its interrupt.

The first packet after an interrupt, at time t0, starts the aggregation interval; all packets in [t0, t0 + tau) form a
batch, which the interrupt at t0 + tau hands over. A packet at exactly t0 + tau is the first of the next batch.

Symbols: ``a`` interarrival time; ``f(i)`` its i-fold convolution (f(0) is the constant 0); ``tau`` aggregation
interval; ``X`` batch size; ``S`` time from t0 to the t0 of the next batch; ``W_i`` time that the i-th packet of a batch
waits for the interrupt. Source: Gebert et al. 2016, Eq. 1-5, corrected: the batch includes the packet that starts the
interval, S is joint with X, and W_i is conditioned on the batch having an i-th packet. See docs/estimates.md.

The state is the work u that is left when a batch comes. The interrupt itself takes o. Packet after packet is accepted
if the work in front of it is at most L - 1, and adds its service time; work never falls within a batch, so all packets
behind the first that is refused are refused as well. Until the next batch the processor works off S.

Let q(j, r) be the probability that some packet of the batch would begin its service behind j of work of the same batch
and that S = s0 + r: q(j, r) = sum_i P(X >= i, S = s0 + r) b(i-1)(j), with b(i) the i-fold convolution of the service
time. With room for d = L - o - u, the change z = w - r of the work w of the batch less r has the distribution

    row_d(z) = P(S = s0 - z) + sum_(j < d) [ (q(j, j - .) * b)(z) - q(j, j - z) ]

because each service that begins takes the work from j to j + B. Without a limit j runs over all values, and the change
does not depend on u. Source: Gebert et al. 2016, Eq. 6-8, with the corrections of docs/estimates.md.

A stationary batch is then followed packet by packet (:func:`follow`). Eq. 7: the work in front of packet i+1 is that in
front of packet i, plus a service time where that is below L. Delay of packet i (replaces Eq. 12, 13): W_i + work in
front, given that it is below L, + own service; weight P(X >= i) P(accepted). Refused packets (replaces Eq. 11):
sum_i P(X >= i) P(work in front of packet i >= L).

Batches that find so little work that none of their packets can be refused need not be followed. With v the work they
find and the interrupt, delays are v * sum_i P(W_i, X >= i) * b(i), and the work of the next batch is
v * sum_i P(X = i, S) * b(i), where S counts downwards. For the others nothing is used of the transitions from which
the stationary work was found, so that the residual checks these.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import fft

from p4perf.errors import UsageError
from p4perf.models.queue.direct import SHORT, Changes, admit, cross, mixture, smear
from p4perf.models.queue.distributions import FloatArray, Lattice, convolve, powers

NEGLIGIBLE = 1e-17
"""Batches of i packets or more are left out where they are less probable than this."""
MAX_BATCH = 20_000
_FIRST_GUESS = 32
_DEVIATIONS = 12
"""Standard deviations of a number of packets that are hardly ever exceeded."""
_MATRIX = 4_000_000
"""Most elements for which a matrix product is faster than transforms."""


@dataclass(frozen=True, eq=False)
class Batches:
    """What the card hands over.

    Args:
        size_interval: P(X = i + 1, S = first_interval + r); (largest batch, number of intervals).
        first_interval: smallest S [steps].
        waiting: P(X > i, W_(i+1) = k); (largest batch, longest interval + 1).
    """

    size_interval: FloatArray
    first_interval: int
    waiting: FloatArray

    @cached_property
    def sizes(self) -> FloatArray:
        """P(X = i + 1)."""
        return np.asarray(self.size_interval.sum(axis=1))

    @cached_property
    def reached(self) -> FloatArray:
        """P(X > i): that a batch has an (i + 1)-th packet."""
        return np.asarray(self.waiting.sum(axis=1))

    @cached_property
    def mean_size(self) -> float:
        """E[X] [packets]."""
        return float(self.sizes @ np.arange(1, self.sizes.size + 1))

    @cached_property
    def mean_interval(self) -> float:
        """E[S] [steps]."""
        marginal = self.size_interval.sum(axis=0)
        return float(marginal @ (self.first_interval + np.arange(marginal.size)))


def collect(arrival: Lattice, moderation: Lattice) -> Batches:
    """The batches of renewal arrivals under interrupt moderation.

    Joint distribution of size and interval (replaces Eq. 1, 3 and 4):
    P(X = i, S = s) = sum_m tau(m) sum_(t < m) f(i-1)(t) a(s - t), s >= m;
    waiting time (replaces Eq. 5): P(X >= i, W_i = k) = sum_m tau(m) f(i-1)(m - k), k = 1 .. m.
    """
    if arrival.last == 0:
        raise UsageError("all interarrival times are zero")
    if moderation.first < 1:
        raise UsageError("the moderation interval has one step at least", hint="take a finer lattice")
    sums = _sums(arrival, moderation.last)
    first, end = moderation.first, moderation.last + arrival.last
    a = arrival.dense(end + 1)
    if first == moderation.last:
        joint = _residual(sums, a, arrival.last)
        waiting = np.zeros((sums.shape[0], first + 1))
        waiting[:, 1:] = sums[:, ::-1]
    else:
        joint = np.zeros((sums.shape[0], end - first))
        waiting = np.zeros((sums.shape[0], moderation.last + 1))
        for m, share in zip(range(first, moderation.last + 1), moderation.probabilities, strict=True):
            if share > 0:
                joint[:, m - first : m - first + arrival.last] += share * _residual(sums[:, :m], a, arrival.last)
                waiting[:, 1 : m + 1] += share * sums[:, :m][:, ::-1]
    used = np.flatnonzero(joint.any(axis=0))
    return Batches(np.ascontiguousarray(joint[:, used[0] : used[-1] + 1]), first + int(used[0]), waiting)


def _residual(sums: FloatArray, a: FloatArray, width: int) -> FloatArray:
    """Row i: probability of i more packets before the interrupt, and the next one r = 0 .. width - 1 steps after it."""
    m = sums.shape[1]
    recent = min(m, width)
    if recent * width <= _MATRIX:
        # Row s of the windows is a(s + 1 + r): the last packet came s + 1 steps before the interrupt.
        windows = np.lib.stride_tricks.as_strided(a[1:], (recent, width), (a.itemsize, a.itemsize))
        return np.asarray(sums[:, m - recent :][:, ::-1] @ np.ascontiguousarray(windows))
    size = fft.next_fast_len(m + width + 1, real=True)
    spectrum = fft.rfft(a[: width + 1], size)
    rows = [fft.irfft(fft.rfft(row, size) * spectrum, size)[m : m + width] for row in sums]
    return np.maximum(np.stack(rows), 0.0)


def _sums(arrival: Lattice, length: int) -> FloatArray:
    """Rows f(0), f(1), ... on 0 .. length - 1, until a batch almost never has that many packets."""
    a = arrival.dense(length)
    mean = length / max(arrival.mean, 1e-9)
    count = int(mean + _DEVIATIONS * arrival.cv * math.sqrt(mean)) + _FIRST_GUESS
    while True:
        if count > MAX_BATCH:
            hint = "a shorter moderation interval, or a lower rate"
            raise UsageError(f"a batch can have more than {MAX_BATCH} packets", hint=hint)
        sums = powers(a, count, length, NEGLIGIBLE)
        if sums.shape[0] <= count:
            return sums
        count *= 2


_RARE = 1e-22
_MISSING = 1e-13
"""A share of the services that would begin beyond the limit and is not rounding."""
_BLOCK = 64
"""Rows of q that are computed at a time: only some packets of a batch can begin there."""


@dataclass(frozen=True, eq=False)
class BatchChanges:
    """What a batch does by how much room there is.

    Args:
        closed: distribution of z where all packets are refused, from the smallest z on.
        starts: b(i)(j); (packets, work).
        later: P(X > i, S = s0 + r); (packets, intervals).
        service: b(k), k = 0, 1, ...
        interval: smallest S, s0 [steps].
    """

    closed: FloatArray
    starts: FloatArray
    later: FloatArray
    service: FloatArray
    interval: int

    @property
    def rooms(self) -> int:
        """With so much room or more, no packet of a batch is ever refused."""
        return int(self.starts.shape[1])

    def changes(self, depth: int, theta: float = 0.0) -> Changes:
        """The distributions of z, times exp(theta (z - s0)), with room 0 .. depth, as steps from one to the next."""
        depth = min(max(depth, 0), self.rooms)
        if theta:
            return self._weighted(depth, theta)
        width = self.closed.size
        later = np.ascontiguousarray(self.later[:, ::-1])
        steps = np.zeros((depth, width + self.service.size - 1))
        for at in range(0, depth, _BLOCK):
            part = self.starts[:, at : min(at + _BLOCK, depth)]
            packets = np.flatnonzero(part.max(axis=1) > _RARE)
            if packets.size:
                some = slice(int(packets[0]), int(packets[-1]) + 1)
                # Row j is q(j, r), from the largest r on.
                reverse = part[some].T @ later[some]
                smear(reverse, self.service, steps[at : at + reverse.shape[0]])
                steps[at : at + reverse.shape[0], :width] -= reverse
        return Changes(self.closed, steps)

    def _weighted(self, depth: int, theta: float) -> Changes:
        """The same with weights. How long packets come after the interrupt hardly depends on how many came before.

        What a service that begins changes is thus the sum of few distributions, with weights by where it begins.
        With weights all elements that matter are alike, so that rounding of the largest one is rounding of all.
        """
        width = self.closed.size
        scale = np.exp(theta * (np.arange(1 - width, 1) - self.interval))
        service = self.service * np.exp(theta * np.arange(self.service.size))
        # The sum of the i-fold service time with weights is that of one to the power of i.
        size = np.exp(np.arange(self.starts.shape[0]) * math.log(float(service.sum())))
        later = self.later[:, ::-1] * (size[:, None] * scale)
        starts = self.starts[:, :depth]
        found = cross(later.copy())
        if found is None:
            starts = starts / size[:, None]
        else:
            starts, later = (found[0] / size) @ starts, found[1]
        starts = starts * np.exp(theta * np.arange(starts.shape[1]))
        begun = np.zeros((later.shape[0], width + service.size - 1))
        smear(later, service, begun)
        begun[:, :width] -= later
        return Changes(self.closed * scale, np.ascontiguousarray(starts.T) @ begun)

    def fullest(self) -> FloatArray:
        """The distribution of z with all the room there is."""
        most = self.all_changes
        one, zero = np.array([self.rooms]), np.zeros(1, dtype=np.int64)
        return np.asarray(_proper(most.sums(one, np.ones(1), zero, zero, (1, most.length)))[0])

    @cached_property
    def all_changes(self) -> Changes:
        """The distributions of z with all rooms."""
        return self.changes(self.rooms)


@dataclass(frozen=True, eq=False)
class Kernel:
    """Transition probabilities of the unfinished work, before the boundary at zero.

    Args:
        free: distribution of z where no packet is refused, or with all the room there is if that is never enough for
            all; nothing is left out at its lower end.
        batch: the changes where packets may be refused.
        ample: whether there can be room enough for all packets of a batch.
    """

    free: FloatArray
    batch: BatchChanges
    overhead: Lattice
    limit: int
    ample: bool

    @property
    def first_change(self) -> int:
        """The change z of element 0."""
        return 1 - self.batch.closed.size

    @property
    def admitted(self) -> int:
        """Largest unfinished work at a batch that packets and one interrupt can make."""
        most = self.limit - 1 + max(self.batch.service.size - 1, self.overhead.last)
        return max(most - self.batch.interval, 0)

    def refused(self) -> tuple[FloatArray, int]:
        """Change of the unfinished work where all packets are refused: o - S; and the change of the first one."""
        change = convolve(self.batch.closed, self.overhead.probabilities)
        return change, self.first_change + self.overhead.first - self.batch.interval

    @cached_property
    def unlimited(self) -> tuple[FloatArray, int]:
        """Change of the unfinished work far from both boundaries: probabilities, and the change of the first one.

        Changes that are only possible at a boundary are among them, with probability zero.
        """
        change = convolve(self.free, self.overhead.probabilities)
        return change, self.first_change + self.overhead.first - self.batch.interval

    def rows(self, first: int, last: int) -> FloatArray:
        """Transitions from the states first .. last; column k is the change ``unlimited[1] + k``."""
        over = self.overhead
        extra = np.flatnonzero(over.probabilities)
        depth = self.limit - over.first - first
        if self.ample:
            changes = self.batch.changes(depth)
        else:
            changes = Changes(self.batch.closed, self.batch.all_changes.steps[: max(depth, 0)])
        states = np.arange(last, first - 1, -1)
        rooms = np.maximum(self.limit - over.first - extra[None, :] - states[:, None], 0)
        cells = np.broadcast_to((states - first)[:, None], rooms.shape)
        shifts = np.broadcast_to(extra[None, :], rooms.shape)
        weights = np.broadcast_to(over.probabilities[extra][None, :], rooms.shape)
        given = [rooms.ravel(), weights.ravel(), cells.ravel(), shifts.ravel()]
        if extra.size > 1:
            order = np.argsort(given[0], kind="stable")
            given = [each[order] for each in given]
        columns = self.unlimited[0].size
        length = max(columns, changes.length + int(extra[-1]))
        out = changes.sums(given[0], given[1], given[2], given[3], (states.size, length))[:, :columns]
        return _proper(out)


def _proper(rows: FloatArray) -> FloatArray:
    """Without rounding, and with a sum of one."""
    rows[rows < NEGLIGIBLE] = 0.0
    rows /= rows.sum(axis=1, keepdims=True)
    return rows


def batch_kernel(batches: Batches, service: Lattice, overhead: Lattice, limit: int) -> Kernel:
    """The kernel of batches of packets; one is accepted if the work in front of it is less than the limit [steps]."""
    b = service.dense(service.last + 1)
    later = np.cumsum(batches.size_interval[::-1], axis=0)[::-1]
    reverse = batches.size_interval[:, ::-1]
    closed = np.ascontiguousarray(reverse.sum(axis=0))
    starts, ample = _starts(b, later.sum(axis=1), limit)
    batch = BatchChanges(closed / closed.sum(), starts, later, b, batches.first_interval)
    most = closed.size + starts.shape[1] + b.size
    free = convolve(mixture(reverse, b, most), b) if ample else batch.fullest()
    free = free[: max(int(np.flatnonzero(free >= NEGLIGIBLE)[-1]) + 1, closed.size)]
    return Kernel(free / free.sum(), batch, overhead, limit, ample)


def _starts(b: FloatArray, reached: FloatArray, limit: int) -> tuple[FloatArray, bool]:
    """The powers of the service time as far as services begin, and whether the limit is not below that."""
    last = reached.size - 1
    if b.size <= SHORT:
        # Where services begin, if nothing is refused.
        begun = mixture(reached[:, None], b, limit)
        rooms = int(np.flatnonzero(begun >= NEGLIGIBLE)[-1]) + 1
        return powers(b[:rooms], last, min(rooms, limit + 1)), rooms <= limit
    reach = min(last * (b.size - 1), limit) + 1
    starts = powers(b[:reach], last, reach)
    begun = reached @ starts
    rooms = int(np.flatnonzero(begun >= NEGLIGIBLE)[-1]) + 1
    if reach > limit and (rooms > reach - b.size or float(begun.sum()) < float(reached.sum()) * (1 - _MISSING)):
        return starts, False
    return starts[:, :rooms], True


_ROWS = 32
"""Rows that are transformed at a time: what they take stays in the cache."""


@dataclass(frozen=True, eq=False)
class Path:
    """What a stationary batch goes through.

    Args:
        delay: processing time of accepted packets [steps].
        refused: mean number of refused packets of a batch.
        idle: mean time in an interval in which the processor has nothing to do [steps].
        residual: sum of the absolute differences between the work of this batch and of the next.
    """

    delay: Lattice
    refused: float
    idle: float
    residual: float


def follow(work: FloatArray, kernel: Kernel, batches: Batches) -> Path:
    """Follow a batch that finds the work k with probability ``work[k]``."""
    kept = np.flatnonzero(work)
    low = int(kept[0])
    front = np.convolve(work[low : int(kept[-1]) + 1], kernel.overhead.probabilities)
    low += kernel.overhead.first
    count = batches.sizes.size
    split = min(max(kernel.limit - kernel.batch.rooms + 1 - low, 0), front.size)
    far, rest = front[:split], front[split:]
    if rest.size and split and not rest.any():
        rest = rest[:0]
    delays, works = _Sum(), _Sum()
    # Time that packets wait for the interrupt and for those before them, where nothing is refused.
    waiting = np.zeros(1)
    if kernel.ample:
        most = batches.waiting.shape[1] + kernel.batch.rooms + kernel.batch.service.size
        waiting = mixture(batches.waiting, kernel.batch.service, most)
    refused = np.zeros((count, 1))
    if rest.size:
        room = max(kernel.limit - low - split, 0)
        start = np.pad(rest[:room], (0, max(room - rest.size, 0)))
        accepted, refused = admit(start, rest[room:], kernel.batch.service, count)
        _follow_near(low + split, accepted, refused, waiting, kernel, batches, delays, works)
    if far.size:
        delays.add(low, convolve(far, waiting))
        works.add(low + kernel.first_change - kernel.batch.interval, convolve(far, kernel.free))
    if delays.empty or not delays.total()[1].any():
        raise UsageError("every packet is refused: an interrupt alone takes as long as the buffer allows")
    idle, residual = _next(work, works)
    shortest, before = delays.total()
    delay = convolve(before, kernel.batch.service)
    return Path(
        delay=Lattice(delay / delay.sum(), shortest),
        refused=float(batches.reached @ refused.sum(axis=1)),
        idle=idle,
        residual=residual,
    )


class _Sum:
    """Arrays of probabilities that begin at different values."""

    def __init__(self) -> None:
        self._parts: list[tuple[int, FloatArray]] = []

    @property
    def empty(self) -> bool:
        return not self._parts

    def add(self, first: int, values: FloatArray) -> None:
        if values.size:
            self._parts.append((first, values))

    def total(self) -> tuple[int, FloatArray]:
        first = min(at for at, _ in self._parts)
        out = np.zeros(max(at + values.size for at, values in self._parts) - first)
        for at, values in self._parts:
            out[at - first : at - first + values.size] += values
        return first, out


def _follow_near(
    low: int, accepted: FloatArray, refused: FloatArray, waiting: FloatArray, kernel: Kernel, batches: Batches,
    delays: _Sum, works: _Sum,
) -> None:  # fmt: skip
    """Sums over the packets of batches near the limit, without their own service, and over those that are refused.

    Row i of what is accepted is P(work in front of packet i + 1 = low + k), of what is refused P(that work is L + k).

    Work only grows in a batch, so that what ends below the limit never met it. Sums of which that can be said are those
    of batches far from it; all others are taken packet by packet, of the highest work only.
    """
    interval, limit = batches.first_interval, kernel.limit
    width = batches.size_interval.shape[1]
    room = accepted.shape[1]
    if room:
        start = accepted[0]
        longest, tail = batches.waiting.shape[1] - 1, width - 1 + kernel.batch.service.size - 1
        if kernel.ample:
            # Waiting time and work together are less than the limit.
            delays.add(low, convolve(start, waiting)[:room])
            # What is left when the next batch comes is so little that the work was less than the limit, whatever S is.
            works.add(low + kernel.first_change - interval, convolve(start, kernel.free)[:room])
        else:
            longest = tail = room
        top = accepted[:, max(room - longest, 0) :]
        skip = top.shape[1] if kernel.ample else 0
        delays.add(limit - top.shape[1] + skip, _summed(top, batches.waiting)[skip:])
        top = accepted[:, max(room - tail, 0) :]
        skip = top.shape[1] if kernel.ample else 0
        later = convolve(_summed(top, batches.size_interval[:, ::-1]), kernel.batch.service)
        works.add(limit - top.shape[1] - (width - 1) - interval + skip, later[skip:])
    # Work stays as it is where the last packet was refused.
    stays = refused.T @ batches.size_interval
    for k in np.flatnonzero(stays.any(axis=1)):
        works.add(limit - interval + int(k) - width + 1, stays[k, ::-1])


def _summed(a: FloatArray, b: FloatArray) -> FloatArray:
    """Sum over i of the convolutions of row i of both, by FFT."""
    length = a.shape[1] + b.shape[1] - 1
    size = fft.next_fast_len(length, real=True)
    total = np.zeros(size // 2 + 1, dtype=np.complex128)
    for at in range(0, a.shape[0], _ROWS):
        some = slice(at, at + _ROWS)
        total += np.einsum("ij,ij->j", fft.rfft(a[some], size, axis=1), fft.rfft(b[some], size, axis=1))
    out = np.asarray(fft.irfft(total, size)[:length])
    out[out < np.finfo(np.float64).eps * max(float(out.max()), 0.0)] = 0.0
    return out


def _next(work: FloatArray, works: _Sum) -> tuple[float, float]:
    """Mean idle time of the processor in an interval, and how far the work of the next batch is from this one's."""
    first, later = works.total()
    below = later[: max(-first, 0)]
    idle = float(below @ np.arange(-first, -first - below.size, -1)) if below.size else 0.0
    found = np.zeros(work.size + 1)
    positive = later[below.size :]
    at = max(first, 0)
    end = min(positive.size, max(work.size - at, 0))
    found[at : at + end] = positive[:end]
    found[-1] = positive[end:].sum()
    found[0] += below.sum()
    return idle, float(np.abs(found[:-1] - work).sum() + abs(found[-1]))
