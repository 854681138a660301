"""Where the fields of a program lie in the structures of SWX, and the fields that SWX needs besides.

A field of SWX is a whole number of bytes. Header fields that are not share one, a *container*, with their neighbours;
metadata fields are rounded up, with zeros on top. SWX computes with up to 64 bit: it can copy and match a longer field,
but not write constants or arguments to it. Where a program needs that, its long fields are split into words of 64 bit.

A header that was not extracted points to wherever it was last, metadata keeps what the packet before left, and ``drop``
ends a packet at once. :func:`examine` finds out where instructions are needed that make of that what a
:class:`~p4perf.programs.ir.Program` means, so that no others are written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from p4perf.errors import CapabilityError
from p4perf.programs import analysis, ir
from p4perf.programs.capabilities import OF_OWN_PROGRAMS, constructs
from p4perf.programs.dataflow import PORT, PathState, follow


@dataclass(slots=True)
class Findings:
    """What the instructions have to take care of."""

    unset: set[ir.FieldRef] = field(default_factory=set)
    """Metadata that may be read before it was written; ``PORT`` if no egress port may have been set."""
    maybe_invalid: set[str] = field(default_factory=set)
    """Headers that may be read or written while they are not valid."""
    unsafe_reads: set[ir.FieldRef] = field(default_factory=set)
    """Fields that may be read while their header is not valid."""
    unsafe_writes: set[tuple[str, ir.FieldRef]] = field(default_factory=set)
    """Actions and fields that they may write while the header is not valid."""
    read_again: set[ir.FieldRef] = field(default_factory=set)
    """Fields that may be read after they were written, all while their header is not valid."""
    flagged_drops: set[str] = field(default_factory=set)
    """Actions that drop a packet after which something is still to be seen, so that they may not end it."""
    unused: frozenset[ir.FieldRef] = frozenset()
    """Metadata that is left out, with the statements that write it."""
    edges: dict[tuple[str, str], PathState] = field(default_factory=dict)
    """What is known when the parser goes from a state to another one."""


def parser_order(program: ir.Program) -> list[ir.ParserState]:
    """The states that can be reached, each after all those that lead to it."""

    def following(name: str) -> Iterable[str]:
        """The last one first, so that a state stands right before its default or only case."""
        state = program.state(name)
        return (*reversed([c.next_state for c in state.cases]), state.default)

    def comes_back(name: str) -> None:
        if not is_general(program):
            raise CapabilityError(f"dpdk-swx has no loops of parser states, and {name} is in one")

    order = analysis.post_order(following, comes_back)
    return [program.state(name) for name in reversed(order)]


_SHOWS = (ir.CountPacket, ir.WriteRegister, ir.Clone, ir.ApplyTable)
"""What can be noticed although the packet is dropped; tables count their hits."""


def _flagged_drops(program: ir.Program) -> set[str]:
    """Actions with a drop after which something can still be noticed, wherever they are run."""
    if uses(program, ir.Clone):
        return {a.name for a in program.actions if any(isinstance(s, ir.Drop) for s in a.body)}
    return {name for step in follow(program).steps if isinstance(step.what, _SHOWS) for name in step.state.droppers}


def examine(program: ir.Program) -> Findings:
    flagged = _flagged_drops(program)
    found = follow(program, drop_ends=lambda action: action not in flagged)
    findings = Findings(flagged_drops=flagged, edges=found.edges)
    order = parser_order(program)
    reads, writes = found.reads, found.writes
    if is_general(program):
        findings.unset.add(PORT)
        findings.unused = analysis.unused_metadata(program)
        findings.maybe_invalid |= {s.header for s in analysis.statements(program) if isinstance(s, ir.AddHeader)}
        reads, writes = [*reads, *found.parser_reads], [*writes, *found.parser_writes]
    for state in () if is_general(program) else order:
        if (selected := found.selects.get(state.name)) is None:
            continue
        if selected.field.header == ir.METADATA:
            findings.unset.add(selected.field)
        elif selected.field.header not in selected.state.valid:
            raise CapabilityError(
                f"parser state {state.name} selects on {selected.field.header}.{selected.field.field}, "
                "which may not be there"
            )
    for read in reads:
        if read.field.header == ir.METADATA:
            if read.field not in read.state.assigned:
                findings.unset.add(read.field)
        elif read.field.header not in read.state.valid:
            findings.maybe_invalid.add(read.field.header)
            findings.unsafe_reads.add(read.field)
            if read.field in read.state.lost_writes:
                findings.read_again.add(read.field)
    for write in writes:
        if write.field.header not in (ir.METADATA, *write.state.valid):
            findings.maybe_invalid.add(write.field.header)
            findings.unsafe_writes.add((write.action or "", write.field))
    if found.end is not None and PORT not in found.end.assigned:
        findings.unset.add(PORT)
    return findings


def is_general(program: ir.Program) -> bool:
    """Whether it has what no program of components has, so that it is written without looking for short cuts."""
    return any(construct in OF_OWN_PROGRAMS for construct in constructs(program))


def uses(program: ir.Program, kind: type) -> bool:
    return any(isinstance(s, kind) for s in analysis.statements(program))


WORD_BITS = 64

SCRATCH = "swx"
"""Header that no packet carries: big-endian memory, in which what is hashed or summed is laid out."""


OPERAND = ""
"""Stands for a header in references to an operand of SWX itself, which is named instead of the field."""


@dataclass(frozen=True, slots=True)
class FieldPlace:
    """Bits of a field of SWX: ``bits`` of them, ``shift`` above its lowest; ``field_bits`` is its whole width.

    ``word`` counts the words of 64 bit of a long field that was split, from its lowest one. The bits are ``alone`` if
    all others of the field are always zero.
    """

    operand: str
    field_bits: int
    bits: int
    shift: int = 0
    word: int = 0
    alone: bool = True


@dataclass(frozen=True, slots=True)
class StructField:
    name: str
    bits: int
    first: int
    """Offset in the structure, in bits."""


def whole_bytes(bits: int) -> int:
    return -(-bits // 8) * 8


def split_words(field: ir.Field) -> list[tuple[str, int, int]]:
    """Name, width and number of the words of a field, the most significant one first; a short field is one word."""
    if field.width_bits <= WORD_BITS:
        return [(field.name, field.width_bits, 0)]
    count = -(-field.width_bits // WORD_BITS)
    return [
        (f"{field.name}_w{n}", min(WORD_BITS, field.width_bits - n * WORD_BITS), n) for n in range(count - 1, -1, -1)
    ]


def splits_long_fields(program: ir.Program) -> bool:
    """Whether something has to be done with fields of more than 64 bit that SWX cannot do with the whole field."""
    checked: tuple[ir.FieldRef, ...] = (*program.verified, *program.updated)
    widths = [f.width_bits for f in program.metadata]
    widths += [p.width_bits for name in analysis.used_actions(program) for p in program.action(name).parameters]
    widths += [f.width_bits for c in checked for f in program.header(c.header).fields]
    for statement in analysis.statements(program):
        match statement:
            case ir.AddHeader(header):
                widths += [f.width_bits for f in program.header(header).fields]
            case ir.Assign(ref, value):
                both = {program.width_bits(ref), program.width_bits(value) if isinstance(value, ir.FieldRef) else 0}
                widths += both if len(both) > 1 else ()
            case ir.Hash(ref, _, fields):
                widths += map(program.width_bits, (ref, *fields))
            case _ if (written := analysis.destination(statement)) is not None:
                widths.append(program.width_bits(written))
    return max(widths, default=0) > WORD_BITS


class StructLayout:
    """The fields of one structure of SWX, and where the fields of the program are in it."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.fields: list[StructField] = []
        self.places: dict[str, tuple[FieldPlace, ...]] = {}

    @property
    def bits(self) -> int:
        return self.fields[-1].first + self.fields[-1].bits if self.fields else 0

    def struct_field(self, operand: str) -> StructField:
        for f in self.fields:
            if f"{self.prefix}.{f.name}" == operand:
                return f
        raise KeyError(operand)

    def append(self, name: str, bits: int) -> str:
        """Append a field of SWX; its operand. The name gets a number if it is taken."""
        taken = {f.name for f in self.fields}
        free = next(n for n in (name, *(f"{name}_{i}" for i in range(1, len(taken) + 2))) if n not in taken)
        self.fields.append(StructField(free, bits, self.bits))
        return f"{self.prefix}.{free}"

    def add(self, field: ir.Field, *, split: bool) -> None:
        """Append a field that shares its bytes with none; zeros fill it up to whole bytes."""
        words = split_words(field) if split else [(field.name, field.width_bits, 0)]
        self.places[field.name] = tuple(
            FieldPlace(self.append(name, whole_bytes(bits)), whole_bytes(bits), bits, word=word)
            for name, bits, word in words
        )

    def add_run(self, run: list[ir.Field], *, split: bool) -> None:
        """Append a field, or one for several that are whole bytes together only."""
        if len(run) == 1:
            self.add(run[0], split=split)
            return
        bits = sum(f.width_bits for f in run)
        operand = self.append(f"{run[0].name}_to_{run[-1].name}", bits)
        above = bits
        for f in run:
            above -= f.width_bits
            self.places[f.name] = (FieldPlace(operand, bits, f.width_bits, above, alone=False),)


