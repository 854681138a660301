"""Arithmetic of the notation and of cost rules: ``L3 + 5 * ceil(hdr / 64)``, ``ps - 4``, ``2M``. No code is executed.

Numbers are exact fractions, so that ``ceil`` never meets a rounding error. ``K``, ``M`` and ``G`` behind a number are
powers of two, as in Baldi 2018, where a table of "1M" entries has 2**20. Functions: ``ceil(x)``, ``min(x, ...)``,
``max(x, ...)`` and ``interp(x, x1, y1, x2, y2, ...)``, a straight line between points that continues behind the last
one and before the first one, but not below zero there.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from typing_extensions import override

from p4perf.errors import UsageError

MAX_TEXT = 1000
MAX_DEPTH = 40
LARGEST = 10**60
SUFFIXES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d{1,2})?)(?P<suffix>[KMG]?)(?![A-Za-z0-9_.])|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<sign>[-+*/(),]))"
)

Evaluate = Callable[[Mapping[str, Fraction]], Fraction]


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression: its text, the names in it, and how it is evaluated."""

    text: str
    names: frozenset[str]
    _evaluate: Evaluate

    def value(self, values: Mapping[str, Fraction]) -> Fraction:
        """The value with these values for its names.

        Raises:
            UsageError: a name has no value (the key is the name), a division by zero, or a result beyond
                :data:`LARGEST`.
        """
        for name in sorted(self.names):
            if name not in values:
                raise UsageError(f"{name} in {self.text!r} has no value", key=name)
        try:
            value = self._evaluate(values)
        except ZeroDivisionError:
            raise UsageError(f"{self.text!r} divides by zero") from None
        if abs(value) > LARGEST:
            raise UsageError(f"the value of {self.text[:80]!r} is too large")
        return value

    @override
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expression) and other.text == self.text

    @override
    def __hash__(self) -> int:
        return hash(self.text)

    @override
    def __str__(self) -> str:
        return self.text


def parse_expression(text: str | int | float) -> Expression:
    """Read an expression.

    Raises:
        UsageError: it is not one; the message says where it ends to be.
    """
    written = str(text).strip()
    if len(written) > MAX_TEXT:
        raise UsageError(f"an expression of {len(written)} characters is too long (at most {MAX_TEXT})")
    parser = _Parser(written)
    evaluate = parser.sum(0)
    if parser.sign or parser.operand:
        raise parser.fail()
    return Expression(written, frozenset(parser.names), evaluate)


def constant(value: Fraction | float | int) -> Expression:
    exact = Fraction(str(value)) if isinstance(value, float) else Fraction(value)
    text = str(exact.numerator) if exact.denominator == 1 else repr(float(exact))
    return Expression(text, frozenset(), lambda _: exact)


class _Parser:
    """Recursive descent over the tokens of one expression; one token is known in advance."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.names: set[str] = set()
        self._at = 0
        self._begin = 0
        self.sign = ""
        self.operand: Fraction | str | None = None
        self.step()

    def step(self) -> None:
        self._begin = self._at
        self.sign, self.operand = "", None
        if not self.text[self._at :].strip():
            return
        match = _TOKEN.match(self.text, self._at)
        if match is None:
            raise self.fail()
        self._at = match.end()
        if match["number"]:
            self.operand = Fraction(match["number"]) * SUFFIXES.get(match["suffix"], 1)
        elif match["name"]:
            self.operand = match["name"]
        else:
            self.sign = match["sign"]

    def fail(self) -> UsageError:
        rest = self.text[self._begin :].strip()
        where = f"at {rest[:20]!r}" if rest else "at its end"
        return UsageError(
            f"{self.text[:80]!r} is no expression: unexpected {where}",
            hint="numbers (with K, M, G), names, + - * /, brackets, ceil, min, max, interp",
        )

    def sum(self, depth: int) -> Evaluate:
        return self._chain("+-", self.product, depth)

    def product(self, depth: int) -> Evaluate:
        return self._chain("*/", self.factor, depth)

    def _chain(self, signs: str, part: Callable[[int], Evaluate], depth: int) -> Evaluate:
        total = part(depth)
        while self.sign and self.sign in signs:
            total = _combined(_OPERATORS[self.sign], total, self._next(part, depth))
        return total

    def _next(self, part: Callable[[int], Evaluate], depth: int) -> Evaluate:
        self.step()
        return part(depth)

    def factor(self, depth: int) -> Evaluate:
        if depth > MAX_DEPTH:
            raise UsageError(f"{self.text[:80]!r} is nested more than {MAX_DEPTH} levels deep")
        if self.sign == "-":
            inner = self._next(self.factor, depth + 1)
            return lambda values: -inner(values)
        if self.sign == "(":
            inner = self._next(self.sum, depth + 1)
            self.close()
            return inner
        operand = self.operand
        if operand is None:
            raise self.fail()
        self.step()
        if isinstance(operand, Fraction):
            return lambda _: operand
        if self.sign == "(":
            return self.call(operand, depth)
        self.names.add(operand)
        return lambda values: values[operand]

    def call(self, name: str, depth: int) -> Evaluate:
        if name not in _FUNCTIONS:
            raise UsageError(f"there is no function {name!r}", hint=f"known: {', '.join(sorted(_FUNCTIONS))}")
        arguments = [self._next(self.sum, depth + 1)]
        while self.sign == ",":
            arguments.append(self._next(self.sum, depth + 1))
        self.close()
        function, fewest, most = _FUNCTIONS[name]
        if not fewest <= len(arguments) <= most or (name == "interp" and not len(arguments) % 2):
            raise UsageError(f"{name} in {self.text[:80]!r} has {len(arguments)} arguments, which it does not take")
        return lambda values: function([argument(values) for argument in arguments])

    def close(self) -> None:
        if self.sign != ")":
            raise self.fail()
        self.step()


_OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}


def _combined(combine: Callable[[Fraction, Fraction], Fraction], left: Evaluate, right: Evaluate) -> Evaluate:
    return lambda values: combine(left(values), right(values))


def _interpolated(arguments: Sequence[Fraction]) -> Fraction:
    x, points = arguments[0], list(zip(arguments[1::2], arguments[2::2], strict=True))
    pairs = list(pairwise(points))
    (x1, y1), (x2, y2) = next((pair for pair in pairs if x <= pair[1][0]), pairs[-1])
    value = y1 + (y2 - y1) * (x - x1) / (x2 - x1)
    return value if x >= points[0][0] else max(value, Fraction(0))


_FUNCTIONS: dict[str, tuple[Callable[[Sequence[Fraction]], Fraction], int, int]] = {
    "ceil": (lambda a: Fraction(math.ceil(a[0])), 1, 1),
    "min": (lambda a: min(a), 2, 20),
    "max": (lambda a: max(a), 2, 20),
    "interp": (_interpolated, 5, 41),
}
