"""P4_16 for v1model: the architecture of bmv2 (the behavioural model, ``simple_switch``).

Differences between v1model and the meaning of a :class:`~p4perf.generators.program.Program`, and what is done:

* After a parser error v1model goes on with ingress; the ingress control tests the error and drops.
* ``mark_to_drop`` is an egress port that a later assignment overrides. Where something after a drop can set the port,
  drops are kept in a metadata flag that is tested last.
* The egress port is zero at first, which is a port. Where a packet can pass without any port set, it starts as dropped.
* Metadata is not zero by P4_16; fields that are read are set to zero first.

Only what a program needs of this is generated, because every statement costs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from p4perf.errors import CapabilityError
from p4perf.generators.analysis import read_fields
from p4perf.generators.base import GeneratedFile, Generator, TrafficPlan
from p4perf.generators.entries import check_entries, entry_rows
from p4perf.generators.program import (
    ACCEPT,
    METADATA,
    Action,
    ApplyTable,
    Assign,
    BinaryOp,
    CallAction,
    Const,
    ControlNode,
    Drop,
    Expression,
    FieldRef,
    ParameterRef,
    Program,
    SetEgress,
    Table,
    Workload,
)
from p4perf.generators.rendering import identifier, render
from p4perf.version import __version__

PORT_BITS = 9
"""Width of a port in v1model."""

MAX_PORT = 510
"""Highest port; 511 is the one that stands for a drop."""

MAX_CONST_ENTRIES = 1024
"""Entries of one table that stand in the P4 text; a table with more gets them at run time."""

MAX_WIDTH_BITS = 2048
"""Widest ``bit<>`` that p4c accepts."""

_RESERVED = """
    abstract action actions apply bit bool const control default else entries enum error exit extern false for hdr
    header header_union if in inout int isValid key lastIndex last list main mark_to_drop match_kind meta next NoAction
    out package packet packet_in packet_out parser pop_front priority push_front reject return select setInvalid
    setValid standard_metadata state string struct switch table this transition true tuple type typedef value_set
    varbit verify void"""

RESERVED = frozenset(_RESERVED.split())
"""Names with a meaning in P4_16, on a header stack, or in the generated program."""


class V1Model(Generator):
    """Renders ``program.p4`` and ``baseline.p4``, and ``commands.txt`` for tables with many entries."""

    name = "v1model"
    summary = "P4_16 for v1model (bmv2)"

    def generate(self, workload: Workload, traffic: TrafficPlan) -> tuple[GeneratedFile, ...]:
        """The two programs, and for ``simple_switch_CLI`` the entries that are not in their text.

        The files with entries are ``commands.txt`` and ``baseline-commands.txt``; they are made only where a table has
        more than :data:`MAX_CONST_ENTRIES` entries, and their pieces are made while they are written.

        Raises:
            CapabilityError: the program has no form in v1model; the message names the limit.
        """
        files: list[GeneratedFile] = []
        for stem, program, commands in (
            ("program", workload.program, "commands.txt"),
            ("baseline", workload.baseline, "baseline-commands.txt"),
        ):
            check(program)
            at_run_time = [t for t in program.tables if t.entries.count > MAX_CONST_ENTRIES]
            text = render_program(program, stem, commands if at_run_time else None, workload.notes)
            files.append(GeneratedFile(f"{stem}.p4", (text,)))
            if at_run_time:
                files.append(GeneratedFile(commands, _Pieces(partial(runtime_commands, program))))
        return tuple(files)


class _Named(Protocol):
    @property
    def name(self) -> str: ...


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Pieces of text that are made anew whenever somebody iterates over them."""

    make: Callable[[], Iterator[str]]

    def __iter__(self) -> Iterator[str]:
        return self.make()


def render_program(program: Program, stem: str, commands: str | None = None, notes: tuple[str, ...] = ()) -> str:
    """One program as the text of ``<stem>.p4``; ``commands`` names the file with its further entries, if there is one.

    Raises:
        SpecError: a name is not an identifier.
    """
    flow = analyse(program)
    return render(
        "p4/v1model.p4.j2",
        program=program,
        stem=stem,
        commands=commands,
        notes=notes,
        version=__version__,
        flow=flow,
        zeroed=[f.name for f in program.metadata if FieldRef(METADATA, f.name) in read_fields(program)],
        const_entries={t.name: _rows(program, t, "p4/entry_row.j2") for t in program.tables if _is_const(t)},
        sizes={t.name: max(1, t.entries.count) for t in program.tables},
        name=p4_name,
        p4=_reference,
        constant=lambda value, ref: _constant(value, program.width_bits(ref)),
        statements=lambda action: statement_lines(program, action, flow),
    )


