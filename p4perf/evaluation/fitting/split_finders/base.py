"""What a split finder is: where segments may end, and which breakpoints win.

A combination of segments is described by its breakpoints: the indices of the last sample of each segment but the last.
Its error theta is the mean of the errors of its segments weighted by their numbers of samples, its rank Phi likewise
(Scholz et al. 2021, section 2.2). A finder works in two steps, because the costs of all segments are the expensive
thing:

1. :meth:`SplitFinder.candidates` says after which samples a segment may end. Only the segments between such samples
   (:func:`wanted_intervals`) are fitted and given a cost.
2. :meth:`SplitFinder.find` searches the combinations of these segments, for every number of segments.

Another package adds a finder with an entry point of the group ``p4perf.split_finders`` that names a subclass of
:class:`SplitFinder`; its options are the fields of that (frozen) dataclass.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from p4perf.errors import UsageError
from p4perf.evaluation.fitting.selection import ExactRule, PairwiseRule
from p4perf.models.templates import FloatArray
from p4perf.plugins import open_plugin

GROUP = "p4perf.split_finders"

IndexArray = npt.NDArray[np.intp]
Breakpoints = tuple[int, ...]
"""Index of the last sample of each segment but the last, ascending."""
Candidates = tuple[IndexArray | None, ...]
"""For every number of segments from 1: samples after which a segment may end, ascending; None: after every sample."""


@dataclass(frozen=True, eq=False)
class SplitGrid:
    """A problem reduced to the samples after which a segment may end: its segments are pairs of such samples.

    Args:
        ends: indices of these samples, ascending; the last one is the last sample.
        cost: matrix (m, m); at (a, b) the cost of the segment after ``ends[a - 1]`` up to and with ``ends[b]``,
            infinite where it is unknown or has too few samples.
        weight: matrix (m, m) of rank times number of samples of the same segments; 0 where the cost is infinite.
    """

    ends: IndexArray
    cost: FloatArray
    weight: FloatArray

    def breakpoints(self, positions: Sequence[int] | IndexArray | None) -> Breakpoints | None:
        """Positions in ``ends`` as indices of samples."""
        return None if positions is None else tuple(int(self.ends[p]) for p in positions)


@dataclass(frozen=True, eq=False)
class SplitProblem:
    """What is searched.

    Args:
        cost: matrix (n, n) of error times number of samples of the segment from row to column, both included, plus the
            price of its parameters. What is not finite is never chosen: unknown segments are infinite.
        ranks: matrix (n, n) of the ranks psi of the fittings of these segments.
        min_points: smallest number of samples of a segment. A single segment of all samples is always allowed.
        rule: what is optimal. With :class:`ExactRule` the lowest theta; with :class:`PairwiseRule` the winner of Eq. 3
            compared in pairs, in lexicographic order of the breakpoints. Finders say where they deviate.
        candidates: what :meth:`SplitFinder.candidates` returned; by default every sample.

    Raises:
        UsageError: sizes do not match, or ``segments`` or ``min_points`` is below 1.
    """

    x: FloatArray
    y: FloatArray
    cost: FloatArray
    ranks: FloatArray
    segments: int
    min_points: int
    rule: ExactRule | PairwiseRule
    candidates: Candidates = ()

    def __post_init__(self) -> None:
        n = len(self.x)
        if n < 1 or self.y.shape != (n,) or self.cost.shape != (n, n) or self.ranks.shape != (n, n):
            raise UsageError(
                f"{n} abscissae need as many samples and two matrices ({n}, {n}), "
                f"not {self.y.shape}, {self.cost.shape} and {self.ranks.shape}"
            )
        if self.segments < 1 or self.min_points < 1:
            raise UsageError("the numbers of segments and of samples per segment must be at least 1")
        if self.candidates and len(self.candidates) != self.segments:
            raise UsageError(f"{self.segments} numbers of segments need as many sets of candidates")

    @property
    def points(self) -> int:
        return len(self.x)

    @cached_property
    def weight(self) -> FloatArray:
        """Matrix (n, n) of rank times number of samples; 0 where the rank is not finite."""
        index = np.arange(self.points)
        weight: FloatArray = np.where(np.isfinite(self.ranks), self.ranks, 0.0) * (index[None, :] - index[:, None] + 1)
        return weight

    def margin(self, theta: float) -> float:
        """Largest theta that counts as equal to this one: ``theta + max(kappa_rel theta, kappa)`` (Eq. 3)."""
        return theta + max(self.rule.kappa_rel * theta, self.rule.kappa)

    def grids(self) -> Iterator[tuple[range, SplitGrid]]:
        """Numbers of segments that have the same candidates, ascending, and the reduced problem of each such range."""
        begin = 1
        allowed = self.candidates or (None,) * self.segments
        for segments in range(1, self.segments + 1):
            if segments == self.segments or not _same(allowed[segments], allowed[segments - 1]):
                yield range(begin, segments + 1), self._grid(allowed[segments - 1])
                begin = segments + 1

    def _grid(self, allowed: IndexArray | None) -> SplitGrid:
        n = self.points
        inner = usable_ends(n, self.min_points, allowed)
        starts, ends = np.append(0, inner + 1), np.append(inner, n - 1)
        points = ends[None, :] - starts[:, None] + 1
        cost = self.cost[np.ix_(starts, ends)]
        known = np.isfinite(cost) & ((points >= self.min_points) | (points == n))
        weight = self.weight[np.ix_(starts, ends)]
        return SplitGrid(ends, np.where(known, cost, np.inf), np.where(known, weight, 0.0))


class SplitFinder(ABC):
    """A search for breakpoints. Subclasses are frozen dataclasses whose fields are their options; all have defaults."""

    summary: ClassVar[str]
    """One line for lists."""

    def candidates(self, x: FloatArray, y: FloatArray, segments: int, log_x: bool) -> Candidates:
        """Samples after which a segment may end. By default every sample.

        Args:
            x: n abscissae, ascending.
            y: n samples.
            segments: largest number of segments.
            log_x: whether x is looked at on a logarithmic axis.

        Returns:
            One entry for every number of segments from 1 to ``segments``: indices, ascending, or None for every sample.

        Raises:
            UsageError: an option does not suit the samples.
        """
        return (None,) * segments

    @abstractmethod
    def find(self, problem: SplitProblem) -> tuple[Breakpoints | None, ...]:
        """The best breakpoints for every number of segments.

        Returns:
            One entry for every number of segments from 1 to ``problem.segments``; None where no combination of known
            segments with enough samples exists.

        Raises:
            UsageError: the problem is too large for this finder.
        """


def open_split_finder(name: str, **options: Any) -> SplitFinder:
    finder: SplitFinder = open_plugin(GROUP, name, **options)
    return finder


def wanted_intervals(n: int, min_points: int, candidates: Candidates) -> tuple[IndexArray, IndexArray]:
    """First and last samples of all segments that these candidates allow, and of all samples."""
    wanted = np.zeros((n, n), dtype=np.bool_)
    wanted[0, n - 1] = True
    for segments, allowed in enumerate(candidates, start=1):
        inner = usable_ends(n, min_points, allowed)
        if segments >= 2:
            wanted[0, inner] = wanted[inner + 1, n - 1] = True
        if segments >= 3:
            wanted[np.ix_(inner + 1, inner)] = True
    index = np.arange(n)
    length = index[None, :] - index[:, None] + 1
    starts, ends = np.nonzero(wanted & ((length >= min_points) | (length == n)))
    return starts, ends


def usable_ends(n: int, min_points: int, allowed: IndexArray | None) -> IndexArray:
    """Those of the allowed samples that leave enough samples on both sides."""
    inner = np.arange(min_points - 1, n - min_points)
    if allowed is None:
        return inner
    unique = np.unique(np.asarray(allowed, dtype=np.intp))
    if unique.size and (unique[0] < 0 or unique[-1] >= n):
        raise UsageError(f"{n} samples have no candidates {unique[0]} to {unique[-1]}")
    return unique[(unique >= min_points - 1) & (unique < n - min_points)]


def _same(a: IndexArray | None, b: IndexArray | None) -> bool:
    return a is b or (a is not None and b is not None and np.array_equal(a, b))
