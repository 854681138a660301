"""The function templates of Scholz et al. 2021, section 2.2, in identifiable normal forms.

The paper uses polynomials of degree zero to five, exponential and logarithm, and the inverse of each. Written with
redundant factors, as ``a log(b x) + c``, they have more parameters than data can determine; here every parameter is
determined by the curve:

==================  ============================  ====
name                form                          rank
==================  ============================  ====
const               c0                            1
poly1 ... poly5     c0 + c1 x + ...               2-6
log                 a + b ln x                    3
log_shift           a + b ln(x + s)               4
exp                 c + a exp(k x)                5
inv_poly1 ... 5     1 / (c0 + c1 x + ...)         3-7
inv_log             1 / (a + b ln x)              4
inv_log_shift       1 / (a + b ln(x + s))         5
inv_exp             1 / (c + a exp(k x))          6
==================  ============================  ====

The rank (psi of the paper) is the number of parameters of the prototype as the paper's authors write it, redundant
ones included: ``a b^(c x + d) + e`` has five. It orders the templates by how readily one should believe in them, and
so a line is preferred to a logarithm, and that to a reciprocal, where the data cannot tell. The number of parameters
that the data do determine is ``len(template.parameter_names)``. The inverse of a constant is a constant and is left out.

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
    rank: int
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


def scholz2021_templates() -> tuple[Template, ...]:
    """The templates of Scholz et al. 2021, in the order in which the pairwise rule of the paper meets them."""
    degrees = tuple(
        Template("const" if d == 0 else f"poly{d}", "const" if d == 0 else "poly", d + 1, Polynomial(d))
        for d in range(6)
    )
    inverse_degrees = tuple(Template(f"inv_poly{d}", "inv_poly", d + 2, Polynomial(d), True) for d in range(1, 6))
    return (
        *degrees,
        Template("log", "log", 3, Logarithm()),
        Template("log_shift", "log", 4, ShiftedLogarithm()),
        Template("exp", "exp", 5, Exponential()),
        *inverse_degrees,
        Template("inv_log", "inv_log", 4, Logarithm(), True),
        Template("inv_log_shift", "inv_log", 5, ShiftedLogarithm(), True),
        Template("inv_exp", "inv_exp", 6, Exponential(), True),
    )


def find_template(name: str, templates: Sequence[Template] | None = None) -> Template:
    """The template of that name.

    Args:
        name: name of the template.
        templates: where to look; by default in every registered template set.

    Raises:
        UsageError: there is none of that name.
    """
    if templates is None:
        templates = [t for source in plugin_names(GROUP) for t in load_plugin(GROUP, source)()]
    for template in templates or scholz2021_templates():
        if template.name == name:
            return template
    known = ", ".join(t.name for t in templates or scholz2021_templates())
    raise UsageError(f"there is no function template {name!r}", hint=f"known: {known}")
