"""Fitted functions: one on a segment, or several joined at breakpoints (Scholz et al. 2021, section 2.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from p4perf.errors import UsageError
from p4perf.models.notation import Notation
from p4perf.models.templates import FloatArray, Template


@dataclass(frozen=True)
class Fitting:
    """``F = (lambda, p, alpha, beta, eta)``: a template with parameters on a segment of the domain.

    Args:
        template: the function template (lambda).
        parameters: its parameters (p), in units of y per power of x.
        start: first abscissa that was fitted (alpha).
        end: last abscissa that was fitted (beta).
        error: error metric over the fitted samples (eta).
        points: number of samples.
        rank: psi by which the template was chosen; by default its own.
    """

    template: Template
    parameters: tuple[float, ...]
    start: float
    end: float
    error: float
    points: int
    origin: float = 0.0
    rank: float = None  # type: ignore[assignment]  # the template's own until __post_init__ has run

    def __post_init__(self) -> None:
        wanted = self.template.parameter_names
        if len(self.parameters) != len(wanted):
            raise UsageError(f"{self.template.name} takes {len(wanted)} parameters, not {len(self.parameters)}")
        if self.rank is None:
            object.__setattr__(self, "rank", self.template.rank)

    def evaluate(self, x: npt.ArrayLike) -> FloatArray:
        """Values of the function, also outside of the segment."""
        return self.template.evaluate(x, self.parameters, self.origin)

    def derivative(self, x: npt.ArrayLike) -> FloatArray:
        """Slopes of the function in units of y per unit of x, also outside of the segment."""
        return self.template.derivative(x, self.parameters, self.origin)

    def text(self, *, x: str = "x", y: str = "y", digits: int = 4) -> str:
        return self.template.text(self.parameters, self.origin, x=x, y=y, digits=digits)

    def formula(self, notation: Notation) -> str:
        """The right-hand side with its numbers in some notation; see :meth:`Template.formula`."""
        return self.template.formula(self.parameters, self.origin, notation)


@dataclass(frozen=True)
class PiecewiseFitting:
    """Fittings of adjacent segments (Eq. 4).

    Args:
        breakpoints: index, counted from 0 over all samples, of the last sample of each segment but the last.
        error: combined error theta, the mean of the errors of the segments weighted by their numbers of samples.
        rank: combined rank Phi, weighted likewise.
    """

    segments: tuple[Fitting, ...]
    breakpoints: tuple[int, ...]
    error: float
    rank: float

    def __post_init__(self) -> None:
        if not self.segments or len(self.breakpoints) != len(self.segments) - 1:
            raise UsageError(
                f"{len(self.segments)} segments need {len(self.segments) - 1} breakpoints, not {len(self.breakpoints)}"
            )
        ends = np.cumsum([p.points for p in self.segments])[:-1] - 1
        if any(a.end >= b.start for a, b in zip(self.segments, self.segments[1:], strict=False)) or any(
            int(end) != breakpoint for end, breakpoint in zip(ends, self.breakpoints, strict=True)
        ):
            raise UsageError("the segments of a piecewise fitting must follow each other and match its breakpoints")

    @classmethod
    def join(cls, segments: tuple[Fitting, ...]) -> PiecewiseFitting:
        """Put segments together; error and rank are their means weighted by the number of samples."""
        total = sum(p.points for p in segments)
        ends = np.cumsum([p.points for p in segments])[:-1] - 1
        return cls(
            segments=segments,
            breakpoints=tuple(int(e) for e in ends),
            error=sum(p.error * p.points for p in segments) / total,
            rank=sum(p.rank * p.points for p in segments) / total,
        )

    @property
    def breakpoint_x(self) -> tuple[float, ...]:
        """Abscissae at which segments but the first begin; what lies between two belongs to the left one."""
        return tuple(p.start for p in self.segments[1:])

    @property
    def points(self) -> int:
        return sum(p.points for p in self.segments)

    @property
    def domain(self) -> tuple[float, float]:
        return self.segments[0].start, self.segments[-1].end

    @property
    def free_parameters(self) -> int:
        """Number of fitted parameters, breakpoints not counted."""
        return sum(len(p.parameters) for p in self.segments)

    def segment_of(self, x: npt.ArrayLike) -> npt.NDArray[np.intp]:
        """Index of the segment that each abscissa belongs to; outside of the domain, the nearest segment."""
        return np.searchsorted(np.asarray(self.breakpoint_x), np.asarray(x, dtype=np.float64), side="right")

    def evaluate(self, x: npt.ArrayLike) -> FloatArray:
        """Values by Eq. 4: the segment ``i`` with ``s_i <= x < s_(i+1)``."""
        return self._by_segment(x, [segment.evaluate for segment in self.segments])

    def derivative(self, x: npt.ArrayLike) -> FloatArray:
        """Slopes of the segment that each x belongs to, in units of y per unit of x; without steps at breakpoints."""
        return self._by_segment(x, [segment.derivative for segment in self.segments])

    def _by_segment(self, x: npt.ArrayLike, functions: Sequence[Callable[[FloatArray], FloatArray]]) -> FloatArray:
        at = np.asarray(x, dtype=np.float64)
        which = self.segment_of(at)
        out = np.full_like(at, np.nan)
        for index, function in enumerate(functions):
            mine = which == index
            out[mine] = function(at[mine])
        return out
