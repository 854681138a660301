"""Questions about a program, on small programs whose answers are plain to see."""

from __future__ import annotations

from typing import Any

import pytest
from support.component_runs import program_of
from support.parser_states import extracting

from p4perf.programs import ir
from p4perf.programs.analysis import (
    changes_layout,
    control_nodes,
    deciding_fields,
    destination,
    needs_restore,
    nesting_depth,
    operands,
    read_fields,
    statements,
    subexpressions,
    unused_metadata,
    used_actions,
    written_fields,
)

A, B, C, M = ir.FieldRef("h", "a"), ir.FieldRef("h", "b"), ir.FieldRef("h", "c"), ir.FieldRef(ir.METADATA, "m")
YES, NO = ir.CallAction("yes"), ir.CallAction("no")


def program(**changes: Any) -> ir.Program:
    parts: dict[str, Any] = {
        "name": "small",
        "headers": (
            ir.Header("h", (ir.Field("a", 8), ir.Field("b", 8), ir.Field("c", 8))),
            ir.Header("late", (ir.Field("x", 8),)),
        ),
        "metadata": (ir.Field("m", 8),),
        "parser": (extracting("start", ("h",)),),
        "actions": (ir.Action("yes"), ir.Action("no"), ir.Action("unused", body=(ir.Drop(),))),
        "tables": (),
        "control": (YES,),
        "emit": ("h", "late"),
    }
    return ir.Program(**(parts | changes))


def doing(*body: ir.Statement, **changes: Any) -> ir.Program:
    return program(actions=(ir.Action("yes", body=body),), **changes)


def test_control_nodes_and_nesting() -> None:
    inner = ir.If(ir.IsValid("h"), (YES,))
    outer = ir.If(ir.Compare("==", A, ir.Const(1)), (NO, inner), (YES,))
    assert list(control_nodes((outer, NO))) == [outer, NO, inner, YES, YES, NO]
    assert [nesting_depth(nodes) for nodes in ((), (YES,), (inner,), (inner, outer), (outer, inner))] == [0, 0, 1, 2, 2]


def test_actions_that_can_run() -> None:
    table = ir.Table("t", (ir.Key(A),), ("yes", "unused"), "no", ir.EntrySet(3, "yes"))
    assert used_actions(program(control=(NO,))) == ("no",)
    assert used_actions(program(control=(ir.If(ir.IsValid("h"), (), (NO,)), YES))) == ("yes", "no")
    assert used_actions(program(control=(), tables=(table,))) == ()
    applied = program(control=(ir.ApplyTable("t"),), tables=(table,))
    assert used_actions(applied) == ("yes", "no")
    assert list(statements(applied)) == []
    assert list(statements(doing(ir.Drop(), ir.Random(M)))) == [ir.Drop(), ir.Random(M)]


def test_expressions() -> None:
    whole = ir.BinaryOp("+", ir.BinaryOp("^", A, ir.Const(1)), M)
    assert list(subexpressions(whole)) == [whole, whole.left, A, ir.Const(1), M]


@pytest.mark.parametrize(
    ("statement", "reads", "writes"),
    [
        (ir.Assign(A, ir.BinaryOp("+", B, ir.Const(1))), (ir.BinaryOp("+", B, ir.Const(1)),), A),
        (ir.SetEgress(M), (M,), None),
        (ir.Drop(), (), None),
        (ir.AddHeader("late", (("x", A),)), (A,), None),
        (ir.RemoveHeader("h"), (), None),
        (ir.Hash(M, "crc16", (A, B)), (A, B), M),
        (ir.CountPacket("c", A), (A,), None),
        (ir.MeterPacket(M, "m", A), (A,), M),
        (ir.ReadRegister(B, "r", A), (A,), B),
        (ir.WriteRegister("r", A, B), (A, B), None),
        (ir.Random(C), (), C),
        (ir.Clone(3), (), None),
    ],
)
def test_what_statements_read_and_write(statement: ir.Statement, reads: tuple[object, ...], writes: object) -> None:
    assert operands(statement) == reads
    assert destination(statement) == writes


