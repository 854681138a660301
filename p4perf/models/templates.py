"""Function templates: of a few columns and one shape parameter; those of Scholz et al. 2021, section 2.2.

A template is ``y = sum(c_k * column_k(x; shape))`` or the reciprocal of that sum. Written this way, each of its
parameters is identifiable, and one solver fits them all: linear least squares for the ``c_k``, a search in one
dimension for the shape.

Columns are taken about an *origin*: a fixed abscissa, not a parameter. The origin is zero whenever that is
numerically harmless, because formulas about zero read best; otherwise it is an end of the fitted segment.

The paper uses polynomials of degree zero to five, exponential and logarithm, and the inverse of each. Written with
redundant factors, as ``a log(b x) + c``, they have more parameters than data can determine; here every parameter is
determined by the curve. The power law is not in the paper:

==================  ============================  ====
name                form                          rank
==================  ============================  ====
const               c0                            1
poly1 ... poly5     c0 + c1 x + ...               2-6
log                 a + b ln x                    2
log_shift           a + b ln(x + s)               3
power               a x^b                         2.25
exp                 c + a exp(k x)                3
inv_poly1 ... 5     1 / (c0 + c1 x + ...)         2.5-6.5
inv_log             1 / (a + b ln x)              2.5
inv_log_shift       1 / (a + b ln(x + s))         3.5
inv_exp             1 / (c + a exp(k x))          3.5
==================  ============================  ====

The rank (psi of the paper) is the number of free parameters, counted on these forms: redundant factors make a curve
no more flexible, so they should not make it less credible. A reciprocal counts half a parameter, and a power law a
quarter of one: of two equally flexible curves that the data cannot tell apart, the plainer form is chosen. The inverse
of a constant is a constant, that of a power law is a power law; both are left out.

Another package adds templates with an entry point of the group ``p4perf.templates`` that names a function returning
a tuple of :class:`Template`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import comb
from types import MappingProxyType
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from p4perf.errors import UsageError
from p4perf.models.notation import Notation
from p4perf.plugins import load_plugin, plugin_names

FloatArray = npt.NDArray[np.float64]
Origin = FloatArray | float
Parameters = Sequence[float] | FloatArray
Moved = tuple[FloatArray, npt.NDArray[np.bool_]]
"""Parameters about another origin, and where they may take the place of the old ones."""

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
    def columns(self, x: FloatArray, shape: Origin, origin: Origin) -> list[FloatArray]:
        """Values of every column at x."""

    @abstractmethod
    def slopes(self, x: FloatArray, shape: Origin, origin: Origin) -> list[FloatArray]:
        """Derivatives of every column with respect to x."""

    def about_zero(self, parameters: FloatArray, origin: FloatArray, first: FloatArray, last: FloatArray) -> Moved:
        """The same functions written about origin zero, and where that is numerically harmless.

        Args:
            parameters: one row per function, coefficients first, then the shape.
            origin, first, last: present origin of every row, and the first and last abscissa of its segment.
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
    @override
    def linear_names(self) -> tuple[str, ...]:
        return tuple(f"c{k}" for k in range(self.degree + 1))

    @override
    def columns(self, x: FloatArray, shape: Origin, origin: Origin) -> list[FloatArray]:
        u = x - origin
        powers = [np.ones_like(u)]
        for _ in range(self.degree):
            powers.append(powers[-1] * u)
        return powers

    @override
    def slopes(self, x: FloatArray, shape: Origin, origin: Origin) -> list[FloatArray]:
        powers = self.columns(x, shape, origin)
        return [np.zeros_like(powers[0]), *((k + 1) * power for k, power in enumerate(powers[:-1]))]

    @override
    def about(self, parameters: FloatArray, origin: FloatArray, target: float) -> FloatArray:
        out = np.zeros_like(parameters)
        step = target - origin
        for k in range(self.degree + 1):
            for m in range(k + 1):
                out[..., m] += parameters[..., k] * comb(k, m) * step ** (k - m)
        return out

    @override
    def about_zero(self, parameters: FloatArray, origin: FloatArray, first: FloatArray, last: FloatArray) -> Moved:
        moved = self.about(parameters, origin, 0.0)
        reach = np.maximum(np.abs(first), np.abs(last))
        terms = sum(np.abs(moved[..., k]) * reach**k for k in range(self.degree + 1))
        ends = [
            np.abs(sum(parameters[..., k] * (at - origin) ** k for k in range(self.degree + 1)))
            for at in (first, (first + last) / 2, last)
        ]
        return moved, np.asarray(terms <= MAX_CANCELLATION * np.maximum.reduce(ends))

    @override
    def formula(self, parameters: Sequence[float], origin: float, notation: Notation) -> str:
        return notation.polynomial(parameters, origin)


