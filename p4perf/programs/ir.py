"""The target-independent description of a data-plane program, and of the packets that exercise it.

A :class:`Program` is what every renderer (P4, C on DPDK) reads and what the reference interpreter executes. Its meaning
is fixed here, so that all of them agree:

* **Parsing** starts in state ``start`` at bit 0 of the frame. A state runs its statements in order; then what it
  selects on decides the next state: the first case that fits, else the default. State ``accept`` ends parsing. A
  frame too short for what is taken from it is a parser error, as is a failed :class:`Verify`: the packet is dropped
  before any control code runs, or the error is noted and parsing ends. Headers are a whole number of bytes.
* **Checksums** of ``verified`` headers are tested after parsing, where the header is valid: a wrong one drops the
  packet before any control code runs. Those of ``updated`` headers are calculated before deparsing, where the header is
  valid, over all its other fields.
* **Metadata** fields start at zero, or at what ``initial`` says; a packet whose egress port was never set is dropped. A
  field of a header that is not valid reads as zero, and what is written to it is not sent.
* **Actions** run their statements in order. Values are integers, cut to the width of the destination.
* **Drop** is final: the packet is not sent, whatever happens later; its clones are.
* **Egress** is a second control flow, which every copy of a packet goes through by itself, with the headers and
  metadata that it had after the first: the packet itself, those of a multicast, and clones. Drop ends that copy.
* **Deparsing** emits the valid headers in ``emit`` order, followed by the bytes that were not parsed.
* **Tables** hold an :class:`EntrySet`, a rule that gives key and action data of entry ``i``, so that a table of twenty
  million entries needs no list; or an :class:`EntryList`.
* **Counters, registers and meters** start at zero and live as long as the program. Every packet conforms to
  what a meter is configured for: it always says :data:`METER_GREEN`.
* **Recirculation and resubmission** take effect after the control flow (recirculation in egress: after that), unless
  the packet is dropped: the deparsed packet (recirculation) or the packet as it came into this pass (resubmission,
  which wins) is parsed again. Metadata and egress port start anew; :class:`PassNumber` counts the passes.
* **Operators** are C functions over all bytes of the packet, of which only C on DPDK knows; a **fence** changes nothing
  but the order in which a processor works.
* **Copies**: a clone is the packet as it came into this pass, sent by a port of its own; multicast sends the deparsed
  packet by each of its ports and takes the place of the egress port. A packet that goes through again is not sent.

Expressions are those of :mod:`p4perf.programs.expressions`, statements those of :mod:`p4perf.programs.statements`.
Widths are in bits, sizes in bytes. Bytes on the wire are big-endian (network order), as P4 has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Literal, TypeVar

from p4perf.errors import CapabilityError
from p4perf.programs.expressions import *  # noqa: F403
from p4perf.programs.expressions import METADATA, Condition, Expression, FieldRef
from p4perf.programs.statements import *  # noqa: F403
from p4perf.programs.statements import AddHeader, Assign, Branch, RemoveHeader, Statement
from p4perf.programs.virtual_io import VirtualIo

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A part of a program that stands in a text; programs are equal wherever their parts stand."""

    place: str = field(default="", compare=False)
    """Where it stands, ``router.p4:53``; empty if unknown."""
    label: str = field(default="", compare=False)
    """What the program calls it, ``MainControl.routes``; empty if that is its name."""


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


MatchKind = Literal["exact", "lpm", "ternary", "range", "optional"]
"""Match kinds of the P4 core library and of v1model."""


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


