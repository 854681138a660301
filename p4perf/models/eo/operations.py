"""Elementary operations: names, parameters with units, costs as formulas, and the notation of Baldi 2018.

Table 1 of Baldi 2018 has thirteen operations, and says that the list grows whenever a function cannot be described.
:func:`baldi2018_operations` are those thirteen; :func:`program_operations` are what data-plane programs need besides.
Other packages add theirs by entry points of the group :data:`GROUP`: functions without arguments that return a tuple of
:class:`Operation`.

An operation does not depend on a machine. What it costs there is a rule of the hardware description; ``rule`` is taken
where a description has none.

>>> from p4perf.models.eo import parse_call
>>> print(parse_call("ht_lookup(1, 12, 2M)"))
ht_lookup(1, 12, 2M)
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from typing_extensions import override

from p4perf.errors import UsageError
from p4perf.models.eo.expressions import Expression, constant, parse_expression
from p4perf.plugins import load_plugin, plugin_names


@dataclass(frozen=True, slots=True)
class CostRule:
    """The cost of one operation on one machine.

    Names in the formulas are the parameters of the operation, the constants of the machine, and ``L1``, ``L2``, ``L3``,
    ``DRAM``: the latencies of these levels in cycles.

    Attributes:
        cycles: core cycles of one execution.
        cycles_cached: the same where the table lies in the caches that may hold it; None: no difference.
        accesses: accesses to memory beyond the caches that hold tables; of an operation with a table these are made
            where the table lies.
        stalls: cycles that one access costs on top, by the level where it hits.
        remote_cycles, remote_accesses: the same of a packet that the NIC put into the cache of another socket.
    """

    cycles: Expression
    cycles_cached: Expression | None = None
    accesses: Expression | None = None
    table_bytes: Expression | None = None
    stalls: Mapping[str, Expression] = field(default_factory=dict)
    remote_cycles: Expression | None = None
    remote_accesses: Expression | None = None


GROUP = "p4perf.elementary_operations"

Kind = Literal["bytes", "count", "probability"]
"""What a parameter is: a size in bytes (fractions are possible: averages), a number of things, a share from 0 to 1."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter: its name as in the notation, its kind, what it means, and its value where it is left out."""

    name: str
    kind: Kind
    description: str
    default: Fraction | None = None

    def check(self, value: Fraction, call: str) -> None:
        """Refuse what no such parameter can be."""
        if self.kind == "probability":
            if not 0 <= value <= 1:
                raise UsageError(f"{call}: {self.name} is {float(value):g}, but a probability lies between 0 and 1")
        elif value < 0:
            noun = f"{float(value):g} B" if self.kind == "bytes" else f"{float(value):g}"
            hint = f"{self.name}: {self.description}"
            raise UsageError(f"{call}: {self.name} is {noun}, which cannot be negative", hint=hint)


@dataclass(frozen=True, slots=True)
class Operation:
    """An elementary operation.

    Attributes:
        parameters: in order; those with a default may be left out at the end.
        rule: its cost on hardware without a rule of its own; None if that is an error.
    """

    name: str
    parameters: tuple[Parameter, ...]
    summary: str
    source: str = "baldi2018, Table 1"
    rule: CostRule | None = None

    @property
    def signature(self) -> str:
        """The operation as the notation has it: ``ht_lookup(N, HE, max, p)``."""
        return f"{self.name}({', '.join(p.name for p in self.parameters)})"


def _bytes(description: str, name: str = "b") -> Parameter:
    return Parameter(name, "bytes", description)


def _count(description: str, name: str, default: int | None = None) -> Parameter:
    return Parameter(name, "count", description, None if default is None else Fraction(default))


_HDR = _bytes("bytes that are needed in the fastest cache", "hdr")
_DATA = _bytes("bytes that may stay in a slower cache or in memory", "data")
_ENTRY = _bytes("size of an entry", "es")
_MAX = _count("most entries of the table", "max")
_MISS = Parameter("m", "probability", "share of packets for which the branch is predicted wrong", Fraction(0))
_TABLE = (
    _count("components of the key, a register each", "N"),
    _bytes("size of an entry with its key", "HE"),
    _MAX,
    Parameter("p", "probability", "probability of a collision", Fraction(0)),
)


def baldi2018_operations() -> tuple[Operation, ...]:
    """The operations of Table 1 of Baldi 2018.

    ``lpm_lookup`` takes the entries of the table as a third argument, which the paper does not have: there a
    DIR-24-8 table with its 16M entries is touched everywhere.
    """
    return (
        Operation("I/O_mem", (_HDR, _DATA), "copy a packet from the I/O buffer to cache and memory"),
        Operation("mem_I/O", (_HDR, _DATA), "copy a packet from cache and memory to the I/O buffer"),
        Operation("parse", (_bytes("size of the field"),), "read a field into a register"),
        Operation("deparse", (_bytes("size of the fields"),), "write fields one after another"),
        Operation("increase", (_bytes("size of the field"),), "increase a field that is in a register"),
        Operation("decrease", (_bytes("size of the field"),), "decrease a field that is in a register"),
        Operation("sum", (_bytes("size of the operands"),), "add two operands that are in registers"),
        Operation("checksum", (_bytes("bytes that are summed"),), "the internet checksum (RFC 1071)"),
        Operation("inc_checksum", (_bytes("bytes that changed"),), "the internet checksum, updated for changed bytes"),
        Operation("array_access", (_ENTRY, _MAX), "read an element of an array by its index"),
        Operation("ht_lookup", _TABLE, "look up a key in a hash table"),
        Operation(
            "lpm_lookup",
            (_bytes("bytes of the prefix that matches, on average"), _ENTRY, _count(_MAX.description, "max", 1 << 24)),
            "find the longest matching prefix (DIR-24-8)",
        ),
        Operation("ct_insertion", _TABLE, "insert an entry into a hash table or renew its timestamp"),
    )