def header_layout(header: ir.Header, *, split: bool) -> StructLayout:
    """The structure of a header: as on the wire, fields that are not whole bytes together with their neighbours."""
    layout = StructLayout(f"h.{header.name}")
    for run in _runs(header.fields, 8):
        layout.add_run(run, split=split)
    if not header.fields:
        layout.append("swx_nothing", 8)
    return layout


def _runs(fields: Iterable[ir.Field], align_bits: int) -> Iterator[list[ir.Field]]:
    """Fields in order, cut wherever one ends at a multiple of so many bits."""
    run: list[ir.Field] = []
    for f in fields:
        run.append(f)
        if sum(part.width_bits for part in run) % align_bits == 0:
            yield run
            run = []


class PipelineLayout:
    """All structures of a program; ``zeroed`` fields have to be zero where their header is not valid."""

    def __init__(
        self, program: ir.Program, zeroed: Iterable[ir.FieldRef], unused: frozenset[ir.FieldRef] = frozenset()
    ) -> None:
        self.split = (
            is_general(program)
            or splits_long_fields(program)
            or any(program.width_bits(ref) > WORD_BITS for ref in zeroed)
        )
        self.headers = {h.name: header_layout(h, split=self.split) for h in program.headers}
        self.metadata = StructLayout("m")
        self.scratch = StructLayout(f"h.{SCRATCH}")
        # What a hash is written to comes first: 22.11 cuts the offset of that operand to 8 bit, in bits, not bytes.
        hashed = {s.destination for s in analysis.statements(program) if isinstance(s, ir.Hash)}
        self.port_in = self.metadata.append("swx_port_in", 32)
        self.port_out = self.metadata.append("swx_port_out", 32)
        self.hash_result = self.metadata.append("swx_hash", 32) if hashed else ""
        for f in sorted(program.metadata, key=lambda f: ir.FieldRef(ir.METADATA, f.name) not in hashed):
            if ir.FieldRef(ir.METADATA, f.name) not in unused:
                self.metadata.add(f, split=self.split)

    def struct(self, ref: ir.FieldRef) -> StructLayout:
        if ref.header == ir.METADATA:
            return self.metadata
        return self.scratch if ref.header == SCRATCH else self.headers[ref.header]

    def operand_bits(self, operand: str) -> int:
        """Width of a field of SWX, in bits."""
        for struct in (self.metadata, self.scratch, *self.headers.values()):
            if operand.startswith(f"{struct.prefix}."):
                return struct.struct_field(operand).bits
        raise KeyError(operand)

    def places(self, ref: ir.FieldRef) -> tuple[FieldPlace, ...]:
        """Where a field lies: one place, or one a word, the most significant first."""
        if ref.header == OPERAND:
            return (FieldPlace(ref.field, WORD_BITS, WORD_BITS),)
        places = self.struct(ref).places[ref.field]
        if not places[0].alone and places[0].field_bits > WORD_BITS:
            raise CapabilityError(
                f"{ref.header}.{ref.field} does not begin and end with a byte, and {places[0].field_bits} bit lie "
                f"between the fields around it that do: SWX reads up to {WORD_BITS}"
            )
        return places


