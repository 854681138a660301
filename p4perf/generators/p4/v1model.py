"""P4_16 for v1model: the architecture of bmv2 (the behavioural model, ``simple_switch``), and its relatives' base.

Differences between v1model and the meaning of a :class:`~p4perf.generators.program.Program`, and what is done:

* After a parser error, and after a wrong checksum, v1model goes on with ingress; the ingress control tests and drops.
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
from typing import Any, ClassVar

from p4perf.errors import CapabilityError
from p4perf.generators.analysis import statements
from p4perf.generators.base import GeneratedFile
from p4perf.generators.capabilities import Capabilities
from p4perf.generators.entries import entry_rows, key_masks
from p4perf.generators.p4.base import MAX_CONST_BYTES, MAX_CONST_ENTRIES, P4Generator, Pieces, RowText
from p4perf.generators.p4.flow import Flow
from p4perf.generators.p4.names import p4_name
from p4perf.generators.p4.v1_writer import V1Writer
from p4perf.generators.p4.writer import Writer
from p4perf.generators.program import Program, Random, Table
from p4perf.generators.rendering import render

MAX_PORT = 510
"""Highest port; 511 is the one that stands for a drop."""

MAX_CONST_LPM_BITS = 64
"""p4c-bm2-ss 1.2.3.7 refuses the masks of wider lpm keys in the text ("invalid mask for LPM key")."""

MAX_RANDOM_BITS = 64
"""Widest random number: bmv2 draws 64 bit."""

CAPABILITIES = Capabilities(
    owner="v1model",
    missing={
        "repeated table": "p4c-bm2-ss cannot apply a table twice on one path; use one table for each",
    },
)


class V1Model(P4Generator):
    """Renders the programs for bmv2, and ``commands.txt`` for what ``simple_switch_CLI`` has to do."""

    name = "v1model"
    summary = "P4_16 for v1model (bmv2)"
    title = "v1model"
    template = "p4/v1model.p4.j2"
    capabilities: ClassVar[Capabilities] = CAPABILITIES
    max_port: ClassVar[int] = MAX_PORT
    compilers: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("p4test", "{source}"),
        ("p4c-bm2-ss", "--std", "p4-16", "-o", "{output}.json", "{source}"),
    )
    writer_class: ClassVar[type[V1Writer]] = V1Writer
    command_files: ClassVar[Mapping[str, str]] = {"program": "commands.txt", "baseline": "baseline-commands.txt"}

    def writer(self, program: Program, flow: Flow) -> Writer:
        """The writer of this dialect."""
        return self.writer_class(program, flow)

    def check(self, program: Program, flow: Flow) -> None:
        """Refuse what only a look at the whole program shows."""
        for table in program.tables:
            if sum(key.match_kind == "lpm" for key in table.keys) > 1:
                raise CapabilityError(f"{self.name} takes one lpm key in a table, and {table.name} has more")
        if flow.cloning_actions > 1:
            raise CapabilityError(
                f"a packet can meet {flow.cloning_actions} actions with clones, but bmv2 has one session of clones"
            )
        if flow.cloning_actions and program.updated:
            raise CapabilityError("bmv2 updates the checksums of clones, which are to leave as they came")
        if flow.cloning_actions and _reorders(program):
            raise CapabilityError("bmv2 deparses clones as all packets, and this deparser would change them")
        for statement in statements(program):
            if isinstance(statement, Random) and program.width_bits(statement.destination) > MAX_RANDOM_BITS:
                raise CapabilityError(f"bmv2 draws random numbers of at most {MAX_RANDOM_BITS} bit")

    def context(self, stem: str, program: Program, writer: Writer) -> Mapping[str, Any]:
        """What the templates of v1model and its relatives ask for."""
        assert isinstance(writer, V1Writer)  # noqa: S101 - it made it
        commands = self.command_files.get(stem) if self.needs_commands(program, writer) else None
        return {
            "entry_file": commands,
            "extra_metadata": list(writer.extra_metadata()),
            "const_entries": {
                t.name: self.const_entries(program, t) for t in program.tables if self.is_const(program, t)
            },
            "sizes": self.sizes(program),
            "instances": list(writer.instances()),
            "zeroed": list(writer.zeroed()),
            "passes": writer.passes,
            "epilogue": list(writer.epilogue()),
            "egress": writer.egress(),
            "drop_now": writer.drop_now,
            "checksum_fields": writer.checksum_fields,
            "space": self.space,
        }

    space: ClassVar[str] = " " * 12
    """Indentation of what the ingress control does."""

    def is_const(self, program: Program, table: Table) -> bool:
        """Whether the entries of a table stand in the text."""
        wide = program.match_kind(table) == "lpm" and program.key_bits(table) > MAX_CONST_LPM_BITS
        data_bytes = table.entries.count * program.action(table.entries.action).data_bits // 8
        return 0 < table.entries.count <= MAX_CONST_ENTRIES and data_bytes <= MAX_CONST_BYTES and not wide

    def sizes(self, program: Program) -> dict[str, int]:
        """Sizes of the tables that get their entries at run time."""
        return {t.name: max(1, t.entries.count) for t in program.tables if not self.is_const(program, t)}

    def const_entries(self, program: Program, table: Table) -> Iterator[str]:
        """The entries of a table as they stand in the text."""
        return entry_rows(program, table, partial(_const_row, program, table))

    def needs_commands(self, program: Program, writer: V1Writer) -> bool:
        """Whether a program needs commands at run time."""
        return bool(writer.groups or writer.sessions or self._added(program))

    def _added(self, program: Program) -> tuple[Table, ...]:
        """The tables whose entries are added by commands."""
        return tuple(t for t in program.tables if t.entries.count and not self.is_const(program, t))

    def companions(self, stem: str, program: Program, writer: Writer) -> tuple[GeneratedFile, ...]:
        """The commands: groups and sessions first, then the entries."""
        assert isinstance(writer, V1Writer)  # noqa: S101 - it made it
        if not self.needs_commands(program, writer):
            return ()
        added = self._added(program)
        largest = max((t.entries.count for t in added), default=0)
        return (GeneratedFile(self.command_files[stem], Pieces(partial(_commands, program, writer, added)), largest),)


class RuntimeV1Model(V1Model):
    """The same programs, with the entries of all tables in the commands: for a target, however many there are.

    p4c-bm2-ss 1.2.3.7 takes half a minute for a thousand entries in the text.
    """

    def is_const(self, program: Program, table: Table) -> bool:
        """No entries stand in the text."""
        return False


def _reorders(program: Program) -> bool:
    extracted = {name for state in program.parser for name in state.extracts}
    return [n for n in program.emit if n in extracted] != [h.name for h in program.headers if h.name in extracted]


def _commands(program: Program, writer: V1Writer, added: Sequence[Table]) -> Iterator[str]:
    yield render("p4/commands.j2", groups=writer.groups, sessions=writer.sessions)
    for table in added:
        yield from entry_rows(program, table, command_row(program, table))


def _const_row(program: Program, table: Table, keys: Sequence[str], parameters: Sequence[str]) -> str:
    texts = []
    for key, digits, known in zip(table.keys, keys, key_masks(program, table), strict=True):
        texts.append(f"0x{digits}" if key.match_kind == "exact" else f"0x{digits} &&& {known.mask:#x}")
    return render("p4/entry_row.j2", action=p4_name(table.entries.action), keys=texts, parameters=parameters)


def command_row(program: Program, table: Table) -> RowText:
    """What makes the command that adds an entry: lpm keys have a prefix length, ternary ones a mask and a priority."""
    masks = key_masks(program, table)
    name, action = p4_name(table.name), p4_name(table.entries.action)
    priority = program.match_kind(table) == "ternary"

    def row(keys: Sequence[str], parameters: Sequence[str]) -> str:
        texts = []
        for key, digits, known in zip(table.keys, keys, masks, strict=True):
            tail = {"exact": "", "lpm": f"/{known.prefix_bits}", "ternary": f"&&&{known.mask:#x}"}[key.match_kind]
            texts.append(f"0x{digits}{tail}")
        return render(
            "p4/command_row.j2", table=name, action=action, keys=texts, parameters=parameters, priority=priority
        )

    return row
