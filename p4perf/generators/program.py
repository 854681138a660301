"""The target-independent description of a generated data-plane program, and of the packets that exercise it.

A :class:`Program` is what every renderer (P4, C on DPDK) reads and what the reference interpreter executes. Its meaning
is fixed here, so that all of them agree:

* **Parsing** starts in state ``start`` at bit 0 of the frame. A state extracts its headers in order; then its select
  field decides the next state. A frame too short for an extraction is a parser error: the packet is dropped before
  any control code runs. State ``accept`` ends parsing. Headers are a whole number of bytes.
* **Metadata** fields start at zero; a packet whose egress port was never set is dropped. A field of a header that was
  not extracted reads as zero, and what is written to it is not sent.
* **Actions** run their statements in order. All arithmetic is unsigned, modulo two to the width of the destination.
* **Drop** is final: the packet is not sent, whatever happens later.
* **Deparsing** emits the valid headers in ``emit`` order, followed by the bytes that were not parsed.
* **Tables** hold :class:`EntrySet`, a rule that gives key and action data of entry ``i``, so that a table of twenty
  million entries needs no list.

Widths are in bits, sizes in bytes. Bytes on the wire are big-endian (network order), as P4 has it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeVar

MatchKind = Literal["exact"]
"""Match kinds of the P4 core library and v1model that a :class:`Table` may use."""

BinaryOperator = Literal["+", "-", "&", "|", "^"]

METADATA = "meta"
"""Name of the pseudo header that holds the metadata fields."""

ACCEPT = "accept"
"""Name of the final parser state."""


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_T = TypeVar("_T", bound=_Named)


def _named(items: tuple[_T, ...], name: str) -> _T:
    for item in items:
        if item.name == name:
            return item
    raise KeyError(name)


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a header type or of the metadata: its name and its width in bits."""

    name: str
    width_bits: int


@dataclass(frozen=True, slots=True)
class Header:
    """A header instance and its layout. The widths of its fields add up to whole bytes."""

    name: str
    fields: tuple[Field, ...]

    @property
    def width_bits(self) -> int:
        """Total width in bits."""
        return sum(f.width_bits for f in self.fields)

    @property
    def size_bytes(self) -> int:
        """Total size in bytes."""
        return self.width_bits // 8

    def offset_bits(self, field_name: str) -> int:
        """Offset of a field from the start of the header, in bits.

        Raises:
            KeyError: the header has no such field.
        """
        offset = 0
        for f in self.fields:
            if f.name == field_name:
                return offset
            offset += f.width_bits
        raise KeyError(f"{self.name}.{field_name}")

    def field(self, field_name: str) -> Field:
        """The field of that name.

        Raises:
            KeyError: the header has no such field.
        """
        for f in self.fields:
            if f.name == field_name:
                return f
        raise KeyError(f"{self.name}.{field_name}")


@dataclass(frozen=True, slots=True)
class FieldRef:
    """A reference to a header field, or to a metadata field where ``header`` is :data:`METADATA`."""

    header: str
    field: str


@dataclass(frozen=True, slots=True)
class Const:
    """An unsigned constant. It takes the width of what it is used with."""

    value: int


@dataclass(frozen=True, slots=True)
class ParameterRef:
    """A reference to a parameter of the action in which it stands."""

    name: str


@dataclass(frozen=True, slots=True)
class BinaryOp:
    """``left operator right``, modulo two to the width of the destination."""

    operator: BinaryOperator
    left: Expression
    right: Expression


Expression = FieldRef | Const | ParameterRef | BinaryOp


@dataclass(frozen=True, slots=True)
class Assign:
    """``destination = value``."""

    destination: FieldRef
    value: Expression


@dataclass(frozen=True, slots=True)
class SetEgress:
    """Send the packet out of that port."""

    port: Expression


@dataclass(frozen=True, slots=True)
class Drop:
    """Mark the packet as dropped, for good."""


Statement = Assign | SetEgress | Drop


@dataclass(frozen=True, slots=True)
class Action:
    """A P4 action: parameters (filled from an entry's action data, in order) and statements."""

    name: str
    parameters: tuple[Field, ...] = ()
    body: tuple[Statement, ...] = ()

    @property
    def data_bits(self) -> int:
        """Width of the action data of one entry, in bits."""
        return sum(p.width_bits for p in self.parameters)


