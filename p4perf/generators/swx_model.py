"""What all instructions of one program share: where its fields lie, and the fields that SWX needs besides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from p4perf.errors import CapabilityError
from p4perf.generators.analysis import changes_layout, statements, subexpressions, written_fields
from p4perf.generators.program import (
    METADATA,
    Clone,
    Const,
    Expression,
    Field,
    FieldRef,
    Header,
    Multicast,
    ParameterRef,
    PassNumber,
    Program,
    SetEgress,
    Table,
)
from p4perf.generators.swx_flow import EGRESS, Findings, examine, recirculates_by_flag, uses
from p4perf.generators.swx_layout import OPERAND, WORD_BITS, Layout, Place, split_words, whole_bytes

MAX_PORT_BITS = 8
"""A port that is calculated may have so many bits: there have to be as many ports as it has values."""


class Model:
    """One program on its way to SWX.

    Args:
        program: the program.
        packet_bytes: size of its packets, which meters are told.

    Raises:
        CapabilityError: SWX cannot express the program.
    """

    def __init__(self, program: Program, packet_bytes: int) -> None:
        if uses(program, Clone) and _is_changed(program):
            raise CapabilityError(
                "dpdk-swx clones a packet as it is sent, and this program changes packets: its clones would show that "
                "(DPDK 22.11, mirroring_handler)"
            )
        self.program = program
        self.packet_bytes = packet_bytes
        self.findings: Findings = examine(program)
        self.layout = Layout(program, self.findings.loose_reads)
        self.recirculates_by_flag = recirculates_by_flag(program)
        self.clones = tuple(sorted({s.port for s in statements(program) if isinstance(s, Clone)}))
        self.groups = list(dict.fromkeys(s.ports for s in statements(program) if isinstance(s, Multicast) and s.ports))
        self.mirrors = sorted({*self.clones, *(port for group in self.groups for port in group)})
        self.n_ports = _highest_port(program) + 2
        self._helpers: dict[str, str] = {}

    @property
    def drop_port(self) -> int:
        """The last port: what is sent there is dropped."""
        return self.n_ports - 1

    def width_bits(self, ref: FieldRef) -> int:
        """Width of a field of the program, or of an operand of SWX that stands for one, in bits."""
        if ref.header == OPERAND:
            return WORD_BITS
        places = self.layout.places(ref)
        return sum(p.bits for p in places)

    def _helper(self, name: str, bits: int) -> str:
        if name not in self._helpers:
            self._helpers[name] = self.layout.metadata.append(name, bits)
        return self._helpers[name]

    def flag(self, name: str) -> str:
        """A metadata field for something that is decided at the end; zero at the start of every pass."""
        return self._helper(name, 8)

    def temporary(self, n: int) -> str:
        """Temporary field ``n`` of 64 bit."""
        return self._helper(f"swx_temporary_{n}", WORD_BITS)

    @property
    def slot(self) -> str:
        """Counts the copies of a packet."""
        return self._helper("swx_slot", 8)

    @property
    def session(self) -> str:
        """Says to which port a copy goes."""
        return self._helper("swx_session", 16)

    @property
    def pass_number(self) -> str:
        """How often the packet came back."""
        return self._helper("swx_pass", 32)

    @property
    def sum(self) -> str:
        """Where checksums of fields are summed up."""
        if "sum" not in self._helpers:
            self._helpers["sum"] = self.layout.scratch.append("sum", 16)
        return self._helpers["sum"]

    @property
    def checked(self) -> str:
        """The checksum that a header came with."""
        return self._helper("swx_checksum", 16)

    def zeroed(self) -> Iterator[tuple[str, int]]:
        """Metadata fields and what they have to hold at the start of every pass."""
        if EGRESS in self.findings.unset:
            yield self.layout.port_out, self.drop_port
        for f in self.program.metadata:
            if FieldRef(METADATA, f.name) in self.findings.unset:
                yield from ((p.operand, 0) for p in self.layout.places(FieldRef(METADATA, f.name)))
        for name in ("swx_dropped", "swx_again", "swx_group", "swx_slot"):
            if name in self._helpers:
                yield self._helpers[name], 0

    @property
    def needs_pass_number(self) -> bool:
        """Whether the number of the pass is read."""
        return "swx_pass" in self._helpers

    def has(self, flag: str) -> bool:
        """Whether a flag is ever set."""
        return flag in self._helpers

    # Action data

    def arguments(self, action: str) -> list[tuple[str, int, int, int]]:
        """Fields of the action data: name, width in whole bytes, number of the parameter, its lowest bit in there."""
        found = []
        for n, p in enumerate(self.program.action(action).parameters):
            if p.width_bits <= WORD_BITS:
                found.append((p.name, p.width_bits, n, 0))
            else:
                found += [(name, bits, n, word * WORD_BITS) for name, bits, word in split_words(p)]
        return found

    def argument_words(self, action: str, parameter: str) -> list[tuple[str, int, int]]:
        """Names, widths and numbers of the words of a parameter."""
        field = self._parameter(action, parameter)
        return [(field.name, field.width_bits, 0)] if field.width_bits <= WORD_BITS else split_words(field)

    def argument(self, action: str, parameter: str) -> str:
        """Operand of a parameter, of a long one that of its lowest word."""
        return f"t.{self.argument_words(action, parameter)[-1][0]}"

    def parameter_bits(self, action: str, parameter: str) -> int:
        """Width of a parameter, in bits."""
        return self._parameter(action, parameter).width_bits

    def _parameter(self, action: str, parameter: str) -> Field:
        return next(p for p in self.program.action(action).parameters if p.name == parameter)

    # Expressions

    @staticmethod
    def as_field(operand: str) -> FieldRef:
        """An operand of SWX as an expression."""
        return FieldRef(OPERAND, operand)

    @staticmethod
    def fields_in(expression: Expression) -> list[FieldRef]:
        """The fields that an expression reads."""
        return [e for e in subexpressions(expression) if isinstance(e, FieldRef)]

    def constant_part(self, header: Header, place: Place, given: Mapping[str, Expression]) -> int:
        """What is constant in a field of SWX that several fields of a header share."""
        value = 0
        for f in header.fields:
            p = self.layout.places(FieldRef(header.name, f.name))[0]
            constant = given.get(f.name)
            if p.operand == place.operand and isinstance(constant, Const):
                value |= (constant.value & ((1 << p.bits) - 1)) << p.shift
        return value

    # What is hashed, summed, matched

    def scratch_copy(self, fields: tuple[FieldRef, ...], *, align_bits: int) -> list[FieldRef]:
        """Fields of the scratch header for copies of fields, and for zeros that fill them up."""
        widths = [self.width_bits(f) for f in fields]
        if fill := -sum(widths) % align_bits:
            widths.append(fill)
        return self.layout.scratch_fields(widths, align_bits=align_bits)

    def match_fields(self, table: Table) -> tuple[list[tuple[str, int]], list[tuple[str, FieldRef]]]:
        """The match fields of a table (operand, width), and the copies (operand, field) that have to be made before.

        SWX matches fields of one structure, and finds exact matches by a hash only if they lie side by side.
        """
        places = [p for key in table.keys for p in self.layout.places(key.field)]
        structs = [self.layout.struct(key.field) for key in table.keys]
        direct = all(s is structs[0] for s in structs) and all(p.alone for p in places)
        direct &= len({p.operand for p in places}) == len(places)
        if direct and self.program.match_kind(table) == "exact":
            found = [structs[0].struct_field(p.operand) for p in places]
            span = max(f.first + f.bits for f in found) - min(f.first for f in found)
            direct = span == sum(f.bits for f in found)
        if direct:
            return [(p.operand, p.bits) for p in places], []
        fields, copies = [], []
        for n, key in enumerate(table.keys):
            for p in self.layout.places(key.field):
                name = f"swx_key_{table.name}_{n}" + (f"_w{p.word}" if len(self.layout.places(key.field)) > 1 else "")
                operand = self._helper(name, whole_bytes(p.bits))
                fields.append((operand, p.bits))
                copies.append((operand, self.as_field(p.operand) if p.alone else key.field))
        return fields, copies


def _is_changed(program: Program) -> bool:
    """Whether a packet may be sent otherwise than it came."""
    return changes_layout(program) or any(ref.header != METADATA for ref in written_fields(program))


def _highest_port(program: Program) -> int:
    """The highest port that a packet may leave by.

    Raises:
        CapabilityError: a port is calculated, of more bits than there can be ports.
    """
    highest = 0
    for action in program.actions:
        for s in action.body:
            if isinstance(s, Clone):
                highest = max(highest, s.port)
            elif isinstance(s, Multicast):
                highest = max(highest, *s.ports, 0)
            elif isinstance(s, SetEgress):
                highest = max(highest, _highest_value(program, action.name, s.port))
    return highest


def _highest_value(program: Program, action: str, port: Expression) -> int:
    if isinstance(port, Const):
        return port.value
    bits = 32
    if isinstance(port, ParameterRef):
        parameters = program.action(action).parameters
        if port.name == parameters[0].name:
            return max((t.entries.port for t in program.tables if t.entries.action == action), default=0)
        bits = next(p.width_bits for p in parameters if p.name == port.name)
    elif isinstance(port, FieldRef):
        bits = program.width_bits(port)
    elif isinstance(port, PassNumber):
        bits = MAX_PORT_BITS
    if bits > MAX_PORT_BITS:
        raise CapabilityError(
            f"action {action} calculates a port of more than {MAX_PORT_BITS} bit; SWX does not check that there "
            "is such a port"
        )
    return (1 << bits) - 1