@dataclass(frozen=True)
class Logarithm(Basis):
    """``a + b ln x`` for x > 0; the origin is always zero."""

    linear_names: ClassVar[tuple[str, ...]] = ("a", "b")

    @override
    def columns(self, x: FloatArray, shape: Origin, origin: Origin) -> list[FloatArray]:
        with np.errstate(divide="ignore", invalid="ignore"):
            return [np.ones_like(x), np.log(x)]

    @override
    def slopes(self, x: FloatArray, shape: Origin, origin: Origin) -> list[FloatArray]:
        return [np.zeros_like(x), 1.0 / np.where(x > 0, x, np.nan)]

    @override
    def formula(self, parameters: Sequence[float], origin: float, notation: Notation) -> str:
        return notation.sum([(parameters[0], ""), (parameters[1], notation.logarithm(0.0, 0.0))])


@dataclass(frozen=True)
class ShiftedLogarithm(Basis):
    """``a + b ln(x - origin + s)``; the shift ``s`` is the shape."""

    linear_names: ClassVar[tuple[str, ...]] = ("a", "b")
    shape_name: ClassVar[str] = "s"

    @override
    def columns(self, x: FloatArray, shape: Origin, origin: Origin) -> list[FloatArray]:
        with np.errstate(divide="ignore", invalid="ignore"):
            return [np.ones_like(x), np.log((x - origin) + shape)]

    @override
    def slopes(self, x: FloatArray, shape: Origin, origin: Origin) -> list[FloatArray]:
        distance = (x - origin) + shape
        return [np.zeros_like(x), 1.0 / np.where(distance > 0, distance, np.nan)]

    @override
    def about(self, parameters: FloatArray, origin: FloatArray, target: float) -> FloatArray:
        out = parameters.copy()
        out[..., 2] += target - origin
        return out

    @override
    def about_zero(self, parameters: FloatArray, origin: FloatArray, first: FloatArray, last: FloatArray) -> Moved:
        near = np.maximum(np.abs(first), np.abs(origin)) <= 1e8 * np.abs(parameters[..., 2])
        return self.about(parameters, origin, 0.0), np.asarray(near)

    @override
    def formula(self, parameters: Sequence[float], origin: float, notation: Notation) -> str:
        return notation.sum([(parameters[0], ""), (parameters[1], notation.logarithm(origin, parameters[2]))])


@dataclass(frozen=True)
class Exponential(Basis):
    """``c + a exp(k (x - origin))``; the rate ``k`` is the shape."""

    linear_names: ClassVar[tuple[str, ...]] = ("c", "a")
    shape_name: ClassVar[str] = "k"

    @override
    def columns(self, x: FloatArray, shape: Origin, origin: Origin) -> list[FloatArray]:
        with np.errstate(over="ignore", under="ignore"):
            return [np.ones_like(x), np.exp(shape * (x - origin))]

    @override
    def slopes(self, x: FloatArray, shape: Origin, origin: Origin) -> list[FloatArray]:
        with np.errstate(over="ignore", under="ignore"):
            return [np.zeros_like(x), shape * np.exp(shape * (x - origin))]

    @override
    def about(self, parameters: FloatArray, origin: FloatArray, target: float) -> FloatArray:
        out = parameters.copy()
        with np.errstate(over="ignore", under="ignore"):
            out[..., 1] *= np.exp(parameters[..., 2] * (target - origin))
        return out

    @override
    def about_zero(self, parameters: FloatArray, origin: FloatArray, first: FloatArray, last: FloatArray) -> Moved:
        small = np.abs(parameters[..., 2] * origin) < MAX_EXPONENT
        moved = self.about(parameters, np.where(small, origin, 0.0), 0.0)
        return moved, np.asarray(small)

    @override
    def formula(self, parameters: Sequence[float], origin: float, notation: Notation) -> str:
        return notation.sum([(parameters[0], ""), (parameters[1], notation.exponential(parameters[2], origin))])


