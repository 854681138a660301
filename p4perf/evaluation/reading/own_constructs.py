"""What statements, conditions and tables of p4perf's own programs are, in the vocabulary of cost models."""

from __future__ import annotations

from p4perf.generators.analysis import condition_operands, operands, subexpressions
from p4perf.generators.program import (
    METADATA,
    AddHeader,
    Assign,
    BinaryOp,
    Clone,
    Condition,
    CountPacket,
    Drop,
    Expression,
    Fence,
    FieldRef,
    Hash,
    MeterPacket,
    Multicast,
    PassNumber,
    Program,
    Random,
    ReadRegister,
    Recirculate,
    RemoveHeader,
    Resubmit,
    RunOperator,
    SetEgress,
    Statement,
    Table,
    WriteRegister,
)
from p4perf.models.program.constructs import Construct, construct

INDEX_BITS = 32
"""Width in which indices, ports and passes are computed."""


def of_statement(program: Program, statement: Statement, where: str, packet_bytes: int) -> tuple[Construct, ...]:
    """What a packet meets at one statement, what it computes first.

    The writing of a result belongs to externs, and that of its fields to adding a header. A fence costs nothing that
    anybody asks for.
    """
    bits = program.width_bits(statement.destination) if isinstance(statement, Assign) else INDEX_BITS
    computed = tuple(c for o in operands(statement) for c in _computed(o, bits, where))
    own = _itself(program, statement, where, packet_bytes)
    return computed if own is None else (*computed, own)


def _computed(expression: Expression, bits: int, where: str) -> tuple[Construct, ...]:
    found = [e for e in subexpressions(expression) if isinstance(e, BinaryOp)]
    return tuple(construct("compute", where, operator=e.operator, bits=bits) for e in found)


def _itself(program: Program, statement: Statement, where: str, packet_bytes: int) -> Construct | None:
    match statement:
        case Assign(ref):
            to = "metadata" if ref.header == METADATA else "header"
            return construct("write", where, bits=program.width_bits(ref), to=to)
        case SetEgress():
            return construct("set egress", where)
        case Drop():
            return construct("drop", where)
        case AddHeader(header):
            return construct("add header", where, bytes=program.header(header).size_bytes)
        case RemoveHeader(header):
            return construct("remove header", where, bytes=program.header(header).size_bytes)
        case Hash(_, algorithm, fields):
            size = sum(program.width_bits(f) for f in fields) // 8
            return construct("hash", where, algorithm=algorithm, bytes=size)
        case CountPacket(name):
            return construct("counter", where, cells=program.counter(name).size)
        case MeterPacket(_, name):
            return construct("meter", where, cells=program.meter(name).size)
        case ReadRegister(_, name):
            register = program.register(name)
            return construct("register read", where, cells=register.size, bits=register.width_bits)
        case WriteRegister(name):
            register = program.register(name)
            return construct("register write", where, cells=register.size, bits=register.width_bits)
        case Random(ref):
            return construct("random", where, bits=program.width_bits(ref))
        case Recirculate():
            return construct("recirculate", where)
        case Resubmit():
            return construct("resubmit", where)
        case Clone():
            return construct("clone", where, bytes=packet_bytes)
        case Multicast(ports):
            return construct("multicast", where, ports=len(ports))
        case RunOperator(_, operator):
            return construct("unknown", where, name=f"operator {operator.name}")
        case Fence():
            return None


def of_condition(program: Program, condition: Condition, where: str) -> tuple[Construct, ...]:
    """What a packet meets at a condition, what it computes first; whether a header is valid is one bit."""
    sides = condition_operands(condition)
    widths = [w for side in sides for e in subexpressions(side) if (w := _width_bits(program, e))]
    bits = max(widths, default=INDEX_BITS if sides else 1)
    computed = tuple(c for side in sides for c in _computed(side, bits, where))
    return (*computed, construct("condition", where, bits=bits))


def _width_bits(program: Program, expression: Expression) -> int:
    """Width of a field or a number of passes; 0 of all else, which is as wide as what it is compared with."""
    match expression:
        case FieldRef():
            return program.width_bits(expression)
        case PassNumber():
            return INDEX_BITS
    return 0


def of_lookup(program: Program, table: Table, where: str) -> Construct:
    """What a packet meets at a table, before its action."""
    return construct(
        "lookup",
        where,
        match_kind=program.match_kind(table),
        entries=table.entries.count,
        key_bits=program.key_bits(table),
        action_data_bytes=program.action(table.entries.action).data_bits // 8,
        hit=0.5,
    )
