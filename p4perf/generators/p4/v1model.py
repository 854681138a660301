"""P4_16 for v1model: the architecture of bmv2 (the behavioural model, ``simple_switch``), and its relatives.

Differences between v1model and the meaning of a :class:`~p4perf.programs.ir.Program`, and what is done:

* After a parser error, and after a wrong checksum, v1model continues with ingress; the ingress control tests and drops.
* ``mark_to_drop`` is an egress port that a later assignment overrides. Where something after a drop can set the port,
  drops are kept in a metadata flag that is tested last.
* The egress port is zero at first, which is a port. Where a packet can pass without any port set, it starts as dropped.
* Metadata is not zero by P4_16; fields that are read are set to zero first.
* An index beyond an array does nothing in bmv2; it is masked where it can be.
* ``resubmit`` takes effect even for dropped packets, and ``recirculate`` works in egress only: both wait for the end of
  ingress, where it is known whether the packet was dropped. The number of the pass is in field list 0.
* A packet can have one session of clones: the clones of one action share it, by a multicast group if they are several.
  Clones pass the deparser, which would update their checksums: such programs are refused.
* A table cannot be applied twice on one path, and has one lpm key at most: p4c-bm2-ss says so.

Only what a program needs of this is generated, because every statement costs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import ClassVar

from typing_extensions import override

from p4perf.errors import CapabilityError
from p4perf.generators.base import GeneratedFile, render
from p4perf.generators.p4 import writer as p4
from p4perf.generators.p4.base import P4Generator
from p4perf.generators.p4.writer import FlowFacts, Writer
from p4perf.programs import ir
from p4perf.programs.analysis import reorders, statements
from p4perf.programs.capabilities import Capabilities
from p4perf.programs.entries import entry_rows, key_masks
from p4perf.programs.operators import HASH_BITS

_ALGORITHMS = {"crc16": "crc16", "crc32": "crc32", "checksum16": "csum16"}

_CONST: Mapping[ir.MatchKind, str] = {"exact": "0x{}", "lpm": "0x{} &&& {mask:#x}", "ternary": "0x{} &&& {mask:#x}"}
_COMMAND: Mapping[ir.MatchKind, str] = {"exact": "0x{}", "lpm": "0x{}/{prefix}", "ternary": "0x{}&&&{mask:#x}"}

MAX_CONST_ENTRIES = 1024
"""Entries of one table that stand in the P4 text, where they do; a table with more gets them at run time."""

MAX_CONST_BYTES = 1 << 16
"""So much action data of one table stands in the text: p4c takes ten minutes for the 2 MB of mat/action-data."""

MAX_CONST_LPM_BITS = 64
"""p4c-bm2-ss 1.2.3.7 refuses the masks of wider lpm keys in the text ("invalid mask for LPM key")."""

PASS_BITS = 32


class V1Writer(Writer):
    """v1model as bmv2 takes it.

    A packet that is to go through again is marked in a metadata field: at the end of ingress it is known whether it
    was dropped, and recirculation is possible in egress only. The number of the pass is a metadata field that both
    preserve (field list 0).
    """

    port_bits: ClassVar[int] = 9
    port_field: ClassVar[str] = "standard_metadata.egress_spec"
    drop_now: ClassVar[str] = "mark_to_drop(standard_metadata);"

    def __init__(self, program: ir.Program, flow: FlowFacts) -> None:
        super().__init__(program, flow)
        multicasts = [s.ports for s in statements(program) if isinstance(s, ir.Multicast) and s.ports]
        clones = list(dict.fromkeys(ports for action in program.actions if (ports := _clone_ports(action))))
        copied = dict.fromkeys([*multicasts, *(ports for ports in clones if len(ports) > 1)])
        self.groups: dict[tuple[int, ...], int] = {ports: n for n, ports in enumerate(copied, 1)}
        self.sessions: dict[tuple[int, ...], int] = {ports: n for n, ports in enumerate(clones, 1)}

    @override
    def keeps_drops(self) -> bool:
        return self.flow.revived or (self.flow.again and self.flow.drops)

    @override
    def pass_number(self) -> p4.Typed | None:
        return p4.Typed(self.flag("passes"), PASS_BITS)

    @property
    def passes(self) -> str | None:
        """The metadata field that counts passes, if anything asks for it."""
        return self.flag("passes") if self.flow.counts_passes else None

    def count(self) -> list[str]:
        """The statement that counts a pass, if anything asks for the number."""
        return [f"{self.passes} = {self.passes} + {PASS_BITS}w1;"] if self.passes else []

    @override
    def extra_metadata(self) -> Iterator[str]:
        yield from super().extra_metadata()
        if self.passes:
            kept = "@field_list(0) " if self.flow.again else ""
            yield f"{kept}bit<{PASS_BITS}> {self.passes.removeprefix('meta.')}"

    @override
    def flags(self) -> Iterator[str]:
        yield from super().flags()
        if self.flow.resubmits:
            yield self.flag("resubmitted")
        if self.flow.recirculates:
            yield self.flag("recirculated")

    def checksum_fields(self, checksum: ir.FieldRef) -> list[str]:
        """What a checksum is calculated over: its own field counts as zero, and is left out where that is the same."""
        texts, offset = [], 0
        for f in self.program.header(checksum.header).fields:
            if f.name != checksum.field:
                texts.append(self.field(ir.FieldRef(checksum.header, f.name)))
            elif offset % 16:
                texts.append("16w0")
            offset += f.width_bits
        return texts or ["16w0"]

    def epilogue(self) -> Iterator[str]:
        """What happens at the end of the control."""
        branches: list[tuple[str, list[str]]] = []
        if self.drop_flag:
            branches.append((f"{self.drop_flag} == 1", [self.drop_now]))
        if self.flow.resubmits:
            resubmit = [*self.count(), "resubmit_preserving_field_list(0);"]
            branches.append((f"{self.flag('resubmitted')} == 1", resubmit))
        if self.flow.recirculates:
            lines = []
            if self.flow.may_lack_port:
                lines.append(f"{self.port_field} = {self.port_bits}w0;")
            if self.groups:
                lines.append("standard_metadata.mcast_grp = 0;")
            if lines:
                branches.append((f"{self.flag('recirculated')} == 1", lines))
        yield from p4.alternatives(branches)

    # Statements -------------------------------------------------------------------------------------------------------

    @override
    def effect(self, statement: ir.Statement, position: int, action: ir.Action, scope: p4.Scope) -> Iterator[str]:
        match statement:
            case ir.SetEgress(port):
                yield f"{self.port_field} = {p4.expression_text(scope, port, self.port_bits)};"
            case ir.Hash(ref, algorithm, fields):
                to = self.scope[ref]
                bits = min(to.width_bits, HASH_BITS[algorithm])
                data = ", ".join(self.field(f) for f in fields)
                yield (
                    f"hash({to.text}, HashAlgorithm.{_ALGORITHMS[algorithm]}, {to.width_bits}w0, "
                    f"{{ {data} }}, {p4.constant_text(1 << bits, bits + 1)});"
                )
            case ir.MeterPacket(ref, meter, index):
                at = self.index(scope, index, self.program.meter(meter).size)
                yield f"{p4.p4_name(meter)}.execute_meter({at}, {self.field(ref)});"
            case ir.ReadRegister(ref, name, index):
                register, bits = self.program.register(name), self.scope[ref].width_bits
                read = f"{p4.p4_name(name)}.read({{}}, {self.index(scope, index, register.size)});"
                if register.width_bits == bits:
                    yield read.format(self.field(ref))
                else:
                    yield from self.by_variable(ref, register.width_bits, position, action, read.format)
            case ir.Random(ref):
                to = self.scope[ref]
                yield f"random({to.text}, {to.width_bits}w0, {p4.constant_text(-1, to.width_bits)});"
            case ir.Recirculate():
                yield f"{self.flag('recirculated')} = 1;"
            case ir.Resubmit():
                yield f"{self.flag('resubmitted')} = 1;"
            case ir.Clone():
                if not any(isinstance(s, ir.Clone) for s in action.body[position + 1 :]):
                    yield f"clone(CloneType.I2E, {p4.constant_text(self.sessions[_clone_ports(action)], 32)});"
            case ir.Multicast(ports):
                yield f"standard_metadata.mcast_grp = {p4.constant_text(self.groups.get(ports, 0), 16)};"
            case _:
                yield from super().effect(statement, position, action, scope)

    def nodes(self) -> Iterator[tuple[int, int, list[int]]]:
        """The nodes of the multicast groups: group, replication, ports. A port that comes again is in one more node."""
        for ports, group in self.groups.items():
            for n in range(max(map(ports.count, ports))):
                yield group, n, [port for port in dict.fromkeys(ports) if ports.count(port) > n]

    # Entries ----------------------------------------------------------------------------------------------------------

    @override
    def is_const(self, table: ir.Table) -> bool:
        program, count = self.program, table.entries.count
        wide = program.match_kind(table) == "lpm" and program.key_bits(table) > MAX_CONST_LPM_BITS
        data_bytes = count * program.action(table.rule.action).data_bits // 8
        return 0 < count <= MAX_CONST_ENTRIES and data_bytes <= MAX_CONST_BYTES and not wide

    @override
    def size(self, table: ir.Table) -> int | None:
        return None if self.is_const(table) else super().size(table)

    def const_rows(self, table: ir.Table) -> Iterator[str]:
        """The entries that stand in the text."""
        return entry_rows(self.program, table, partial(self._const_row, table))

    def _const_row(self, table: ir.Table, keys: Sequence[str], parameters: Sequence[str]) -> str:
        texts = self.key_texts(table, keys, _CONST)
        return render("p4/entry_row.j2", action=p4.p4_name(table.rule.action), keys=texts, parameters=parameters)

    def key_texts(self, table: ir.Table, digits: Sequence[str], forms: Mapping[ir.MatchKind, str]) -> list[str]:
        """The keys of a row of entries, in the form of their kind of match: ``0x{}/{prefix}``, ``0x{}&&&{mask:#x}``."""
        keys = zip(table.keys, digits, key_masks(self.program, table), strict=True)
        return [forms[key.match_kind].format(d, prefix=m.prefix_bits, mask=m.mask) for key, d, m in keys]

    @property
    def added(self) -> list[ir.Table]:
        """The tables that get entries at run time."""
        return [t for t in self.program.tables if t.entries.count and not self.is_const(t)]

    def command_file(self, stem: str) -> str | None:
        """The file for what has to be done at run time; None if that is nothing."""
        name = "commands.txt" if stem == "program" else f"{stem}-commands.txt"
        return name if self.groups or self.sessions or self.added else None

    @override
    def companions(self, stem: str) -> tuple[GeneratedFile, ...]:
        if (file := self.command_file(stem)) is None:
            return ()
        largest = max((t.entries.count for t in self.added), default=0)
        return (GeneratedFile(file, p4.Pieces(self.commands), largest),)

    def commands(self) -> Iterator[str]:
        """The content of the command file."""
        yield render("p4/commands.j2", groups=self.groups, nodes=list(self.nodes()), sessions=self.sessions)
        for table in self.added:
            yield from entry_rows(self.program, table, partial(self._command_row, table))

    def _command_row(self, table: ir.Table, keys: Sequence[str], parameters: Sequence[str]) -> str:
        """The command that adds an entry; ternary tables want a priority."""
        return render(
            "p4/command_row.j2",
            table=p4.p4_name(table.name),
            action=p4.p4_name(table.rule.action),
            keys=self.key_texts(table, keys, _COMMAND),
            parameters=parameters,
            priority=self.program.match_kind(table) == "ternary",
        )


def _clone_ports(action: ir.Action) -> tuple[int, ...]:
    return tuple(s.port for s in action.body if isinstance(s, ir.Clone))


class RuntimeV1Writer(V1Writer):
    """All entries are in the commands."""

    @override
    def is_const(self, table: ir.Table) -> bool:
        return False


MAX_PORT = 510
"""Highest port; 511 is the one that stands for a drop."""

MAX_RANDOM_BITS = 64
"""Widest random number: bmv2 draws 64 bit."""

CAPABILITIES = Capabilities(
    owner="v1model",
    missing={"repeated table": "p4c-bm2-ss cannot apply a table twice on one path; use one table for each"},
)


class V1Model(P4Generator):
    """Renders the programs for bmv2, and ``commands.txt`` for what ``simple_switch_CLI`` has to do."""

    name = "v1model"
    summary = "P4_16 for v1model (bmv2)"
    title = "v1model"
    template = "p4/v1model.p4.j2"
    capabilities = CAPABILITIES
    max_port = MAX_PORT
    compilers: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("p4test", "{source}"),
        ("p4c-bm2-ss", "--std", "p4-16", "-o", "{output}.json", "{source}"),
    )
    writer_class = V1Writer

    @override
    def check(self, program: ir.Program, flow: FlowFacts) -> None:
        for table in program.tables:
            if sum(key.match_kind == "lpm" for key in table.keys) > 1:
                raise CapabilityError(f"{self.name} takes one lpm key in a table, and {table.name} has more")
        if flow.cloning_actions > 1:
            raise CapabilityError(
                f"a packet can meet {flow.cloning_actions} actions with clones, but bmv2 has one session of clones"
            )
        if flow.cloning_actions and program.updated:
            raise CapabilityError("bmv2 updates the checksums of clones, which are to leave as they came")
        if flow.cloning_actions and reorders(program):
            raise CapabilityError("bmv2 deparses clones as all packets, and this deparser would change them")
        for statement in statements(program):
            if isinstance(statement, ir.Random) and program.width_bits(statement.destination) > MAX_RANDOM_BITS:
                raise CapabilityError(f"bmv2 draws random numbers of at most {MAX_RANDOM_BITS} bit")


class RuntimeV1Model(V1Model):
    """The same programs, with the entries of all tables in the commands: for a target, however many there are.

    p4c-bm2-ss 1.2.3.7 takes half a minute for a thousand entries in the text.
    """

    writer_class = RuntimeV1Writer