@dataclass(frozen=True)
class Power(Basis):
    """``a x^b`` for x > 0; the exponent ``b`` is the shape, and the origin is always zero."""

    linear_names: ClassVar[tuple[str, ...]] = ("a",)
    shape_name: ClassVar[str] = "b"

    @override
    def columns(self, x: FloatArray, shape: Origin, origin: Origin) -> list[FloatArray]:
        with np.errstate(all="ignore"):
            return [np.power(x, shape)]

    @override
    def slopes(self, x: FloatArray, shape: Origin, origin: Origin) -> list[FloatArray]:
        with np.errstate(all="ignore"):
            return [shape * np.power(x, np.subtract(shape, 1.0))]

    @override
    def formula(self, parameters: Sequence[float], origin: float, notation: Notation) -> str:
        return notation.sum([(parameters[0], notation.power(notation.x, parameters[1]))])


GROUP = "p4perf.templates"


class Template(ABC):
    """A function with free parameters.

    Attributes:
        name: unique name; it is what files store.
        family: coarser kind that several templates share, such as ``poly``.
        rank: psi of Eq. 3, the number of parameters that a curve determines; of two curves of about the same error
            the one of lower rank is chosen.
    """

    name: str
    family: str
    rank: float
    parameter_names: tuple[str, ...]

    @abstractmethod
    def evaluate(self, x: npt.ArrayLike, parameters: Parameters, origin: Origin = 0.0) -> FloatArray:
        """Values of the function.

        Args:
            x: abscissae; any shape.
            parameters: one value per name. For many functions at once, the last axis holds the parameters and the
                others broadcast against x.
            origin: abscissa about which the parameters are written.

        Returns:
            Values like x; not finite where the function is not defined.
        """

    @abstractmethod
    def derivative(self, x: npt.ArrayLike, parameters: Parameters, origin: Origin = 0.0) -> FloatArray:
        """Slopes of the function, in units of y per unit of x; arguments and shape as for :meth:`evaluate`."""

    @abstractmethod
    def formula(self, parameters: Sequence[float], origin: float, notation: Notation) -> str:
        """The right-hand side of the function in some notation.

        Raises:
            UsageError: it cannot be written in this notation.
        """

    def text(
        self, parameters: Sequence[float], origin: float = 0.0, *, x: str = "x", y: str = "y", digits: int = 4
    ) -> str:
        """The function with its numbers, such as ``y = 95.2 + 12.1 ln x``."""
        return f"{y} = {self.formula(parameters, origin, Notation(x, digits))}"


@dataclass(frozen=True)
class BasisTemplate(Template):
    """A weighted sum of columns, or (``inverse``) its reciprocal."""

    name: str
    family: str
    rank: float
    basis: Basis
    inverse: bool = False
    parameter_names: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        shape = self.basis.shape_name
        object.__setattr__(self, "parameter_names", self.basis.linear_names + ((shape,) if shape else ()))

    @override
    def evaluate(self, x: npt.ArrayLike, parameters: Parameters, origin: Origin = 0.0) -> FloatArray:
        at, p, shape = self._arguments(x, parameters)
        with np.errstate(all="ignore"):
            total = self._weighted(self.basis.columns(at, shape, origin), p)
            return 1.0 / total if self.inverse else total

    @override
    def derivative(self, x: npt.ArrayLike, parameters: Parameters, origin: Origin = 0.0) -> FloatArray:
        at, p, shape = self._arguments(x, parameters)
        with np.errstate(all="ignore"):
            slope = self._weighted(self.basis.slopes(at, shape, origin), p)
            if self.inverse:
                total = self._weighted(self.basis.columns(at, shape, origin), p)
                slope = -(slope / total) / total
            return slope

    @override
    def formula(self, parameters: Sequence[float], origin: float, notation: Notation) -> str:
        body = self.basis.formula(parameters, origin, notation)
        return notation.reciprocal(body) if self.inverse else body

    def _arguments(self, x: npt.ArrayLike, parameters: Parameters) -> tuple[FloatArray, FloatArray, FloatArray | float]:
        at, p = np.asarray(x, dtype=np.float64), np.asarray(parameters, dtype=np.float64)
        return at, p, p[..., -1] if self.basis.shape_name else 0.0

    @staticmethod
    def _weighted(columns: Sequence[FloatArray], parameters: FloatArray) -> FloatArray:
        total = parameters[..., 0] * columns[0]
        for k, column in enumerate(columns[1:], start=1):
            total = total + parameters[..., k] * column
        return total


