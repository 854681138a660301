"""What every P4 dialect refuses: names, widths, ports and entries that no compiler of P4 takes."""

from __future__ import annotations

from p4perf.errors import CapabilityError
from p4perf.generators.analysis import operands, statements, subexpressions
from p4perf.generators.entries import check_entries
from p4perf.generators.p4.names import check_names
from p4perf.generators.program import (
    AddHeader,
    CallAction,
    Clone,
    Const,
    ControlNode,
    FieldRef,
    If,
    Multicast,
    Program,
    SetEgress,
    Table,
)

MAX_WIDTH_BITS = 2048
"""Widest ``bit<>`` that p4c accepts."""


def check_program(program: Program, owner: str, max_port: int) -> None:
    """Refuse a program that has no form in P4.

    Args:
        program: the program.
        owner: name of the dialect, for messages.
        max_port: the highest port of the dialect.

    Raises:
        CapabilityError: the message names the limit.
        SpecError: a name is not an identifier.
    """
    check_names(program)
    for header in program.headers:
        if not header.width_bits or header.width_bits % 8:
            raise CapabilityError(f"header {header.name} has {header.width_bits} bit, which is not whole bytes")
    for f in (f for group in (*(h.fields for h in program.headers), program.metadata) for f in group):
        if not 1 <= f.width_bits <= MAX_WIDTH_BITS:
            raise CapabilityError(f"field {f.name} has {f.width_bits} bit; P4 has bit<1> to bit<{MAX_WIDTH_BITS}>")
    for table in program.tables:
        _check_table(program, table, owner, max_port)
    for name in {*_called(program.control), *(t.default_action for t in program.tables)}:
        if program.action(name).parameters:
            raise CapabilityError(f"action {name} takes parameters, so it cannot be called without an entry")
    for action in program.actions:
        for statement in action.body:
            if isinstance(statement, SetEgress) and isinstance(statement.port, Const):
                _check_port(statement.port.value, owner, max_port)
            elif isinstance(statement, Clone):
                _check_port(statement.port, owner, max_port)
            elif isinstance(statement, Multicast):
                for port in statement.ports:
                    _check_port(port, owner, max_port)
            elif isinstance(statement, AddHeader):
                _check_added(statement)
    for checksum in (*program.verified, *program.updated):
        if program.header(checksum.header).field(checksum.field).width_bits != 16:
            raise CapabilityError(f"checksum {checksum.header}.{checksum.field} has not 16 bit")


def _check_added(statement: AddHeader) -> None:
    for whole in operands(statement):
        if any(isinstance(e, FieldRef) and e.header == statement.header for e in subexpressions(whole)):
            raise CapabilityError(f"header {statement.header} is added with values from its own fields")


def _called(nodes: tuple[ControlNode, ...]) -> set[str]:
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, CallAction):
            names.add(node.action)
        elif isinstance(node, If):
            names |= _called(node.then) | _called(node.otherwise)
    return names


def _check_port(port: int, owner: str, max_port: int) -> None:
    if not 0 <= port <= max_port:
        raise CapabilityError(f"port {port} does not exist in {owner}, which has 0 to {max_port}")


def _check_table(program: Program, table: Table, owner: str, max_port: int) -> None:
    check_entries(program, table)
    missing = {table.default_action, table.entries.action} - set(table.actions)
    if missing:
        raise CapabilityError(f"table {table.name} does not list its action {min(missing)}")
    if program.action(table.entries.action).parameters:
        _check_port(table.entries.port, owner, max_port)
    if table.entries.free_bits:
        kinds = [key.match_kind for key in table.keys]
        if "lpm" in kinds[:-1] or ("exact" in kinds and kinds[-1] == "exact"):
            raise CapabilityError(f"table {table.name} has free bits in a key that cannot leave any open")


def metadata_is_wide(program: Program, limit_bits: int) -> str | None:
    """A metadata field that is wider than that, if there is one."""
    return next((f.name for f in program.metadata if f.width_bits > limit_bits), None)


def assigned_wide(program: Program, limit_bits: int) -> FieldRef | None:
    """A field wider than that which gets a constant, if any; adding a header sets to zero what is not named."""
    widths = {FieldRef(h.name, f.name): f.width_bits for h in program.headers for f in h.fields}
    for statement in statements(program):
        if isinstance(statement, AddHeader):
            values = dict(statement.values)
            for f in program.header(statement.header).fields:
                if f.width_bits > limit_bits and isinstance(values.get(f.name, Const(0)), Const):
                    return FieldRef(statement.header, f.name)
        else:
            ref = getattr(statement, "destination", None)
            value = getattr(statement, "value", None)
            if isinstance(ref, FieldRef) and isinstance(value, Const) and widths.get(ref, 0) > limit_bits:
                return ref
    return None
