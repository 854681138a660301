"""Any function as a template."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from p4perf.errors import UsageError
from p4perf.models.notation import Notation
from p4perf.models.templates import FloatArray, Origin, Parameters, Template

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