def _template(name: str, family: str, basis: Basis, inverse: bool = False) -> BasisTemplate:
    rank = len(basis.linear_names) + (basis.shape_name is not None) + (0.5 if inverse else 0.0)
    return BasisTemplate(name, family, rank, basis, inverse)


def scholz2021_templates() -> tuple[BasisTemplate, ...]:
    """The templates of Scholz et al. 2021, in the order in which the pairwise rule of the paper meets them."""
    return tuple(t for t in standard_templates() if t.name != "power")


def standard_templates() -> tuple[BasisTemplate, ...]:
    """The templates of Scholz et al. 2021 in their order, and ``power`` before ``exp``."""
    return (
        _template("const", "const", Polynomial(0)),
        *(_template(f"poly{degree}", "poly", Polynomial(degree)) for degree in range(1, 6)),
        _template("log", "log", Logarithm()),
        _template("log_shift", "log", ShiftedLogarithm()),
        BasisTemplate("power", "power", 2.25, Power()),
        _template("exp", "exp", Exponential()),
        *(_template(f"inv_poly{degree}", "inv_poly", Polynomial(degree), True) for degree in range(1, 6)),
        _template("inv_log", "inv_log", Logarithm(), True),
        _template("inv_log_shift", "inv_log", ShiftedLogarithm(), True),
        _template("inv_exp", "inv_exp", Exponential(), True),
    )


SCHOLZ2021_RANKS: Mapping[str, float] = MappingProxyType(
    {"const": 1.0, "log": 3.0, "log_shift": 4.0, "exp": 5.0, "inv_log": 4.0, "inv_log_shift": 5.0, "inv_exp": 6.0}
    | {f"poly{degree}": degree + 1.0 for degree in range(1, 6)}
    | {f"inv_poly{degree}": degree + 2.0 for degree in range(1, 6)}
)
"""psi as the code published with the paper counts it, by name of template: every parameter as written, so that
``a log(b x) + c`` counts three although two determine it."""


def registered_templates() -> tuple[Template, ...]:
    """The standard templates and those of every other registered set, in a fixed order."""
    others = [t for source in plugin_names(GROUP) for t in load_plugin(GROUP, source)()]
    return tuple({t.name: t for t in (*standard_templates(), *others)}.values())


def find_template(name: str, templates: Sequence[Template] | None = None) -> Template:
    """The template of that name.

    Args:
        templates: where to look; by default in every registered set and the standard one.

    Raises:
        UsageError: there is none of that name.
    """
    candidates = (*registered_templates(), *standard_templates()) if templates is None else templates
    for template in candidates:
        if template.name == name:
            return template
    known = ", ".join(dict.fromkeys(t.name for t in candidates))
    raise UsageError(f"there is no function template {name!r}", hint=f"known: {known}")


STEP = float(np.finfo(np.float64).eps) ** (1 / 3)
"""Step of the central differences, relative to x where |x| > 1: truncation and rounding weigh the same."""


