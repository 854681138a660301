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
"""Width in which indices and ports are computed."""


def of_statement(program: Program, statement: Statement, where: str, frame_bytes: int) -> tuple[Construct, ...]:
    """What a packet meets at one statement, the operands first."""
    bits = _destination_bits(program, statement)
    computed = tuple(c for o in operands(statement) for c in _computed(o, bits, where))
    return (*computed, *_itself(program, statement, bits, where, frame_bytes))


def _destination_bits(program: Program, statement: Statement) -> int:
    if isinstance(statement, Assign | Hash | MeterPacket | ReadRegister | Random | RunOperator):
        return program.width_bits(statement.destination)
    if isinstance(statement, WriteRegister):
        return program.register(statement.register).width_bits
    return INDEX_BITS


def _computed(expression: Expression, bits: int, where: str) -> tuple[Construct, ...]:
    found = [e for e in subexpressions(expression) if isinstance(e, BinaryOp)]
    return tuple(construct("compute", where, operator=e.operator, bits=bits) for e in found)


def _itself(program: Program, statement: Statement, bits: int, where: str, frame_bytes: int) -> tuple[Construct, ...]:
    match statement:
        case Assign(ref):
            to = "metadata" if ref.header == METADATA else "header"
            return (construct("write", where, bits=bits, to=to),)
        case SetEgress():
            return (construct("set egress", where),)
        case Drop():
            return (construct("drop", where),)
        case AddHeader(header, values):
            sizes = [program.width_bits(FieldRef(header, name)) for name, _ in values]
            written = tuple(construct("write", where, bits=size, to="header") for size in sizes)
            return (construct("add header", where, bytes=program.header(header).size_bytes), *written)
        case RemoveHeader(header):
            return (construct("remove header", where, bytes=program.header(header).size_bytes),)
        case Hash(_, algorithm, fields):
            size = -(-sum(program.width_bits(f) for f in fields) // 8)
            return (construct("hash", where, algorithm=algorithm, bytes=size),)
        case CountPacket(name):
            return (construct("counter", where, cells=program.counter(name).size),)
        case MeterPacket(_, name):
            return (construct("meter", where, cells=program.meter(name).size),)
        case ReadRegister(_, name) | WriteRegister(name):
            register = program.register(name)
            if isinstance(statement, ReadRegister):
                return (construct("register read", where, cells=register.size, bits=register.width_bits),)
            return (construct("register write", where, cells=register.size, bits=register.width_bits),)
        case Random():
            return (construct("random", where, bits=bits),)
        case Recirculate():
            return (construct("recirculate", where),)
        case Resubmit():
            return (construct("resubmit", where),)
        case Clone():
            return (construct("clone", where, bytes=frame_bytes),)
        case Multicast(ports):
            return (construct("multicast", where, ports=len(ports)),)
        case RunOperator(_, operator):
            return (construct("unknown", where, name=f"operator {operator.name}"),)
        case Fence():
            return (construct("unknown", where, name="fence"),)


def of_condition(program: Program, condition: Condition, where: str) -> tuple[Construct, ...]:
    """What a packet meets at a condition."""
    sides = condition_operands(condition)
    refs = [e for side in sides for e in subexpressions(side) if isinstance(e, FieldRef)]
    bits = max((program.width_bits(ref) for ref in refs), default=INDEX_BITS if sides else 1)
    computed = tuple(c for side in sides for c in _computed(side, bits, where))
    return (*computed, construct("condition", where, bits=bits))


def of_lookup(program: Program, table: Table, where: str) -> Construct:
    """What a packet meets at a table, before its action."""
    data = max((program.action(name).data_bits for name in table.actions), default=0)
    return construct(
        "lookup",
        where,
        match_kind=program.match_kind(table),
        entries=table.entries.count,
        key_bits=program.key_bits(table),
        action_data_bytes=-(-data // 8),
        hit=0.5,
    )
