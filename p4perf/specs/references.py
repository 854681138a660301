"""``$name``: what the references of a spec mean. Nothing is ever evaluated; a reference is replaced by a value.

A name is looked up among the swept variables, then among the parameters of the component in which it stands, then
among the parameters of all components (where it has to be unambiguous).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from p4perf.errors import SpecError
from p4perf.specs.messages import nearest, quoted
from p4perf.specs.source import Scalar, read_plain
from p4perf.specs.types import reference_name

Parameters = Mapping[str, Scalar]

_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

_CONDITION = re.compile(r"\s*(\$?[A-Za-z0-9_.+-]{1,64})\s*(<=|>=|==|!=|<|>)\s*(\$?[A-Za-z0-9_.+-]{1,64})\s*")


@dataclass(frozen=True, slots=True)
class Scope:
    """The names that a spec defines: swept variables, and the parameters of every component in order."""

    variables: frozenset[str]
    components: tuple[tuple[str, Parameters], ...]

    def names(self) -> set[str]:
        return {*self.variables, *(name for _, parameters in self.components for name in parameters)}

    def definition(self, name: str, own: Parameters, key: str) -> Scalar | None:
        """What a parameter is set to (perhaps a reference again); None if the name is a swept variable."""
        if name in self.variables:
            return None
        if name in own:
            return own[name]
        found = [parameters[name] for _, parameters in self.components if name in parameters]
        if not found:
            hint = nearest(name, self.names(), "swept variables and parameters")
            raise SpecError(f"${name} refers to no swept variable or parameter", key=key, hint=hint)
        if any(value != found[0] for value in found):
            raise SpecError(f"${name} is ambiguous: several components have it, with different values", key=key)
        return found[0]

    def variables_of(self, value: object, own: Parameters, key: str) -> Iterator[str]:
        """The swept variables that a value depends on."""
        trail: list[str] = []
        while (name := reference_name(value)) is not None:
            if name in trail:
                raise SpecError(f"${name} refers to itself: {' -> '.join([*trail, name])}", key=key)
            trail.append(name)
            if name in self.variables:
                yield name
                return
            value = self.definition(name, own, key)

    def resolve(self, value: Any, own: Parameters, values: Mapping[str, Scalar], key: str) -> Any:
        """The value with its reference, if it is one, replaced; :meth:`variables_of` has to have accepted it."""
        while (name := reference_name(value)) is not None:
            value = values[name] if name in values else self.definition(name, own, key)
        return value


@dataclass(frozen=True, slots=True)
class Condition:
    """A filter: two operands and a comparison."""

    left: Scalar
    operator: str
    right: Scalar
    text: str
    key: str

    def holds(self, scope: Scope, values: Mapping[str, Scalar]) -> bool:
        """Whether the point with these values of the swept variables meets the condition."""
        left = scope.resolve(self.left, {}, values, self.key)
        right = scope.resolve(self.right, {}, values, self.key)
        if isinstance(left, str) != isinstance(right, str):
            raise SpecError(f"{self.text}: cannot compare {quoted(left)} with {quoted(right)}", key=self.key)
        return bool(_COMPARISONS[self.operator](left, right))


def parse_condition(text: str, key: str) -> Condition:
    """Read ``operand comparison operand``, where an operand is ``$name``, a number or a word."""
    match = _CONDITION.fullmatch(text)
    if match is None:
        hint = 'write two operands and one of < <= == != >= >, such as "$writes <= $fields"'
        raise SpecError(f"{quoted(text)} is not a condition", key=key, hint=hint)
    left, comparison, right = match.groups()
    operands: list[Scalar] = []
    for word in (left, right):
        try:
            value = word if word.startswith("$") else read_plain(word)
        except ValueError as error:
            raise SpecError(f"{quoted(text)}: {error}", key=key) from error
        operands.append(word if value is None else value)
    return Condition(operands[0], comparison, operands[1], text, key)
