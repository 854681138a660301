"""Questions about a program: which constructs it uses and how much of each. What targets and dialects decide by."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import TypeVar

from p4perf.programs import ir

S = TypeVar("S")

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
    "*": operator.mul,
    "/": lambda dividend, divisor: dividend // max(divisor, 1),
    "%": lambda dividend, divisor: dividend % max(divisor, 1),
    "<<": operator.lshift,
    ">>": operator.rshift,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
}

MIRRORED: Mapping[ir.Comparator, ir.Comparator] = {"==": "==", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
"""The comparison that says the same with its sides exchanged."""


NEGATED: Mapping[ir.Comparator, ir.Comparator] = {"==": "!=", "!=": "==", "<": ">=", ">": "<=", "<=": ">", ">=": "<"}
"""The comparison that holds where another one does not."""


def control_nodes(nodes: ir.Nodes) -> Iterator[ir.ControlNode]:
    """All nodes of a control flow, those inside of others after the one they stand in."""
    for node in nodes:
        yield node
        if not isinstance(node, ir.CallAction):
            for branch in branches(node):
                if branch:
                    yield from control_nodes(branch)


def branches(node: ir.ControlNode) -> tuple[ir.Nodes, ...]:
    """What stands inside of a node."""
    match node:
        case ir.If(_, then, otherwise):
            return then, otherwise
        case ir.ApplyTable():
            return node.branches
        case ir.Block(body):
            return (body,)
        case ir.CallAction():
            return ()


def nesting_depth(nodes: ir.Nodes) -> int:
    """How deep nodes stand in one another; 0 where there is nothing inside of any."""
    return max((1 + nesting_depth(branch) for n in nodes for branch in branches(n) if branch), default=0)


@ir.once
def used_actions(program: ir.Program) -> tuple[str, ...]:
    """Names of the actions that the control flow or a table that it applies can run, in the order of the program."""
    names: set[str] = set()
    for node in control_nodes(program.control + program.egress):
        if isinstance(node, ir.ApplyTable):
            names.update(program.table(node.table).taken)
        elif isinstance(node, ir.CallAction):
            names.add(node.action)
    return tuple(action.name for action in program.actions if action.name in names)


def applied_tables(program: ir.Program) -> tuple[ir.Table, ...]:
    """The tables that the control flow applies, each once, in the order in which it does."""
    nodes = control_nodes(program.control + program.egress)
    names = dict.fromkeys(node.table for node in nodes if isinstance(node, ir.ApplyTable))
    return tuple(map(program.table, names))


def statements(program: ir.Program) -> Iterator[ir.Statement]:
    """All statements of the actions that can run, those inside of a branch after it."""
    for name in used_actions(program):
        yield from flattened(program.action(name).body)


def parser_statements(program: ir.Program) -> Iterator[ir.ParserStatement | ir.Statement]:
    """All statements of the parser, those inside of a branch after it."""
    return flattened(s for state in program.parser for s in state.body)


def post_order(following: Callable[[str], Iterable[str]], comes_back: Callable[[str], None]) -> list[str]:
    """The states of a parser that can be reached, each after those that follow it.

    Args:
        following: the states to which a state leads, those to visit first at the beginning.
        comes_back: is called with a state from which a path of the parser leads to itself.
    """
    order: dict[str, None] = {}
    path = {"start": iter(following("start"))}
    while path:
        name, left = next(reversed(path.items()))
        state = next(left, None)
        if state is None:
            del path[name]
            order[name] = None
        elif state in path:
            comes_back(state)
        elif state != ir.ACCEPT and state not in order:
            path[state] = iter(following(state))
    return list(order)


def flattened(body: Iterable[S]) -> Iterator[S | ir.Statement]:
    """Statements, and those inside of branches after these."""
    for statement in body:
        yield statement
        if isinstance(statement, ir.Branch):
            yield from flattened(statement.then)
            yield from flattened(statement.otherwise)


def subexpressions(expression: ir.Expression) -> Iterator[ir.Expression]:
    """An expression and everything in it."""
    waiting = [expression]
    while waiting:
        found = waiting.pop()
        yield found
        if isinstance(found, ir.FieldRef | ir.Const):
            continue
        if isinstance(found, ir.BinaryOp):
            waiting += (found.right, found.left)
        elif isinstance(found, ir.Cast):
            waiting.append(found.value)
        elif isinstance(found, ir.Conditional):
            waiting += (found.otherwise, found.then, *reversed(condition_operands(found.condition)))
        elif isinstance(found, ir.Truth):
            waiting += reversed(condition_operands(found.condition))


def operands(statement: ir.Statement | ir.ParserStatement) -> tuple[ir.Expression, ...]:
    match statement:
        case ir.Assign(_, value):
            return (value,)
        case ir.SetEgress(port):
            return (port,)
        case ir.AddHeader(_, values):
            return tuple(value for _, value in values)
        case ir.Hash(_, _, fields) | ir.Digest(fields):
            return fields
        case ir.Branch(condition):
            return condition_operands(condition)
        case ir.Truncate(size_bytes):
            return (size_bytes,)
        case ir.CountPacket(_, index) | ir.MeterPacket(_, _, index) | ir.ReadRegister(_, _, index):
            return (index,)
        case ir.WriteRegister(_, index, value):
            return (index, value)
        case ir.RunOperator(ref):
            return (ref,)
        case ir.Extract(_, bits) | ir.Advance(bits) if bits is not None:
            return (bits,)
        case ir.Verify(condition):
            return condition_operands(condition)
        case _:
            return ()


def destination(statement: ir.Statement | ir.ParserStatement) -> ir.FieldRef | None:
    """The field that a statement writes; None for those that write no field (adding a header writes all of its own)."""
    if isinstance(statement, ir.Assign | ir.Hash | ir.MeterPacket | ir.ReadRegister | ir.Random | ir.RunOperator):
        return statement.destination
    return None


def written_fields(program: ir.Program) -> set[ir.FieldRef]:
    """Every field that a statement or a checksum update writes; of added headers all fields."""
    found = set(program.updated)
    for statement in statements(program):
        if (ref := destination(statement)) is not None:
            found.add(ref)
        elif isinstance(statement, ir.AddHeader):
            found |= _fields_of(program, statement.header)
    return found


def condition_operands(condition: ir.Condition) -> tuple[ir.Expression, ...]:
    """What a condition compares."""
    match condition:
        case ir.Compare(_, left, right):
            return left, right
        case ir.Not(inner):
            return condition_operands(inner)
        case ir.And(first, second) | ir.Or(first, second):
            return condition_operands(first) + condition_operands(second)
        case ir.IsValid():
            return ()


def _asked(program: ir.Program) -> Iterator[ir.Expression]:
    """What keys of tables and conditions of the control flow are."""
    for node in control_nodes(program.control + program.egress):
        if isinstance(node, ir.ApplyTable):
            yield from (key.field for key in program.table(node.table).keys)
        elif isinstance(node, ir.If):
            yield from condition_operands(node.condition)


def expressions(program: ir.Program) -> Iterator[ir.Expression]:
    """Every expression that actions, keys, conditions and the beginning evaluate, and everything in it."""
    of_statements = [e for statement in statements(program) for e in operands(statement)]
    for whole in (*of_statements, *(a.value for a in program.initial), *_asked(program)):
        yield from subexpressions(whole)


def _fields_of(program: ir.Program, header: str) -> set[ir.FieldRef]:
    return {ir.FieldRef(header, f.name) for f in program.header(header).fields}


def _fields(expressions: Iterable[ir.Expression]) -> set[ir.FieldRef]:
    return {e for expression in expressions for e in subexpressions(expression) if isinstance(e, ir.FieldRef)}


def deciding_fields(program: ir.Program) -> set[ir.FieldRef]:
    """Fields that decide what happens to a packet: of selects, conditions and keys, and those that checksums verify."""
    found = {table.selector for table in applied_tables(program) if table.selector}
    found |= _fields(_asked(program)) | _fields(e for state in program.parser for e in state.selected)
    for checksum in program.verified:
        found |= _fields_of(program, checksum.header)
    return found


IDLE = (ir.Assign, ir.Hash, ir.ReadRegister)
"""Statements that do nothing but write a field."""


def needed_fields(program: ir.Program) -> set[ir.FieldRef]:
    """Fields that anything but other metadata depends on, which is needed for nothing itself."""
    bodies = [*(s for s in statements(program) if not isinstance(s, ir.Digest)), *parser_statements(program)]
    beyond = [s for s in bodies if not isinstance(s, IDLE) or s.destination.header != ir.METADATA]
    return _with_sources(deciding_fields(program) | _fields(e for s in beyond for e in operands(s)), bodies)


def _with_sources(fields: set[ir.FieldRef], bodies: Iterable[ir.Statement | ir.ParserStatement]) -> set[ir.FieldRef]:
    """Fields, and those that they are computed from."""
    computed = [(ref, _fields(operands(s))) for s in bodies if (ref := destination(s)) is not None]
    found, before = set(fields), -1
    while len(found) > before:
        before = len(found)
        found = found.union(*(sources for ref, sources in computed if ref in found))
    return found


@ir.once
def unused_metadata(program: ir.Program) -> frozenset[ir.FieldRef]:
    """Metadata on which nothing depends, and which only idle statements write; compilers leave it out."""
    found = {ir.FieldRef(ir.METADATA, f.name) for f in program.metadata} - needed_fields(program)
    kept = (s for s in statements(program) if not isinstance(s, IDLE))
    return frozenset(found - {destination(s) for s in kept})


@ir.once
def read_fields(program: ir.Program) -> set[ir.FieldRef]:
    """Fields that an expression, a key, a condition, a select or a checksum reads; callers must not change the set."""
    bodies = (*statements(program), *(s for state in program.parser for s in state.body))
    found = deciding_fields(program) | _fields(e for s in bodies for e in operands(s))
    return found.union(*(_fields_of(program, checksum.header) for checksum in program.updated))


def reorders(program: ir.Program) -> bool:
    """Whether extracted headers are emitted in another order than they are declared, or not all of them."""
    extracted = {name for state in program.parser for name in state.extracts}
    order = [h.name for h in program.headers if h.name in extracted]
    return [name for name in program.emit if name in extracted] != order


def changes_layout(program: ir.Program) -> bool:
    """Whether a packet may be sent with other headers, or in another order, than it came with."""
    changed = (s.header for s in statements(program) if isinstance(s, ir.AddHeader | ir.RemoveHeader))
    return reorders(program) or not set(program.emit).isdisjoint(changed)


@ir.once
def unneeded_headers(program: ir.Program) -> frozenset[str]:
    """Headers on whose fields nothing depends, and whose validity decides nothing but whether they are sent."""
    bodies = tuple(action.body for action in program.actions)
    asked = set(_asked_for((program.parser, program.control, program.egress, program.updated, bodies)))
    asked |= {ref.header for ref in needed_fields(program)}
    asked |= {ref.header for ref in written_fields(program)} & set(program.emit)
    return frozenset(h.name for h in program.headers) - asked


def _asked_for(what: object) -> Iterator[str]:
    """Headers for whose validity something asks; what adds a header that is not there yet does not ask."""
    match what:
        case ir.Branch(ir.Not(ir.IsValid(header)), (ir.AddHeader(added, ()),), ()) if added == header:
            return
        case ir.IsValid(header):
            yield header
        case tuple():
            for each in what:
                yield from _asked_for(each)
        case _ if is_dataclass(what):
            for f in fields(what):
                yield from _asked_for(getattr(what, f.name))


def needs_restore(program: ir.Program) -> bool:
    """Whether a packet that was processed once would be processed otherwise a second time, or its buffer was used.

    A load generator that uses packet buffers again has to restore their headers then.
    """
    if changes_layout(program) or any(isinstance(s, ir.Clone | ir.Multicast) for s in statements(program)):
        return True
    decided_by = _with_sources(deciding_fields(program), statements(program))
    return any(ref.header != ir.METADATA and ref in decided_by for ref in written_fields(program))


def masked_values(match: ir.Match, width_bits: int) -> Iterator[tuple[int, int]]:
    """Values and masks that take what a match takes."""
    ones = (1 << width_bits) - 1
    if match.low == match.high:
        yield match.low & ones, match.mask & ones
        return
    low, high = match.low & ones, match.high & ones
    while low <= high:
        size = low & -low or 1 << width_bits
        while low + size - 1 > high:
            size >>= 1
        yield low, ones & ~(size - 1)
        low += size
