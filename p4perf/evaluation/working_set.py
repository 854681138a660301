"""Where a growing working set fills the caches, and which splits that explains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from p4perf.errors import UsageError

SCHOLZ2021_FIXED_BYTES = 128.0
SCHOLZ2021_BYTES_PER_ENTRY = 72.0
NEAR = 3.0
"""A split within this factor of a mark is explained by it: caches are shared and hold more than entries."""


@dataclass(frozen=True)
class WorkingSet:
    """Memory that is touched as x grows: ``fixed_bytes + x * bytes_per_entry``."""

    fixed_bytes: float
    bytes_per_entry: float

    def size_bytes(self, x: float) -> float:
        """Bytes at x."""
        return self.fixed_bytes + x * self.bytes_per_entry

    def x_at(self, size_bytes: float) -> float | None:
        """The x at which the working set has that size, or None if it is larger from the start."""
        if self.bytes_per_entry <= 0 or size_bytes <= self.fixed_bytes:
            return None
        return (size_bytes - self.fixed_bytes) / self.bytes_per_entry


def scholz2021_exact_table(key_bytes: float, action_data_bytes: float) -> WorkingSet:
    """Exact match table of t4p4s on DPDK: ``m = 128 B + e (r_k + r_a + 72 B)`` (Scholz et al. 2021, Eq. 5).

    Args:
        key_bytes: total key size ``r_k``.
        action_data_bytes: size of the action data ``r_a``.
    """
    return WorkingSet(SCHOLZ2021_FIXED_BYTES, key_bytes + action_data_bytes + SCHOLZ2021_BYTES_PER_ENTRY)


@dataclass(frozen=True)
class CacheMark:
    """The x at which the working set is as large as a cache.

    Args:
        level: name of the cache, such as ``L2``.
        size_bytes: its size.
        x: where the working set reaches that size.
    """

    level: str
    size_bytes: float
    x: float


def cache_marks(working_set: WorkingSet, caches: Mapping[str, float]) -> tuple[CacheMark, ...]:
    """Marks of all caches that the working set can fill, ascending.

    Args:
        working_set: bytes as a function of x.
        caches: size in bytes by level.

    Raises:
        UsageError: a size is not positive.
    """
    marks = []
    for level, size in caches.items():
        if not size > 0:
            raise UsageError(f"the size of the cache {level} must be positive, not {size}")
        x = working_set.x_at(size)
        if x is not None:
            marks.append(CacheMark(level, float(size), x))
    return tuple(sorted(marks, key=lambda m: m.x))


@dataclass(frozen=True)
class Explanation:
    """What a split may come from.

    Args:
        split_x: where it is.
        mark: the nearest cache mark within the factor, or None: unexplained.
        ratio: split over mark, or None.
    """

    split_x: float
    mark: CacheMark | None
    ratio: float | None

    def text(self) -> str:
        """One line for people."""
        if self.mark is None or self.ratio is None:
            return f"split at {self.split_x:.4g}: not explained by a cache size"
        return f"split at {self.split_x:.4g}: {self.ratio:.2g} times where the working set fills {self.mark.level}"


def explain(splits: Sequence[float], marks: Sequence[CacheMark], *, factor: float = NEAR) -> tuple[Explanation, ...]:
    """Assign each split to the nearest mark (on a logarithmic scale) within a factor.

    Args:
        splits: abscissae at which parts begin.
        marks: cache marks of the same variable.
        factor: how far away a mark may be.

    Raises:
        UsageError: the factor is below 1.
    """
    if factor < 1:
        raise UsageError(f"the factor must be 1 at least, not {factor}")
    out = []
    for split in splits:
        ratios = [(max(split / m.x, m.x / split), m) for m in marks if m.x > 0 and split > 0]
        nearest = min(ratios, key=lambda r: r[0], default=None)
        if nearest is None or nearest[0] > factor:
            out.append(Explanation(split, None, None))
        else:
            out.append(Explanation(split, nearest[1], split / nearest[1].x))
    return tuple(out)