HELPERS = {
    **dict.fromkeys(("swx_dropped", "swx_again", "swx_group"), 8),  # what is decided at the end
    "swx_exit": 8,  # whether the block of the control flow is over
    "swx_leave": 32,  # the port as egress knows it
    "swx_rounds": 16,  # of a loop of parser states
    "swx_slot": 8,  # counts the copies of a packet
    "swx_session": 16,  # to which port a copy goes
    "swx_pass": 32,  # how often the packet came back
    "swx_checksum": 16,  # the one that a header came with
}
"""Metadata fields of p4perf's own and their widths in bits."""

MAX_PORT = ir.MAX_PORT

MAX_PORT_BITS = 8
"""Widest port that may be calculated: the pipeline needs as many ports as it has values."""


class Model:
    """One program as SWX sees it; meters get the size of its packets."""

    def __init__(self, program: ir.Program, packet_bytes: int) -> None:
        changed = analysis.changes_layout(program) or any(
            ref.header != ir.METADATA for ref in analysis.written_fields(program)
        )
        if changed and uses(program, ir.Clone):
            raise CapabilityError(
                "dpdk-swx clones a packet as it is sent, and this program changes packets: its clones would show that "
                "(DPDK 22.11, mirroring_handler)"
            )
        self.program = program
        self.packet_bytes = packet_bytes
        self.findings: Findings = examine(program)
        self.layout = PipelineLayout(program, self.findings.unsafe_reads, self.findings.unused)
        # Recirculation waits for the end then: SWX would take the next packet for one that comes back.
        self.general = is_general(program)
        self.recirculates_by_flag = uses(program, ir.Recirculate) and (self.general or uses(program, ir.Drop))
        self.clones = tuple(sorted({s.port for s in analysis.statements(program) if isinstance(s, ir.Clone)}))
        self.groups = list(
            dict.fromkeys(s.ports for s in analysis.statements(program) if isinstance(s, ir.Multicast) and s.ports)
        )
        self.mirrors = sorted({*self.clones, *(port for group in self.groups for port in group)})
        self.n_ports = (MAX_PORT if self.general else max(_ports(program), default=0)) + 2
        self.ahead: dict[str, tuple[StructField, ...]] = {}
        self._helpers: dict[str, str] = {}

    @property
    def drop_port(self) -> int:
        """The last port: what is sent there is dropped."""
        return self.n_ports - 1

    def width_bits(self, ref: ir.FieldRef) -> int:
        """Width of a field of the program, or of an operand of SWX that stands for one, in bits."""
        if ref.header == OPERAND:
            return WORD_BITS
        places = self.layout.places(ref)
        return sum(p.bits for p in places)

    def helper(self, name: str, bits: int = 0) -> str:
        """A metadata field of p4perf's own: one of :data:`HELPERS`, or another of that width."""
        if name not in self._helpers:
            self._helpers[name] = self.layout.metadata.append(name, bits or HELPERS[name])
        return self._helpers[name]

    @property
    def sum(self) -> str:
        """Where checksums of fields are summed up."""
        if "sum" not in self._helpers:
            self._helpers["sum"] = self.layout.scratch.append("sum", 16)
        return self._helpers["sum"]

    def zeroed(self) -> Iterator[tuple[str, int]]:
        """Metadata fields and what they have to hold at the start of every pass."""
        if PORT in self.findings.unset:
            yield self.layout.port_out, self.drop_port
        for f in self.program.metadata:
            if ir.FieldRef(ir.METADATA, f.name) in self.findings.unset - self.findings.unused:
                yield from ((p.operand, 0) for p in self.layout.places(ir.FieldRef(ir.METADATA, f.name)))
        for name in ("swx_dropped", "swx_again", "swx_group", "swx_slot", "swx_exit", "swx_rounds"):
            if name in self._helpers:
                yield self._helpers[name], 0

    def bytes_ahead(self, first: int, end: int) -> tuple[str, str]:
        """A header for bytes behind the place of the parser, and its field for those from ``first`` on."""
        name = f"swx_ahead_{first}_{end}"
        before = (StructField("before", 8 * first, 0),) if first else ()
        self.ahead[name] = (*before, StructField("at", 8 * (end - first), 8 * first))
        return name, "at"

    def has(self, helper: str) -> bool:
        return helper in self._helpers

    # Action data

    def arguments(self, action: str) -> list[tuple[str, int, int, int]]:
        """Fields of the action data: name, width in whole bytes, number of the parameter, its lowest bit in there."""
        parameters = enumerate(self.program.action(action).parameters)
        return [(name, bits, n, word * WORD_BITS) for n, p in parameters for name, bits, word in split_words(p)]

    # Expressions

    def constant_segment(self, header: ir.Header, place: FieldPlace, given: Mapping[str, ir.Expression]) -> int:
        """What is constant in a field of SWX that several fields of a header share."""
        value = 0
        for f in header.fields:
            p = self.layout.places(ir.FieldRef(header.name, f.name))[0]
            constant = given.get(f.name)
            if p.operand == place.operand and isinstance(constant, ir.Const):
                value |= (constant.value & ((1 << p.bits) - 1)) << p.shift
        return value

    # What is hashed, summed, matched

    def scratch_copy(self, fields: tuple[ir.FieldRef, ...], *, align_bits: int) -> list[ir.FieldRef]:
        """Fields of the scratch header, one behind the other, for copies of fields and for zeros that fill them up.

        Args:
            align_bits: every field of SWX begins and ends at a multiple of it; 8, or 16 for what is summed.
        """
        scratch, widths = self.layout.scratch, [self.width_bits(f) for f in fields]
        if fill := -sum(widths) % align_bits:
            widths.append(fill)
        found = [ir.Field(f"part_{n}", width) for n, width in enumerate(widths, len(scratch.places))]
        for run in _runs(found, align_bits):
            bits = sum(f.width_bits for f in run)
            if len(run) > 1 and bits > WORD_BITS:
                raise CapabilityError(
                    f"dpdk-swx sums and hashes fields of {WORD_BITS} bit, and {bits} bit lie between two boundaries of "
                    f"{align_bits} bit"
                )
            scratch.add_run(run, split=True)
        return [ir.FieldRef(SCRATCH, f.name) for f in found]

    def match_fields(self, table: ir.Table) -> tuple[list[tuple[str, int]], list[tuple[str, FieldPlace]]]:
        """The match fields of a table (operand, width), and the copies (operand, place) that have to be made before.

        SWX matches fields of one structure, and finds exact matches by a hash only if they lie side by side.
        """
        places = [p for key in table.keys for p in self.layout.places(key.field)]
        if not all(p.bits for p in places):
            raise CapabilityError(f"dpdk-swx has no keys of 0 bits, which {table.label or table.name} has")
        structs = [self.layout.struct(key.field) for key in table.keys]
        direct = all(s is structs[0] for s in structs) and all(p.alone for p in places)
        direct &= len({p.operand for p in places}) == len(places)
        if direct and places and self.program.match_kind(table) == "exact":
            found = [structs[0].struct_field(p.operand) for p in places]
            span = max(f.first + f.bits for f in found) - min(f.first for f in found)
            direct = span == sum(f.bits for f in found)
        if direct:
            return [(p.operand, p.bits) for p in places], []
        fields, copies = [], []
        for n, key in enumerate(table.keys):
            for p in self.layout.places(key.field):
                name = f"swx_key_{table.name}_{n}" + (f"_w{p.word}" if len(self.layout.places(key.field)) > 1 else "")
                operand = self.helper(name, whole_bytes(p.bits))
                fields.append((operand, p.bits))
                copies.append((operand, p))
        return fields, copies


def _ports(program: ir.Program) -> Iterator[int]:
    """The ports by which actions send packets; of one that is calculated or stands in entries the highest."""
    for action in program.actions:
        for statement in action.body:
            match statement:
                case ir.Clone(port):
                    yield port
                case ir.Multicast(ports):
                    yield from ports
                case ir.SetEgress(port):
                    yield _highest_value(program, action.name, port)


def _highest_value(program: ir.Program, action: str, port: ir.Expression) -> int:
    if isinstance(port, ir.Const):
        return port.value
    bits = 32
    if isinstance(port, ir.ParameterRef):
        parameters = program.action(action).parameters
        if port.name == parameters[0].name:
            return max((t.rule.port for t in program.tables if t.rule.action == action), default=0)
        bits = next(p.width_bits for p in parameters if p.name == port.name)
    elif isinstance(port, ir.FieldRef):
        bits = program.width_bits(port)
    elif isinstance(port, ir.PassNumber):
        bits = MAX_PORT_BITS
    if bits > MAX_PORT_BITS:
        raise CapabilityError(
            f"action {action} calculates a port of more than {MAX_PORT_BITS} bit; SWX does not check that there "
            "is such a port"
        )
    return (1 << bits) - 1
