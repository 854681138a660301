"""Questions about a program, on small programs whose answers are plain to see."""

from __future__ import annotations

from typing import Any

import pytest
from support.component_runs import program_of

from p4perf.programs.analysis import (
    changes_layout,
    control_nodes,
    deciding_fields,
    destination,
    nesting_depth,
    operands,
    read_fields,
    spoils_packets,
    statements,
    subexpressions,
    used_actions,
    written_fields,
)
from p4perf.programs.ir import (
    METADATA,
    Action,
    AddHeader,
    ApplyTable,
    Assign,
    BinaryOp,
    CallAction,
    Clone,
    Compare,
    Const,
    CountPacket,
    Drop,
    EntrySet,
    Field,
    FieldRef,
    Hash,
    Header,
    HeaderChecksum,
    If,
    IsValid,
    Key,
    MeterPacket,
    ParserState,
    Program,
    Random,
    ReadRegister,
    RemoveHeader,
    SelectCase,
    SetEgress,
    Statement,
    Table,
    WriteRegister,
)

A, B, C, M = FieldRef("h", "a"), FieldRef("h", "b"), FieldRef("h", "c"), FieldRef(METADATA, "m")
YES, NO = CallAction("yes"), CallAction("no")


def program(**changes: Any) -> Program:
    parts: dict[str, Any] = {
        "name": "small",
        "headers": (Header("h", (Field("a", 8), Field("b", 8), Field("c", 8))), Header("late", (Field("x", 8),))),
        "metadata": (Field("m", 8),),
        "parser": (ParserState("start", ("h",)),),
        "actions": (Action("yes"), Action("no"), Action("unused", body=(Drop(),))),
        "tables": (),
        "control": (YES,),
        "emit": ("h", "late"),
    }
    return Program(**(parts | changes))


def doing(*body: Statement, **changes: Any) -> Program:
    return program(actions=(Action("yes", body=body),), **changes)


def test_control_nodes_and_nesting() -> None:
    inner = If(IsValid("h"), (YES,))
    outer = If(Compare("==", A, Const(1)), (NO, inner), (YES,))
    assert list(control_nodes((outer, NO))) == [outer, NO, inner, YES, YES, NO]
    assert [nesting_depth(nodes) for nodes in ((), (YES,), (inner,), (inner, outer), (outer, inner))] == [0, 0, 1, 2, 2]


def test_actions_that_can_run() -> None:
    table = Table("t", (Key(A),), ("yes", "unused"), "no", EntrySet(3, "yes"))
    assert used_actions(program(control=(NO,))) == ("no",)
    assert used_actions(program(control=(If(IsValid("h"), (), (NO,)), YES))) == ("yes", "no")
    assert used_actions(program(control=(), tables=(table,))) == ()
    applied = program(control=(ApplyTable("t"),), tables=(table,))
    assert used_actions(applied) == ("yes", "no")
    assert list(statements(applied)) == []
    assert list(statements(doing(Drop(), Random(M)))) == [Drop(), Random(M)]


def test_expressions() -> None:
    whole = BinaryOp("+", BinaryOp("^", A, Const(1)), M)
    assert list(subexpressions(whole)) == [whole, whole.left, A, Const(1), M]


@pytest.mark.parametrize(
    ("statement", "reads", "writes"),
    [
        (Assign(A, BinaryOp("+", B, Const(1))), (BinaryOp("+", B, Const(1)),), A),
        (SetEgress(M), (M,), None),
        (Drop(), (), None),
        (AddHeader("late", (("x", A),)), (A,), None),
        (RemoveHeader("h"), (), None),
        (Hash(M, "crc16", (A, B)), (A, B), M),
        (CountPacket("c", A), (A,), None),
        (MeterPacket(M, "m", A), (A,), M),
        (ReadRegister(B, "r", A), (A,), B),
        (WriteRegister("r", A, B), (A, B), None),
        (Random(C), (), C),
        (Clone(3), (), None),
    ],
)
def test_what_statements_read_and_write(statement: Statement, reads: tuple[object, ...], writes: object) -> None:
    assert operands(statement) == reads
    assert destination(statement) == writes


def test_fields_of_a_program() -> None:
    sums = HeaderChecksum("h", "c")
    assert written_fields(doing(Assign(A, B), AddHeader("late"), updated=(sums,))) == {A, C, FieldRef("late", "x")}
    select = ParserState("start", ("h",), A, (SelectCase(1, "start"),))
    assert deciding_fields(doing(Assign(B, C), parser=(select,))) == {A}
    assert deciding_fields(doing(control=(If(Compare("<", BinaryOp("+", B, M), C), (YES,)),))) == {B, C, M}
    table = Table("t", (Key(A), Key(M)), ("yes",), "yes", EntrySet(1, "yes"))
    assert deciding_fields(doing(control=(ApplyTable("t"),), tables=(table,))) == {A, M}
    assert deciding_fields(doing(tables=(table,))) == set()
    assert deciding_fields(doing(verified=(sums,))) == {A, B, C}
    assert read_fields(doing(Assign(A, BinaryOp("+", B, M)))) == {B, M}
    assert read_fields(doing(updated=(sums,))) == {A, B, C}
    assert read_fields(doing(Hash(M, "crc16", (C,)), parser=(select,))) == {A, C}


def test_layouts() -> None:
    assert not changes_layout(doing(Assign(A, B)))
    assert changes_layout(doing(AddHeader("late")))
    assert changes_layout(doing(RemoveHeader("h")))
    assert changes_layout(doing(emit=("late",)))
    both = (ParserState("start", ("h", "late")),)
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
    assert spoils_packets(program_of(name, **parameters)) == spoils


def test_a_field_that_decides_and_is_written_spoils_the_packet() -> None:
    condition = (If(Compare("==", A, Const(1)), (YES,)),)
    assert spoils_packets(doing(Assign(A, Const(2)), control=condition))
    assert not spoils_packets(doing(Assign(B, Const(2)), control=condition))
    of_metadata = (If(Compare("==", M, Const(1)), (YES,)),)
    assert not spoils_packets(doing(Assign(M, Const(2)), control=of_metadata))
    copied = doing(Assign(M, BinaryOp("+", M, B)), Assign(B, Const(2)), control=of_metadata)
    assert spoils_packets(copied)
    further = doing(Assign(M, A), Assign(A, B), Assign(B, Const(2)), control=of_metadata)
    assert spoils_packets(further)
    assert not spoils_packets(doing(Assign(M, A), Assign(B, Const(2)), control=of_metadata))