@dataclass(frozen=True, slots=True)
class Key:
    """One match key of a table."""

    field: FieldRef
    match_kind: MatchKind = "exact"


@dataclass(frozen=True, slots=True)
class EntrySet:
    """The entries of a table, as a rule.

    Entry ``i`` of ``0 .. count-1`` has as key the integer ``i``, in as many bits as the table's keys have together
    (the first key is the most significant). Its action is ``action``; the action's parameter number ``j`` is
    ``port`` for ``j == 0`` and :func:`entry_data_word` ``(i, j)``, cut to the parameter's width, for the others.
    """

    count: int
    action: str
    port: int = 1


ENTRY_MULTIPLIER = 0x9E3779B1
"""Odd multiplier (2**32 over the golden ratio) of :func:`entry_data_word`."""


def entry_data_word(entry: int, parameter: int) -> int:
    """Action data parameter ``parameter`` (from 1) of entry ``entry``: ``(i * 0x9E3779B1 + j) mod 2**32``."""
    return (entry * ENTRY_MULTIPLIER + parameter) & 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Table:
    """A match-action table. ``default_action`` takes no parameters and runs on a miss."""

    name: str
    keys: tuple[Key, ...]
    actions: tuple[str, ...]
    default_action: str
    entries: EntrySet


@dataclass(frozen=True, slots=True)
class ApplyTable:
    """Control flow: look the packet up in that table and run the action found."""

    table: str


@dataclass(frozen=True, slots=True)
class CallAction:
    """Control flow: run that action, which takes no parameters."""

    action: str


ControlNode = ApplyTable | CallAction


@dataclass(frozen=True, slots=True)
class SelectCase:
    """If the select field equals ``value``, go on in ``next_state``."""

    value: int
    next_state: str


@dataclass(frozen=True, slots=True)
class ParserState:
    """A parser state: the headers it extracts, the field it selects on (if any), its cases and its default."""

    name: str
    extracts: tuple[str, ...] = ()
    select: FieldRef | None = None
    cases: tuple[SelectCase, ...] = ()
    default: str = ACCEPT


@dataclass(frozen=True, slots=True)
class Program:
    """A whole data-plane program. See the module docstring for its exact meaning."""

    name: str
    headers: tuple[Header, ...]
    metadata: tuple[Field, ...]
    parser: tuple[ParserState, ...]
    actions: tuple[Action, ...]
    tables: tuple[Table, ...]
    control: tuple[ControlNode, ...]
    emit: tuple[str, ...]

    def header(self, name: str) -> Header:
        """The header of that name (KeyError if there is none)."""
        return _named(self.headers, name)

    def action(self, name: str) -> Action:
        """The action of that name (KeyError if there is none)."""
        return _named(self.actions, name)

    def table(self, name: str) -> Table:
        """The table of that name (KeyError if there is none)."""
        return _named(self.tables, name)

    def state(self, name: str) -> ParserState:
        """The parser state of that name (KeyError if there is none)."""
        return _named(self.parser, name)

    def width_bits(self, ref: FieldRef) -> int:
        """Width of the field that is referred to, in bits."""
        if ref.header == METADATA:
            return _named(self.metadata, ref.field).width_bits
        return self.header(ref.header).field(ref.field).width_bits

    def key_bits(self, table: Table) -> int:
        """Width of all keys of a table together, in bits."""
        return sum(self.width_bits(k.field) for k in table.keys)


@dataclass(frozen=True, slots=True)
class HeaderValues:
    """The values that the fields of one header carry in the generated packets; what is not named is zero."""

    header: str
    values: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class VaryingField:
    """A header field that changes from packet to packet.

    It holds the integer ``i`` drawn for the packet: ``0 .. count-1`` hit the entries of a table, ``count .. 2*count-1``
    miss them.
    """

    field: FieldRef
    count: int


@dataclass(frozen=True, slots=True)
class PacketSpec:
    """The packets of an experiment: headers in wire order, fields that vary, and the frame size.

    ``frame_size_bytes`` counts the FCS (RFC 2544); the bytes in memory are four fewer.
    """

    headers: tuple[HeaderValues, ...]
    varying: tuple[VaryingField, ...]
    frame_size_bytes: int


@dataclass(frozen=True, slots=True)
class Workload:
    """What one sweep point runs: the program, the baseline that it is compared with, and the packets for both."""

    program: Program
    baseline: Program
    packets: PacketSpec
    notes: tuple[str, ...] = field(default=())
