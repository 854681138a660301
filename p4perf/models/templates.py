"""The function templates of Scholz et al. 2021, section 2.2, in identifiable normal forms.

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

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from p4perf.errors import UsageError
from p4perf.models.bases import Basis, Exponential, FloatArray, Logarithm, Polynomial, Power, ShiftedLogarithm
from p4perf.models.notation import Language, Latex, Notation, PlainText, code_notation, latex_name
from p4perf.plugins import load_plugin, plugin_names

GROUP = "p4perf.templates"


class Template(ABC):
    """A function with free parameters.

    Attributes:
        name: unique name; it is what files store.
        family: coarser kind that several templates share, such as ``poly``.
        rank: psi of Eq. 3, the number of parameters that a curve determines; of two curves of about the same error
            the one of lower rank is chosen.
        parameter_names: names in the order in which parameters are given.
    """

    name: str
    family: str
    rank: float
    parameter_names: tuple[str, ...]

    @abstractmethod
    def evaluate(
        self, x: npt.ArrayLike, parameters: Sequence[float] | FloatArray, origin: FloatArray | float = 0.0
    ) -> FloatArray:
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
    def derivative(
        self, x: npt.ArrayLike, parameters: Sequence[float] | FloatArray, origin: FloatArray | float = 0.0
    ) -> FloatArray:
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
        return f"{y} = {self.formula(parameters, origin, PlainText(x, digits))}"

    def latex(
        self, parameters: Sequence[float], origin: float = 0.0, *, x: str = "x", y: str = "y", digits: int = 4
    ) -> str:
        r"""The function in LaTeX, such as ``y = 95.2 + 12.1\,\ln x``, without dollars; needs amsmath.

        Args:
            parameters: one value per name.
            origin: abscissa about which the parameters are written.
            x: name of the variable, plain text.
            y: name of the value, plain text.
            digits: significant digits.
        """
        return f"{latex_name(y)} = {self.formula(parameters, origin, Latex(latex_name(x), digits))}"

    def expression(
        self, parameters: Sequence[float], origin: float = 0.0, language: Language = "python", x: str = "x"
    ) -> str:
        """The right-hand side as code in full precision, such as ``95.2 + 12.1 * math.log(x)``.

        Args:
            parameters: one finite value per name.
            origin: abscissa about which the parameters are written.
            language: ``python`` (needs ``import math``) or ``c`` (needs ``math.h``).
            x: an identifier: the variable.

        Raises:
            UsageError: a parameter is not finite, the language is unknown, or the template has no expression in it.
        """
        return self.formula(parameters, origin, code_notation(language, x))


@dataclass(frozen=True)
class BasisTemplate(Template):
    """A weighted sum of columns, or its reciprocal.

    Args:
        name: unique name; it is what files store.
        family: coarser kind that several templates share, such as ``poly``.
        rank: psi of Eq. 3.
        basis: columns and shape.
        inverse: whether the value is the reciprocal of the sum.
    """

    name: str
    family: str
    rank: float
    basis: Basis
    inverse: bool = False
    parameter_names: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Name the parameters: coefficients, then the shape."""
        shape = self.basis.shape_name
        object.__setattr__(self, "parameter_names", self.basis.linear_names + ((shape,) if shape else ()))

    def evaluate(
        self, x: npt.ArrayLike, parameters: Sequence[float] | FloatArray, origin: FloatArray | float = 0.0
    ) -> FloatArray:
        """Values of the function; see :meth:`Template.evaluate`."""
        at, p, shape = self._arguments(x, parameters)
        with np.errstate(all="ignore"):
            total = self._weighted(self.basis.columns(at, shape, origin), p)
            return 1.0 / total if self.inverse else total

    def derivative(
        self, x: npt.ArrayLike, parameters: Sequence[float] | FloatArray, origin: FloatArray | float = 0.0
    ) -> FloatArray:
        """Analytic slopes; see :meth:`Template.derivative`."""
        at, p, shape = self._arguments(x, parameters)
        with np.errstate(all="ignore"):
            slope = self._weighted(self.basis.slopes(at, shape, origin), p)
            if self.inverse:
                total = self._weighted(self.basis.columns(at, shape, origin), p)
                slope = -(slope / total) / total
            return slope

    def formula(self, parameters: Sequence[float], origin: float, notation: Notation) -> str:
        """The sum or its reciprocal; see :meth:`Template.formula`."""
        body = self.basis.formula(parameters, origin, notation)
        return notation.reciprocal(body) if self.inverse else body

    def _arguments(
        self, x: npt.ArrayLike, parameters: Sequence[float] | FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray | float]:
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
        name: name of the template.
        templates: where to look; by default in every registered set and the standard one.

    Raises:
        UsageError: there is none of that name.
    """
    candidates = (*registered_templates(), *standard_templates()) if templates is None else templates
    for template in candidates:
        if template.name == name:
            return template
    known = ", ".join(t.name for t in candidates)
    raise UsageError(f"there is no function template {name!r}", hint=f"known: {known}")
