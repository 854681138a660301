"""Stationary distributions by iteration, for systems too large for a direct solve, and as a second method."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from p4perf.models.queue.lattice import FloatArray

DEPTH = 8
_CLIP = 1e-30
_TRANSPORT = 0.05


def stationary_by_iteration(
    image: Callable[[FloatArray], FloatArray], start: FloatArray, *, tolerance: float = 1e-13, most: int = 2000
) -> tuple[FloatArray, float, int]:
    """The distribution v with v = image(v), by Anderson's acceleration of v -> image(v).

    The size of a step says little where the chain forgets slowly; what is compared is image(v) with v itself.

    Args:
        image: one step of the chain; keeps the sum.
        start: a distribution.
        tolerance: the sum of absolute differences at which it ends.
        most: steps at most.

    Returns:
        The distribution, its sum of absolute differences to its image, and the number of steps.
    """
    v = start / start.sum()
    values: list[FloatArray] = []
    differences: list[FloatArray] = []
    best, least = v, np.inf
    for count in range(1, most + 1):
        w = image(v)
        difference = w - v
        size = float(np.abs(difference).sum())
        if size < least:
            best, least = w, size
        if size <= tolerance:
            return w / w.sum(), size, count
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
    return best / best.sum(), least, most


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