def test_fields_of_a_program() -> None:
    sums = ir.FieldRef("h", "c")
    assert written_fields(doing(ir.Assign(A, B), ir.AddHeader("late"), updated=(sums,))) == {
        A,
        C,
        ir.FieldRef("late", "x"),
    }
    select = extracting("start", ("h",), A, (ir.SelectCase.of_value(1, "start"),))
    assert deciding_fields(doing(ir.Assign(B, C), parser=(select,))) == {A}
    assert deciding_fields(doing(control=(ir.If(ir.Compare("<", ir.BinaryOp("+", B, M), C), (YES,)),))) == {B, C, M}
    table = ir.Table("t", (ir.Key(A), ir.Key(M)), ("yes",), "yes", ir.EntrySet(1, "yes"))
    assert deciding_fields(doing(control=(ir.ApplyTable("t"),), tables=(table,))) == {A, M}
    assert deciding_fields(doing(tables=(table,))) == set()
    assert deciding_fields(doing(verified=(sums,))) == {A, B, C}
    assert read_fields(doing(ir.Assign(A, ir.BinaryOp("+", B, M)))) == {B, M}
    assert read_fields(doing(updated=(sums,))) == {A, B, C}
    assert read_fields(doing(ir.Hash(M, "crc16", (C,)), parser=(select,))) == {A, C}


def test_what_a_meter_is_found_by_is_needed_if_nothing_asks_for_its_colour() -> None:
    index, colour = ir.FieldRef(ir.METADATA, "index"), ir.FieldRef(ir.METADATA, "colour")
    metadata = tuple(ir.Field(ref.field, 8) for ref in (index, colour))
    idle = doing(ir.Assign(index, A), ir.Assign(colour, index), metadata=metadata)
    assert unused_metadata(idle) == {index, colour}
    meters = (ir.Meter("m", 2),)
    metered = doing(ir.Assign(index, A), ir.MeterPacket(colour, "m", index), metadata=metadata, meters=meters)
    assert not unused_metadata(metered)


def test_layouts() -> None:
    assert not changes_layout(doing(ir.Assign(A, B)))
    assert changes_layout(doing(ir.AddHeader("late")))
    assert changes_layout(doing(ir.RemoveHeader("h")))
    assert changes_layout(doing(emit=("late",)))
    both = (extracting("start", ("h", "late")),)
    assert not changes_layout(doing(parser=both))
    assert changes_layout(doing(parser=both, emit=("late", "h")))


@pytest.mark.parametrize(
    ("name", "parameters", "spoils"),
    [
        ("l2fwd", {}, False),
        ("parser_branches", {"branches": 3}, False),
        ("added_headers", {"headers": 0}, False),
        ("added_headers", {"headers": 1}, True),
        ("removed_headers", {"removed": 1}, True),
        ("match_action_table", {"entries": 3, "tables": 2}, False),
        ("header_field_writes", {"writes": 3}, False),
        ("arithmetic", {"operations": 3}, False),
        ("conditionals", {"conditionals": 3}, False),
        ("hash", {"size_bytes": 8}, False),
        ("checksum", {"size_bytes": 8, "operation": "verify"}, False),
        ("checksum", {"size_bytes": 8, "operation": "update"}, False),
        ("register", {"accesses": 3, "operation": "read_write"}, False),
        ("recirculate", {"times": 3}, False),
        ("clone", {"copies": 1}, True),
        ("multicast", {"ports": 1}, True),
    ],
)
def test_components_leave_their_packets_as_they_have_to_be(name: str, parameters: dict[str, Any], spoils: bool) -> None:
    assert needs_restore(program_of(name, **parameters)) == spoils


def test_a_field_that_decides_and_is_written_spoils_the_packet() -> None:
    condition = (ir.If(ir.Compare("==", A, ir.Const(1)), (YES,)),)
    assert needs_restore(doing(ir.Assign(A, ir.Const(2)), control=condition))
    assert not needs_restore(doing(ir.Assign(B, ir.Const(2)), control=condition))
    of_metadata = (ir.If(ir.Compare("==", M, ir.Const(1)), (YES,)),)
    assert not needs_restore(doing(ir.Assign(M, ir.Const(2)), control=of_metadata))
    copied = doing(ir.Assign(M, ir.BinaryOp("+", M, B)), ir.Assign(B, ir.Const(2)), control=of_metadata)
    assert needs_restore(copied)
    further = doing(ir.Assign(M, A), ir.Assign(A, B), ir.Assign(B, ir.Const(2)), control=of_metadata)
    assert needs_restore(further)
    assert not needs_restore(doing(ir.Assign(M, A), ir.Assign(B, ir.Const(2)), control=of_metadata))
