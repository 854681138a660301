"""What is known of packets before they are seen: facts that conditions ask for, constants, actions of entries."""

from __future__ import annotations

from p4perf.evaluation.prediction.reading.constructs import EGRESS_PORT, GROUPS, PORTS
from p4perf.programs import ir
from p4perf.programs.analysis import OPERATE
from p4perf.programs.reading.flow import Fact

OUTCOME = "?"
"""Behind the name of a port or group: what becomes of the packet, which is not dropped for a port that is unknown."""


def hit_actions(table: ir.Table, idle: bool) -> tuple[str, ...]:
    """The actions that packets may run that find an entry: those of its entries, or all.

    Args:
        idle: whether its default action does nothing; then no entry has it.
    """
    if table.listed:
        return table.listed
    return tuple(a for a in table.actions if a != table.default_action or not idle) or table.actions


def constant_of(value: ir.Expression) -> int | None:
    """The value of an expression that needs no packet, None if it needs one."""
    match value:
        case ir.Const(number):
            return number
        case ir.BinaryOp(operator, ir.Const(left), ir.Const(right)):
            return OPERATE[operator](left, right)
    return None


def fact_of(condition: ir.Condition, added: bool) -> tuple[Fact | None, bool]:
    """The fact that a condition asks for, if it asks for one, and whether it must not hold."""
    match condition:
        case ir.Not(inner):
            fact, inverted = fact_of(inner, added)
            return fact, fact is not None and not inverted
        case ir.IsValid(header):
            return header, False
        case ir.Compare(comparator, ir.Const() as value, ir.FieldRef() as ref):
            return fact_of(ir.Compare(comparator, ref, value), added) if comparator in ("==", "!=") else (None, False)
        case ir.Compare(comparator, ir.FieldRef(header, name), ir.Const(value)) if comparator in ("==", "!="):
            if added and name in (*PORTS, *GROUPS, EGRESS_PORT):
                name = (PORTS[1] if name == EGRESS_PORT else name) + OUTCOME
            return (f"{header}.{name}", value), comparator == "!="
    return None, False