@dataclass(frozen=True)
class FunctionTemplate(Template):
    r"""A template made of a function of your own.

    A form is a formula with placeholders, ``{x}`` and ``{a}`` for a parameter ``a``. It is needed only to write the
    function as LaTeX or as code: LaTeX falls back on the name of the function, code does not. Other braces stay as
    they are, and in LaTeX so do those of placeholders: ``\frac{a}{b}`` becomes ``\frac{1.2}{3}``.

    Args:
        name: unique name; it is what files store.
        function: ``function(x, *parameters)``: works on arrays and broadcasts, as numpy's functions do.
        family: coarser kind; by default the name.
        rank: psi of Eq. 3; by default (zero) the number of parameters. Lower it if they are not all determined by
            a curve.
        start: ``start(x, y)`` gives values from which fitting starts; by default ones.
        bounds: smallest and largest value of every parameter, infinite where there is none; by default none at all.
        python: form in Python, such as ``{a} * math.sqrt({x})``.
        c: form in C, such as ``{a} * sqrt({x})``.
        latex_form: form in LaTeX, such as ``{a} \sqrt{x}``.
    """

    name: str
    function: Callable[..., npt.ArrayLike]
    parameter_names: tuple[str, ...]
    family: str = ""
    rank: float = 0.0
    start: Callable[[FloatArray, FloatArray], Sequence[float]] | None = None
    bounds: tuple[tuple[float, float], ...] | None = None
    python: str | None = None
    c: str | None = None
    latex_form: str | None = None

    def __post_init__(self) -> None:
        names = tuple(self.parameter_names)
        object.__setattr__(self, "parameter_names", names)
        object.__setattr__(self, "family", self.family or self.name)
        object.__setattr__(self, "rank", float(self.rank) or float(len(names)))
        if not names or len(set(names)) != len(names) or not all(n.isidentifier() and n != "x" for n in names):
            raise self._wrong(f"needs parameters with different names, none of them x, not {names}")
        if self.bounds is not None:
            bounds = tuple((float(low), float(high)) for low, high in self.bounds)
            object.__setattr__(self, "bounds", bounds)
            if len(bounds) != len(names) or not all(low < high for low, high in bounds):
                raise self._wrong("needs one pair of bounds per parameter, the smaller one first")
        for language, form in (("python", self.python), ("c", self.c)):
            unknown = set(re.findall(r"{(\w+)}", form or "")) - {"x", *names}
            if unknown:
                raise self._wrong(f"has no parameter {min(unknown)!r}, but its form in {language} names it")

    def start_values(self, x: FloatArray, y: FloatArray) -> tuple[float, ...]:
        """Values from which fitting these samples starts.

        Raises:
            UsageError: ``start`` fails or gives another number of values than there are parameters.
        """
        if self.start is None:
            return (1.0,) * len(self.parameter_names)
        try:
            values = tuple(float(v) for v in self.start(x, y))
        except (TypeError, ValueError, ArithmeticError, LookupError) as exc:
            raise self._wrong(f"cannot say where to start: {exc}") from exc
        if len(values) != len(self.parameter_names):
            raise self._wrong(f"needs {len(self.parameter_names)} start values, not {len(values)}")
        return values

    @override
    def evaluate(self, x: npt.ArrayLike, parameters: Parameters, origin: Origin = 0.0) -> FloatArray:
        """Values of the function at ``x - origin``; see :meth:`Template.evaluate`.

        Raises:
            UsageError: the function fails, or its values do not have the shape of its arguments.
        """
        at = np.asarray(x, dtype=np.float64) - origin
        p = np.asarray(parameters, dtype=np.float64)
        shape = np.broadcast_shapes(at.shape, p.shape[:-1])
        try:
            with np.errstate(all="ignore"):
                values = self.function(at, *(p[..., k] for k in range(len(self.parameter_names))))
                return np.array(np.broadcast_to(np.asarray(values, dtype=np.float64), shape))
        except (TypeError, ValueError, ArithmeticError, LookupError) as exc:
            hint = "a template's function works on arrays, as numpy.exp does and math.exp does not"
            raise self._wrong(f"cannot be evaluated: {exc}", hint) from exc

    @override
    def derivative(self, x: npt.ArrayLike, parameters: Parameters, origin: Origin = 0.0) -> FloatArray:
        at = np.asarray(x, dtype=np.float64)
        step = STEP * np.maximum(np.abs(at), 1.0)
        left, right = at - step, at + step
        low, middle, high = (self.evaluate(place, parameters, origin) for place in (left, at, right))
        with np.errstate(all="ignore"):
            central, forward, backward = (high - low) / (right - left), (high - middle) / step, (middle - low) / step
        ended = np.where(np.isfinite(forward), forward, backward)
        slope: FloatArray = np.where(np.isfinite(central), central, ended)
        return slope

    @override
    def formula(self, parameters: Sequence[float], origin: float, notation: Notation) -> str:
        values = dict(zip(self.parameter_names, parameters, strict=True))
        form = {"python": self.python, "c": self.c, "latex": self.latex_form}.get(notation.language)
        if form is None:
            return notation.call(self.name, values, origin)
        x = notation.variable(origin)
        known = {"x": f"{{{x}}}" if notation.language == "latex" else x}
        known |= {key: notation.argument(value) for key, value in values.items()}
        return re.sub(r"{(\w+)}", lambda found: known.get(found[1], found[0]), form)

    def _wrong(self, message: str, hint: str | None = None) -> UsageError:
        return UsageError(f"the function template {self.name!r} {message}", hint=hint)
