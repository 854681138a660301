"""The notation of Baldi 2018: ``I/O_mem(30, ps)``, one operation after another, with symbols.

>>> from p4perf.models.eo import parse_call
>>> print(parse_call("ht_lookup(1, 12, 2M)"))
ht_lookup(1, 12, 2M)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from p4perf.errors import UsageError
from p4perf.models.eo.expressions import Expression, constant, parse_expression
from p4perf.models.eo.operations import Operation, find_operation, registered_operations

FRAME = "frame"
"""The symbol that every function has: the frame size in bytes, with the FCS."""

MAX_CALLS = 100_000
"""Most operations of a function."""

_CALL = re.compile(r"\s*([A-Za-z][A-Za-z0-9_]*(?:/[A-Za-z][A-Za-z0-9_]*)?)\s*\((.*)\)\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Call:
    """One operation with its arguments.

    Attributes:
        operation: what is done.
        arguments: as many as the operation has parameters.
        times: how often a packet meets it, on average.
        table: name of the table that it uses; operations on one table share its memory. Empty: a table of its own.
        remark: what it is for.
    """

    operation: Operation
    arguments: tuple[Expression, ...]
    times: Fraction = Fraction(1)
    table: str = ""
    remark: str = ""

    def values(self, symbols: Mapping[str, Fraction]) -> dict[str, Fraction]:
        """The value of each parameter, checked.

        Raises:
            UsageError: a symbol has no value, a size or count is negative, a probability is none.
        """
        found: dict[str, Fraction] = {}
        for parameter, argument in zip(self.operation.parameters, self.arguments, strict=True):
            try:
                value = argument.value(symbols)
            except UsageError as error:
                error.message = f"{self}: {error.message}"
                error.hint = error.hint or f"symbols: {', '.join(sorted(symbols)) or 'none'}"
                error.args = (error.message,)
                raise
            parameter.check(value, str(self))
            found[parameter.name] = value
        return found

    def __str__(self) -> str:
        shown = list(self.arguments)
        for parameter in reversed(self.operation.parameters):
            if not shown or parameter.default is None or shown[-1] != constant(parameter.default):
                break
            shown.pop()
        return f"{self.operation.name}({', '.join(a.text for a in shown)})"


def make_call(
    operation: Operation,
    *arguments: float | Fraction | str,
    times: float | Fraction = 1,
    table: str = "",
    remark: str = "",
) -> Call:
    """A call with these arguments; those that are left out take their defaults.

    Raises:
        UsageError: too few or too many of them.
    """
    given = [parse_expression(a) if isinstance(a, str) else constant(a) for a in arguments]
    most = operation.parameters
    needed = sum(p.default is None for p in most)
    if not needed <= len(given) <= len(most):
        wanted = str(needed) if needed == len(most) else f"{needed} to {len(most)}"
        raise UsageError(
            f"{operation.name} takes {wanted} arguments, not {len(given)}", hint=f"it is {operation.signature}"
        )
    given += [constant(p.default) for p in most[len(given) :] if p.default is not None]
    return Call(operation, tuple(given), Fraction(times), table, remark)


def parse_call(text: str, operations: Mapping[str, Operation] | None = None) -> Call:
    """Read one operation: ``ht_lookup(1, 12, 2M, 0)``.

    Args:
        text: the operation.
        operations: those that there are; by default all registered ones.

    Raises:
        UsageError: it has not the form of an operation, there is none of that name, or its arguments are wrong.
    """
    match = _CALL.fullmatch(text)
    if match is None:
        raise UsageError(
            f"{text.strip()[:80]!r} is no elementary operation", hint="write name(argument, ...), such as parse(6)"
        )
    operation = find_operation(match[1], registered_operations() if operations is None else operations)
    return make_call(operation, *_split(match[2]))


def _split(text: str) -> list[str]:
    """Arguments; commas inside of brackets do not count."""
    parts, depth, begin = [], 0, 0
    for at, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append(text[begin:at])
            begin = at + 1
    parts.append(text[begin:])
    return [] if parts == [""] or not text.strip() else parts


@dataclass(frozen=True, slots=True)
class Symbol:
    """A symbol of a function: its value, which may depend on ``frame`` and on symbols before it, and its meaning."""

    name: str
    value: Expression
    description: str = ""


@dataclass(frozen=True, slots=True)
class Printed:
    """What a publication prints for a function: to be compared with, never used."""

    cycles: float | None = None
    dram_accesses: float | None = None
    mpps: float | None = None
    gbps: float | None = None
    source: str = ""


@dataclass(frozen=True, slots=True)
class NetworkFunction:
    """A network function: a sequence of elementary operations, the same on every machine.

    Attributes:
        name: such as ``switch/basic``.
        calls: what most packets go through, in order.
        symbols: values that the operations refer to.
        frame_bytes: frame size that is meant if none is given, in bytes with the FCS.
    """

    name: str
    calls: tuple[Call, ...]
    title: str = ""
    symbols: tuple[Symbol, ...] = ()
    frame_bytes: int = 64
    source: str = ""
    remarks: tuple[str, ...] = field(default=())
    printed: Printed | None = None

    def values(self, frame_bytes: int, given: Mapping[str, Fraction] | None = None) -> dict[str, Fraction]:
        """The values of all symbols for a frame size.

        Raises:
            UsageError: there is no symbol of a name that is given.
        """
        known = [s.name for s in self.symbols]
        for name in given or {}:
            if name not in known:
                raise UsageError(
                    f"{self.name} has no symbol {name!r}", hint=f"it has {', '.join(known) or 'none'} besides {FRAME}"
                )
        values = {FRAME: Fraction(frame_bytes)}
        for symbol in self.symbols:
            own = (given or {}).get(symbol.name)
            values[symbol.name] = symbol.value.value(values) if own is None else own
        return values

    def text(self) -> str:
        """The sequence in the notation, one operation a line."""
        return "".join(f"{call}{f'  x {float(call.times):g}' if call.times != 1 else ''}\n" for call in self.calls)


def parse_function(name: str, lines: Iterable[str], symbols: Mapping[str, str | int] | None = None) -> NetworkFunction:
    """A function from operations as text, one each; empty lines and what follows ``#`` are left out.

    Raises:
        UsageError: a line is no operation; the message names the line.
    """
    operations, calls = registered_operations(), []
    for number, line in enumerate(lines, 1):
        if words := line.partition("#")[0].strip():
            try:
                calls.append(parse_call(words, operations))
            except UsageError as error:
                raise UsageError(f"{name}, line {number}: {error.message}", hint=error.hint) from error
    known = tuple(Symbol(n, parse_expression(v)) for n, v in (symbols or {}).items())
    return NetworkFunction(name, tuple(calls), symbols=known)


def merged(calls: Iterable[Call]) -> tuple[Call, ...]:
    """Equal calls in a row as one that happens more often."""
    found: list[Call] = []
    for call in calls:
        if found and replace(found[-1], times=call.times) == call:
            found[-1] = replace(call, times=found[-1].times + call.times)
        else:
            found.append(call)
    return tuple(found)
