"""P4_16 for v1model as the NFP takes it (Netronome Agilio CX, SDK 6.1), and its entries as a p4cfg file.

The compiler and the runtime are proprietary: **nothing here was ever compiled or run for an NFP**. What it is built on
are public programs and configurations for it:

* Its front end is an older p4c. Nothing is used that came to v1model later: ``mark_to_drop`` has no argument, and
  ``resubmit_preserving_field_list`` and its like do not exist.
* Entries come from a p4cfg file (JSON) that ``rtecli design-load -c`` reads, never from the program. Tables, actions
  and keys have the names ``MainIngress::table`` and ``header.field``; those of metadata keys depend on names that the
  compiler makes (``MainIngress::scalars.metadata@field``): unverified.
* Multicast groups stand in the same file; ``rtecli`` has no command for sessions of clones, so clones are refused.
* The first lookups of a flow are cached: build with ``--disable-component flowcache`` to measure tables.
* v1model's parser error is not tested: that it is ever set is unverified.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import ClassVar

from p4perf.errors import CapabilityError
from p4perf.generators.analysis import statements
from p4perf.generators.base import GeneratedFile
from p4perf.generators.capabilities import CONSTRUCTS, Capabilities, Construct, Limit
from p4perf.generators.entries import entry_rows, key_masks
from p4perf.generators.p4.base import Pieces, RowText
from p4perf.generators.p4.flow import Flow
from p4perf.generators.p4.v1_writer import NfpWriter, V1Writer
from p4perf.generators.p4.v1model import V1Model
from p4perf.generators.p4.writer import Writer
from p4perf.generators.program import METADATA, Key, Multicast, ParameterRef, Program, SetEgress, Table
from p4perf.generators.rendering import render

MAX_PORT = 9
"""Highest port: they are written as ``p0`` to ``p9``."""

_MISSING: dict[Construct, str] = {
    "repeated table": "p4c-bm2-ss, the compiler of the same architecture, refuses it; unverified",
    "recirculate": "its p4c is older than recirculate_preserving_field_list; unverified",
    "resubmit": "its p4c is older than resubmit_preserving_field_list; unverified",
    "clone": "rtecli has no command for sessions of clones",
}

_REMARKED: tuple[Construct, ...] = (
    *("hash crc16", "hash crc32", "hash checksum16", "checksum verify", "checksum update", "meter", "random"),
    *("register read", "register write", "counter", "multicast", "added header", "removed header", "ternary", "lpm"),
)

CAPABILITIES = Capabilities(
    owner="nfp",
    missing=_MISSING,
    limits={"copies": Limit(16, "default of --nfirc_multicast_group_size")},
    remarks={c: "unverified on an NFP" for c in CONSTRUCTS if c in _REMARKED},
)

MAX_GROUPS = 16
"""Multicast groups (default of ``--nfirc_multicast_group_count``)."""


class Nfp(V1Model):
    """Renders the programs for the NFP, and a p4cfg file where a program has entries or groups."""

    name = "nfp"
    summary = "P4_16 for the NFP of Agilio CX (v1model), with p4cfg; unverified"
    title = "the NFP (v1model)"
    template = "p4/nfp.p4.j2"
    capabilities: ClassVar[Capabilities] = CAPABILITIES
    max_port: ClassVar[int] = MAX_PORT
    compilers: ClassVar[tuple[tuple[str, ...], ...]] = (("p4test", "{source}"),)
    writer_class: ClassVar[type[V1Writer]] = NfpWriter
    command_files: ClassVar[dict[str, str]] = {"program": "program.p4cfg", "baseline": "baseline.p4cfg"}
    space: ClassVar[str] = " " * 8

    def is_const(self, table: Table) -> bool:
        """No entries stand in the text."""
        return False

    def needs_commands(self, program: Program, writer: V1Writer) -> bool:
        """Every table has its entries in the file."""
        return bool(writer.groups or program.tables)

    def check(self, program: Program, flow: Flow) -> None:
        """Refuse more multicast groups than there are."""
        super().check(program, flow)
        groups = {s.ports for s in statements(program) if isinstance(s, Multicast) and s.ports}
        if len(groups) > MAX_GROUPS:
            raise CapabilityError(f"{len(groups)} multicast groups are more than the {MAX_GROUPS} of an NFP")

    def companions(self, stem: str, program: Program, writer: Writer) -> tuple[GeneratedFile, ...]:
        """The p4cfg file."""
        assert isinstance(writer, V1Writer)  # noqa: S101 - it made it
        if not self.needs_commands(program, writer):
            return ()
        largest = max((t.entries.count for t in program.tables), default=0)
        return (GeneratedFile(self.command_files[stem], Pieces(partial(_config, program, writer)), largest),)


def _config(program: Program, writer: V1Writer) -> Iterator[str]:
    """The p4cfg file in pieces."""
    yield '{"tables": {'
    for position, table in enumerate(program.tables):
        yield ("," if position else "") + render("p4/nfp_table.j2", table=table.name, action=table.default_action)
        first = True
        for piece in entry_rows(program, table, _rule(program, table), numbered=True):
            yield piece.removeprefix(",") if first else piece
            first = False
        yield "\n]}"
    yield "},\n" + render("p4/nfp_groups.j2", groups=writer.groups)


def _key_name(key: Key) -> str:
    if key.field.header == METADATA:
        return f"MainIngress::scalars.metadata@{key.field.field}"
    return f"{key.field.header}.{key.field.field}"


def _rule(program: Program, table: Table) -> RowText:
    """What makes a rule of a table: its name has the number of the entry."""
    masks = key_masks(program, table)
    hit = program.action(table.entries.action)
    parameters = [p.name for p in hit.parameters]
    port = any(isinstance(s, SetEgress) and s.port == ParameterRef(parameters[0]) for s in hit.body if parameters)

    def row(keys: Sequence[str], data: Sequence[str]) -> str:
        matches = []
        for key, digits, known in zip(table.keys, keys[1:], masks, strict=True):
            tail = f"/{known.prefix_bits}" if key.match_kind == "lpm" else ""
            mask = f"{known.mask:#x}" if key.match_kind == "ternary" else None
            matches.append((_key_name(key), f"0x{digits}{tail}", mask))
        values = [f"p{word}" if n == 0 and port else f"0x{word}" for n, word in enumerate(data)]
        arguments = list(zip(parameters, values, strict=True))
        action = table.entries.action
        return render("p4/nfp_row.j2", number=keys[0], matches=matches, action=action, arguments=arguments)

    return row
