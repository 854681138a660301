"""The reference interpreter: executes a :class:`~p4perf.programs.ir.Program` on bytes.

It is the oracle of every generated program: slow, literal, and free of any target's tricks. The fields of a header that
is not valid, which P4 leaves undefined, read as zero here. Whether a random number is in a field is tracked as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from p4perf.programs import ir
from p4perf.programs.analysis import COMPARE, OPERATE
from p4perf.programs.operators import OPERATORS, STANDARD_HASHES, HashFunctions, internet_checksum


@dataclass(frozen=True, slots=True)
class Sent:
    """A packet that left: its port, its bytes, and a mask with zeros where bits are random (None: none are)."""

    port: int
    data: bytes
    known: bytes | None = None


@dataclass(slots=True)
class PacketState:
    """One packet in one pass, and what it caused in all passes so far.

    Args:
        frame: its bytes when the pass began.
        pass_number: from 0.
    """

    program: ir.Program
    frame: bytes
    pass_number: int
    sent: list[Sent]
    hits: list[str]
    misses: list[str]
    fields: dict[ir.FieldRef, int] = field(default_factory=dict)
    random: set[ir.FieldRef] = field(default_factory=set)
    valid: set[str] = field(default_factory=set)
    parsed_bytes: int = 0
    egress: int | None = None
    ports: tuple[int, ...] = ()
    dropped: bool = False
    opaque: bool = False
    """Whether something that is not known here may have written to any of its bytes."""
    again: ir.Recirculate | ir.Resubmit | None = None

    def extract(self, header: ir.Header) -> bool:
        """Take a header from the bytes that are not parsed yet; False if they are too few."""
        chunk = self.frame[self.parsed_bytes : self.parsed_bytes + header.size_bytes]
        if len(chunk) < header.size_bytes:
            return False
        value, left = int.from_bytes(chunk, "big"), header.width_bits
        for f in header.fields:
            left -= f.width_bits
            self.fields[ir.FieldRef(header.name, f.name)] = (value >> left) & ((1 << f.width_bits) - 1)
        self.valid.add(header.name)
        self.parsed_bytes += header.size_bytes
        return True

    def read(self, ref: ir.FieldRef) -> int:
        if ref.header != ir.METADATA and ref.header not in self.valid:
            return 0
        return self.fields.get(ref, 0)

    def write(self, ref: ir.FieldRef, value: int, *, random: bool = False) -> None:
        """Give a field a value, of which it takes as many bits as it has."""
        self.fields[ref] = value & ((1 << self.program.width_bits(ref)) - 1)
        (self.random.add if random else self.random.discard)(ref)

    def evaluate(self, expression: ir.Expression, arguments: Mapping[str, int]) -> tuple[int, bool]:
        """Value of an expression, and whether a random number is in it; ``arguments`` are those of the action."""
        if isinstance(expression, ir.Const):
            return expression.value, False
        if isinstance(expression, ir.FieldRef):
            return self.read(expression), expression in self.random
        if isinstance(expression, ir.BinaryOp):
            left, left_random = self.evaluate(expression.left, arguments)
            right, right_random = self.evaluate(expression.right, arguments)
            return OPERATE[expression.operator](left, right), left_random or right_random
        if isinstance(expression, ir.ParameterRef):
            return arguments[expression.name], False
        return self.pass_number, False

    def joined(self, refs: Iterable[ir.FieldRef]) -> bytes:
        value, bits = 0, 0
        for ref in refs:
            width = self.program.width_bits(ref)
            value, bits = value << width | self.read(ref), bits + width
        return value.to_bytes(bits // 8, "big")

    def checksum(self, checksum: ir.HeaderChecksum) -> int:
        header = self.program.header(checksum.header)
        value = 0
        for f in header.fields:
            number = 0 if f.name == checksum.field else self.fields[ir.FieldRef(header.name, f.name)]
            value = value << f.width_bits | number
        return internet_checksum(value.to_bytes(header.size_bytes, "big"))

    def verified(self, checksum: ir.HeaderChecksum) -> bool:
        """Whether the checksum of a header is right, if that is valid."""
        if checksum.header not in self.valid:
            return True
        return self.fields[ir.FieldRef(checksum.header, checksum.field)] == self.checksum(checksum)

    def deparse(self) -> tuple[bytes, bytes | None]:
        """The bytes as they would be sent, and a mask with zeros where bits are random (None: none are)."""
        out, known = b"", b""
        for name in self.program.emit:
            if name not in self.valid:
                continue
            header = self.program.header(name)
            value, mask = 0, 0
            for f in header.fields:
                ref = ir.FieldRef(name, f.name)
                value = (value << f.width_bits) | self.fields[ref]
                mask = (mask << f.width_bits) | (0 if ref in self.random else (1 << f.width_bits) - 1)
            out += value.to_bytes(header.size_bytes, "big")
            known += mask.to_bytes(header.size_bytes, "big")
        payload = self.frame[self.parsed_bytes :]
        if self.opaque:
            return out + payload, bytes(len(out + payload))
        has_random = any(byte != 0xFF for byte in known)
        return out + payload, known + b"\xff" * len(payload) if has_random else None


Watch = Callable[[ir.ParserState | ir.ControlNode | ir.Statement, str | bool | None], None]
"""Observer of the path of a packet, see :class:`Interpreter`."""

MAX_PASSES = 256
"""A packet that goes through the program more often than this is taken for one that never leaves it."""


@dataclass(frozen=True, slots=True)
class PacketOutcome:
    """What became of one packet: everything that was sent, by ascending port; nothing if it was dropped."""

    sent: tuple[Sent, ...]
    hits: tuple[str, ...] = ()
    """Names of the tables that were hit, in order."""
    misses: tuple[str, ...] = ()

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
    words = (table.entries.port if j == 0 else ir.entry_data_word(index, j) for j in range(len(action.parameters)))
    return {p.name: w & ((1 << p.width_bits) - 1) for p, w in zip(action.parameters, words, strict=True)}


class Interpreter:
    """Runs packets through one program, whose counters and registers live as long as this object.

    Args:
        hashes: what the hash algorithms calculate; by default what v1model says.
        watch: called with every parser state, node of the control flow and statement that a packet meets, and with
            what came of it: the name of the next state, whether a table was hit or a condition held, else None.
    """

    def __init__(
        self, program: ir.Program, hashes: HashFunctions = STANDARD_HASHES, watch: Watch = lambda met, outcome: None
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
        """The cells of a counter or register that are not zero."""
        return {index: value for index, value in self._state[name].items() if value}

    def run(self, frame: bytes) -> PacketOutcome:
        """Process one frame (without FCS) and say what becomes of it.

        Raises:
            RecursionError: the program sends it round more than :data:`MAX_PASSES` times.
            ValueError: a decision depends on a random number.
        """
        sent: list[Sent] = []
        hits: list[str] = []
        misses: list[str] = []
        for number in range(MAX_PASSES):
            packet = PacketState(self._program, frame, number, sent, hits, misses)
            if not self._parse(packet) or not all(packet.verified(c) for c in self._program.verified):
                break
            self._control(self._program.control, packet)
            for checksum in self._program.updated:
                if checksum.header in packet.valid:
                    packet.fields[ir.FieldRef(checksum.header, checksum.field)] = packet.checksum(checksum)
            if packet.again is None or packet.dropped:
                self._send(packet)
                break
            if isinstance(packet.again, ir.Recirculate):
                frame = packet.deparse()[0]
        else:
            raise RecursionError(f"a packet went through {self._program.name} more than {MAX_PASSES} times")
        return PacketOutcome(tuple(sorted(sent, key=lambda s: s.port)), tuple(hits), tuple(misses))

    def _send(self, packet: PacketState) -> None:
        if packet.dropped:
            return
        ports = packet.ports or (() if packet.egress is None else (packet.egress,))
        if ports:
            data, known = packet.deparse()
            packet.sent += [Sent(port, data, known) for port in ports]

    def _parse(self, packet: PacketState) -> bool:
        name = "start"
        while name != ir.ACCEPT:
            parser_state = self._program.state(name)
            for header_name in parser_state.extracts:
                if not packet.extract(self._program.header(header_name)):
                    return False
            name = parser_state.default
            if parser_state.select is not None:
                selected = packet.read(parser_state.select)
                name = next((c.next_state for c in parser_state.cases if c.value == selected), name)
            self._watch(parser_state, name)
        return True

    def _control(self, nodes: tuple[ir.ControlNode, ...], packet: PacketState) -> None:
        for node in nodes:
            if isinstance(node, ir.ApplyTable):
                self._apply(self._program.table(node.table), packet)
            elif isinstance(node, ir.If):
                holds = self._holds(node.condition, packet)
                self._watch(node, holds)
                self._control(node.then if holds else node.otherwise, packet)
            else:
                self._watch(node, None)
                self._call(self._program.action(node.action), {}, packet)

    def _holds(self, condition: ir.Condition, packet: PacketState) -> bool:
        if not isinstance(condition, ir.Compare):
            return condition.header in packet.valid
        left, left_random = packet.evaluate(condition.left, {})
        right, right_random = packet.evaluate(condition.right, {})
        if left_random or right_random:
            raise ValueError(f"{self._program.name} decides by a random number")
        return COMPARE[condition.comparator](left, right)

    def _apply(self, table: ir.Table, packet: PacketState) -> None:
        key = 0
        for part in table.keys:
            if part.field in packet.random:
                raise ValueError(f"{self._program.name} looks up a random number in {table.name}")
            key = (key << self._program.width_bits(part.field)) | packet.read(part.field)
        index = key >> table.entries.free_bits
        self._watch(ir.ApplyTable(table.name), index < table.entries.count)
        if index < table.entries.count:
            packet.hits.append(table.name)
            action = self._program.action(table.entries.action)
            self._call(action, entry_parameters(table, action, index), packet)
        else:
            packet.misses.append(table.name)
            self._call(self._program.action(table.default_action), {}, packet)

    def _call(self, action: ir.Action, arguments: Mapping[str, int], packet: PacketState) -> None:
        for statement in action.body:
            self._execute(statement, arguments, packet)

    def _execute(self, statement: ir.Statement, arguments: Mapping[str, int], packet: PacketState) -> None:
        self._watch(statement, None)
        match statement:
            case ir.Assign(ref, expression):
                value, random = packet.evaluate(expression, arguments)
                packet.write(ref, value, random=random)
            case ir.SetEgress(port):
                packet.egress, _ = packet.evaluate(port, arguments)
            case ir.Drop():
                packet.dropped = True
            case ir.AddHeader(name, values):
                given = {n: packet.evaluate(e, arguments) for n, e in values}
                packet.valid.add(name)
                for f in self._program.header(name).fields:
                    value, random = given.get(f.name, (0, False))
                    packet.write(ir.FieldRef(name, f.name), value, random=random)
            case ir.RemoveHeader(name):
                packet.valid.discard(name)
            case ir.Hash(ref, algorithm, fields):
                value = self._hashes[algorithm](packet.joined(fields))
                packet.write(ref, value, random=bool(packet.random.intersection(fields)))
            case ir.Random(ref):
                packet.write(ref, 0, random=True)
            case ir.MeterPacket(ref):
                packet.write(ref, ir.METER_GREEN)
            case ir.Recirculate() | ir.Resubmit():
                packet.again = packet.again if isinstance(packet.again, ir.Resubmit) else statement
            case ir.Clone(port):
                packet.sent.append(Sent(port, packet.frame))
            case ir.Multicast(ports):
                packet.ports = ports
            case ir.RunOperator():
                self._operate(statement, packet)
            case ir.Fence():
                pass
            case ir.CountPacket(name, index):
                cells, at = self._cell(index, self._program.counter(name), arguments, packet)
                cells[at] = (cells.get(at, 0) + 1) & (1 << 64) - 1
            case ir.ReadRegister(ref, name, index):
                cells, at = self._cell(index, self._program.register(name), arguments, packet)
                packet.write(ref, cells.get(at, 0))
            case ir.WriteRegister(name, index, expression):
                register = self._program.register(name)
                cells, at = self._cell(index, register, arguments, packet)
                value, random = packet.evaluate(expression, arguments)
                if random:
                    raise ValueError(f"{self._program.name} keeps a random number in {name}")
                cells[at] = value & ((1 << register.width_bits) - 1)

    def _operate(self, statement: ir.RunOperator, packet: PacketState) -> None:
        ref, operator = statement.destination, statement.operator
        if operator.code:
            packet.opaque = True
            return
        result = OPERATORS[operator.name].result(packet.deparse()[0], operator)
        packet.write(ref, packet.read(ref) ^ result, random=ref in packet.random)

    def _cell(
        self, index: ir.Expression, array: ir.Counter | ir.Register, arguments: Mapping[str, int], packet: PacketState
    ) -> tuple[dict[int, int], int]:
        """The cells of an array, and which of them is meant."""
        at, random = packet.evaluate(index, arguments)
        if random:
            raise ValueError(f"{self._program.name} has a random number as an index")
        return self._state[array.name], at % array.size
