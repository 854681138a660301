"""The target-independent description of a data-plane program, and of the packets that exercise it.

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

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from p4perf.programs.virtual_io import VirtualIo

T = TypeVar("T")

BinaryOperator = Literal["+", "-", "&", "|", "^"]

Comparator = Literal["==", "!=", "<", ">", "<=", ">="]

HashAlgorithm = Literal["crc16", "crc32", "checksum16"]
"""CRC-16/ARC, CRC-32/ISO-HDLC (both as v1model has them) and the internet checksum (RFC 1071)."""

METER_GREEN = 0
"""The colour of a packet that conforms, as v1model and DPDK number it."""

METADATA = "meta"
"""Name of the pseudo header that holds the metadata fields."""


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


@dataclass(frozen=True, slots=True)
class PassNumber:
    """How often this packet was recirculated or resubmitted so far: 0 in its first pass."""


Expression = FieldRef | Const | ParameterRef | BinaryOp | PassNumber


@dataclass(frozen=True, slots=True)
class Compare:
    """A condition: ``left comparator right``, unsigned; both sides are fields, constants or the pass number."""

    comparator: Comparator
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class IsValid:
    """A condition: that header was extracted or added, and not removed since."""

    header: str


Condition = Compare | IsValid


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


@dataclass(frozen=True, slots=True)
class AddHeader:
    """Make a header valid; its fields take the given values, those that are not named zero."""

    header: str
    values: tuple[tuple[str, Expression], ...] = ()


@dataclass(frozen=True, slots=True)
class RemoveHeader:
    """Make a header invalid: it is not emitted."""

    header: str


@dataclass(frozen=True, slots=True)
class Hash:
    """``destination = algorithm(fields)``, over the fields one after another: whole bytes together."""

    destination: FieldRef
    algorithm: HashAlgorithm
    fields: tuple[FieldRef, ...]


@dataclass(frozen=True, slots=True)
class CountPacket:
    """Add one to a cell of a counter; the index is taken modulo its size, which is a power of two."""

    counter: str
    index: Expression


@dataclass(frozen=True, slots=True)
class MeterPacket:
    """``destination`` = colour that a cell of a meter gives this packet; the index is taken modulo the meter's size."""

    destination: FieldRef
    meter: str
    index: Expression


@dataclass(frozen=True, slots=True)
class ReadRegister:
    """``destination`` = value of a cell of a register; the index is taken modulo the register's size."""

    destination: FieldRef
    register: str
    index: Expression


@dataclass(frozen=True, slots=True)
class WriteRegister:
    """Cell of a register = ``value``, modulo two to its width; the index is taken modulo the register's size."""

    register: str
    index: Expression
    value: Expression


@dataclass(frozen=True, slots=True)
class Random:
    """``destination`` = a random number, uniform over its width. No decision may depend on it."""

    destination: FieldRef


@dataclass(frozen=True, slots=True)
class Recirculate:
    """Send the deparsed packet through the program once more."""


@dataclass(frozen=True, slots=True)
class Resubmit:
    """Send the packet as it came into this pass through the program once more."""


@dataclass(frozen=True, slots=True)
class Clone:
    """Send a copy of the packet as it came into this pass by that port."""

    port: int


@dataclass(frozen=True, slots=True)
class Multicast:
    """Send the packet by all of these ports (ascending), instead of the egress port."""

    ports: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Operator:
    """A C function of the bytes of a packet, as :mod:`p4perf.programs.operators` has them.

    ``code`` is the C text of another operator: it defines ``operate``. ``flows`` is the number of keys
    of operators that look something up, ``multiplications`` the length of the chain.
    """

    name: str
    code: str = ""
    flows: int = 1000
    multiplications: int = 100


@dataclass(frozen=True, slots=True)
class RunOperator:
    """``destination = destination ^ operator(packet)``: all bytes of the packet, as they are now.

    What an operator with ``code`` makes of the packet and of the destination is not known.
    """

    destination: FieldRef
    operator: Operator


@dataclass(frozen=True, slots=True)
class Fence:
    """Nothing after it begins before everything before it is finished, on a processor that works out of order.

    With ``after`` it also waits for a chain of fixed length that begins with the value of that field. So what is before
    it always takes longer than the fence itself, which would hide a part of something short.
    """

    after: FieldRef | None = None


Statement = (
    Assign
    | SetEgress
    | Drop
    | AddHeader
    | RemoveHeader
    | Hash
    | CountPacket
    | MeterPacket
    | ReadRegister
    | WriteRegister
    | Random
    | Recirculate
    | Resubmit
    | Clone
    | Multicast
    | RunOperator
    | Fence
)