def runtime_commands(program: Program) -> Iterator[str]:
    """Entries of the tables with more than :data:`MAX_CONST_ENTRIES`, as lines for ``simple_switch_CLI``."""
    for table in program.tables:
        if table.entries.count > MAX_CONST_ENTRIES:
            yield from _rows(program, table, "p4/command_row.j2")


def _is_const(table: Table) -> bool:
    return 0 < table.entries.count <= MAX_CONST_ENTRIES


def _rows(program: Program, table: Table, template: str) -> Iterator[str]:
    def row(keys: Sequence[str], parameters: Sequence[str]) -> str:
        action = table.entries.action
        return render(template, name=p4_name, table=table.name, action=action, keys=keys, parameters=parameters)

    return entry_rows(program, table, row)


def p4_name(name: str) -> str:
    """A name that means nothing else in P4: a reserved word gets an underscore, and so does what then looks like one.

    Raises:
        SpecError: it is not an identifier.
    """
    return f"{name}_" if identifier(name).rstrip("_") in RESERVED else name


@dataclass(frozen=True, slots=True)
class Flow:
    """What the control flow can do with the egress port."""

    may_lack_port: bool
    """A packet can pass without any egress port set and without a drop."""
    drop_flag: str | None
    """Name of the metadata flag that holds drops; None where nothing after a drop can set the port."""


def analyse(program: Program) -> Flow:
    """Follow the control flow, with every action that a table may run."""
    decided, dropped, revived = False, False, False
    for node in program.control:
        bodies = [action.body for action in _possible(program, node)]
        decided = decided or all(any(isinstance(s, SetEgress | Drop) for s in body) for body in bodies)
        before = dropped
        for body in bodies:
            here = before
            for statement in body:
                here = here or isinstance(statement, Drop)
                revived = revived or (here and isinstance(statement, SetEgress))
            dropped = dropped or here
    taken = {p4_name(f.name) for f in program.metadata}
    flag = "dropped"
    while flag in taken:
        flag += "_"
    return Flow(not decided, flag if revived else None)


def _possible(program: Program, node: ControlNode) -> list[Action]:
    if isinstance(node, CallAction):
        return [program.action(node.action)]
    if not isinstance(node, ApplyTable):
        raise CapabilityError(f"v1model: {type(node).__name__} is not available")
    return [program.action(name) for name in program.table(node.table).actions]


def statement_lines(program: Program, action: Action, flow: Flow) -> Iterator[str]:
    """The statements of an action as P4 text, one a line."""
    for statement in action.body:
        if isinstance(statement, Drop):
            yield f"meta.{flow.drop_flag} = 1;" if flow.drop_flag else "mark_to_drop(standard_metadata);"
        elif isinstance(statement, SetEgress):
            port = expression_text(program, statement.port, PORT_BITS, action)
            yield f"standard_metadata.egress_spec = {port};"
        elif isinstance(statement, Assign):
            width = program.width_bits(statement.destination)
            value = expression_text(program, statement.value, width, action)
            yield f"{_reference(statement.destination)} = {value};"
        else:
            raise CapabilityError(f"v1model: {type(statement).__name__} is not available")


def expression_text(program: Program, expression: Expression, width_bits: int, action: Action | None = None) -> str:
    """An expression as P4 text of type ``bit<width_bits>``.

    Operands are cast to that width before they are combined. As all operators are congruent modulo a power of two,
    that gives the same as computing without limit and cutting the result, which is what a Program means.

    Args:
        program: the program, for the widths of fields.
        expression: the expression.
        width_bits: width of its destination.
        action: the action in which it stands, for the widths of parameters.

    Raises:
        KeyError: a field or parameter does not exist.
    """
    if isinstance(expression, Const):
        return _constant(expression.value, width_bits)
    if isinstance(expression, FieldRef):
        return _cast(_reference(expression), program.width_bits(expression), width_bits)
    if isinstance(expression, ParameterRef):
        widths = {p.name: p.width_bits for p in action.parameters} if action else {}
        return _cast(p4_name(expression.name), widths[expression.name], width_bits)
    if not isinstance(expression, BinaryOp):
        raise CapabilityError(f"v1model: {type(expression).__name__} is not available")
    operands = []
    left: Expression = expression
    while isinstance(left, BinaryOp) and left.operator == expression.operator:
        operands.append(_operand(program, left.right, width_bits, action))
        left = left.left
    operands.append(_operand(program, left, width_bits, action))
    return f" {expression.operator} ".join(reversed(operands))


