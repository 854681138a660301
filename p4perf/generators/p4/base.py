"""What all P4 dialects share: from a workload to the texts of its two programs, and their table entries."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from typing_extensions import override

from p4perf.errors import CapabilityError
from p4perf.generators.base import GeneratedFile, Generator, identifier, render
from p4perf.generators.p4.writer import FlowFacts, Writer, analyse, check_names, free_name, p4_name, possibly_absent
from p4perf.programs import ir
from p4perf.programs.analysis import control_nodes, operands, statements, subexpressions
from p4perf.programs.capabilities import Capabilities, constructs
from p4perf.programs.component import TrafficPlan
from p4perf.programs.entries import check_entries, key_masks
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
        _check_table(program, table, owner, max_port)
    called = {node.action for node in control_nodes(program.control) if isinstance(node, ir.CallAction)}
    for name in called.union(t.default_action for t in program.tables):
        if program.action(name).parameters:
            raise CapabilityError(f"action {name} takes parameters, so it cannot be called without an entry")
    for action in program.actions:
        for statement in action.body:
            if isinstance(statement, ir.SetEgress) and isinstance(statement.port, ir.Const):
                _check_port(statement.port.value, owner, max_port)
            elif isinstance(statement, ir.Clone):
                _check_port(statement.port, owner, max_port)
            elif isinstance(statement, ir.Multicast):
                for port in statement.ports:
                    _check_port(port, owner, max_port)
            elif isinstance(statement, ir.AddHeader):
                parts = (e for whole in operands(statement) for e in subexpressions(whole))
                if any(isinstance(e, ir.FieldRef) and e.header == statement.header for e in parts):
                    raise CapabilityError(f"header {statement.header} is added with values from its own fields")
    for checksum in (*program.verified, *program.updated):
        if program.header(checksum.header).field(checksum.field).width_bits != 16:
            raise CapabilityError(f"checksum {checksum.header}.{checksum.field} has not 16 bit")


def _check_port(port: int, owner: str, max_port: int) -> None:
    if not 0 <= port <= max_port:
        raise CapabilityError(f"port {port} does not exist in {owner}, which has 0 to {max_port}")


def _check_table(program: ir.Program, table: ir.Table, owner: str, max_port: int) -> None:
    check_entries(program, table)
    missing = {table.default_action, table.rule.action} - set(table.actions)
    if missing:
        raise CapabilityError(f"table {table.name} does not list its action {min(missing)}")
    if program.action(table.rule.action).parameters:
        _check_port(table.rule.port, owner, max_port)
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


def _parts(writer: Writer, rows: Mapping[str, Iterator[str]], sizes: Mapping[str, int]) -> dict[str, object]:
    """The parts of a program as the templates take them, in the order of declaration.

    ``rows`` are the entries that stand in the text, ``sizes`` the sizes, both by table.
    """
    program = writer.program
    return {
        # type, name, fields (width in bits, name)
        "headers": [
            (f"header_{identifier(h.name)}_t", p4_name(h.name), [(f.width_bits, p4_name(f.name)) for f in h.fields])
            for h in program.headers
        ],
        "metadata": [(f.width_bits, p4_name(f.name)) for f in program.metadata],
        "states": list(_states(program, writer)),
        "actions": [(p4_name(a.name), writer.parameters(a), writer.action_lines(a)) for a in program.actions],
        # name, keys (field, match kind), actions, rows of entries, size or None, default action
        "tables": [
            (
                p4_name(t.name),
                [(writer.field(key.field), key.match_kind) for key in t.keys],
                [p4_name(a) for a in t.actions],
                list(rows.get(t.name, ())),
                sizes.get(t.name),
                p4_name(t.default_action),
            )
            for t in program.tables
        ],
        "emitted": [p4_name(name) for name in program.emit],
    }


def _states(program: ir.Program, writer: Writer) -> Iterator[tuple[str, list[str], str, list[tuple[str, str]], str]]:
    """Name, extracted headers, select field or nothing, cases (constant, state), default of each parser state."""
    for state in program.parser:
        select, cases = "", []
        if (ref := state.select) is not None:
            select = writer.field(ref)
            cases = [(writer.constant(case.value, ref), p4_name(case.next_state)) for case in state.cases]
        yield p4_name(state.name), [p4_name(n) for n in state.extracts], select, cases, p4_name(state.default)


MAX_CONST_ENTRIES = 1024
"""Entries of one table that stand in the P4 text, where they do; a table with more gets them at run time."""

MAX_CONST_BYTES = 1 << 16
"""So much action data of one table stands in the text: p4c takes ten minutes for the 2 MB of mat/action-data."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """Pieces of text that are made anew whenever somebody iterates over them."""

    make: Callable[[], Iterator[str]]

    def __iter__(self) -> Iterator[str]:
        return self.make()


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
    """What writes the statements of a program in this dialect."""
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
        program = self.adapted(program)
        writer = self.writer(program, flow)
        remarks = [
            f"{c}: {self.capabilities.remarks[c]}" for c in constructs(program) if c in self.capabilities.remarks
        ]
        context = dict(self.context(stem, program, writer))
        context |= _parts(writer, context.pop("const_entries"), context.pop("sizes"))
        text = render(
            self.template,
            **context,
            program=program,
            stem=stem,
            title=self.title,
            version=__version__,
            notes=[*notes, *remarks, *_absence(program)],
            may_lack_port=flow.may_lack_port,
            verified=program.verified,
            updated=program.updated,
            name=p4_name,
            control=list(writer.control_lines()),
            extra_metadata=list(writer.extra_metadata()),
            instances=list(writer.instances()),
            zeroed=list(writer.zeroed()),
            epilogue=list(writer.epilogue()),
        )
        return (GeneratedFile(f"{stem}.p4", (text,)), *self.companions(stem, program, writer))

    def writer(self, program: ir.Program, flow: FlowFacts) -> Writer:
        return self.writer_class(program, flow)

    @abstractmethod
    def context(self, stem: str, program: ir.Program, writer: Writer) -> Mapping[str, Any]:
        """What the template of the dialect asks for besides what all ask for."""

    def check(self, program: ir.Program, flow: FlowFacts) -> None:
        """Refuse what the table of capabilities cannot say."""

    def adapted(self, program: ir.Program) -> ir.Program:
        """The program in the form that the dialect needs it in, with the same meaning."""
        return program

    def companions(self, stem: str, program: ir.Program, writer: Writer) -> tuple[GeneratedFile, ...]:
        """Files that a program needs at run time."""
        return ()


def _absence(program: ir.Program) -> Iterator[str]:
    absent = possibly_absent(program)
    if absent:
        names = ", ".join(h.name for h in program.headers if h.name in absent)
        yield f"P4 leaves undefined what fields of {names} read as in packets without it; a Program says zero"


def key_texts(
    program: ir.Program, table: ir.Table, digits: Sequence[str], forms: Mapping[ir.MatchKind, str]
) -> list[str]:
    """The keys of a row of entries, in the form of their kind of match: ``0x{}/{prefix}``, ``0x{}&&&{mask:#x}``."""
    keys = zip(table.keys, digits, key_masks(program, table), strict=True)
    return [forms[key.match_kind].format(d, prefix=m.prefix_bits, mask=m.mask) for key, d, m in keys]


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
