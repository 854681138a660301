"""How formulas are written: for people, for LaTeX, and as code.

A template describes its formula once, in terms of :class:`Notation`; every notation turns it into text of its own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from typing_extensions import override

from p4perf.errors import UsageError

_SPECIAL = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}


def number(value: float, digits: int = 4) -> str:
    """A number as people write it: ``digits`` significant digits, no trailing zeros, ``1.2e-7`` when tiny or huge."""
    text = f"{value:.{digits}g}"
    if "e" in text and 1e-4 <= abs(value) < 1e7:
        text = f"{value:.0f}"
    return text.replace("e+0", "e").replace("e+", "e").replace("e-0", "e-")


def size_text(size_bytes: float, digits: int = 3) -> str:
    """A size for people, such as ``2 MiB``."""
    power = next((n for n in (4, 3, 2, 1) if size_bytes >= 1024**n), 0)
    return f"{number(size_bytes / 1024**power, digits if power else 4)} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[power]}"


def one_line(text: str) -> str:
    """A text without control characters."""
    return "".join(c if c.isprintable() else " " for c in text)


def latex_text(text: str) -> str:
    """Any text on one line, with what is special to LaTeX escaped."""
    return re.sub(r"[\\~^{}$&#%_]", lambda found: _SPECIAL.get(found[0], f"\\{found[0]}"), one_line(text))


def latex_name(name: str) -> str:
    """A name in a formula: a single letter as it is, anything longer upright."""
    return name if len(name) == 1 and name.isalpha() else rf"\text{{{latex_text(name)}}}"


@dataclass(frozen=True)
class Notation:
    """What formulas are made of, as people type them: ``95.2 + 12.1 ln x``. Other notations override it.

    Args:
        x: name of the variable.
        digits: significant digits of a coefficient; positions on the axis of x have six at least.
    """

    x: str = "x"
    digits: int = 4
    language: ClassVar[str] = "text"
    times: ClassVar[str] = " "
    ln: ClassVar[str] = "ln"

    def number(self, value: float) -> str:
        """A coefficient."""
        return number(value, self.digits)

    def position(self, value: float) -> str:
        """A position on the axis of x."""
        return number(value, max(self.digits, 6))

    def argument(self, value: float) -> str:
        """A number that can stand anywhere in an expression, whatever its sign."""
        return f"({self.number(value)})" if value < 0 else self.number(value)

    def logarithm(self, origin: float, shift: float) -> str:
        """``ln(x - origin + shift)``."""
        return f"{self.ln}({self.shift(shift - origin)})" if shift != origin else f"{self.ln} {self.x}"

    def exponential(self, rate: float, origin: float) -> str:
        """``exp(rate (x - origin))``."""
        return f"exp({self.number(rate)}{self.times}{self.variable(origin)})"

    def power(self, base: str, exponent: float) -> str:
        """``base^exponent``."""
        return f"{base}^{self.argument(exponent)}"

    def reciprocal(self, body: str) -> str:
        """One over an expression."""
        return f"1 / ({body})"

    def call(self, name: str, parameters: Mapping[str, float], origin: float) -> str:
        """A function that has a name but no formula."""
        given = ", ".join(f"{key} = {self.number(value)}" for key, value in parameters.items())
        return f"{name}({self.shift(-origin)}; {given})"

    def sum(self, terms: Sequence[tuple[float, str]]) -> str:
        """Coefficients times factors, such as ``3 - 2 x``; an empty factor stands for one."""
        text = ""
        for value, factor in terms:
            body = self.number(abs(value)) + (self.times + factor if factor else "")
            sign = "-" if value < 0 else "+"
            text += f" {sign} {body}" if text else body if sign == "+" else f"-{body}"
        return text

    def shift(self, value: float) -> str:
        """The variable plus a number, such as ``x - 3``."""
        if value == 0:
            return self.x
        return f"{self.x} {'-' if value < 0 else '+'} {self.position(abs(value))}"

    def variable(self, origin: float) -> str:
        """The variable less the origin, in brackets unless the origin is zero."""
        return f"({self.shift(-origin)})" if origin else self.x

    def polynomial(self, coefficients: Sequence[float], origin: float) -> str:
        """``c0 + c1 u + c2 u^2 + ...`` with ``u = x - origin``."""
        u = self.variable(origin)
        factors = ["", u, *(self.power(u, k) for k in range(2, len(coefficients)))]
        return self.sum(list(zip(coefficients, factors, strict=False)))


class Latex(Notation):
    r"""Formulas in LaTeX's mathematical mode, such as ``95.2 + 12.1\,\ln x``; needs amsmath."""

    language: ClassVar[str] = "latex"
    times: ClassVar[str] = r"\,"
    ln: ClassVar[str] = r"\ln"

    @override
    def number(self, value: float) -> str:
        return _latex_number(super().number(value))

    @override
    def position(self, value: float) -> str:
        return _latex_number(super().position(value))

    @override
    def argument(self, value: float) -> str:
        return f"{{{self.number(value)}}}"

    @override
    def exponential(self, rate: float, origin: float) -> str:
        return rf"e^{{{self.number(rate)}\,{self.variable(origin)}}}"

    @override
    def reciprocal(self, body: str) -> str:
        return rf"\frac{{1}}{{{body}}}"

    @override
    def call(self, name: str, parameters: Mapping[str, float], origin: float) -> str:
        given = "".join(rf",\, {latex_name(key)} = {self.number(value)}" for key, value in parameters.items())
        return rf"{latex_name(name)}({self.shift(-origin)};{given.removeprefix(',')})"


