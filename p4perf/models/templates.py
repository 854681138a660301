"""The function templates of Scholz et al. 2021, section 2.2, in identifiable normal forms.

The paper uses polynomials of degree zero to five, exponential and logarithm, and the inverse of each. Written with
redundant factors, as ``a log(b x) + c``, they have more parameters than data can determine; here every parameter is
determined by the curve:

==================  ============================  ====
name                form                          rank
==================  ============================  ====
const               c0                            1
poly1 ... poly5     c0 + c1 x + ...               2-6
log                 a + b ln x                    2
log_shift           a + b ln(x + s)               3
exp                 c + a exp(k x)                3
inv_poly1 ... 5     1 / (c0 + c1 x + ...)         2.5-6.5
inv_log             1 / (a + b ln x)              2.5
inv_log_shift       1 / (a + b ln(x + s))         3.5
inv_exp             1 / (c + a exp(k x))          3.5
==================  ============================  ====

The rank (psi of the paper) is the number of free parameters, counted on these forms: redundant factors make a curve
no more flexible, so they should not make it less credible. A reciprocal counts half a parameter, so that of two
equally flexible curves that the data cannot tell apart the direct form is chosen. The inverse of a constant is a
constant and is left out.

Another package adds templates with an entry point of the group ``p4perf.templates`` that names a function returning
a tuple of :class:`Template`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from p4perf.errors import UsageError
from p4perf.models.bases import Basis, Exponential, FloatArray, Logarithm, Polynomial, ShiftedLogarithm
from p4perf.plugins import load_plugin, plugin_names

GROUP = "p4perf.templates"


@dataclass(frozen=True)
class Template:
    """A function with free parameters.

    Args:
        name: unique name; it is what files store.
        family: coarser kind that several templates share, such as ``poly``.
        rank: psi of Eq. 3; of two curves of about the same error the one of lower rank is chosen.
        basis: columns and shape.
        inverse: whether the value is the reciprocal of the sum.
    """

    name: str
    family: str
    rank: float
    basis: Basis
    inverse: bool = False

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names in the order in which parameters are given: coefficients, then the shape."""
        shape = self.basis.shape_name
        return self.basis.linear_names + ((shape,) if shape else ())

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
        at = np.asarray(x, dtype=np.float64)
        p = np.asarray(parameters, dtype=np.float64)
        shape = p[..., -1] if self.basis.shape_name else 0.0
        total = np.zeros_like(at)
        with np.errstate(all="ignore"):
            for k, column in enumerate(self.basis.columns(at, shape, origin)):
                total = total + p[..., k] * column
            return 1.0 / total if self.inverse else total

    def text(
        self, parameters: Sequence[float], origin: float = 0.0, *, x: str = "x", y: str = "y", digits: int = 4
    ) -> str:
        """The function with its numbers, such as ``y = 95.2 + 12.1 ln x``."""
        body = self.basis.text(tuple(parameters), origin, x, digits)
        return f"{y} = 1 / ({body})" if self.inverse else f"{y} = {body}"


def _template(name: str, family: str, basis: Basis, inverse: bool = False) -> Template:
    rank = len(basis.linear_names) + (basis.shape_name is not None) + (0.5 if inverse else 0.0)
    return Template(name, family, rank, basis, inverse)


def scholz2021_templates() -> tuple[Template, ...]:
    """The templates of Scholz et al. 2021, in the order in which the pairwise rule of the paper meets them."""
    return (
        _template("const", "const", Polynomial(0)),
        *(_template(f"poly{degree}", "poly", Polynomial(degree)) for degree in range(1, 6)),
        _template("log", "log", Logarithm()),
        _template("log_shift", "log", ShiftedLogarithm()),
        _template("exp", "exp", Exponential()),
        *(_template(f"inv_poly{degree}", "inv_poly", Polynomial(degree), True) for degree in range(1, 6)),
        _template("inv_log", "inv_log", Logarithm(), True),
        _template("inv_log_shift", "inv_log", ShiftedLogarithm(), True),
        _template("inv_exp", "inv_exp", Exponential(), True),
    )


def registered_templates() -> tuple[Template, ...]:
    """The templates of the paper and those of every other registered set, in a fixed order."""
    others = [t for source in plugin_names(GROUP) for t in load_plugin(GROUP, source)()]
    return tuple({t.name: t for t in (*scholz2021_templates(), *others)}.values())


def find_template(name: str, templates: Sequence[Template] | None = None) -> Template:
    """The template of that name.

    Args:
        name: name of the template.
        templates: where to look; by default in every registered template set.

    Raises:
        UsageError: there is none of that name.
    """
    candidates = registered_templates() if templates is None else templates
    for template in candidates:
        if template.name == name:
            return template
    known = ", ".join(t.name for t in candidates)
    raise UsageError(f"there is no function template {name!r}", hint=f"known: {known}")
