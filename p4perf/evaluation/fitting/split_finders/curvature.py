"""Heuristics: a curve changes where its second derivative is extreme (Scholz et al. 2021, section 2.2).

Both finders here look at the samples several times, and smooth them in between, because what removes noise also blurs
edges. The candidates are the union over these rounds. Among them the search is exact.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from typing_extensions import override

from p4perf.errors import UsageError
from p4perf.evaluation.fitting.selection import PairwiseRule
from p4perf.evaluation.fitting.split_finders.base import Breakpoints, Candidates, IndexArray, SplitFinder, SplitProblem
from p4perf.evaluation.fitting.split_finders.exact import BruteForce, DynamicProgramming
from p4perf.models.templates import FloatArray


@dataclass(frozen=True)
class CurvatureFinder(SplitFinder):
    """Segments may end at the strongest bends; a subclass defines how bends are measured.

    A bend is a local maximum or minimum of the second derivative; its strength is the magnitude there. Between two
    samples where the curve jumps the derivative is extreme on both sides, at a kink it is extreme at the vertex.
    The derivative exists for all samples but the outermost two, and nothing is made up for these: the published code
    of the paper pads with zeros, which are taken for bends near both ends.

    Up to ``exhaustive_segments`` segments every sample is a candidate, as in the paper. This needs the costs of all
    segments, so that the heuristic saves time of the fitting only if ``exhaustive_segments`` is 2 or less. Among the
    candidates, :class:`~p4perf.evaluation.fitting.selection.ExactRule` is served by dynamic programming and
    :class:`~p4perf.evaluation.fitting.selection.PairwiseRule` by enumeration; both are exact.

    Args:
        bends: how many of the strongest bends of each round become candidates (l of the paper).
        neighbours: how many samples on each side of a bend become candidates as well (j of the paper).
        exhaustive_segments: up to this number of segments every sample is a candidate.
    """

    bends: int = 10
    neighbours: int = 0
    exhaustive_segments: int = 3

    def __post_init__(self) -> None:
        if self.bends < 1 or self.neighbours < 0 or self.exhaustive_segments < 0:
            raise UsageError("bends must be at least 1, neighbours and exhaustive_segments must not be negative")

    @abstractmethod
    def curvatures(self, x: FloatArray, y: FloatArray, log_x: bool) -> Iterator[FloatArray]:
        """Second derivative at the n - 2 inner samples, once for every round.

        Args:
            x: n abscissae, ascending; n is 3 at least.
            log_x: whether x is looked at on a logarithmic axis.
        """

    @override
    def candidates(self, x: FloatArray, y: FloatArray, segments: int, log_x: bool) -> Candidates:
        """Every sample up to ``exhaustive_segments`` segments, the strongest bends and their neighbours beyond."""
        if segments <= self.exhaustive_segments:
            return (None,) * segments
        bends = self.strongest_bends(x, y, log_x)
        return (None,) * self.exhaustive_segments + (bends,) * (segments - self.exhaustive_segments)

    def strongest_bends(self, x: FloatArray, y: FloatArray, log_x: bool) -> IndexArray:
        """Indices of the candidates, ascending; none where the samples have no bend.

        Raises:
            UsageError: the axis is logarithmic and x is not positive.
        """
        n = len(x)
        if n < 3:
            return np.zeros(0, dtype=np.intp)
        found = [1 + _strongest(curvature, self.bends) for curvature in self.curvatures(x, y, log_x)]
        around = np.concatenate([np.zeros(0, dtype=np.intp), *found])[:, None] + np.arange(
            -self.neighbours, self.neighbours + 1
        )
        return np.unique(around[(around >= 0) & (around < n - 1)])

    @override
    def find(self, problem: SplitProblem) -> tuple[Breakpoints | None, ...]:
        """The best breakpoints among the candidates, for every number of segments."""
        finder = BruteForce() if isinstance(problem.rule, PairwiseRule) else DynamicProgramming()
        return finder.find(problem)


@dataclass(frozen=True)
class SecondDerivative(CurvatureFinder):
    """Bends by finite differences: the heuristic of Scholz et al. 2021.

    The second derivative at a sample is that of the parabola through it and its two neighbours, over x, or over log10 x
    where the axis is logarithmic. The first round looks at the samples as they are; each name in ``smoothing`` adds a
    round after smoothing what the round before looked at.

    Args:
        smoothing: ``median`` (moving median, which keeps steps) or ``linear`` (local linear regression over x), in
            this order.
        window: number of samples that smoothing looks at, odd; at the ends fewer. By default a twentieth of the
            samples, 5 at least.
    """

    smoothing: tuple[str, ...] = ("median", "linear")
    window: int | None = None

    summary: ClassVar[str] = "heuristic of Scholz et al. 2021: segments end at the extrema of the second derivative"

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        unknown = [name for name in self.smoothing if name not in ("median", "linear")]
        if unknown:
            raise UsageError(f"there is no smoothing {unknown[0]!r}", hint="known: median, linear")
        if self.window is not None:
            _require_window(self.window, 3)

    @override
    def curvatures(self, x: FloatArray, y: FloatArray, log_x: bool) -> Iterator[FloatArray]:
        from scipy.ndimage import median_filter  # here and below, because scipy is slow to load

        if log_x and x[0] <= 0:
            hint = "leave it out, or use a linear axis"
            raise UsageError(f"x = {x[0]:g} has no place on a logarithmic axis", hint=hint)
        at = np.log10(x) if log_x else x
        window = self.window or max(5, len(x) // 20 | 1)
        yield _second_difference(at, y)
        for name in self.smoothing:
            y = median_filter(y, size=window, mode="nearest") if name == "median" else _local_lines(at, y, window)
            yield _second_difference(at, y)


@dataclass(frozen=True)
class SavitzkyGolay(CurvatureFinder):
    """Bends by Savitzky-Golay filters: the second derivative of polynomials fitted to a moving window.

    The filter needs equidistant abscissae, so it runs over the index of the samples, whatever x is: samples that were
    placed on a logarithmic grid are looked at on a logarithmic axis. Each window makes a round.

    Args:
        windows: numbers of samples in the window, odd. Windows wider than the samples are left out.
        degree: degree of the polynomials, 2 at least and below the narrowest window.
    """

    windows: tuple[int, ...] = (5, 9, 17)
    degree: int = 3

    summary: ClassVar[str] = "heuristic: segments end at the extrema of a Savitzky-Golay second derivative"

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        if self.degree < 2 or not self.windows:
            raise UsageError("at least one window is required, and the degree must be at least 2")
        for window in self.windows:
            _require_window(window, self.degree + 1)

    @override
    def curvatures(self, x: FloatArray, y: FloatArray, log_x: bool) -> Iterator[FloatArray]:
        from scipy.signal import savgol_filter

        for window in self.windows:
            if window <= len(y):
                yield savgol_filter(y, window, self.degree, deriv=2)[1:-1]


def _require_window(window: int, least: int) -> None:
    if window < least or window % 2 == 0:
        raise UsageError(f"a window must be odd and {least} at least, not {window}")


def _second_difference(x: FloatArray, y: FloatArray) -> FloatArray:
    """Second derivative of the parabola through each inner sample and its neighbours."""
    slope = np.diff(y) / np.diff(x)
    return np.asarray(2 * np.diff(slope) / (x[2:] - x[:-2]))


def _local_lines(x: FloatArray, y: FloatArray, window: int) -> FloatArray:
    """Value at each sample of the least-squares line through the samples of its window."""
    u, v = (sliding_window_view(np.pad(a, window // 2, constant_values=np.nan), window) for a in (x, y))
    u, v = np.nan_to_num(u - x[:, None]), np.nan_to_num(v)
    inside = sliding_window_view(np.pad(np.ones(len(x)), window // 2), window)
    count = inside.sum(axis=1)
    mean_u, mean_v = u.sum(axis=1) / count, v.sum(axis=1) / count
    off = (u - mean_u[:, None]) * inside
    slope = (off * v).sum(axis=1) / (off * off).sum(axis=1)
    return np.asarray(mean_v - slope * mean_u)


def _strongest(curvature: FloatArray, count: int) -> IndexArray:
    """Indices of the local maxima and minima of the largest magnitude, the strongest first."""
    left, right = np.append(np.nan, curvature[:-1]), np.append(curvature[1:], np.nan)
    top = ~(left >= curvature) & ~(right > curvature)
    bottom = ~(left <= curvature) & ~(right < curvature)
    strength = np.abs(curvature)
    bends = np.flatnonzero((top | bottom) & (strength > 0))
    return bends[np.argsort(-strength[bends], kind="stable")[:count]]