def _latex_number(text: str) -> str:
    mantissa, e, exponent = text.partition("e")
    return rf"{mantissa} \times 10^{{{exponent}}}" if e else text.replace("inf", r"\infty")


class PythonCode(Notation):
    """Expressions in full precision that do the same arithmetic as the templates; they need ``import math``."""

    language: ClassVar[str] = "python"
    times: ClassVar[str] = " * "
    prefix: ClassVar[str] = "math."

    @override
    def number(self, value: float) -> str:
        """A literal that reads back as exactly this number."""
        if not math.isfinite(value):
            raise UsageError(f"a formula with the parameter {value} cannot be written as code")
        return repr(float(value))

    @override
    def position(self, value: float) -> str:
        return self.number(value)

    @override
    def logarithm(self, origin: float, shift: float) -> str:
        tail = f" {'-' if shift < 0 else '+'} {self.number(abs(shift))}" if shift else ""
        return f"{self.prefix}log({self.shift(-origin)}{tail})"

    @override
    def exponential(self, rate: float, origin: float) -> str:
        return self.prefix + super().exponential(rate, origin)

    @override
    def power(self, base: str, exponent: float) -> str:
        return f"{self.prefix}pow({base}, {self.number(exponent)})"

    @override
    def reciprocal(self, body: str) -> str:
        return f"1.0 / ({body})"

    @override
    def polynomial(self, coefficients: Sequence[float], origin: float) -> str:
        u = self.variable(origin)
        *others, text = (self.number(c) for c in coefficients)
        for depth, coefficient in enumerate(reversed(others)):
            text = f"{coefficient} + {u} * {f'({text})' if depth or text.startswith('-') else text}"
        return text

    @override
    def call(self, name: str, parameters: Mapping[str, float], origin: float) -> str:
        """There is no code without a formula."""
        hint = f"give the template a form: {self.language}='...' with {{{'}, {'.join(('x', *parameters))}}}"
        raise UsageError(f"the function template {name!r} has no expression in {self.language}", hint=hint)


class CCode(PythonCode):
    """The same in C; they need ``math.h``."""

    language: ClassVar[str] = "c"
    prefix: ClassVar[str] = ""
