"""The target-independent description of a generated data-plane program, and of the packets that exercise it.

A :class:`Program` is what every renderer (P4, C on DPDK) reads and what the reference interpreter executes. Its meaning
is fixed here, so that all of them agree:

* **Parsing** starts in state ``start`` at bit 0 of the frame. A state extracts its headers in order; then its select
  field decides the next state. A frame too short for an extraction is a parser error: the packet is dropped before
  any control code runs. State ``accept`` ends parsing. Headers are a whole number of bytes.
* **Checksums** of ``verified`` headers are tested after parsing, where the header is valid: a wrong one drops the
  packet before any control code runs. Those of ``updated`` headers are calculated after the control flow, where the
  header is valid, over all its other fields.
* **Metadata** fields start at zero; a packet whose egress port was never set is dropped. A field of a header that is
  not valid reads as zero, and what is written to it is not sent.
* **Actions** run their statements in order. All arithmetic is unsigned, modulo two to the width of the destination;
  comparisons are unsigned, of the values as they are.
* **Drop** is final: the packet is not sent, whatever happens later; only copies that were cloned before or after are.
* **Deparsing** emits the valid headers in ``emit`` order, followed by the bytes that were not parsed.
* **Tables** hold :class:`EntrySet`, a rule that gives key and action data of entry ``i``, so that a table of twenty
  million entries needs no list.
* **Counters, registers and meters** start at zero and live as long as the program. Meters are configured so that
  every packet conforms: a meter always says :data:`METER_GREEN`.
* **Recirculation and resubmission** take effect after the control flow, unless the packet is dropped: the deparsed
  packet (recirculation) or the packet as it came into this pass (resubmission, which wins) is parsed again. Metadata
  and egress port start anew; :class:`PassNumber` counts the passes.
* **Operators** are C functions over all bytes of the packet, of which only C on DPDK knows; a **fence** changes nothing
  but the order in which a processor works.
* **Copies**: a clone is the packet as it came into this pass, sent by a port of its own; multicast sends the deparsed
  packet by each of its ports and takes the place of the egress port. A packet that goes through again is not sent.

Widths are in bits, sizes in bytes. Bytes on the wire are big-endian (network order), as P4 has it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from p4perf.generators.packet_spec import HeaderValues, PacketSpec, VaryingField
from p4perf.generators.statements import (
    METADATA,
    METER_GREEN,
    AddHeader,
    Assign,
    BinaryOp,
    BinaryOperator,
    Clone,
    Comparator,
    Compare,
    Condition,
    Const,
    CountPacket,
    Drop,
    Expression,
    Fence,
    FieldRef,
    Hash,
    HashAlgorithm,
    IsValid,
    MeterPacket,
    Multicast,
    Operator,
    ParameterRef,
    PassNumber,
    Random,
    ReadRegister,
    Recirculate,
    RemoveHeader,
    Resubmit,
    RunOperator,
    SetEgress,
    Statement,
    WriteRegister,
)
from p4perf.generators.table_entries import ENTRY_MULTIPLIER, EntrySet, Key, MatchKind, Table, entry_data_word
from p4perf.generators.virtual_io import VirtualIo

__all__ = [
    "ACCEPT",
    "ENTRY_MULTIPLIER",
    "METADATA",
    "METER_GREEN",
    "Action",
    "AddHeader",
    "ApplyTable",
    "Assign",
    "BinaryOp",
    "BinaryOperator",
    "CallAction",
    "Clone",
    "Comparator",
    "Compare",
    "Condition",
    "Const",
    "ControlNode",
    "CountPacket",
    "Counter",
    "Drop",
    "EntrySet",
    "Expression",
    "Fence",
    "Field",
    "FieldRef",
    "Hash",
    "HashAlgorithm",
    "Header",
    "HeaderChecksum",
    "HeaderValues",
    "If",
    "IsValid",
    "Key",
    "MatchKind",
    "Meter",
    "MeterPacket",
    "Multicast",
    "Operator",
    "PacketSpec",
    "ParameterRef",
    "ParserState",
    "PassNumber",
    "Program",
    "Random",
    "ReadRegister",
    "Recirculate",
    "Register",
    "RemoveHeader",
    "Resubmit",
    "RunOperator",
    "SelectCase",
    "SetEgress",
    "Statement",
    "Table",
    "VaryingField",
    "Workload",
    "WriteRegister",
    "entry_data_word",
]

ACCEPT = "accept"
"""Name of the final parser state."""


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
class ApplyTable:
    """Control flow: look the packet up in that table and run the action found."""

    table: str


@dataclass(frozen=True, slots=True)
class CallAction:
    """Control flow: run that action, which takes no parameters."""

    action: str


@dataclass(frozen=True, slots=True)
class If:
    """Control flow: run ``then`` if the condition holds, else ``otherwise``."""

    condition: Condition
    then: tuple[ControlNode, ...]
    otherwise: tuple[ControlNode, ...] = ()


ControlNode = ApplyTable | CallAction | If


@dataclass(frozen=True, slots=True)
class Counter:
    """An array of packet counters, 64 bit each; ``size`` is a power of two."""

    name: str
    size: int


@dataclass(frozen=True, slots=True)
class Meter:
    """An array of two-rate three-colour meters (RFC 2698), colour-blind; ``size`` is a power of two."""

    name: str
    size: int


@dataclass(frozen=True, slots=True)
class Register:
    """An array of cells of ``width_bits`` bits each; ``size`` is a power of two."""

    name: str
    size: int
    width_bits: int


@dataclass(frozen=True, slots=True)
class HeaderChecksum:
    """The internet checksum (RFC 1071) over all fields of a header, kept in one of them that has 16 bit."""

    header: str
    field: str


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
    counters: tuple[Counter, ...] = ()
    meters: tuple[Meter, ...] = ()
    registers: tuple[Register, ...] = ()
    verified: tuple[HeaderChecksum, ...] = ()
    updated: tuple[HeaderChecksum, ...] = ()
    virtual_io: VirtualIo | None = None
    """Queues through which a host hands packets to this program; None: how packets come to it is left to the target."""
    _found: dict[str, dict[str, Any]] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What was looked up by name before; programs may have thousands of tables."""

    def _named(self, group: str, name: str) -> Any:
        if group not in self._found:
            self._found[group] = {item.name: item for item in reversed(getattr(self, group))}
        return self._found[group][name]

    def header(self, name: str) -> Header:
        """The header of that name (KeyError if there is none)."""
        found: Header = self._named("headers", name)
        return found

    def action(self, name: str) -> Action:
        """The action of that name (KeyError if there is none)."""
        found: Action = self._named("actions", name)
        return found

    def table(self, name: str) -> Table:
        """The table of that name (KeyError if there is none)."""
        found: Table = self._named("tables", name)
        return found

    def state(self, name: str) -> ParserState:
        """The parser state of that name (KeyError if there is none)."""
        found: ParserState = self._named("parser", name)
        return found

    @property
    def states(self) -> tuple[str, ...]:
        """Names of the counters and registers, in that order: what packets leave behind."""
        return (*(c.name for c in self.counters), *(r.name for r in self.registers))

    def counter(self, name: str) -> Counter:
        """The counter of that name (KeyError if there is none)."""
        found: Counter = self._named("counters", name)
        return found

    def meter(self, name: str) -> Meter:
        """The meter of that name (KeyError if there is none)."""
        found: Meter = self._named("meters", name)
        return found

    def register(self, name: str) -> Register:
        """The register of that name (KeyError if there is none)."""
        found: Register = self._named("registers", name)
        return found

    def width_bits(self, ref: FieldRef) -> int:
        """Width of the field that is referred to, in bits."""
        if ref.header == METADATA:
            found: Field = self._named("metadata", ref.field)
            return found.width_bits
        return self.header(ref.header).field(ref.field).width_bits

    def match_kind(self, table: Table) -> MatchKind:
        """The kind of lookup that a table needs: ternary if any key is, else lpm if any key is, else exact."""
        kinds = {key.match_kind for key in table.keys}
        return "ternary" if "ternary" in kinds else "lpm" if "lpm" in kinds else "exact"

    def key_bits(self, table: Table) -> int:
        """Width of all keys of a table together, in bits."""
        return sum(self.width_bits(k.field) for k in table.keys)


@dataclass(frozen=True, slots=True)
class Workload:
    """What one sweep point runs: the program, the baseline that it is compared with, and the packets for both."""

    program: Program
    baseline: Program
    packets: PacketSpec
    notes: tuple[str, ...] = field(default=())
