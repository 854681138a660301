"""An interpolating template, for curves that no function describes: a monotone cubic spline through samples.

Between two knots the curve stays between their values (Fritsch and Carlson 1980, Monotone Piecewise Cubic
Interpolation, with the slopes of Fritsch and Butland 1984), so it does not wave; outside of them it goes on with the
slope at the end. It has two parameters for every knot, so nothing is smoothed and no criterion applies.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from p4perf.errors import UsageError
from p4perf.models.notation import Notation
from p4perf.models.templates import FloatArray, Origin, Parameters, Template, find_template

SPLINE = "spline"
MAX_KNOTS = 50
"""Of more samples, this many are interpolated, evenly chosen."""


Function = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]
"""Of abscissae, and of the x and y of the knots."""


@dataclass(frozen=True)
class SplineTemplate(Template):
    """A spline through ``knots`` samples; with zero knots, a spline whose knots a derivation sets."""

    knots: int = 0
    name: str = field(init=False, compare=False)
    family: str = field(init=False, default=SPLINE, compare=False)
    rank: float = field(init=False, compare=False)
    parameter_names: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names = tuple(f"{axis}{k + 1}" for axis in "xy" for k in range(self.knots))
        object.__setattr__(self, "name", f"{SPLINE}{self.knots or ''}")
        object.__setattr__(self, "rank", float(max(self.knots, 1)))
        object.__setattr__(self, "parameter_names", names)

    def of_samples(self, count: int) -> SplineTemplate:
        """The spline that fits this number of samples."""
        return self if self.knots else SplineTemplate(min(count, MAX_KNOTS))

    def through(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """Parameters of the spline through the first, the last, and evenly chosen samples between them."""
        at = np.round(np.linspace(0, len(x) - 1, self.knots)).astype(np.intp)
        return np.concatenate([x[at], y[at]])

    @override
    def evaluate(self, x: npt.ArrayLike, parameters: Parameters, origin: Origin = 0.0) -> FloatArray:
        return self._each(x, parameters, origin, _value)

    @override
    def derivative(self, x: npt.ArrayLike, parameters: Parameters, origin: Origin = 0.0) -> FloatArray:
        return self._each(x, parameters, origin, _slope)

    @override
    def formula(self, parameters: Sequence[float], origin: float, notation: Notation) -> str:
        if notation.language in ("python", "c"):
            raise UsageError(
                "a spline has no formula", hint="evaluate the model with p4perf.load_model, or tabulate it"
            )
        text = f"spline of {self.knots} points"
        return rf"\text{{{text}}}" if notation.language == "latex" else text

    def _each(self, x: npt.ArrayLike, parameters: Parameters, origin: Origin, function: Function) -> FloatArray:
        at, p = np.asarray(x, dtype=np.float64) - origin, np.asarray(parameters, dtype=np.float64)
        shape = np.broadcast_shapes(at.shape, p.shape[:-1])
        if p.ndim == 1:
            return np.reshape(function(np.ravel(at), p[: self.knots], p[self.knots :]), shape)
        rows = np.broadcast_to(p, (*shape, p.shape[-1])).reshape(-1, shape[-1], p.shape[-1])[:, 0]
        places = np.broadcast_to(at, shape).reshape(-1, shape[-1])
        values = [function(a, r[: self.knots], r[self.knots :]) for a, r in zip(places, rows, strict=True)]
        return np.reshape(values, shape)


def find_spline(name: str) -> SplineTemplate | None:
    """The spline of that name, such as ``spline`` or ``spline12``; None if it is none."""
    found = re.fullmatch(rf"{SPLINE}([1-9][0-9]{{0,3}})?", name)
    return SplineTemplate(int(found[1] or 0)) if found else None


def find_function(name: str, templates: Sequence[Template] | None = None) -> Template:
    """The spline or the template of that name; arguments and errors as of ``find_template``."""
    return find_spline(name) or find_template(name, templates)


def _slopes(x: FloatArray, y: FloatArray) -> FloatArray:
    """Slopes at the knots: weighted harmonic means of those on both sides, zero at a turn; secants at the ends."""
    width, rise = np.diff(x), np.diff(y) / np.diff(x)
    slope = np.empty_like(x)
    slope[0], slope[-1] = rise[0], rise[-1]
    left, right = rise[:-1], rise[1:]
    one, other = 2 * width[1:] + width[:-1], width[1:] + 2 * width[:-1]
    same = left * right > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        slope[1:-1] = np.where(same, (one + other) / (one / left + other / right), 0.0)
    return slope


def _pieces(at: FloatArray, x: FloatArray, y: FloatArray) -> tuple[FloatArray, ...]:
    """For each abscissa: place in its piece from 0 to 1, width, values and slopes at the ends of the piece."""
    slope = _slopes(x, y)
    k = np.clip(np.searchsorted(x, at, side="right") - 1, 0, len(x) - 2)
    width = x[k + 1] - x[k]
    return np.clip((at - x[k]) / width, 0.0, 1.0), width, y[k], y[k + 1], slope[k], slope[k + 1]


def _value(at: FloatArray, x: FloatArray, y: FloatArray) -> FloatArray:
    if not np.isfinite(y).all() or len(x) < 2:
        return np.full(at.shape, y[0] if len(y) == 1 else np.nan)
    t, width, y0, y1, m0, m1 = _pieces(at, x, y)
    inside = (1 + 2 * t) * (1 - t) ** 2 * y0 + t * t * (3 - 2 * t) * y1 + width * t * (1 - t) * ((1 - t) * m0 - t * m1)
    return np.asarray(inside + np.minimum(at - x[0], 0) * m0 + np.maximum(at - x[-1], 0) * m1)


def _slope(at: FloatArray, x: FloatArray, y: FloatArray) -> FloatArray:
    if not np.isfinite(y).all() or len(x) < 2:
        return np.zeros(at.shape) if len(y) == 1 else np.full(at.shape, np.nan)
    t, width, y0, y1, m0, m1 = _pieces(at, x, y)
    inside = 6 * t * (1 - t) * (y1 - y0) / width + (1 - t) * (1 - 3 * t) * m0 + t * (3 * t - 2) * m1
    return np.asarray(inside)