@dataclass(frozen=True, slots=True)
class HeaderValues:
    """The values that the fields of one header carry in the generated packets; what is not named is zero."""

    header: str
    values: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class VaryingField:
    """A header field that changes from packet to packet.

    It holds the integer ``i`` drawn for the packet, ``free_bits`` bits to the left: ``0 .. count-1`` hit the entries of
    a table, ``count .. 2*count-1`` miss them. The lowest ``free_bits`` bits (whole bytes) are those of the header's
    values.
    """

    field: FieldRef
    count: int
    free_bits: int = 0


@dataclass(frozen=True, slots=True)
class PacketSpec:
    """The packets of an experiment: headers in wire order, fields that vary, and the frame size.

    ``frame_size_bytes`` counts the FCS (RFC 2544); the bytes in memory are four fewer, unless ``keeps_fcs``: then the
    place of the FCS is a part of the packet, as on ports that keep it. ``payload`` is repeated behind the headers.
    """

    headers: tuple[HeaderValues, ...]
    varying: tuple[VaryingField, ...]
    frame_size_bytes: int
    payload: bytes = b"\0"
    keeps_fcs: bool = False


MatchKind = Literal["exact", "lpm", "ternary"]
"""Match kinds of the P4 core library that a :class:`Table` may use."""


@dataclass(frozen=True, slots=True)
class Key:
    """One match key of a table."""

    field: FieldRef
    match_kind: MatchKind = "exact"


@dataclass(frozen=True, slots=True)
class EntrySet:
    """The entries of a table, as a rule.

    Entry ``i`` of ``0 .. count-1`` has as key the integer ``i << free_bits``, in as many bits as the table's keys have
    together (the first key is the most significant). The lowest ``free_bits`` bits match whatever a packet has there:
    an lpm key has a prefix of its width minus ``free_bits``, ternary keys have ones in their mask above these bits,
    exact keys have none of them. No two entries match the same packet, so they need no order of priority.

    The action is ``action``; its parameter number ``j`` is ``port`` for ``j == 0`` and :func:`entry_data_word`
    ``(i, j)``, cut to the parameter's width, for the others.
    """

    count: int
    action: str
    port: int = 1
    free_bits: int = 0


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
        return sum(f.width_bits for f in self.fields)

    @property
    def size_bytes(self) -> int:
        return self.width_bits // 8

    def offset_bits(self, field_name: str) -> int:
        offset = 0
        for f in self.fields:
            if f.name == field_name:
                return offset
            offset += f.width_bits
        raise KeyError(f"{self.name}.{field_name}")

    def field(self, field_name: str) -> Field:
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


N = TypeVar("N", Field, Header, Action, Table, ParserState, Counter, Meter, Register)


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
    _found: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What was computed before, such as tables by their names; programs may have thousands of them."""

    def once(self, what: str, compute: Callable[[], T]) -> T:
        """A property of this program, computed at the first call; callers must not change it."""
        if what not in self._found:
            self._found[what] = compute()
        found: T = self._found[what]
        return found

    def _named(self, kind: str, group: tuple[N, ...], name: str) -> N:
        if kind not in self._found:
            self._found[kind] = {item.name: item for item in reversed(group)}
        found: N = self._found[kind][name]
        return found

    def header(self, name: str) -> Header:
        return self._named("headers", self.headers, name)

    def action(self, name: str) -> Action:
        return self._named("actions", self.actions, name)

    def table(self, name: str) -> Table:
        return self._named("tables", self.tables, name)

    def state(self, name: str) -> ParserState:
        return self._named("parser", self.parser, name)

    @property
    def states(self) -> tuple[str, ...]:
        """Names of the counters and registers, in that order: what packets leave behind."""
        return (*(c.name for c in self.counters), *(r.name for r in self.registers))

    def counter(self, name: str) -> Counter:
        return self._named("counters", self.counters, name)

    def meter(self, name: str) -> Meter:
        return self._named("meters", self.meters, name)

    def register(self, name: str) -> Register:
        return self._named("registers", self.registers, name)

    def width_bits(self, ref: FieldRef) -> int:
        if ref.header == METADATA:
            return self._named("metadata", self.metadata, ref.field).width_bits
        return self.header(ref.header).field(ref.field).width_bits

    def match_kind(self, table: Table) -> MatchKind:
        """The kind of lookup that a table needs: ternary if any key is, else lpm if any key is, else exact."""
        kinds = {key.match_kind for key in table.keys}
        return "ternary" if "ternary" in kinds else "lpm" if "lpm" in kinds else "exact"

    def key_bits(self, table: Table) -> int:
        return sum(self.width_bits(k.field) for k in table.keys)


@dataclass(frozen=True, slots=True)
class Workload:
    """What one sweep point runs: the program, the baseline that it is compared with, and the packets for both."""

    program: Program
    baseline: Program
    packets: PacketSpec
    notes: tuple[str, ...] = field(default=())
