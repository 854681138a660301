"""What function templates are made of: a few columns, at most one non-linear shape parameter.

A template is ``y = sum(c_k * column_k(x; shape))`` or the reciprocal of that sum. Written this way, each of its
parameters is identifiable, and one solver fits them all: linear least squares for the ``c_k``, a search in one
dimension for the shape.

Columns are taken about an *origin*: a fixed abscissa, not a parameter. The origin is zero whenever that is
numerically harmless, because formulas about zero read best; otherwise it is an end of the fitted part.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np
import numpy.typing as npt

from p4perf.models.notation import Notation
from p4perf.models.notation import number as number

FloatArray = npt.NDArray[np.float64]

MAX_EXPONENT = 30.0
"""An exponential is rewritten about zero only if that changes its factor by less than exp(30)."""
MAX_CANCELLATION = 1e5
"""A polynomial is rewritten about zero only if its terms stay below this multiple of its values."""


class Basis(ABC):
    """The columns of a template and its shape parameter, if it has one. All array arguments broadcast."""

    @property
    @abstractmethod
    def linear_names(self) -> tuple[str, ...]:
        """Names of the coefficients, one per column."""

    @property
    def shape_name(self) -> str | None:
        """Name of the non-linear parameter, or None."""
        return None

    @abstractmethod
    def columns(self, x: FloatArray, shape: FloatArray | float, origin: FloatArray | float) -> list[FloatArray]:
        """Values of every column at x."""

    @abstractmethod
    def slopes(self, x: FloatArray, shape: FloatArray | float, origin: FloatArray | float) -> list[FloatArray]:
        """Derivatives of every column with respect to x."""

    def about_zero(
        self, parameters: FloatArray, origin: FloatArray, first: FloatArray, last: FloatArray
    ) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
        """The same functions written about origin zero, and where that is numerically harmless.

        Args:
            parameters: one row per function, coefficients first, then the shape.
            origin: present origin of every row.
            first: first abscissa of every part.
            last: last abscissa of every part.
        """
        return parameters, origin == 0

    def about(self, parameters: FloatArray, origin: FloatArray, target: float) -> FloatArray:
        """The same functions written about another origin, whatever it costs in digits."""
        return parameters

    @abstractmethod
    def formula(self, parameters: Sequence[float], origin: float, notation: Notation) -> str:
        """The sum as a formula in some notation."""


@dataclass(frozen=True)
class Polynomial(Basis):
    """``c0 + c1 u + ... + cd u^d`` with ``u = x - origin``."""

    degree: int

    @property
    def linear_names(self) -> tuple[str, ...]:
        """``c0`` to ``cd``."""
        return tuple(f"c{k}" for k in range(self.degree + 1))

    def columns(self, x: FloatArray, shape: FloatArray | float, origin: FloatArray | float) -> list[FloatArray]:
        """Powers of ``x - origin``."""
        u = x - origin
        powers = [np.ones_like(u)]
        for _ in range(self.degree):
            powers.append(powers[-1] * u)
        return powers

    def slopes(self, x: FloatArray, shape: FloatArray | float, origin: FloatArray | float) -> list[FloatArray]:
        """``k (x - origin)^(k-1)``."""
        powers = self.columns(x, shape, origin)
        return [np.zeros_like(powers[0]), *((k + 1) * power for k, power in enumerate(powers[:-1]))]

    def about(self, parameters: FloatArray, origin: FloatArray, target: float) -> FloatArray:
        """Taylor shift: ``sum c_k (x - o)^k`` expanded in powers of ``x - target``."""
        out = np.zeros_like(parameters)
        step = target - origin
        for k in range(self.degree + 1):
            for m in range(k + 1):
                out[..., m] += parameters[..., k] * comb(k, m) * step ** (k - m)
        return out

    def about_zero(
        self, parameters: FloatArray, origin: FloatArray, first: FloatArray, last: FloatArray
    ) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
        """Harmless as long as the terms about zero do not cancel by more than :data:`MAX_CANCELLATION`."""
        moved = self.about(parameters, origin, 0.0)
        reach = np.maximum(np.abs(first), np.abs(last))
        terms = sum(np.abs(moved[..., k]) * reach**k for k in range(self.degree + 1))
        ends = [
            np.abs(sum(parameters[..., k] * (at - origin) ** k for k in range(self.degree + 1)))
            for at in (first, (first + last) / 2, last)
        ]
        return moved, np.asarray(terms <= MAX_CANCELLATION * np.maximum.reduce(ends))

    def formula(self, parameters: Sequence[float], origin: float, notation: Notation) -> str:
        """Such as ``150 + 0.072 x``."""
        return notation.polynomial(parameters, origin)


@dataclass(frozen=True)
class Logarithm(Basis):
    """``a + b ln x`` for x > 0; the origin is always zero."""

    @property
    def linear_names(self) -> tuple[str, ...]:
        """Offset and factor."""
        return ("a", "b")

    def columns(self, x: FloatArray, shape: FloatArray | float, origin: FloatArray | float) -> list[FloatArray]:
        """One and ``ln x``; minus infinity or NaN where x <= 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return [np.ones_like(x), np.log(x)]

    def slopes(self, x: FloatArray, shape: FloatArray | float, origin: FloatArray | float) -> list[FloatArray]:
        """Zero and ``1 / x``; NaN where x <= 0."""
        return [np.zeros_like(x), 1.0 / np.where(x > 0, x, np.nan)]

    def formula(self, parameters: Sequence[float], origin: float, notation: Notation) -> str:
        """Such as ``95.2 + 12.1 ln x``."""
        return notation.sum([(parameters[0], ""), (parameters[1], notation.logarithm(0.0, 0.0))])