def program_operations() -> tuple[Operation, ...]:
    """What generated programs do that Table 1 has no operation for."""
    bytes_ = _bytes("bytes")
    given = (
        ("extract", (_bytes("size of the header"),), "check that a header is present and record its offset"),
        ("branch", (_count("paths that it chooses from", "n", 2), _MISS), "branch on a value that is in a register"),
        ("crc16", (bytes_,), "CRC-16 over bytes of the packet"),
        ("crc32", (bytes_,), "CRC-32 over bytes of the packet"),
        ("list_lookup", (_bytes("bytes of a value and its mask", "HE"), _MAX), "try ternary entries one by one"),
        ("move", (_bytes("size of the header"),), "copy a header to its place in the outgoing packet"),
        ("resize", (), "add bytes at the front of a packet, or remove them"),
        ("meter", (_count("cells of the meter", "max"),), "colour a packet by a two-rate meter (RFC 2698)"),
        ("random", (_bytes("bytes of the number"),), "draw a random number"),
        ("clone", (_bytes("bytes of the packet"),), "send a full copy of a packet"),
        ("multicast", (_count("copies besides the packet", "n"),), "send more packets with the same bytes"),
        ("draw", (_bytes("bytes that are written at once"),), "the local packet source writes a key into a packet"),
        ("restore", (_bytes("bytes of the headers"),), "the local packet source rewrites all headers"),
    )
    return tuple(Operation(name, parameters, summary, "p4perf") for name, parameters, summary in given)


def registered_operations() -> dict[str, Operation]:
    """All operations by name: those of this module and of every other registered set.

    Raises:
        UsageError: two sets have different operations of one name.
    """
    found = {o.name: o for o in (*baldi2018_operations(), *program_operations())}
    for source in plugin_names(GROUP):
        for operation in load_plugin(GROUP, source)():
            if found.setdefault(operation.name, operation) != operation:
                raise UsageError(f"{source} has another elementary operation {operation.name} than there is already")
    return found


def find_operation(name: str, operations: Mapping[str, Operation]) -> Operation:
    """The operation of that name."""
    if name in operations:
        return operations[name]
    near = difflib.get_close_matches(name, operations, n=1, cutoff=0.5)
    hint = f"did you mean {operations[near[0]].signature}?" if near else f"known: {', '.join(operations)}"
    raise UsageError(f"there is no elementary operation {name!r}", hint=hint)


FRAME = "frame"
"""The symbol that every function has: the frame size in bytes, with the FCS."""

_CALL = re.compile(r"\s*([A-Za-z][A-Za-z0-9_]*(?:/[A-Za-z][A-Za-z0-9_]*)?)\s*\((.*)\)\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Call:
    """One operation with its arguments.

    Attributes:
        times: average number of times that a packet meets it.
        table: name of the table that it uses; operations on one table share its memory. Empty: a table of its own.
    """

    operation: Operation
    arguments: tuple[Expression, ...]
    times: Fraction = Fraction(1)
    table: str = ""
    remark: str = ""

    def values(self, symbols: Mapping[str, Fraction]) -> dict[str, Fraction]:
        """The value of each parameter, checked."""
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

    @override
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
        hint = f"it is {operation.signature}"
        raise UsageError(f"{operation.name} takes {wanted} arguments, not {len(given)}", hint=hint)
    given += [constant(p.default) for p in most[len(given) :] if p.default is not None]
    return Call(operation, tuple(given), Fraction(times), table, remark)


def parse_call(text: str, operations: Mapping[str, Operation] | None = None) -> Call:
    """Read one operation, by default of all registered ones: ``ht_lookup(1, 12, 2M, 0)``.

    Raises:
        UsageError: it has not the form of an operation, there is none of that name, or its arguments are wrong.
    """
    match = _CALL.fullmatch(text)
    if match is None:
        hint = "write name(argument, ...), such as parse(6)"
        raise UsageError(f"{text.strip()[:80]!r} is no elementary operation", hint=hint)
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
    """A sequence of elementary operations, the same on every machine; ``frame_bytes``, with FCS, if none are given."""

    name: str
    calls: tuple[Call, ...]
    title: str = ""
    symbols: tuple[Symbol, ...] = ()
    frame_bytes: int = 64
    source: str = ""
    remarks: tuple[str, ...] = field(default=())
    printed: Printed | None = None

    def values(self, frame_bytes: int, given: Mapping[str, Fraction] | None = None) -> dict[str, Fraction]:
        """The values of all symbols for a frame size."""
        known = [s.name for s in self.symbols]
        for name in given or {}:
            if name not in known:
                hint = f"it has {', '.join(known) or 'none'} besides {FRAME}"
                raise UsageError(f"{self.name} has no symbol {name!r}", hint=hint)
        values = {FRAME: Fraction(frame_bytes)}
        for symbol in self.symbols:
            own = (given or {}).get(symbol.name)
            values[symbol.name] = symbol.value.value(values) if own is None else own
        return values


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
