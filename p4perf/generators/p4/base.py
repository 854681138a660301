"""What all P4 dialects share: from a workload to the texts of its two programs, and their table entries."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

from typing_extensions import override

from p4perf.errors import CapabilityError
from p4perf.generators.base import GeneratedFile, Generator, render
from p4perf.generators.p4.writer import FlowFacts, Writer, analyse, check_names, free_name, p4_name, possibly_absent
from p4perf.programs import ir
from p4perf.programs.analysis import control_nodes, operands, statements, subexpressions
from p4perf.programs.capabilities import Capabilities, constructs
from p4perf.programs.component import TrafficPlan
from p4perf.programs.entries import check_entries
from p4perf.version import __version__

MAX_WIDTH_BITS = 2048
"""Widest ``bit<>`` that p4c accepts."""


def check_program(program: ir.Program, owner: str, max_port: int) -> None:
    """Refuse a program that has no form in P4."""
    check_names(program)
    for header in program.headers:
        if not header.width_bits or header.width_bits % 8:
            raise CapabilityError(f"header {header.name} has {header.width_bits} bit, which is not whole bytes")
    for f in (f for group in (*(h.fields for h in program.headers), program.metadata) for f in group):
        if not 1 <= f.width_bits <= MAX_WIDTH_BITS:
            raise CapabilityError(f"field {f.name} has {f.width_bits} bit; P4 has bit<1> to bit<{MAX_WIDTH_BITS}>")
    for table in program.tables:
        _check_table(program, table)
    called = {node.action for node in control_nodes(program.control) if isinstance(node, ir.CallAction)}
    for name in called.union(t.default_action for t in program.tables):
        if program.action(name).parameters:
            raise CapabilityError(f"action {name} takes parameters, so it cannot be called without an entry")
    for action in program.actions:
        for added in (s for s in action.body if isinstance(s, ir.AddHeader)):
            parts = (e for whole in operands(added) for e in subexpressions(whole))
            if any(isinstance(e, ir.FieldRef) and e.header == added.header for e in parts):
                raise CapabilityError(f"header {added.header} is added with values from its own fields")
    for port in _ports(program):
        if not 0 <= port <= max_port:
            raise CapabilityError(f"port {port} does not exist in {owner}, which has 0 to {max_port}")
    for checksum in (*program.verified, *program.updated):
        if program.header(checksum.header).field(checksum.field).width_bits != 16:
            raise CapabilityError(f"checksum {checksum.header}.{checksum.field} has not 16 bit")


def _ports(program: ir.Program) -> Iterator[int]:
    """The ports that actions and entries name."""
    for action in program.actions:
        for statement in action.body:
            match statement:
                case ir.SetEgress(ir.Const(port)) | ir.Clone(port):
                    yield port
                case ir.Multicast(ports):
                    yield from ports
    yield from (t.rule.port for t in program.tables if program.action(t.rule.action).parameters)


def _check_table(program: ir.Program, table: ir.Table) -> None:
    check_entries(program, table)
    missing = {table.default_action, table.rule.action} - set(table.actions)
    if missing:
        raise CapabilityError(f"table {table.name} does not list its action {min(missing)}")
    if table.rule.free_bits:
        kinds = [key.match_kind for key in table.keys]
        if "lpm" in kinds[:-1] or ("exact" in kinds and kinds[-1] == "exact"):
            raise CapabilityError(f"table {table.name} has free bits in a key that cannot leave any open")


def assigned_wide(program: ir.Program, limit_bits: int) -> ir.FieldRef | None:
    """A field wider than that which gets a constant, if any; adding a header sets to zero what is not named."""
    widths = {ir.FieldRef(h.name, f.name): f.width_bits for h in program.headers for f in h.fields}
    for statement in statements(program):
        if isinstance(statement, ir.AddHeader):
            values = dict(statement.values)
            for f in program.header(statement.header).fields:
                if f.width_bits > limit_bits and isinstance(values.get(f.name, ir.Const(0)), ir.Const):
                    return ir.FieldRef(statement.header, f.name)
        else:
            ref = getattr(statement, "destination", None)
            value = getattr(statement, "value", None)
            if isinstance(ref, ir.FieldRef) and isinstance(value, ir.Const) and widths.get(ref, 0) > limit_bits:
                return ref
    return None


class P4Generator(Generator):
    """Renders ``program.p4`` and ``baseline.p4``, and the files that their tables need at run time.

    A dialect is a subclass with a template that extends ``p4/base.p4.j2``, a :class:`Writer` and a table of what it
    lacks.
    """

    capabilities: ClassVar[Capabilities]
    title: ClassVar[str]
    """What the first line of a program calls the dialect."""
    template: ClassVar[str]
    writer_class: ClassVar[type[Writer]]
    """What writes a program in this dialect, and the files that it needs at run time."""
    max_port: ClassVar[int]
    compilers: ClassVar[tuple[tuple[str, ...], ...]] = ()
    """Commands that compile a program: a tool and its arguments, with ``{source}`` and ``{output}``."""

    def __init__(self) -> None:
        self._baselines: dict[ir.Program, tuple[GeneratedFile, ...]] = {}

    @override
    def generate(self, workload: ir.Workload, traffic: TrafficPlan) -> tuple[GeneratedFile, ...]:
        files = self.files("program", workload.program, workload.packets, workload.notes)
        if workload.baseline not in self._baselines:
            self._baselines[workload.baseline] = self.files("baseline", workload.baseline)
        return (*files, *self._baselines[workload.baseline])

    def files(
        self, stem: str, program: ir.Program, packets: ir.PacketSpec | None = None, notes: tuple[str, ...] = ()
    ) -> tuple[GeneratedFile, ...]:
        """One program and the files that go with it.

        Raises:
            CapabilityError: the program has no form in this dialect; the message names the limit.
            SpecError: a name is not an identifier.
        """
        self.capabilities.check(program, packets)
        check_program(program, self.capabilities.owner, self.max_port)
        flow = analyse(program)
        self.check(program, flow)
        writer = self.writer_class(program, flow)
        remarks = [
            f"{c}: {self.capabilities.remarks[c]}" for c in constructs(program) if c in self.capabilities.remarks
        ]
        text = render(
            self.template,
            program=writer.program,
            writer=writer,
            stem=stem,
            title=self.title,
            version=__version__,
            notes=[*notes, *remarks, *_absence(program)],
            name=p4_name,
        )
        return (GeneratedFile(f"{stem}.p4", (text,)), *writer.companions(stem))

    def check(self, program: ir.Program, flow: FlowFacts) -> None:
        """Refuse what the table of capabilities cannot say."""


def _absence(program: ir.Program) -> Iterator[str]:
    if absent := possibly_absent(program):
        names = ", ".join(h.name for h in program.headers if h.name in absent)
        yield f"P4 leaves undefined what fields of {names} read as in packets without it; a Program says zero"


def unshared(program: ir.Program) -> ir.Program:
    """The same program, in which no action that takes entries belongs to more than one table or ends with a number.

    A compiler that copies such actions, or numbers them anew, gives them names by which no control plane knows them.
    """
    owners: dict[str, str] = {}
    taken = {a.name for a in program.actions} | {t.name for t in program.tables}
    actions, tables = list(program.actions), []
    for table in program.tables:
        name = table.rule.action
        shared = owners.setdefault(name, table.name) != table.name or _NUMBERED.search(name) is not None
        if shared and name != table.default_action:
            copy = free_name(f"{_NUMBERED.sub('', name)}_nr{len(actions)}", taken)
            taken.add(copy)
            actions.append(replace(program.action(name), name=copy))
            listed = tuple(copy if a == name else a for a in table.actions)
            table = replace(table, actions=listed, entries=replace(table.rule, action=copy))
        tables.append(table)
    return (
        replace(program, actions=tuple(actions), tables=tuple(tables))
        if len(actions) > len(program.actions)
        else program
    )


_NUMBERED = re.compile(r"_\d+$")
