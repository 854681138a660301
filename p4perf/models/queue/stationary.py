"""The stationary unfinished work at batches: the solution of a banded system, or by iteration.

The balance equations u = u P, one of them replaced by u(k) = 1, are solved by banded LU (LAPACK gbsv), without
iterations. Where that takes long, and changes are smooth, :mod:`p4perf.models.queue.twogrid` solves them up to rounding
in a few steps; what does not converge there is left to the LU. Three things need care.

* Reducible chains. Where all times are multiples of a common divisor, or nearly nothing is random, states exist that
  are never reached from an empty system; a solve that pins such a state gives a wrong vector. Common divisors are taken
  out before, and where the changes do not reach every state the class that is reached from u = 0 is looked up.
* Large systems. The probability of large work falls like exp(-theta u), with theta > 0 the root of
  E[exp(theta D)] = 1, D the change of work (below a load of one; above it the same holds downwards from the limit).
  States beyond 1e-19 are left out.
* What is left out, and rounding, show up in the residual, which :mod:`p4perf.models.queue.work` computes packet by
  packet where some may be refused, and not from this matrix.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.linalg import lapack
from scipy.sparse import csgraph

from p4perf.errors import UsageError
from p4perf.models.queue.distributions import FloatArray
from p4perf.models.queue.twogrid import stationary_by_two_grids
from p4perf.models.queue.work import Kernel

DEPTH = 8
_MOST = 2000
_ENOUGH = 1e-13
_CLIP = 1e-30
_TRANSPORT = 0.05


def stationary_by_iteration(image: Callable[[FloatArray], FloatArray], start: FloatArray) -> tuple[FloatArray, float]:
    """The distribution v with v = image(v), by Anderson's acceleration, and its sum of absolute differences to that.

    The size of a step says little where the chain forgets slowly; what is compared is image(v) with v itself.
    """
    v = start / start.sum()
    values: list[FloatArray] = []
    differences: list[FloatArray] = []
    best, least = v, np.inf
    for _ in range(_MOST):
        w = image(v)
        difference = w - v
        size = float(np.abs(difference).sum())
        if size < least:
            best, least = w, size
        if size <= _ENOUGH:
            return w / w.sum(), size
        if size > 1e3 * least:
            values, differences, v = [], [], best
            continue
        if size > _TRANSPORT:
            # Far from the end mass is still on its way, or goes round in circles; half of it stays behind.
            v = (v + w) / 2
            continue
        values.append(w)
        differences.append(difference)
        del values[: -DEPTH - 1], differences[: -DEPTH - 1]
        v = _mixed(values, differences)
    return best / best.sum(), least


def _mixed(values: list[FloatArray], differences: list[FloatArray]) -> FloatArray:
    """The combination of the last images whose difference would be least."""
    if len(values) == 1:
        return values[0]
    change = np.stack([d.ravel() - differences[-1].ravel() for d in differences[:-1]], axis=1)
    weights = np.linalg.lstsq(change, -differences[-1].ravel(), rcond=1e-10)[0]
    mixed = (1 - weights.sum()) * values[-1]
    for weight, value in zip(weights, values[:-1], strict=True):
        mixed = mixed + weight * value
    mixed = np.where(mixed > _CLIP, mixed, 0.0)
    return np.asarray(mixed / mixed.sum())


BoolArray = npt.NDArray[np.bool_]

OUTSIDE = 1e-19
"""Probability beyond which states are left out."""
MAX_STATES = 60_000
MAX_ELEMENTS = 150_000_000
"""Largest banded matrix [elements]."""
LARGE = 30_000_000
"""Products of an LU from which on two grids are tried first."""
_REPIN = 1e-6
_NEWTON = 60


def decay(change: FloatArray, first: int) -> float:
    """The theta other than zero with E[exp(theta D)] = 1; infinite where D has one sign only, 0 where its mean is 0."""
    possible = np.flatnonzero(change)
    at = (first + possible).astype(np.float64)
    change = change[possible]
    mean = float(change @ at)
    if at[0] >= 0 or at[-1] <= 0:
        return math.copysign(math.inf, -mean)
    scale = max(abs(at[0]), at[-1])
    variance = float(change @ (at - mean) ** 2)
    theta = -2 * mean / variance
    if abs(theta) * scale < 1e-9:
        return 0.0

    def cumulant(theta: float) -> tuple[float, float]:
        """The logarithm of E[exp(theta D)], and its derivative."""
        most = theta * (at[-1] if theta > 0 else at[0])
        weights = change * np.exp(theta * at - most)
        total = float(weights.sum())
        return most + math.log(total), float(weights @ at) / total

    # The cumulant is convex: beyond the root, Newton's steps come down to it from one side.
    value, slope = cumulant(theta)
    while value <= 0 and abs(theta) < 1e3:
        theta *= 2
        value, slope = cumulant(theta)
    for _ in range(_NEWTON):
        step = value / slope
        if not value > 0 or abs(step) < 1e-9 * abs(theta):
            break
        theta -= step
        value, slope = cumulant(theta)
    return float(theta) if theta * mean < 0 else 0.0


def reach(theta: float) -> float:
    """How far the work gets with probability 1e-19 [steps]."""
    return math.inf if theta == 0 else -math.log(OUTSIDE) / abs(theta)


def stationary_work(kernel: Kernel) -> FloatArray:
    """P(u = k) of the work that a batch finds, k = 0 .. highest that matters."""
    change, first = kernel.unlimited
    highest = _highest(kernel)
    theta = decay(change, first)
    low, high = _window(kernel, theta, highest)
    if high - low + 1 > MAX_STATES:
        hint = "take a coarser lattice, or a smaller buffer"
        raise UsageError(f"the queue has {high - low + 1} states, more than {MAX_STATES}", hint=hint)
    found = None
    if _smooth(change, first, high - low + 1):
        found = stationary_by_two_grids(kernel, low, high, theta)
    if found is None:
        found = _solve(kernel, change, first, low, high)
    found = np.maximum(found, 0.0)
    out = np.zeros(high + 1)
    out[low:] = found / found.sum()
    return out


def _smooth(change: FloatArray, first: int, n: int) -> bool:
    """Whether two grids may be faster than one LU."""
    up, down = min(first + change.size - 1, n - 1), min(-first, n - 1)
    return _irreducible(change, first) and n * up * (up + down) > LARGE


def _highest(kernel: Kernel) -> int:
    """Largest work that matters. Interrupts that come faster than they are handled pile up beyond the limit."""
    change, first = kernel.refused()
    if first + change.size - 1 <= 0:
        return kernel.admitted
    theta = decay(change, first)
    if theta <= 0:
        hint = "a longer moderation interval, or a smaller overhead"
        raise UsageError("the interrupts alone take all of the time", hint=hint)
    return kernel.admitted + math.ceil(reach(theta))


def _window(kernel: Kernel, theta: float, highest: int) -> tuple[int, int]:
    """The states that matter."""
    length = reach(theta)
    if theta > 0:
        return 0, highest if not length < highest else min(highest, math.ceil(length))
    if theta == 0:
        return 0, highest
    # A batch of which something is refused leaves at least L - S: work falls below that only by free changes.
    edge = max(
        kernel.limit - kernel.overhead.last - kernel.batch.rooms + min(kernel.unlimited[1], 0),
        kernel.limit - kernel.batch.interval,
    )
    edge -= kernel.batch.closed.size
    return (0 if not length < edge else max(0, math.floor(edge - length))), highest


def _solve(kernel: Kernel, change: FloatArray, first: int, low: int, high: int) -> FloatArray:
    n = high - low + 1
    if n == 1:
        return np.ones(1)
    bands, up, down = _bands(kernel, change, first, low, high)
    keep = None if _irreducible(change, first) else _reached(bands, up, down, n, start=0 if low == 0 else n - 1)
    mean = float(change @ np.arange(first, first + change.size))
    pin = 0 if mean < 0 else min(max(kernel.limit - kernel.batch.interval - low, 0), n - 1)
    if keep is not None:
        pin = int(np.flatnonzero(keep)[0 if mean < 0 else -1])
    for _ in range(4):
        u = _pinned(bands, up, down, pin, keep)
        best = int(np.argmax(np.abs(u)))
        if np.isfinite(u).all() and abs(u[pin]) > _REPIN * abs(u[best]):
            break
        pin = best if np.isfinite(u).all() else (pin + n // 3 + 1) % n
    return u


def _bands(kernel: Kernel, change: FloatArray, first: int, low: int, high: int) -> tuple[FloatArray, int, int]:
    """P by column: element [u, up-band offset] of the transposed banded storage, I - P^T without the pin.

    Returns:
        ``bands[u, down + (v - u)]`` = delta - P(u -> v), for v - u from -down to up; and both widths.
    """
    n = high - low + 1
    last = first + change.size - 1
    up, down = max(min(last, n - 1), 0), max(min(-first, n - 1), 0)
    if n * (2 * up + down + 1) > MAX_ELEMENTS:
        hint = "take a coarser lattice, or a shorter moderation interval"
        raise UsageError("the queue is too large for this lattice", hint=hint)
    bands = np.zeros((n, down + up + 1))
    limited = max(min(kernel.limit - kernel.overhead.last - kernel.batch.rooms + 1, high + 1), low)
    begin, end = max(first, -down), min(last, up)
    if end >= begin:
        bands[: limited - low, down + begin : down + end + 1] = -change[begin - first : end - first + 1]
    exact = kernel.rows(limited, high) if limited <= high else np.zeros((0, change.size))
    if end >= begin and exact.size:
        bands[limited - low :, down + begin : down + end + 1] = -exact[:, begin - first : end - first + 1]
    _fold(bands, change, exact, first, limited - low, up, down)
    bands[:, down] += 1.0
    return bands, up, down


def _fold(bands: FloatArray, change: FloatArray, exact: FloatArray, first: int, plain: int, up: int, down: int) -> None:
    """Put what leads below the lowest state on it (an empty system), and what leads above the highest on that."""
    n = bands.shape[0]
    running = np.cumsum(change)
    for u in range(min(n, max(-first, 0) + 1)):
        # All changes of -u or less end in the lowest state.
        count = min(-u - first + 1, change.size)
        if u <= down and count > 0:
            bands[u, down - u] = -(running[count - 1] if u < plain else exact[u - plain, :count].sum())
    total = float(running[-1])
    last = first + change.size - 1
    for u in range(max(n - 1 - max(last, 0), 0), n):
        begin = max(n - 1 - u - first, 0)
        if n - 1 - u <= up and begin < change.size:
            row = exact[u - plain, begin:].sum() if u >= plain else total - (running[begin - 1] if begin else 0.0)
            bands[u, down + n - 1 - u] = -row


def _irreducible(change: FloatArray, first: int) -> bool:
    """Whether the changes reach every state far from the boundaries."""
    at = first + np.flatnonzero(change)
    return bool(at[0] < 0 < at[-1]) and int(np.gcd.reduce(np.abs(at))) == 1


def _reached(bands: FloatArray, up: int, down: int, n: int, start: int) -> BoolArray:
    """The states of the closed class that is reached from a state."""
    source, column = np.nonzero(bands)
    goal = source + column - down
    probability = -bands[source, column] + (source == goal)
    real = (probability > 0) & (goal >= 0) & (goal < n)
    graph = sparse.csr_array((np.ones(int(real.sum())), (source[real], goal[real])), shape=(n, n))
    seen = csgraph.breadth_first_order(graph, start, return_predecessors=False)
    _, label = csgraph.connected_components(graph, connection="strong")
    leaving = label[source[real]] != label[goal[real]]
    closed = np.setdiff1d(np.unique(label[seen]), np.unique(label[source[real]][leaving]))
    return np.asarray(label == closed[0])


def _pinned(bands: FloatArray, up: int, down: int, pin: int, keep: BoolArray | None) -> FloatArray:
    """Solve with u(pin) = 1; states that are not kept are zero."""
    n = bands.shape[0]
    # LAPACK's storage: element (v, u) is [up + down + v - u, u], by columns; the first `up` rows are for pivoting.
    storage = np.zeros((n, 2 * up + down + 1))
    storage[:, up:] = bands
    if keep is not None:
        storage[~keep, :] = 0.0
        storage[~keep, up + down] = 1.0
    around = np.arange(max(pin - up, 0), min(pin + down, n - 1) + 1)
    storage[around, up + down + pin - around] = 0.0
    storage[pin, up + down] = 1.0
    right = np.zeros((n, 1))
    right[pin, 0] = 1.0
    _, _, solution, info = lapack.dgbsv(up, down, storage.T, right, overwrite_ab=True, overwrite_b=True)
    if info:
        return np.full(n, math.nan)
    return np.asarray(solution[:, 0])
