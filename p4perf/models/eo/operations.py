"""Elementary operations: what they are called, their parameters with units, and where further ones come from.

Table 1 of Baldi 2018 has thirteen operations, and says that the list grows whenever a function cannot be described.
:func:`baldi2018_operations` are those thirteen; :func:`program_operations` are what data-plane programs need besides.
Other packages add theirs by entry points of the group :data:`GROUP`: functions without arguments that return a tuple of
:class:`Operation`.

An operation says nothing of a machine. What it costs there is a rule of the hardware description; ``rule`` is what is
taken where a description has none.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from p4perf.errors import UsageError
from p4perf.models.eo.rules import CostRule
from p4perf.plugins import load_plugin, plugin_names

GROUP = "p4perf.elementary_operations"

Kind = Literal["bytes", "count", "probability"]
"""What a parameter is: a size in bytes (fractions are possible: averages), a number of things, a share from 0 to 1."""

_UNITS: Mapping[Kind, str] = {"bytes": "B", "count": "", "probability": ""}


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter: its name as in the notation, its kind, what it means, and its value where it is left out."""

    name: str
    kind: Kind
    description: str
    default: Fraction | None = None

    @property
    def unit(self) -> str:
        """``B``, or nothing for counts and probabilities."""
        return _UNITS[self.kind]

    def check(self, value: Fraction, call: str) -> None:
        """Refuse what no such parameter can be.

        Raises:
            UsageError: a negative size or count, or a probability outside of 0 to 1.
        """
        if self.kind == "probability":
            if not 0 <= value <= 1:
                raise UsageError(f"{call}: {self.name} is {float(value):g}, but a probability lies between 0 and 1")
        elif value < 0:
            noun = f"{float(value):g} B" if self.kind == "bytes" else f"{float(value):g}"
            raise UsageError(
                f"{call}: {self.name} is {noun}, which cannot be negative", hint=f"{self.name}: {self.description}"
            )


@dataclass(frozen=True, slots=True)
class Operation:
    """An elementary operation.

    Attributes:
        name: as in the notation, such as ``ht_lookup`` or ``I/O_mem``.
        parameters: in order; those with a default may be left out at the end.
        summary: what it does, in one line.
        source: where it is defined.
        rule: its cost on hardware that says nothing of it; None if that is an error.
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


def _bytes(description: str, name: str = "b", default: int | None = None) -> Parameter:
    return Parameter(name, "bytes", description, None if default is None else Fraction(default))


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
        Operation("inc_checksum", (_bytes("bytes that changed"),), "the internet checksum from the one before"),
        Operation("array_access", (_ENTRY, _MAX), "read an element of an array by its index"),
        Operation("ht_lookup", _TABLE, "look a key up in a hash table"),
        Operation(
            "lpm_lookup",
            (_bytes("bytes of the prefix that matches, on average"), _ENTRY, _count(_MAX.description, "max", 1 << 24)),
            "find the longest prefix that matches (DIR-24-8)",
        ),
        Operation("ct_insertion", _TABLE, "insert an entry into a hash table or renew its timestamp"),
    )


def program_operations() -> tuple[Operation, ...]:
    """What generated programs do that Table 1 has no operation for."""
    bytes_ = _bytes("bytes")
    given = (
        ("extract", (_bytes("size of the header"),), "check that a header is there and note where it is"),
        ("branch", (_count("ways that it may go", "n", 2), _MISS), "decide by a value that is in a register"),
        ("crc16", (bytes_,), "CRC-16 over bytes of the packet"),
        ("crc32", (bytes_,), "CRC-32 over bytes of the packet"),
        ("list_lookup", (_bytes("bytes of a value and its mask", "HE"), _MAX), "try ternary entries one by one"),
        ("move", (_bytes("size of the header"),), "copy a header to its place in the packet that is sent"),
        ("resize", (), "make room in front of a packet, or cut bytes off there"),
        ("meter", (_count("cells of the meter", "max"),), "colour a packet by a two-rate meter (RFC 2698)"),
        ("random", (_bytes("bytes of the number"),), "draw a random number"),
        ("clone", (_bytes("bytes of the packet"),), "send a whole copy of a packet"),
        ("multicast", (_count("copies besides the packet", "n"),), "send further packets that share the bytes of one"),
        ("draw", (_bytes("bytes that are written at once"),), "the local source of packets writes a key into a packet"),
        ("restore", (_bytes("bytes of the headers"),), "the local source of packets writes all headers anew"),
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
    """The operation of that name.

    Raises:
        UsageError: there is none; the message names the nearest that is.
    """
    if name in operations:
        return operations[name]
    near = difflib.get_close_matches(name, operations, n=1, cutoff=0.5)
    hint = f"did you mean {operations[near[0]].signature}?" if near else f"known: {', '.join(operations)}"
    raise UsageError(f"there is no elementary operation {name!r}", hint=hint)
