"""What samples say of their noise before anything is fitted: the absolute floor of errors, and outliers.

Noise has two components (Rocke and Lorenzato 1995, A Two-Component Model for Measurement Error in Analytical
Chemistry): the standard deviation of a sample is ``sqrt(s^2 + c^2 y^2)``. Far from zero an error relative to y is what
matters; where y is below ``s / c``, an absolute one. So errors are taken relative to this *floor* at least. A curve of
least squares is itself not known better than to about ``sqrt(4 x mean variance / n)`` at its ends, which counts as
absolute noise too.

The scatter comes from repetitions, or from the differences between each sample and the line through its neighbours
(pseudo-residuals: Gasser, Sroka and Jennen-Steinmetz 1986, Residual Variance and Residual Pattern in Nonlinear
Regression), whose medians hardly notice bends, steps, and outliers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from p4perf.models.templates import FloatArray

NORMAL = 1.4826
"""Standard deviation of normal values over the median of their magnitudes."""
QUARTILE = 3.1387
"""The same over the lower quartile of their magnitudes."""
TYPICAL = 0.02
"""Relative noise that is assumed where the samples are too few to say: measurements of p4perf have 1 to 3 %."""
FEW_POINTS = 10
"""Series of fewer samples say nothing of their noise, and of the shape of their curve only the plainest."""
NEAR_ZERO = 3.0
"""A floor is needed if a sample is within this many standard deviations of zero, or if samples change their sign."""
CURVE = 4.0
"""Variance of a line of least squares at the end of its n samples, times n, over the variance of the samples."""
RANGE = 3.0
"""Absolute noise can be told from relative noise if the largest samples are this many times the smallest ones."""
MIN_REPETITIONS = 3
"""Of fewer repetitions at most points, the scatter is taken from the neighbours."""


def error_floor(x: FloatArray, y: FloatArray, repetitions: Sequence[Sequence[float]] = ()) -> float:
    """Size below which samples count as this large in relative errors, in units of y; zero if none is near zero.

    Args:
        x: ascending abscissae.
        y: one sample for each.
        repetitions: what the samples are the medians of, if that is known.
    """
    n, size = len(y), np.abs(y)
    largest = float(size.max(initial=0.0))
    if n < 3 or largest == 0.0:
        return 0.0
    scaled = y / largest
    where, scatter = _scatter(x, scaled, [np.asarray(values) / largest for values in repetitions])
    absolute, relative = _components(where, scatter)
    if n < FEW_POINTS:
        absolute, relative = 0.0, TYPICAL
    curve = float(np.sqrt(np.mean(absolute**2 + (relative * scaled) ** 2) * CURVE / n))
    least = float(size.min()) / largest
    crosses = bool((y > 0).any() and (y < 0).any())
    doubt = NEAR_ZERO * (np.hypot(absolute, curve) if n < FEW_POINTS else absolute)
    if not crosses and least > doubt:
        return 0.0
    if relative <= 0.0:
        return largest
    return largest * min(float(np.hypot(absolute, curve)) / relative, 1.0)


def _scatter(x: FloatArray, y: FloatArray, repetitions: Sequence[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """Magnitudes of samples, and standard deviations that were seen there."""
    many = np.array([len(values) >= MIN_REPETITIONS for values in repetitions], dtype=np.bool_)
    if len(many) and 2 * many.sum() >= len(y):
        spread = [float(np.median(np.abs(v - np.median(v)))) / np.sqrt(len(v)) for v in repetitions]
        return np.abs(y)[many], NORMAL * np.asarray(spread)[many]
    share = (x[1:-1] - x[:-2]) / (x[2:] - x[:-2])
    off = y[1:-1] - (1 - share) * y[:-2] - share * y[2:]
    size = np.median(np.abs([y[:-2], y[1:-1], y[2:]]), axis=0)
    return size, NORMAL * np.abs(off) / np.sqrt(1 + share**2 + (1 - share) ** 2)


def _components(size: FloatArray, scatter: FloatArray) -> tuple[float, float]:
    """Absolute and relative noise, from the third of smallest and the third of largest samples."""
    order = np.argsort(size, kind="stable")
    third = max(1, len(order) // 3)
    low, high = order[:third], order[-third:]
    relative = float(np.median(scatter[high] / size[high])) if size[high].min() > 0 else 0.0
    little, much = float(np.median(size[low])), float(np.median(size[high]))
    if RANGE * little > much:
        return 0.0, relative
    beyond = float(np.median(scatter[low])) ** 2 - (relative * little) ** 2
    return float(np.sqrt(max(beyond, 0.0))), relative


OUTLIER_POINTS = 15
"""Among fewer samples nobody can say which are outliers."""
OUTLIER_OFF = 0.2
"""An outlier is off by this share of its size at least: less is noise, or a feature that a curve can follow."""
OUTLIER_SIGMA = 6.0
"""An outlier is off by this many standard deviations of the noise at least."""
MAX_NOISE = 0.1
"""With larger relative noise, a sample that is three times too high cannot be told from its tails. Measurements have
3 % at most."""
END_JUMP = 3.0
"""Samples near the ends have to stick out from their own neighbours too, because a curve may be steep there: the first
or last is no outlier unless its distance from the next is this many times that of the next two."""
MAX_OUTLIERS = 0.2
"""If a larger share of the samples seems to be off, it is the shape of the curve."""
SIDE = 4
"""Neighbours on either side that a sample is compared with; twice as many where they are on one side only."""
AGREEING = 0.75
"""Share of the neighbours that have to lie on a line for a sample to be judged by it."""
WINDOWS = tuple(
    np.delete(np.arange(first, last + 1), np.flatnonzero(np.arange(first, last + 1) == 0))
    for first, last in ((-SIDE, SIDE), (-2 * SIDE, -1), (1, 2 * SIDE), (-SIDE, -1), (1, SIDE))
)


def outliers(
    x: FloatArray, y: FloatArray, floor: float = 0.0, *, most_noise: float = MAX_NOISE
) -> npt.NDArray[np.bool_]:
    """Samples that fit neither to those before nor to those after nor to those around them.

    Those that are far from the median around them are compared with lines of median slope (Theil 1950, Sen 1968)
    through neighbours before, after, and around them: over x, over the number of the sample, and on logarithmic axes.
    A line counts if three quarters of its samples agree with it. Outliers are far from all of these lines. So a
    step is none, and neither is what lasts for more than three samples, nor the steep end of a curve.
    """
    n = len(y)
    none = np.zeros(n, dtype=np.bool_)
    if n < OUTLIER_POINTS:
        return none
    every = np.arange(n)
    least = max(OUTLIER_OFF, OUTLIER_SIGMA * _noise(x, y, floor, spoilt=True))
    nearest = np.clip(every - SIDE, 0, n - 2 * SIDE - 1)[:, None] + np.arange(2 * SIDE + 1)
    some = np.flatnonzero(_off(y, np.median(y[nearest], axis=1), floor) > least)
    distance, known = np.full(len(some), np.inf), np.zeros(len(some), dtype=np.bool_)
    axes = [(x, y), (every.astype(np.float64), y)]
    if x[0] > 0:
        axes.append((np.log(x), y))
        axes += [(np.log(x), np.log(np.abs(y)))] if (y > 0).all() or (y < 0).all() else []
    for window in WINDOWS if len(some) else ():
        whole = np.flatnonzero((some + window[0] >= 0) & (some + window[-1] < n))
        index = some[whole, None] + window
        for number, (at, value) in enumerate(axes):
            guess, line = _median_lines(at[index], value[index], at[some[whole]])
            if number == len(axes) - 1 and value is not y:
                with np.errstate(over="ignore"):
                    guess, line = np.sign(y[0]) * np.exp(guess), np.sign(y[0]) * np.exp(line)
            agree = (_off(y[index], line, floor) <= least).sum(axis=1) >= AGREEING * len(window)
            off = np.where(agree, _off(y[some[whole]], guess, floor), np.inf)
            distance[whole] = np.minimum(distance[whole], off)
            known[whole] |= agree
    found = none.copy()
    found[some] = known & (distance > least)
    near_end = np.flatnonzero(found & ((every < SIDE) | (every >= n - SIDE)) & (every > 0) & (every < n - 1))
    found[near_end] = _from_neighbours(x, y, floor)[near_end - 1] > least
    found[0] &= abs(y[0] - y[1]) > END_JUMP * abs(y[1] - y[2])
    found[-1] &= abs(y[-1] - y[-2]) > END_JUMP * abs(y[-2] - y[-3])
    sure = found.any() and found.sum() <= MAX_OUTLIERS * n and _noise(x[~found], y[~found], floor) <= most_noise
    return found if sure else none


def _noise(x: FloatArray, y: FloatArray, floor: float, *, spoilt: bool = False) -> float:
    """Relative noise by the distances of samples from the line through their neighbours.

    Where outliers are among them (``spoilt``), each spoils three; then the lower quartile says the noise.
    """
    share = (x[1:-1] - x[:-2]) / (x[2:] - x[:-2])
    off = _from_neighbours(x, y, floor) / np.sqrt(1 + share**2 + (1 - share) ** 2)
    return QUARTILE * float(np.quantile(off, 0.25)) if spoilt else NORMAL * float(np.median(off))


def _from_neighbours(x: FloatArray, y: FloatArray, floor: float) -> FloatArray:
    """How far each sample but the first and last is from the line through its two neighbours."""
    share = (x[1:-1] - x[:-2]) / (x[2:] - x[:-2])
    return _off(y[1:-1], (1 - share) * y[:-2] + share * y[2:], floor)


def _off(y: FloatArray, curve: FloatArray, floor: float) -> FloatArray:
    """Distances as shares of the larger of the two, of the floor at least."""
    size = np.maximum(np.maximum(np.abs(y), np.abs(curve)), floor)
    return np.divide(np.abs(y - curve), size, out=np.zeros_like(size), where=size > 0)


def off_curve(y: FloatArray, curve: FloatArray, suspects: npt.NDArray[np.bool_], floor: float) -> npt.NDArray[np.bool_]:
    """Samples that are as far from a curve as outliers are, by the scatter of those that are no suspects."""
    off = _off(y, curve, floor)
    return off > max(OUTLIER_OFF, OUTLIER_SIGMA * NORMAL * float(np.median(off[~suspects])))


def _median_lines(x: FloatArray, y: FloatArray, at: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The line of median slope through the samples of each row: its value at one abscissa a row, and at the samples."""
    first, second = np.triu_indices(x.shape[1], k=1)
    slope = np.median((y[:, second] - y[:, first]) / (x[:, second] - x[:, first]), axis=1)[:, None]
    from_at = slope * (x - at[:, None])
    base = np.median(y - from_at, axis=1)
    return base, base[:, None] + from_at