def _operand(program: Program, expression: Expression, width_bits: int, action: Action | None) -> str:
    text = expression_text(program, expression, width_bits, action)
    return f"({text})" if isinstance(expression, BinaryOp) else text


def _constant(value: int, width_bits: int) -> str:
    cut = value & ((1 << width_bits) - 1)
    return f"{width_bits}w{cut}" if cut < 10 else f"{width_bits}w{cut:#x}"


def _reference(ref: FieldRef) -> str:
    return f"meta.{p4_name(ref.field)}" if ref.header == METADATA else f"hdr.{p4_name(ref.header)}.{p4_name(ref.field)}"


def _cast(text: str, width_bits: int, wanted_bits: int) -> str:
    return text if width_bits == wanted_bits else f"(bit<{wanted_bits}>){text}"


def check(program: Program) -> None:
    """Refuse a program that has no form in v1model.

    Raises:
        CapabilityError: the message names the limit.
        SpecError: a name is not an identifier.
    """
    _check_names(program)
    for header in program.headers:
        if not header.width_bits or header.width_bits % 8:
            raise CapabilityError(f"header {header.name} has {header.width_bits} bit, which is not whole bytes")
    for f in (f for group in (*(h.fields for h in program.headers), program.metadata) for f in group):
        if not 1 <= f.width_bits <= MAX_WIDTH_BITS:
            raise CapabilityError(f"field {f.name} has {f.width_bits} bit; P4 has bit<1> to bit<{MAX_WIDTH_BITS}>")
    applied = [node.table for node in program.control if isinstance(node, ApplyTable)]
    if len(set(applied)) < len(applied):
        raise CapabilityError("v1model cannot apply a table twice on one path", hint="use one table for each")
    for table in program.tables:
        _check_table(program, table)
    called = [node.action for node in program.control if isinstance(node, CallAction)]
    for name in (*called, *(t.default_action for t in program.tables)):
        if program.action(name).parameters:
            raise CapabilityError(f"action {name} takes parameters, so it cannot be called without an entry")
    for action in program.actions:
        for s in action.body:
            if isinstance(s, SetEgress) and isinstance(s.port, Const) and not 0 <= s.port.value <= MAX_PORT:
                raise CapabilityError(f"port {s.port.value} does not exist in v1model, which has 0 to {MAX_PORT}")


def _check_names(program: Program) -> None:
    groups: tuple[tuple[_Named, ...], ...] = (
        program.headers,
        program.metadata,
        program.parser,
        (*program.actions, *program.tables),
        *(h.fields for h in program.headers),
        *(a.parameters for a in program.actions),
    )
    for group in groups:
        names = [p4_name(x.name) for x in group]
        if len(set(names)) < len(names):
            raise CapabilityError(
                f"names are used twice: {', '.join(sorted({n for n in names if names.count(n) > 1}))}"
            )
    if METADATA in {h.name for h in program.headers}:
        raise CapabilityError(f"a header cannot be called {METADATA}")
    if "start" not in {s.name for s in program.parser} or ACCEPT in {s.name for s in program.parser}:
        raise CapabilityError("a parser begins with state start and has no state of the name accept")


def _check_table(program: Program, table: Table) -> None:
    check_entries(program, table)
    missing = {table.default_action, table.entries.action} - set(table.actions)
    if missing:
        raise CapabilityError(f"table {table.name} does not list its action {min(missing)}")
    if program.action(table.entries.action).parameters and not 0 <= table.entries.port <= MAX_PORT:
        raise CapabilityError(f"port {table.entries.port} does not exist in v1model, which has 0 to {MAX_PORT}")
