"""P4_16 for v1model as the NFP takes it (Netronome Agilio CX, SDK 6.1), and its entries as a p4cfg file.

The compiler and the runtime are proprietary: **nothing here was ever compiled or run for an NFP**. What it is built on
are public programs, configurations and build results for it:

* Its front end is an older p4c. Nothing is used that came to v1model later: ``mark_to_drop`` has no argument, and
  ``resubmit_preserving_field_list`` and its like do not exist.
* Its ``standard_metadata`` has ``ingress_port``, ``egress_spec`` and ``egress_port`` of 16 bit, ``packet_length``,
  ``egress_instance``, ``instance_type``, ``clone_spec``, ``parser_error_location``, ``parser_status`` and
  ``checksum_error`` (as ``firmware.yml`` of a public build lists them): no ``parser_error``, so that short frames are
  not tested, and no ``mcast_grp``.
* Entries come from a p4cfg file (JSON) that ``rtecli design-load -c`` reads, never from the program. Tables, actions
  and keys have the names ``MainIngress::table`` and ``header.field``. A key in metadata is ``scalars.``, the name of
  the struct, ``@`` and the field, with or without ``MainIngress::`` before it: ``pif_design.json`` tells, and target
  nfp4000 takes the one that stands there.
* Output ports of rules are tokens: ``p0`` is the physical port whose number in the program is 0.
* The first lookups of a flow are cached: build with ``--disable-component flowcache`` to measure tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

from typing_extensions import override

from p4perf.errors import CapabilityError
from p4perf.generators.base import render
from p4perf.generators.p4 import writer as p4
from p4perf.generators.p4.v1model import RuntimeV1Writer, V1Model
from p4perf.generators.p4.writer import p4_name
from p4perf.programs import ir
from p4perf.programs.analysis import statements
from p4perf.programs.capabilities import CONSTRUCTS, Capabilities, Construct
from p4perf.programs.entries import entry_rows, key_masks

MAX_PORT = 9
"""Highest port: they are written as ``p0`` to ``p9``."""

CONTROL = "MainIngress"
"""The control that tables and actions are in: ``MainIngress::lookup``."""

METADATA_TYPE = "metadata_t"
"""The struct of the metadata, which stands in the names of its fields as keys."""

TERNARY_PRIORITY = 1
"""Priority of all rules of a ternary table: no two of them match the same packet."""

_MISSING: dict[Construct, str] = {
    "repeated table": "p4c-bm2-ss, the compiler of the same architecture, refuses it; unverified",
    "recirculate": "its p4c is older than recirculate_preserving_field_list; unverified",
    "resubmit": "its p4c is older than resubmit_preserving_field_list; unverified",
    "clone": "rtecli has no command for sessions of clones",
    "multicast": "its standard_metadata has no mcast_grp: only rules can name a group (mg0)",
}

_UNVERIFIED: tuple[Construct, ...] = (
    *("hash crc16", "hash crc32", "hash checksum16", "checksum verify", "checksum update", "random"),
    *("register read", "register write", "counter", "added header", "removed header", "ternary", "lpm"),
)

CAPABILITIES = Capabilities(
    owner="nfp",
    missing=_MISSING,
    remarks={
        **{c: "unverified on an NFP" for c in CONSTRUCTS if c in _UNVERIFIED},
        "meter": "unverified on an NFP; it gets no rates, so its colour may not be green",
    },
)

_FORMS: Mapping[ir.MatchKind, str] = {"exact": "0x{}", "lpm": "0x{}/{prefix}", "ternary": "0x{}"}


def nfp_ports(action: ir.Action) -> list[str]:
    """The first parameter of an action, if it is an output port: entries hold no other ports."""
    return [name for name in p4.port_parameters(action) if name == action.parameters[0].name]


class NfpWriter(RuntimeV1Writer):
    """v1model as the compiler of the NFP takes it, which is older.

    A drop has no argument. Ports have 16 bit there and 9 in the v1model of p4c, which is to compile the same text: what
    is assigned to ``egress_spec`` is cast to a type that a macro chooses.
    """

    port_bits: ClassVar[int] = 16
    drop_now: ClassVar[str] = "mark_to_drop();"

    @override
    def typed_ports(self, action: ir.Action) -> Mapping[str, tuple[str, p4.Typed]]:
        bits = self.port_bits
        return {name: (f"bit<{bits}>", p4.Typed(p4_name(name), bits)) for name in nfp_ports(action)}

    @override
    def effect(self, statement: ir.Statement, position: int, action: ir.Action, scope: p4.Scope) -> Iterator[str]:
        if isinstance(statement, ir.SetEgress):
            text = p4.expression_text(scope, statement.port, self.port_bits)
            bracketed = f"({text})" if isinstance(statement.port, ir.BinaryOp) else text
            yield f"{self.port_field} = (nfp_port_t){bracketed};"
        else:
            yield from super().effect(statement, position, action, scope)

    @override
    def command_file(self, stem: str) -> str | None:
        return f"{stem}.p4cfg" if self.program.tables else None

    @override
    def commands(self) -> Iterator[str]:
        yield '{"tables": {'
        for position, table in enumerate(self.program.tables):
            names = {"control": CONTROL, "table": p4_name(table.name), "action": p4_name(table.default_action)}
            yield ("," if position else "") + render("p4/nfp_table.j2", **names)
            first = True
            for piece in entry_rows(self.program, table, partial(self._rule, table), numbered=True):
                yield piece.removeprefix(",") if first else piece
                first = False
            yield "\n]}"
        yield "},\n" + render("p4/nfp_end.j2")

    def _rule(self, table: ir.Table, keys: Sequence[str], data: Sequence[str]) -> str:
        """A rule of a table: its name has the number of the entry."""
        program = self.program
        hit = program.action(table.rule.action)
        matches = [
            (_key_name(key), text, f"{known.mask:#x}" if key.match_kind == "ternary" else None)
            for key, text, known in zip(
                table.keys, self.key_texts(table, keys[1:], _FORMS), key_masks(program, table), strict=True
            )
        ]
        values = [f"p{word}" if n == 0 and nfp_ports(hit) else f"0x{word}" for n, word in enumerate(data)]
        return render(
            "p4/nfp_row.j2",
            number=keys[0],
            matches=matches,
            arguments=list(zip([p4_name(p.name) for p in hit.parameters], values, strict=True)),
            priority=TERNARY_PRIORITY if program.match_kind(table) == "ternary" else None,
            control=CONTROL,
            action=p4_name(hit.name),
        )


class Nfp(V1Model):
    """Renders the programs for the NFP, and a p4cfg file where a program has tables."""

    name = "nfp"
    summary = "P4_16 for the NFP of Agilio CX (v1model), with p4cfg; unverified"
    title = "the NFP (v1model)"
    template = "p4/nfp.p4.j2"
    capabilities = CAPABILITIES
    max_port = MAX_PORT
    compilers = (("p4test", "-DPORT_BITS=9", "{source}"),)
    writer_class = NfpWriter


def with_ports(program: ir.Program, stride: int) -> ir.Program:
    """The program for a card whose port ``n`` has the number ``n * stride`` (a port of 40 Gbit/s has four channels)."""
    if stride == 1:
        return program
    for statement in statements(program):
        if isinstance(statement, ir.SetEgress) and not isinstance(statement.port, ir.Const | ir.ParameterRef):
            raise CapabilityError("an output port that is computed cannot be mapped to the ports of this card")

    def mapped(statement: ir.Statement) -> ir.Statement:
        match statement:
            case ir.SetEgress(ir.Const(port)):
                return ir.SetEgress(ir.Const(port * stride))
        return statement

    actions = (replace(a, body=tuple(map(mapped, a.body))) for a in program.actions)
    tables = (replace(t, entries=replace(t.rule, port=t.rule.port * stride)) for t in program.tables)
    return replace(program, actions=tuple(actions), tables=tuple(tables))


def ports_of(program: ir.Program) -> list[int]:
    """The output ports that a program names, in its actions or its entries."""
    ports = {s.port.value for s in statements(program) if isinstance(s, ir.SetEgress) and isinstance(s.port, ir.Const)}
    for table in program.tables:
        if table.entries.count and nfp_ports(program.action(table.rule.action)):
            ports.add(table.rule.port)
    return sorted(ports)


def _key_name(key: ir.Key) -> str:
    field = p4_name(key.field.field)
    if key.field.header == ir.METADATA:
        return f"{CONTROL}::scalars.{METADATA_TYPE}@{field}"
    return f"{p4_name(key.field.header)}.{field}"
