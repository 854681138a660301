"""Questions about a program: which constructs it uses and how much of each. What targets and dialects decide by."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping

from p4perf.programs import ir

COMPARE: Mapping[ir.Comparator, Callable[[int, int], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

OPERATE: Mapping[ir.BinaryOperator, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
}

MIRRORED: Mapping[ir.Comparator, ir.Comparator] = {"==": "==", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
"""The comparison that says the same with its sides exchanged."""


def control_nodes(nodes: tuple[ir.ControlNode, ...]) -> Iterator[ir.ControlNode]:
    """All nodes of a control flow, those inside of conditionals after the conditional they stand in."""
    for node in nodes:
        yield node
        if isinstance(node, ir.If):
            yield from control_nodes(node.then)
            yield from control_nodes(node.otherwise)


def nesting_depth(nodes: tuple[ir.ControlNode, ...]) -> int:
    """How deep conditionals stand in one another; 0 where there is none."""
    inner = (1 + max(nesting_depth(n.then), nesting_depth(n.otherwise)) for n in nodes if isinstance(n, ir.If))
    return max(inner, default=0)


def used_actions(program: ir.Program) -> tuple[str, ...]:
    """Names of the actions that the control flow or a table that it applies can run, in the order of the program."""
    return program.once("used_actions", lambda: _used_actions(program))


def _used_actions(program: ir.Program) -> tuple[str, ...]:
    names: set[str] = set()
    for node in control_nodes(program.control):
        if isinstance(node, ir.ApplyTable):
            table = program.table(node.table)
            names |= {table.default_action, table.entries.action}
        elif isinstance(node, ir.CallAction):
            names.add(node.action)
    return tuple(action.name for action in program.actions if action.name in names)


def statements(program: ir.Program) -> Iterator[ir.Statement]:
    """All statements of the actions that can run."""
    for name in used_actions(program):
        yield from program.action(name).body


def subexpressions(expression: ir.Expression) -> Iterator[ir.Expression]:
    """An expression and everything in it."""
    yield expression
    if isinstance(expression, ir.BinaryOp):
        yield from subexpressions(expression.left)
        yield from subexpressions(expression.right)


def operands(statement: ir.Statement) -> tuple[ir.Expression, ...]:
    match statement:
        case ir.Assign(_, value):
            return (value,)
        case ir.SetEgress(port):
            return (port,)
        case ir.AddHeader(_, values):
            return tuple(value for _, value in values)
        case ir.Hash(_, _, fields):
            return fields
        case ir.CountPacket(_, index) | ir.MeterPacket(_, _, index) | ir.ReadRegister(_, _, index):
            return (index,)
        case ir.WriteRegister(_, index, value):
            return (index, value)
        case ir.RunOperator(ref):
            return (ref,)
        case _:
            return ()


def destination(statement: ir.Statement) -> ir.FieldRef | None:
    """The field that a statement writes; None for those that write no field (adding a header writes all of its own)."""
    if isinstance(statement, ir.Assign | ir.Hash | ir.MeterPacket | ir.ReadRegister | ir.Random | ir.RunOperator):
        return statement.destination
    return None


def written_fields(program: ir.Program) -> set[ir.FieldRef]:
    """Every field that a statement or a checksum update writes; of added headers all fields."""
    found = {ir.FieldRef(c.header, c.field) for c in program.updated}
    for statement in statements(program):
        if (ref := destination(statement)) is not None:
            found.add(ref)
        elif isinstance(statement, ir.AddHeader):
            found |= {ir.FieldRef(statement.header, f.name) for f in program.header(statement.header).fields}
    return found


def condition_operands(condition: ir.Condition) -> tuple[ir.Expression, ...]:
    return (condition.left, condition.right) if isinstance(condition, ir.Compare) else ()


def expressions(program: ir.Program) -> Iterator[ir.Expression]:
    """Every expression that actions, keys and conditions evaluate, and everything in it."""
    wholes = [e for statement in statements(program) for e in operands(statement)]
    for node in control_nodes(program.control):
        if isinstance(node, ir.ApplyTable):
            wholes += [key.field for key in program.table(node.table).keys]
        elif isinstance(node, ir.If):
            wholes += condition_operands(node.condition)
    for whole in wholes:
        yield from subexpressions(whole)


def _fields(expressions: Iterator[ir.Expression] | tuple[ir.Expression, ...]) -> set[ir.FieldRef]:
    return {e for expression in expressions for e in subexpressions(expression) if isinstance(e, ir.FieldRef)}


def deciding_fields(program: ir.Program) -> set[ir.FieldRef]:
    """Fields that decide what happens to a packet: of selects, conditions and keys, and those that checksums verify."""
    found = {state.select for state in program.parser if state.select is not None}
    for node in control_nodes(program.control):
        if isinstance(node, ir.ApplyTable):
            found |= {key.field for key in program.table(node.table).keys}
        elif isinstance(node, ir.If):
            found |= _fields(condition_operands(node.condition))
    for checksum in program.verified:
        found |= {ir.FieldRef(checksum.header, f.name) for f in program.header(checksum.header).fields}
    return found


def read_fields(program: ir.Program) -> set[ir.FieldRef]:
    """Fields that an expression, a key, a condition, a select or a checksum reads; callers must not change the set."""
    return program.once("read_fields", lambda: _read_fields(program))


def _read_fields(program: ir.Program) -> set[ir.FieldRef]:
    found = deciding_fields(program)
    for statement in statements(program):
        found |= _fields(operands(statement))
    for checksum in program.updated:
        found |= {ir.FieldRef(checksum.header, f.name) for f in program.header(checksum.header).fields}
    return found


def reorders(program: ir.Program) -> bool:
    """Whether extracted headers are emitted in another order than they are declared, or not all of them."""
    extracted = {name for state in program.parser for name in state.extracts}
    order = [h.name for h in program.headers if h.name in extracted]
    return [name for name in program.emit if name in extracted] != order


def changes_layout(program: ir.Program) -> bool:
    """Whether a packet may be sent with other headers, or in another order, than it came with."""
    return reorders(program) or any(isinstance(s, ir.AddHeader | ir.RemoveHeader) for s in statements(program))


def needs_restore(program: ir.Program) -> bool:
    """Whether a packet that was processed once would be processed otherwise a second time, or its buffer was used.

    A load generator that uses packet buffers again has to restore their headers then.
    """
    if changes_layout(program) or any(isinstance(s, ir.Clone | ir.Multicast) for s in statements(program)):
        return True
    return bool({ref for ref in written_fields(program) if ref.header != ir.METADATA} & _deciding_in_the_end(program))


def _deciding_in_the_end(program: ir.Program) -> set[ir.FieldRef]:
    """Fields that decide, and those that fields which decide are computed from."""
    found, before = deciding_fields(program), 0
    while len(found) > before:
        before = len(found)
        for statement in statements(program):
            if destination(statement) in found:
                found |= _fields(operands(statement))
    return found