@dataclass(frozen=True)
class ShiftedLogarithm(Basis):
    """``a + b ln(x - origin + s)``; the shift ``s`` is the shape."""

    @property
    def linear_names(self) -> tuple[str, ...]:
        """Offset and factor."""
        return ("a", "b")

    @property
    def shape_name(self) -> str:
        """The shift."""
        return "s"

    def columns(self, x: FloatArray, shape: FloatArray | float, origin: FloatArray | float) -> list[FloatArray]:
        """One and the logarithm; minus infinity or NaN left of its pole."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return [np.ones_like(x), np.log((x - origin) + shape)]

    def slopes(self, x: FloatArray, shape: FloatArray | float, origin: FloatArray | float) -> list[FloatArray]:
        """Zero and the reciprocal of the distance from the pole; NaN left of it."""
        distance = (x - origin) + shape
        return [np.zeros_like(x), 1.0 / np.where(distance > 0, distance, np.nan)]

    def about(self, parameters: FloatArray, origin: FloatArray, target: float) -> FloatArray:
        """The shift moves by as much as the origin."""
        out = parameters.copy()
        out[..., 2] += target - origin
        return out

    def about_zero(
        self, parameters: FloatArray, origin: FloatArray, first: FloatArray, last: FloatArray
    ) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
        """Harmless unless the pole is so near that ``x + s`` would cancel."""
        near = np.maximum(np.abs(first), np.abs(origin)) <= 1e8 * np.abs(parameters[..., 2])
        return self.about(parameters, origin, 0.0), np.asarray(near)

    def formula(self, parameters: Sequence[float], origin: float, notation: Notation) -> str:
        """Such as ``95.2 + 12.1 ln(x + 3)``."""
        return notation.sum([(parameters[0], ""), (parameters[1], notation.logarithm(origin, parameters[2]))])


@dataclass(frozen=True)
class Exponential(Basis):
    """``c + a exp(k (x - origin))``; the rate ``k`` is the shape."""

    @property
    def linear_names(self) -> tuple[str, ...]:
        """Offset and factor."""
        return ("c", "a")

    @property
    def shape_name(self) -> str:
        """The rate, per unit of x."""
        return "k"

    def columns(self, x: FloatArray, shape: FloatArray | float, origin: FloatArray | float) -> list[FloatArray]:
        """One and the exponential; infinite where that overflows (only far outside of the fitted part)."""
        with np.errstate(over="ignore", under="ignore"):
            return [np.ones_like(x), np.exp(shape * (x - origin))]

    def slopes(self, x: FloatArray, shape: FloatArray | float, origin: FloatArray | float) -> list[FloatArray]:
        """Zero and ``k exp(k (x - origin))``."""
        with np.errstate(over="ignore", under="ignore"):
            return [np.zeros_like(x), shape * np.exp(shape * (x - origin))]

    def about(self, parameters: FloatArray, origin: FloatArray, target: float) -> FloatArray:
        """The factor takes up the move of the origin."""
        out = parameters.copy()
        with np.errstate(over="ignore", under="ignore"):
            out[..., 1] *= np.exp(parameters[..., 2] * (target - origin))
        return out

    def about_zero(
        self, parameters: FloatArray, origin: FloatArray, first: FloatArray, last: FloatArray
    ) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
        """Harmless while the factor changes by less than ``exp(30)``."""
        small = np.abs(parameters[..., 2] * origin) < MAX_EXPONENT
        moved = self.about(parameters, np.where(small, origin, 0.0), 0.0)
        return moved, np.asarray(small)

    def formula(self, parameters: Sequence[float], origin: float, notation: Notation) -> str:
        """Such as ``20 + 1.8 exp(0.07 x)``."""
        return notation.sum([(parameters[0], ""), (parameters[1], notation.exponential(parameters[2], origin))])


@dataclass(frozen=True)
class Power(Basis):
    """``a x^b`` for x > 0; the exponent ``b`` is the shape, and the origin is always zero."""

    @property
    def linear_names(self) -> tuple[str, ...]:
        """The factor."""
        return ("a",)

    @property
    def shape_name(self) -> str:
        """The exponent."""
        return "b"

    def columns(self, x: FloatArray, shape: FloatArray | float, origin: FloatArray | float) -> list[FloatArray]:
        """The power; not finite where it overflows or is not defined."""
        with np.errstate(all="ignore"):
            return [np.power(x, shape)]

    def slopes(self, x: FloatArray, shape: FloatArray | float, origin: FloatArray | float) -> list[FloatArray]:
        """``b x^(b-1)``."""
        with np.errstate(all="ignore"):
            return [shape * np.power(x, np.subtract(shape, 1.0))]

    def formula(self, parameters: Sequence[float], origin: float, notation: Notation) -> str:
        """Such as ``3 x^0.5``."""
        return notation.sum([(parameters[0], notation.power(notation.x, parameters[1]))])
