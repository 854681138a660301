"""The reference interpreter: executes a :class:`~p4perf.programs.ir.Program` on bytes.

It is the oracle of every generated program: slow, literal, and free of any target's tricks. The fields of a header that
is not valid, which P4 leaves undefined, read as zero here. Timestamps and random numbers are given, or it is
tracked which fields depend on them.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

from p4perf.programs import analysis, ir
from p4perf.programs.entries import EntryIndex
from p4perf.programs.operators import OPERATORS, STANDARD_HASHES, HashFunctions
from p4perf.programs.packet_state import NO_ARGUMENTS, Kept, PacketState, ParserError, twos_complement

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Sent:
    """A packet that left: its port, its bytes, and a mask with zeros where bits are random (None: none are)."""

    port: int
    data: bytes
    known: bytes | None = None


@dataclass(frozen=True, slots=True)
class Given:
    """The timestamp of a packet, and the 64 random bits that it draws."""

    clock: int
    drawn: int


GivenBy = Callable[[int], Given | None]
"""These of a packet, by how many came before; None: unknown."""


def scattered(number: int) -> int:
    """64 pseudo-random bits, never zero; those of consecutive numbers are evenly distributed."""
    bits = (number + 1) * SCATTER & WORD
    return bits ^ bits >> 32


SCATTER, WORD = 0x9E3779B97F4A7C15, (1 << 64) - 1
"""An odd number near 2^64 over the golden ratio; the harnesses have it, too."""

NOW_US = 1 << 40
"""A timestamp that differs from the zero in registers by more than any timeout."""


def usual(number: int) -> Given:
    """For packets that arrive at the same time: equal timestamps, evenly distributed random bits."""
    return Given(NOW_US, scattered(number))


def unknown(number: int) -> None:
    """For targets with clocks and random numbers of their own: no decision may depend on these."""


class _ExitError(Exception):
    """The end of a control flow by :class:`~p4perf.programs.ir.Exit`."""


Met = ir.ParserState | ir.SelectCase | ir.ControlNode | ir.Action | ir.Statement
"""What a packet meets on its path."""

Watch = Callable[[Met, str | bool | None], None]
"""Observer of the path of a packet, see :class:`Interpreter`."""

MAX_PASSES = 256
"""A packet that goes through the program more often than this is taken for one that never leaves it."""

MAX_STATES = 10_000
"""A parser that takes more states than this for a packet is taken for one that does not end."""


@dataclass(frozen=True, slots=True)
class PacketOutcome:
    """What became of one packet: everything that was sent, by ascending port; nothing if it was dropped."""

    sent: tuple[Sent, ...]
    hits: tuple[str, ...] = ()
    """Names of the tables that were hit, in order."""
    misses: tuple[str, ...] = ()
    errors: tuple[int, ...] = ()
    """Numbers of the parser errors that it met, one for each pass that had one."""

    @property
    def port(self) -> int | None:
        """The port of a packet of which one copy was sent, None if it was dropped."""
        if len(self.sent) > 1:
            raise ValueError("the packet left by several ports")
        return self.sent[0].port if self.sent else None

    @property
    def data(self) -> bytes:
        """The bytes that were sent, empty if the packet was dropped."""
        return self.sent[0].data if self.sent else b""


def entry_parameters(table: ir.Table, action: ir.Action, index: int) -> dict[str, int]:
    """Action data of entry ``index`` by parameter name (see :class:`~p4perf.programs.ir.EntrySet`)."""
    words = (table.rule.port if j == 0 else ir.entry_data_word(index, j) for j in range(len(action.parameters)))
    return {p.name: w & ((1 << p.width_bits) - 1) for p, w in zip(action.parameters, words, strict=True)}


@dataclass(frozen=True, slots=True)
class _Arrival:
    """A packet as it comes to the parser: for the first time, recirculated or resubmitted."""

    frame: bytes
    number: int = 0
    instance_type: int = 0
    kept: Kept = field(default_factory=dict)
    mask: bytes | None = None


RANDOM = -1
"""Value of a cell of a register that depends on a random number, such as a timestamp."""

INGRESS_CLONE, EGRESS_CLONE, RECIRCULATED, MULTICAST, RESUBMITTED = 1, 2, 4, 5, 6
"""Instance types of v1model, beside 0 of a packet that came from outside."""


class Interpreter:
    """Runs packets through one program, whose counters and registers live as long as this object.

    Args:
        hashes: what the hash algorithms calculate; by default what v1model says.
        watch: called with every case of a select that a packet takes, then the parser state, and with every node of the
            control flow, action and statement that it meets, and with what came of it: the name of the next state
            (empty: a parser error), whether a table was hit or a condition held, else None.
        given: timestamps and random bits.
    """

    def __init__(
        self,
        program: ir.Program,
        hashes: HashFunctions = STANDARD_HASHES,
        watch: Watch = lambda met, outcome: None,
        given: GivenBy = usual,
    ) -> None:
        self._program = program
        self._hashes = hashes
        self._watch = watch
        self._given_by, self._given, self._ran = given, given(0), 0
        self._state: dict[str, dict[int, int]] = {name: {} for name in program.states}
        self._indexes: dict[str, EntryIndex] = {}
        self._sent: list[Sent] = []
        self._hits: list[str] = []
        self._misses: list[str] = []
        self._errors: list[int] = []

    @cached_property
    def stateful(self) -> bool:
        """Whether the outcome of a packet may depend on those before it, or on how many these are."""
        asks = ir.Intrinsic("unknown") in set(analysis.expressions(self._program))
        draws = any(isinstance(statement, ir.Random) for statement in analysis.statements(self._program))
        return bool(self._state) or asks or draws

    def state(self, name: str) -> Mapping[int, int]:
        """The cells of a counter or register that are not zero; :data:`RANDOM`: it depends on a random number."""
        return {index: value for index, value in self._state[name].items() if value}

    def snapshot(self) -> Mapping[str, Mapping[int, int]]:
        """All counters and registers as they are now, for :meth:`restore`."""
        return {name: dict(cells) for name, cells in self._state.items()}

    def restore(self, before: Mapping[str, Mapping[int, int]]) -> None:
        self._state = {name: dict(cells) for name, cells in before.items()}

    def run(self, frame: bytes, port: int | None = None) -> PacketOutcome:
        """Process one frame (without FCS), that came in by a port, and say what becomes of it.

        Args:
            port: by default that of the program.

        Raises:
            RecursionError: the program sends it round more than :data:`MAX_PASSES` times, or its parser does not end.
            ValueError: a decision depends on the time or a random number, and these are not known.
        """
        self._given = self._given_by(self._ran)
        self._ran += 1
        self._sent, self._hits, self._misses, self._errors = [], [], [], []
        port = self._program.port if port is None else port
        waiting = deque([_Arrival(frame)])
        for _ in range(MAX_PASSES):
            waiting.extend(self._pass(waiting.popleft(), port))
            if not waiting:
                sent = tuple(sorted(self._sent, key=lambda s: s.port))
                return PacketOutcome(sent, tuple(self._hits), tuple(self._misses), tuple(self._errors))
        raise RecursionError(f"a packet went through {self._program.name} more than {MAX_PASSES} times")

    def _parsed(self, arrival: _Arrival, port: int) -> PacketState | None:
        """The packet behind the parser, None if that drops it."""
        program = self._program
        known = {"ingress_port": port, "packet_length": len(arrival.frame), "instance_type": arrival.instance_type}
        known |= {} if self._given is None else {"unknown": self._given.clock}
        packet = PacketState(program, arrival.frame, arrival.number, known, mask=arrival.mask)
        packet.keep(arrival.kept)
        for statement in program.initial:
            if statement.destination not in arrival.kept:
                self._execute(statement, NO_ARGUMENTS, packet)
        try:
            self._parse(packet)
        except ParserError as error:
            self._errors.append(error.number)
            if program.parser_error is None:
                return None
            packet.write(program.parser_error, error.number)
        for ref in program.verified:
            if ref.header in packet.valid and packet.read(ref) != packet.checksum(ref)[0]:
                return None
        return packet

    def _pass(self, arrival: _Arrival, port: int) -> Iterator[_Arrival]:
        """Take a packet through the program; yields what is to go through it again."""
        packet = self._parsed(arrival, port)
        if packet is None:
            return
        self._block(self._program.control, packet)
        for to, kept in packet.clones:
            if not self._program.egress:
                self._sent.append(Sent(to, packet.frame))
                continue
            clone = self._parsed(replace(arrival, instance_type=INGRESS_CLONE, kept=kept), port)
            if clone is not None:
                yield from self._leave(clone.copied(egress_port=to), to)
        if packet.dropped:
            return
        if isinstance(packet.again, ir.Resubmit):
            yield _Arrival(packet.frame, arrival.number + 1, RESUBMITTED, packet.kept(packet.again.keep), packet.mask)
        elif packet.again is not None:
            yield self._recirculated(packet)
        elif packet.copies:
            for to, replication_id in packet.copies:
                copy = packet.copied(egress_port=to, replication_id=replication_id, instance_type=MULTICAST)
                yield from self._leave(copy, to)
        elif packet.egress is not None:
            yield from self._leave(packet.copied(egress_port=packet.egress), packet.egress)

    def _leave(self, packet: PacketState, port: int) -> Iterator[_Arrival]:
        """Take a copy through egress, and send it; yields it if it is recirculated there."""
        if self._program.egress:
            self._block(self._program.egress, packet)
            for to, kept in packet.clones:
                clone = packet.copied(egress_port=to, instance_type=EGRESS_CLONE)
                clone.dropped, clone.again = False, None
                clone.fields = {r: v for r, v in packet.fields.items() if r.header != ir.METADATA}
                clone.keep(kept)
                yield from self._leave(clone, to)
            if packet.dropped:
                return
            if packet.again is not None:
                yield self._recirculated(packet)
                return
        self._update(packet)
        self._sent.append(Sent(port, *packet.deparse()))

    def _recirculated(self, packet: PacketState) -> _Arrival:
        kept = packet.kept(packet.again.keep) if packet.again is not None else {}
        self._update(packet)
        frame, mask = packet.deparse()
        return _Arrival(frame, packet.pass_number + 1, RECIRCULATED, kept, mask)

    def _update(self, packet: PacketState) -> None:
        for ref in self._program.updated:
            if ref.header in packet.valid:
                value, random = packet.checksum(ref)
                packet.write(ref, value, random=random)

    def _parse(self, packet: PacketState) -> None:
        name = "start"
        for _ in range(MAX_STATES):
            if name == ir.ACCEPT:
                return
            state = self._program.state(name)
            try:
                for statement in state.body:
                    self._parser_statement(statement, packet)
            except ParserError:
                self._watch(state, "")
                raise
            name = state.default
            if state.selected:
                values = [self._decided(packet.evaluate(e, NO_ARGUMENTS)) for e in state.selected]
                fitting = (c for c in state.cases if all(m.fits(v) for m, v in zip(c.matches, values, strict=True)))
                if (case := next(fitting, None)) is not None:
                    self._watch(case, None)
                    name = case.next_state
            self._watch(state, name)
        raise RecursionError(f"the parser of {self._program.name} takes more than {MAX_STATES} states")

    def _parser_statement(self, statement: ir.ParserStatement, packet: PacketState) -> None:
        match statement:
            case ir.Extract(header, varying_bits):
                bits = 0 if varying_bits is None else packet.evaluate(varying_bits, NO_ARGUMENTS)[0]
                packet.extract(self._program.header(header), bits)
            case ir.Advance(bits_skipped):
                packet.advance(packet.evaluate(bits_skipped, NO_ARGUMENTS)[0])
            case ir.Verify(condition, error):
                if not packet.holds(condition, NO_ARGUMENTS)[0]:
                    raise ParserError(error)
            case _:
                self._execute(statement, NO_ARGUMENTS, packet)

    def _decided(self, found: tuple[V, bool], what: str = "decides by a timestamp or a random number") -> V:
        """A value that must not be random, since a decision depends on it or else what a message says."""
        value, random = found
        if random:
            raise ValueError(f"{self._program.name} {what}")
        return value

    def _block(self, nodes: ir.Nodes, packet: PacketState) -> None:
        with contextlib.suppress(_ExitError):
            self._control(nodes, packet)

    def _control(self, nodes: ir.Nodes, packet: PacketState) -> None:
        for node in nodes:
            if isinstance(node, ir.ApplyTable):
                self._apply(node, self._program.table(node.table), packet)
            elif isinstance(node, ir.If):
                holds = self._decided(packet.holds(node.condition, NO_ARGUMENTS))
                self._watch(node, holds)
                self._control(node.then if holds else node.otherwise, packet)
            elif isinstance(node, ir.Block):
                self._block(node.body, packet)
            else:
                self._watch(node, None)
                self._call(self._program.action(node.action), NO_ARGUMENTS, packet)

    def _apply(self, node: ir.ApplyTable, table: ir.Table, packet: PacketState) -> None:
        refs = [key.field for key in table.keys]
        if packet.random.intersection(refs):
            if table.entries.count:
                raise ValueError(
                    f"{self._program.name} looks up a timestamp or a random number in {table.label or table.name}"
                )
            refs = []  # whatever it is, nothing is there
        values = [packet.read(ref) & ((1 << self._program.width_bits(ref)) - 1) for ref in refs]
        action, arguments, hit = self._looked_up(table, values, packet)
        self._watch(node, hit)
        (self._hits if hit else self._misses).append(table.name)
        self._call(action, arguments, packet)
        for name, nodes in node.cases:
            if name == action.name:
                self._control(nodes, packet)
        self._control(node.hit if hit else node.miss, packet)

    def _looked_up(
        self, table: ir.Table, values: list[int], packet: PacketState
    ) -> tuple[ir.Action, Mapping[str, int], bool]:
        """The action that a packet takes, its data, and whether an entry was hit."""
        if not values:
            pass
        elif isinstance(table.entries, ir.EntrySet):
            key = 0
            for part, value in zip(table.keys, values, strict=True):
                key = (key << self._program.width_bits(part.field)) | value
            index = key >> table.entries.free_bits
            if index < table.entries.count:
                action = self._program.action(table.entries.action)
                return action, entry_parameters(table, action, index), True
        elif (found := self._found(table, values)) is not None:
            if table.counter:
                self._count(self._program.counter(table.counter), found, packet)
            return *self._chosen(table, table.entries.entries[found], packet), True
        action = self._program.action(table.default_action)
        return action, _named(action, table.default_data), False

    def _found(self, table: ir.Table, values: list[int]) -> int | None:
        """The first entry of a list that fits."""
        if table.name not in self._indexes:
            self._indexes[table.name] = EntryIndex(table.listing)
        return self._indexes[table.name].find(values)

    def _chosen(self, table: ir.Table, entry: ir.Entry, packet: PacketState) -> tuple[ir.Action, Mapping[str, int]]:
        """The action of an entry, or that of its choices which the selector takes."""
        name, data = entry.action, entry.data
        if entry.choices and table.selector is not None:
            chosen = self._decided((packet.read(table.selector), table.selector in packet.random))
            name, data = ((name, data), *entry.choices)[chosen % (1 + len(entry.choices))]
        action = self._program.action(name)
        return action, _named(action, data)

    def _call(self, action: ir.Action, arguments: Mapping[str, int], packet: PacketState) -> None:
        self._watch(action, None)
        for statement in action.body:
            self._execute(statement, arguments, packet)

    def _execute(self, statement: ir.Statement, arguments: Mapping[str, int], packet: PacketState) -> None:
        if not isinstance(statement, ir.Branch):
            self._watch(statement, None)
        match statement:
            case ir.Assign(ref, expression):
                value, random = packet.evaluate(expression, arguments)
                packet.write(ref, value, random=random)
                if isinstance(expression, ir.FieldRef) and self._program.declared(ref).varying:
                    packet.varying_bits[ref.header] = packet.varying_bits.get(expression.header, 0)
            case ir.SetEgress(port):
                packet.egress, _ = packet.evaluate(port, arguments)
            case ir.Drop():
                packet.dropped = True
            case ir.AddHeader(name, values):
                given = {n: packet.evaluate(e, arguments) for n, e in values}
                packet.valid.add(name)
                packet.varying_bits.pop(name, None)
                for f in self._program.header(name).fields:
                    value, random = given.get(f.name, (0, False))
                    packet.write(ir.FieldRef(name, f.name), value, random=random)
            case ir.RemoveHeader(name):
                packet.valid.discard(name)
            case ir.Hash(ref, algorithm, fields, payload):
                data = packet.joined(fields) + (packet.frame[packet.parsed_bytes :] if payload else b"")
                packet.write(ref, self._hashes[algorithm](data), random=bool(packet.random.intersection(fields)))
            case ir.Random(ref):
                drawn = 0 if self._given is None else self._given.drawn
                words = range(-(-self._program.width_bits(ref) // 64))
                packet.write(ref, sum(drawn << 64 * n for n in words), random=self._given is None)
            case ir.MeterPacket(ref):
                packet.write(ref, ir.METER_GREEN)
            case ir.Recirculate() | ir.Resubmit():
                packet.again = packet.again if isinstance(packet.again, ir.Resubmit) else statement
            case ir.Clone(to, keep):
                packet.clones.append((to, packet.kept(keep)))
            case ir.Multicast(ports, ids):
                packet.copies = tuple(zip(ports, ids or (0,) * len(ports), strict=True))
            case ir.Truncate(size):
                packet.size_bytes = self._decided(packet.evaluate(size, arguments))
            case ir.RunOperator():
                self._operate(statement, packet)
            case ir.Branch(condition, then, otherwise):
                holds = self._decided(packet.holds(condition, arguments))
                self._watch(statement, holds)
                for inner in then if holds else otherwise:
                    self._execute(inner, arguments, packet)
            case ir.Exit():
                raise _ExitError
            case ir.Fence() | ir.Digest():
                pass
            case ir.CountPacket(name, index):
                counter = self._program.counter(name)
                self._count(counter, self._cell(index, counter.size, arguments, packet), packet)
            case ir.ReadRegister(ref, name, index):
                register = self._program.register(name)
                value = self._state[name].get(self._cell(index, register.size, arguments, packet), 0)
                known = twos_complement(value, register.width_bits) if register.signed else value
                packet.write(ref, 0 if value == RANDOM else known, random=value == RANDOM)
            case ir.WriteRegister(name, index, expression):
                register = self._program.register(name)
                at = self._cell(index, register.size, arguments, packet)
                value, random = packet.evaluate(expression, arguments)
                self._state[name][at] = RANDOM if random else value & ((1 << register.width_bits) - 1)

    def _count(self, counter: ir.Counter, at: int, packet: PacketState) -> None:
        cells = self._state[counter.name]
        cells[at] = (cells.get(at, 0) + (len(packet.frame) if counter.of_bytes else 1)) & (1 << 64) - 1

    def _operate(self, statement: ir.RunOperator, packet: PacketState) -> None:
        ref, operator = statement.destination, statement.operator
        if operator.code:
            packet.opaque = True
            return
        result = OPERATORS[operator.name](packet.deparse()[0], operator)
        packet.write(ref, packet.read(ref) ^ result, random=ref in packet.random)

    def _cell(self, index: ir.Expression, size: int, arguments: Mapping[str, int], packet: PacketState) -> int:
        """Which cell of an array is meant."""
        at = self._decided(packet.evaluate(index, arguments), "has a timestamp or a random number as an index")
        return at & ((1 << (size - 1).bit_length()) - 1)


def _named(action: ir.Action, data: tuple[int, ...]) -> dict[str, int]:
    return {p.name: value for p, value in zip(action.parameters, data, strict=True)}
