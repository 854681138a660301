"""Gebert et al. 2016: Performance Modeling of Softwarized Network Functions Using Discrete-Time Analysis."""

from __future__ import annotations

import numpy as np

from p4perf.errors import UsageError
from p4perf.models.queue import Lattice, ModeratedQueue, QueueResult, convolve
from p4perf.models.queue.distributions import FloatArray, powers

_CONVERGED = 1e-11
_ITERATIONS = 20_000
_NEGLIGIBLE = 1e-12


def printed_result(queue: ModeratedQueue) -> QueueResult:
    """Eq. 1-14 to the letter, with a(k) the arrivals, b(k) the service, tau(k) the moderation and L the limit.

    For comparison: they do not describe the system of the text. The batch leaves out the packet that starts the
    interval (Eq. 1, 3), the interval and the batch size are independent (Eq. 4), waiting times are swept instead of
    conditioned (Eq. 5), the overhead of interrupts occurs nowhere (Eq. 6), the next batch finds i - 1 of i packets
    (Eq. 8), the loss of a batch of i is that of its last packet over i (Eq. 11), delays are neither cut at L nor
    conditioned on acceptance (Eq. 12), and those of the last packet of a batch stand for all (Eq. 13). Where a
    distribution does not sum to one it is divided by its sum.

    Raises:
        UsageError: the queue has no limit, or the iteration of Eq. 8 does not converge.
    """
    arrival, service, moderation, limit = queue.arrival, queue.service, queue.tau, queue.limit
    if limit is None:
        raise UsageError("the printed equations need a limit of the buffer")
    size = _sizes(arrival, moderation)
    # Recurrence time: r(k) = P(A > k) / E[A], k = 0, 1, ...; the paper does not print it.
    recurrence = np.maximum(1.0 - np.cumsum(arrival.dense(arrival.last)), 0.0)
    interval = Lattice(recurrence / recurrence.sum()).plus(moderation)
    b = service.dense(service.last + 1)
    work = np.zeros(limit + service.last)
    work[0] = 1.0
    for _ in range(_ITERATIONS):
        fronts = _fronts(work, b, limit, size.size - 1)
        after = size[1:] @ fronts
        out = np.convolve(after, interval.probabilities[::-1])
        # Element k is the work k - (last interval).
        zero = interval.last
        following = np.zeros_like(work)
        following[0] = out[: zero + 1].sum()
        rest = out[zero + 1 : zero + work.size]
        following[1 : 1 + rest.size] = rest
        following /= following.sum()
        if np.abs(following - work).sum() < _CONVERGED:
            break
        work = following
    else:
        raise UsageError("the printed equations did not converge", hint="take a load that is not so near to one")
    fronts = _fronts(work, b, limit, size.size - 1)
    index = np.arange(1, size.size)
    loss = float((size[1:] / index) @ fronts[:, limit:].sum(axis=1))
    mean_batch = float(size @ np.arange(size.size))
    load = mean_batch * service.mean / interval.mean
    delay = _delay(arrival, moderation, work, b, size)
    return QueueResult(
        delay=delay, loss=loss, load=load, packet_load=load, utilisation=min(load, 1.0), mean_batch=mean_batch,
        mean_interval=interval.mean, step_us=queue.step_us, residual=_CONVERGED, balance=0.0,
        notes=("equations as printed in the paper: for comparison only",),
    )  # fmt: skip


def _sizes(arrival: Lattice, moderation: Lattice) -> FloatArray:
    """Eq. 1: x(k), k = 0, 1, ..."""
    count = int(4 * moderation.last / max(arrival.mean, 1e-9)) + 64
    sums = powers(arrival.dense(moderation.last), count, moderation.last)
    below = np.cumsum(sums, axis=1)
    size = np.zeros(count)
    for m, share in enumerate(moderation.probabilities, moderation.first):
        if m > 0:
            size += share * (below[:-1, m - 1] - below[1:, m - 1])
    return np.maximum(size[: int(np.flatnonzero(size > _NEGLIGIBLE)[-1]) + 1], 0.0)


def _fronts(work: FloatArray, b: FloatArray, limit: int, count: int) -> FloatArray:
    """Eq. 6 and 7: rows u_b1, u_b2, ..."""
    rows = np.zeros((count, work.size))
    rows[0] = work
    for i in range(1, count):
        rows[i] = np.convolve(rows[i - 1][:limit], b)[: work.size]
        rows[i][limit:] += rows[i - 1][limit:]
    return rows


def _delay(arrival: Lattice, moderation: Lattice, work: FloatArray, b: FloatArray, size: FloatArray) -> Lattice:
    """Eq. 5, 12 and 13."""
    total = np.zeros(0)
    a = arrival.dense(arrival.last + 1)
    waiting_back = np.ones(1)
    services = np.ones(1)
    for i in range(1, size.size):
        services = convolve(services, b)
        swept = np.zeros(moderation.last + 1)
        for m, share in enumerate(moderation.probabilities, moderation.first):
            inside = waiting_back[: m + 1]
            swept[m - inside.size + 1 : m + 1] += share * inside[::-1]
            swept[0] += share * waiting_back[m + 1 :].sum()
        part = size[i] * convolve(convolve(swept, work), services)
        if part.size > total.size:
            total = np.concatenate([total, np.zeros(part.size - total.size)])
        total[: part.size] += part
        waiting_back = convolve(waiting_back, a)
    return Lattice(total / total.sum())
