"""The reference interpreter: executes a :class:`~p4perf.generators.program.Program` on bytes.

It is the oracle of every generated program: slow, literal, and free of any target's tricks. The fields of a header that
is not valid, which P4 leaves undefined, read as zero here.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from p4perf.generators.hashes import STANDARD_HASHES, HashFunctions, internet_checksum
from p4perf.generators.operators import OPERATORS
from p4perf.generators.program import (
    ACCEPT,
    METADATA,
    METER_GREEN,
    Action,
    AddHeader,
    ApplyTable,
    Assign,
    BinaryOp,
    Clone,
    Compare,
    Condition,
    Const,
    ControlNode,
    CountPacket,
    Drop,
    Expression,
    Fence,
    FieldRef,
    Hash,
    HeaderChecksum,
    If,
    MeterPacket,
    Multicast,
    ParameterRef,
    ParserState,
    Program,
    Random,
    ReadRegister,
    Recirculate,
    RemoveHeader,
    Resubmit,
    RunOperator,
    SetEgress,
    Statement,
    Table,
    WriteRegister,
    entry_data_word,
)

Watch = Callable[[ParserState | ControlNode | Statement, str | bool | None], None]
"""What is told of the way of a packet, see :class:`Interpreter`."""

MAX_PASSES = 256
"""A packet that goes through the program more often than this is taken for one that never leaves it."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A packet that left: its port, its bytes, and a mask with zeros where bits are random (None: none are)."""

    port: int
    data: bytes
    known: bytes | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one packet: everything that was sent, by ascending port; nothing if it was dropped."""

    sent: tuple[Sent, ...]
    hits: tuple[str, ...] = ()
    """Names of the tables that were hit, in order."""
    misses: tuple[str, ...] = ()

    @property
    def port(self) -> int | None:
        """The port of a packet of which one copy was sent, None if it was dropped.

        Raises:
            ValueError: several copies were sent.
        """
        if len(self.sent) > 1:
            raise ValueError("the packet left by several ports")
        return self.sent[0].port if self.sent else None

    @property
    def data(self) -> bytes:
        """The bytes that were sent, empty if the packet was dropped."""
        return self.sent[0].data if self.sent else b""


@dataclass(slots=True)
class _Packet:
    """One packet on its way through one pass of the program."""

    frame: bytes
    pass_number: int
    fields: dict[FieldRef, int] = field(default_factory=dict)
    random: set[FieldRef] = field(default_factory=set)
    valid: set[str] = field(default_factory=set)
    parsed_bytes: int = 0
    egress: int | None = None
    ports: tuple[int, ...] = ()
    dropped: bool = False
    opaque: bool = False
    """Whether something that is not known here may have written to any of its bytes."""
    again: Recirculate | Resubmit | None = None


@dataclass(slots=True)
class _Journey:
    """Everything that one packet causes in all of its passes."""

    sent: list[Sent] = field(default_factory=list)
    hits: list[str] = field(default_factory=list)
    misses: list[str] = field(default_factory=list)


def entry_parameters(table: Table, action: Action, index: int) -> dict[str, int]:
    """Action data of entry ``index`` by parameter name (see :class:`~p4perf.generators.program.EntrySet`)."""
    words = (table.entries.port if j == 0 else entry_data_word(index, j) for j in range(len(action.parameters)))
    return {p.name: w & ((1 << p.width_bits) - 1) for p, w in zip(action.parameters, words, strict=True)}


class Interpreter:
    """Runs packets through one program, whose counters and registers live as long as this object.

    Args:
        program: the program.
        hashes: what the hash algorithms calculate; by default what v1model says.
        watch: called with every parser state, node of the control flow and statement that a packet meets, and with
            what came of it: the name of the next state, whether a table was hit or a condition held, else None.
    """

    def __init__(
        self, program: Program, hashes: HashFunctions = STANDARD_HASHES, watch: Watch = lambda met, outcome: None
    ) -> None:
        self._program = program
        self._hashes = hashes
        self._watch = watch
        self._state: dict[str, dict[int, int]] = {name: {} for name in program.states}

    @property
    def stateful(self) -> bool:
        """Whether the outcome of a packet may depend on those before it."""
        return bool(self._state)

    def state(self, name: str) -> Mapping[int, int]:
        """The cells of a counter or register that are not zero.

        Raises:
            KeyError: the program has no counter or register of that name.
        """
        return {index: value for index, value in self._state[name].items() if value}

    def run(self, frame: bytes) -> Outcome:
        """Process one frame (without FCS) and say what becomes of it.

        Raises:
            RecursionError: the program sends it round more than :data:`MAX_PASSES` times.
            ValueError: a decision depends on a random number.
        """
        journey = _Journey()
        for number in range(MAX_PASSES):
            packet = _Packet(frame, number, {FieldRef(METADATA, f.name): 0 for f in self._program.metadata})
            if not self._parse(packet) or not all(self._verified(packet, c) for c in self._program.verified):
                break
            self._control(self._program.control, packet, journey)
            for checksum in self._program.updated:
                if checksum.header in packet.valid:
                    packet.fields[FieldRef(checksum.header, checksum.field)] = self._checksum(packet, checksum)
            if packet.again is None or packet.dropped:
                self._send(packet, journey)
                break
            if isinstance(packet.again, Recirculate):
                frame = self._deparse(packet).data
        else:
            raise RecursionError(f"a packet went through {self._program.name} more than {MAX_PASSES} times")
        sent = sorted(journey.sent, key=lambda s: s.port)
        return Outcome(tuple(sent), tuple(journey.hits), tuple(journey.misses))

    def _send(self, packet: _Packet, journey: _Journey) -> None:
        if packet.dropped:
            return
        ports = packet.ports or (() if packet.egress is None else (packet.egress,))
        if ports:
            out = self._deparse(packet)
            journey.sent += [Sent(port, out.data, out.known) for port in ports]

    def _parse(self, packet: _Packet) -> bool:
        name = "start"
        while name != ACCEPT:
            parser_state = self._program.state(name)
            for header_name in parser_state.extracts:
                header = self._program.header(header_name)
                chunk = packet.frame[packet.parsed_bytes : packet.parsed_bytes + header.size_bytes]
                if len(chunk) < header.size_bytes:
                    return False
                value, left = int.from_bytes(chunk, "big"), header.width_bits
                for f in header.fields:
                    left -= f.width_bits
                    packet.fields[FieldRef(header.name, f.name)] = (value >> left) & ((1 << f.width_bits) - 1)
                packet.valid.add(header.name)
                packet.parsed_bytes += header.size_bytes
            name = parser_state.default
            if parser_state.select is not None:
                selected = self._read(parser_state.select, packet)
                name = next((c.next_state for c in parser_state.cases if c.value == selected), name)
            self._watch(parser_state, name)
        return True

    def _read(self, ref: FieldRef, packet: _Packet) -> int:
        if ref.header != METADATA and ref.header not in packet.valid:
            return 0
        return packet.fields.get(ref, 0)

    def _write(self, ref: FieldRef, value: int, packet: _Packet, random: bool = False) -> None:
        packet.fields[ref] = value & ((1 << self._program.width_bits(ref)) - 1)
        (packet.random.add if random else packet.random.discard)(ref)

    def _bytes(self, refs: Iterable[FieldRef], packet: _Packet) -> bytes:
        value, bits = 0, 0
        for ref in refs:
            width = self._program.width_bits(ref)
            value, bits = value << width | self._read(ref, packet), bits + width
        return value.to_bytes(bits // 8, "big")

    def _checksum(self, packet: _Packet, checksum: HeaderChecksum) -> int:
        header = self._program.header(checksum.header)
        value = 0
        for f in header.fields:
            number = 0 if f.name == checksum.field else packet.fields[FieldRef(header.name, f.name)]
            value = value << f.width_bits | number
        return internet_checksum(value.to_bytes(header.size_bytes, "big"))

    def _verified(self, packet: _Packet, checksum: HeaderChecksum) -> bool:
        if checksum.header not in packet.valid:
            return True
        return packet.fields[FieldRef(checksum.header, checksum.field)] == self._checksum(packet, checksum)

    def _control(self, nodes: tuple[ControlNode, ...], packet: _Packet, journey: _Journey) -> None:
        for node in nodes:
            if isinstance(node, ApplyTable):
                self._apply(self._program.table(node.table), packet, journey)
            elif isinstance(node, If):
                holds = self._holds(node.condition, packet)
                self._watch(node, holds)
                self._control(node.then if holds else node.otherwise, packet, journey)
            else:
                self._watch(node, None)
                self._call(self._program.action(node.action), {}, packet, journey)

    def _holds(self, condition: Condition, packet: _Packet) -> bool:
        if not isinstance(condition, Compare):
            return condition.header in packet.valid
        left, left_random = self._evaluate(condition.left, {}, packet)
        right, right_random = self._evaluate(condition.right, {}, packet)
        if left_random or right_random:
            raise ValueError(f"{self._program.name} decides by a random number")
        return _COMPARATORS[condition.comparator](left, right)

    def _apply(self, table: Table, packet: _Packet, journey: _Journey) -> None:
        key = 0
        for part in table.keys:
            if part.field in packet.random:
                raise ValueError(f"{self._program.name} looks up a random number in {table.name}")
            key = (key << self._program.width_bits(part.field)) | self._read(part.field, packet)
        index = key >> table.entries.free_bits
        self._watch(ApplyTable(table.name), index < table.entries.count)
        if index < table.entries.count:
            journey.hits.append(table.name)
            action = self._program.action(table.entries.action)
            self._call(action, entry_parameters(table, action, index), packet, journey)
        else:
            journey.misses.append(table.name)
            self._call(self._program.action(table.default_action), {}, packet, journey)

    def _call(self, action: Action, arguments: Mapping[str, int], packet: _Packet, journey: _Journey) -> None:
        for statement in action.body:
            self._execute(statement, arguments, packet, journey)

    def _execute(self, statement: Statement, arguments: Mapping[str, int], packet: _Packet, journey: _Journey) -> None:
        self._watch(statement, None)
        match statement:
            case Assign(ref, expression):
                value, random = self._evaluate(expression, arguments, packet)
                self._write(ref, value, packet, random)
            case SetEgress(port):
                packet.egress, _ = self._evaluate(port, arguments, packet)
            case Drop():
                packet.dropped = True
            case AddHeader(name, values):
                given = {n: self._evaluate(e, arguments, packet) for n, e in values}
                packet.valid.add(name)
                for f in self._program.header(name).fields:
                    value, random = given.get(f.name, (0, False))
                    self._write(FieldRef(name, f.name), value, packet, random)
            case RemoveHeader(name):
                packet.valid.discard(name)
            case Hash(ref, algorithm, fields):
                value = self._hashes[algorithm](self._bytes(fields, packet))
                self._write(ref, value, packet, bool(packet.random.intersection(fields)))
            case Random(ref):
                self._write(ref, 0, packet, random=True)
            case MeterPacket(ref):
                self._write(ref, METER_GREEN, packet)
            case Recirculate() | Resubmit():
                packet.again = packet.again if isinstance(packet.again, Resubmit) else statement
            case Clone(port):
                journey.sent.append(Sent(port, packet.frame))
            case Multicast(ports):
                packet.ports = ports
            case RunOperator():
                self._operate(statement, packet)
            case Fence():
                pass
            case _:
                self._touch(statement, arguments, packet)

    def _operate(self, statement: RunOperator, packet: _Packet) -> None:
        ref, operator = statement.destination, statement.operator
        if operator.code:
            packet.opaque = True
            return
        result = OPERATORS[operator.name].result(self._deparse(packet).data, operator)
        self._write(ref, self._read(ref, packet) ^ result, packet, ref in packet.random)

    def _touch(
        self, statement: CountPacket | ReadRegister | WriteRegister, arguments: Mapping[str, int], packet: _Packet
    ) -> None:
        """Statements on counters and registers."""
        index, random = self._evaluate(statement.index, arguments, packet)
        if random:
            raise ValueError(f"{self._program.name} has a random number as an index")
        if isinstance(statement, CountPacket):
            cells, at = self._state[statement.counter], index % self._program.counter(statement.counter).size
            cells[at] = (cells.get(at, 0) + 1) & (1 << 64) - 1
            return
        register = self._program.register(statement.register)
        cells, at = self._state[register.name], index % register.size
        if isinstance(statement, ReadRegister):
            self._write(statement.destination, cells.get(at, 0), packet)
        else:
            value, random = self._evaluate(statement.value, arguments, packet)
            if random:
                raise ValueError(f"{self._program.name} keeps a random number in {register.name}")
            cells[at] = value & ((1 << register.width_bits) - 1)

    def _evaluate(self, expression: Expression, arguments: Mapping[str, int], packet: _Packet) -> tuple[int, bool]:
        """Value of an expression, and whether a random number is in it."""
        if isinstance(expression, Const):
            return expression.value, False
        if isinstance(expression, FieldRef):
            return self._read(expression, packet), expression in packet.random
        if isinstance(expression, BinaryOp):
            left, left_random = self._evaluate(expression.left, arguments, packet)
            right, right_random = self._evaluate(expression.right, arguments, packet)
            return _OPERATORS[expression.operator](left, right), left_random or right_random
        if isinstance(expression, ParameterRef):
            return arguments[expression.name], False
        return packet.pass_number, False

    def _deparse(self, packet: _Packet) -> Sent:
        """The bytes of a packet as they would be sent; the port is meaningless."""
        out, known = b"", b""
        for name in self._program.emit:
            if name not in packet.valid:
                continue
            header = self._program.header(name)
            value, mask = 0, 0
            for f in header.fields:
                ref = FieldRef(name, f.name)
                value = (value << f.width_bits) | packet.fields[ref]
                mask = (mask << f.width_bits) | (0 if ref in packet.random else (1 << f.width_bits) - 1)
            out += value.to_bytes(header.size_bytes, "big")
            known += mask.to_bytes(header.size_bytes, "big")
        payload = packet.frame[packet.parsed_bytes :]
        if packet.opaque:
            return Sent(-1, out + payload, bytes(len(out + payload)))
        has_random = any(byte != 0xFF for byte in known)
        return Sent(-1, out + payload, known + b"\xff" * len(payload) if has_random else None)


_OPERATORS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
}

_COMPARATORS: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}