@dataclass(frozen=True, slots=True)
class Match:
    """What a key field of an entry, or of a select, takes: the values ``v`` with ``low <= v & mask <= high``."""

    mask: int
    low: int
    high: int

    @classmethod
    def masked(cls, value: int, mask: int) -> Match:
        return cls(mask, value & mask, value & mask)

    @classmethod
    def prefix(cls, value: int, length: int, bits: int) -> Match:
        """A match of the first bits of a value, at most all of them."""
        return cls.masked(value, (1 << bits) - (1 << max(bits - length, 0)))

    @classmethod
    def never(cls) -> Match:
        """A match that takes no value."""
        return cls(0, 1, 0)

    def fits(self, value: int) -> bool:
        return self.low <= value & self.mask <= self.high


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: what its key fields match, its action and the values of its parameters.

    ``choices`` are further actions with their data: those of an action selector, of which a packet takes one.
    """

    matches: tuple[Match, ...]
    action: str
    data: tuple[int, ...] = ()
    choices: tuple[tuple[str, tuple[int, ...]], ...] = ()

    def fits(self, values: Sequence[int]) -> bool:
        return all(match.fits(value) for match, value in zip(self.matches, values, strict=True))


@dataclass(frozen=True, slots=True)
class EntryList:
    """The entries of a table one by one: a packet takes the first that fits.

    So entries of ternary, range and optional keys are in the order of their priority, those of lpm keys in the order of
    their prefixes, the longest first.
    """

    entries: tuple[Entry, ...] = ()

    @property
    def count(self) -> int:
        return len(self.entries)


ENTRY_MULTIPLIER = 0x9E3779B1
"""Odd multiplier (2**32 over the golden ratio) of :func:`entry_data_word`."""


def entry_data_word(entry: int, parameter: int) -> int:
    """Action data parameter ``parameter`` (from 1) of entry ``entry``: ``(i * 0x9E3779B1 + j) mod 2**32``."""
    return (entry * ENTRY_MULTIPLIER + parameter) & 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Table(Placed):
    """A match-action table. ``default_action`` runs on a miss, with ``default_data``."""

    name: str
    keys: tuple[Key, ...]
    actions: tuple[str, ...]
    default_action: str
    entries: EntrySet | EntryList
    default_data: tuple[int, ...] = ()
    selector: FieldRef | None = None
    """Field whose value, modulo the number of actions of an entry, says which of them a packet takes."""
    counter: str = ""
    """A counter with a cell for every entry of an :class:`EntryList`, which counts the packets that take the entry."""
    size: int = field(default=0, compare=False)
    """How many entries the program says that it may hold; 0 if it does not."""

    @property
    def rule(self) -> EntrySet:
        """The entries as a rule, which those of components have unless they are of a distribution.

        Raises:
            CapabilityError: they have none.
        """
        if isinstance(self.entries, EntryList):
            raise CapabilityError(
                f"the entries of table {self.name} follow no rule, and what is asked for is known for such as do",
                hint="use entries that are uniform",
            )
        return self.entries

    @property
    def listing(self) -> tuple[Entry, ...]:
        """The entries one by one; none where they follow a rule."""
        return self.entries.entries if isinstance(self.entries, EntryList) else ()

    @property
    def listed(self) -> tuple[str, ...]:
        """The actions of the entries, each once."""
        if isinstance(self.entries, EntrySet):
            return (self.entries.action,)
        found = (name for e in self.entries.entries for name in (e.action, *(choice for choice, _ in e.choices)))
        return tuple(dict.fromkeys(found))

    @property
    def taken(self) -> tuple[str, ...]:
        """The actions that a packet may take: those of entries, then the default action, each once."""
        return tuple(dict.fromkeys((*self.listed, self.default_action)))


MAX_PORT = 511
"""The greatest port by which targets send packets, that of v1model."""

ACCEPT = "accept"
"""Name of the final parser state."""

PACKET_TOO_SHORT, STACK_OUT_OF_BOUNDS, HEADER_TOO_SHORT, PARSER_INVALID_ARGUMENT = 1, 3, 4, 6
"""Numbers of parser errors, in the order of P4's core library."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a header type or of the metadata: its name and its width in bits.

    Where ``signed``, its value is that of ``int<N>``. Where ``varying``, the width is the greatest one; one field of a
    header may be so, and an :class:`Extract` says how wide it is in a packet. It takes over the width of what is
    assigned to it.
    """

    name: str
    width_bits: int
    signed: bool = False
    varying: bool = False


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
class Action(Placed):
    """A P4 action: parameters (filled from an entry's action data, in order) and statements."""

    name: str
    parameters: tuple[Field, ...] = ()
    body: tuple[Statement, ...] = ()
    places: tuple[str, ...] = field(default=(), compare=False)
    """Those of the statements one by one, where they are known."""

    @property
    def placed(self) -> Iterator[tuple[str, Statement]]:
        """The statements with their places, or that of the action where a place is not known."""
        places = self.places if len(self.places) == len(self.body) else ("",) * len(self.body)
        return ((place or self.place, statement) for place, statement in zip(places, self.body, strict=True))

    @property
    def data_bits(self) -> int:
        return sum(p.width_bits for p in self.parameters)


@dataclass(frozen=True, slots=True)
class ApplyTable:
    """Control flow: look the packet up in that table and run the action found.

    After that comes ``hit`` or ``miss``, and that of the ``cases`` which is for the action (``switch`` over
    ``action_run``).
    """

    table: str
    hit: Nodes = ()
    miss: Nodes = ()
    cases: tuple[tuple[str, Nodes], ...] = ()

    @property
    def branches(self) -> tuple[Nodes, ...]:
        return (self.hit, self.miss, *(nodes for _, nodes in self.cases))


@dataclass(frozen=True, slots=True)
class CallAction:
    """Control flow: run that action, which takes no parameters."""

    action: str


@dataclass(frozen=True, slots=True)
class If(Placed):
    """Control flow: run ``then`` if the condition holds, else ``otherwise``."""

    condition: Condition
    then: Nodes
    otherwise: Nodes = ()
    text: str = field(default="", compare=False)
    """The condition in the language of the program, ``hdr.ipv4.ttl > 1``; empty if unknown."""


@dataclass(frozen=True, slots=True)
class Block:
    """Control flow that an :class:`Exit` inside ends; at the outermost level of the control flow or of egress."""

    body: Nodes


ControlNode = ApplyTable | CallAction | If | Block

Nodes = tuple[ControlNode, ...]
"""A control flow, in order."""


@dataclass(frozen=True, slots=True)
class Counter:
    """An array of counters of packets, or of bytes in memory, 64 bit each."""

    name: str
    size: int
    of_bytes: bool = False


@dataclass(frozen=True, slots=True)
class Meter:
    """An array of two-rate three-colour meters (RFC 2698), colour-blind."""

    name: str
    size: int


@dataclass(frozen=True, slots=True)
class Register:
    """An array of cells of ``width_bits`` bits each."""

    name: str
    size: int
    width_bits: int
    signed: bool = False


@dataclass(frozen=True, slots=True)
class Extract:
    """Take a header from the packet; ``varying_bits`` is the width of its varying field, a multiple of 8."""

    header: str
    varying_bits: Expression | None = None


@dataclass(frozen=True, slots=True)
class Advance:
    """Skip bits of the packet, a multiple of 8."""

    bits: Expression


@dataclass(frozen=True, slots=True)
class Verify:
    """A parser error, of that number, unless the condition holds."""

    condition: Condition
    error: int


ParserStatement = Extract | Advance | Verify | Assign | AddHeader | RemoveHeader | Branch


@dataclass(frozen=True, slots=True)
class SelectCase:
    """If every value that is selected on fits, go on in ``next_state``."""

    matches: tuple[Match, ...]
    next_state: str

    @classmethod
    def of_value(cls, value: int, next_state: str) -> SelectCase:
        """The case of one value of one field."""
        return cls((Match(-1, value, value),), next_state)

    @property
    def value(self) -> int:
        """The value of a case that takes one only."""
        (match,) = self.matches
        return match.low


@dataclass(frozen=True, slots=True)
class ParserState(Placed):
    """A parser state: its statements, in order; what it selects on (if anything), its cases and its default.

    The label of one that was unrolled has a number behind it, ``parse_mpls[1]``.
    """

    name: str
    body: tuple[ParserStatement, ...] = ()
    selected: tuple[Expression, ...] = ()
    cases: tuple[SelectCase, ...] = ()
    default: str = ACCEPT

    @property
    def extracts(self) -> tuple[str, ...]:
        """The headers that it extracts, in order."""
        return tuple(statement.header for statement in self.body if isinstance(statement, Extract))

    @property
    def select(self) -> FieldRef | None:
        """The field that it selects on, where it is one and its cases are values."""
        return self.selected[0] if len(self.selected) == 1 and isinstance(self.selected[0], FieldRef) else None


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
    control: Nodes
    emit: tuple[str, ...]
    counters: tuple[Counter, ...] = ()
    meters: tuple[Meter, ...] = ()
    registers: tuple[Register, ...] = ()
    verified: tuple[FieldRef, ...] = ()
    updated: tuple[FieldRef, ...] = ()
    """Fields of 16 bit that hold the internet checksum (RFC 1071) over all fields of their header."""
    egress: Nodes = ()
    initial: tuple[Assign, ...] = ()
    """What metadata fields hold when a pass begins, where it is not zero."""
    parser_error: FieldRef | None = None
    """Field that takes the number of a parser error, and the control flow begins; None: the packet is dropped."""
    port: int = 0
    """By which all packets come in."""
    virtual_io: VirtualIo | None = None
    """Queues through which a host hands packets to this program; None: how packets come to it is left to the target."""
    _found: dict[object, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What was computed before, such as tables by their names; programs may have thousands of them."""

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

    def declared(self, ref: FieldRef) -> Field:
        """The field that a reference means."""
        if ref.header == METADATA:
            return self._named("metadata", self.metadata, ref.field)
        return self.header(ref.header).field(ref.field)

    def width_bits(self, ref: FieldRef) -> int:
        return self.declared(ref).width_bits

    def match_kind(self, table: Table) -> MatchKind:
        """The kind of lookup that a table needs: ternary if any key is more than lpm or exact, else lpm, else exact."""
        kinds = {key.match_kind for key in table.keys}
        return "ternary" if kinds - {"exact", "lpm"} else "lpm" if "lpm" in kinds else "exact"

    def key_bits(self, table: Table) -> int:
        return sum(self.width_bits(k.field) for k in table.keys)


def once(compute: Callable[[Program], T]) -> Callable[[Program], T]:
    """Compute something of each program at the first call only; callers must not change the result."""

    @wraps(compute)
    def known(program: Program) -> T:
        if known not in program._found:
            program._found[known] = compute(program)
        found: T = program._found[known]
        return found

    return known


@dataclass(frozen=True, slots=True)
class ProgramText:
    """The text that a program was read of: JSON of p4c-bm2-ss, or a specification of SWX.

    A target whose language that is runs the text as it is.
    """

    language: Literal["bmv2", "swx"]
    text: str
    configuration: tuple[str, ...] = ()
    """Commands of simple_switch_CLI that make its multicast groups and sessions of clones."""
    p4: str = ""
    """The P4_16 that the text was compiled of, preprocessed; empty if it was compiled elsewhere."""


@dataclass(frozen=True, slots=True)
class Workload:
    """What one sweep point runs: the program, the baseline that it is compared with, and the packets for both."""

    program: Program
    baseline: Program
    packets: PacketSpec
    notes: tuple[str, ...] = field(default=())
    frames: tuple[bytes, ...] = ()
    """Packets one by one, without FCS, all of one size: those of a program that was read, which follow no rule."""
    source: ProgramText | None = None
    """None for a program of components."""

    def text(self, language: str) -> str | None:
        """The text that the program was read of, if that is its language, or its P4 (``p4``), if that is known."""
        if self.source is not None and language == "p4":
            return self.source.p4 or None
        return self.source.text if self.source is not None and self.source.language == language else None
