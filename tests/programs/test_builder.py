from __future__ import annotations

import pytest

from p4perf.errors import CapabilityError
from p4perf.programs import ir
from p4perf.programs.builder import ProgramBuilder

FIRST, SECOND, THIRD = (ir.Header(name, (ir.Field("type", 8),)) for name in ("first", "second", "third"))


def test_headers_form_a_chain_and_packets_take_it_to_its_end() -> None:
    builder = ProgramBuilder("chain")
    builder.add_header(FIRST, {"type": 1})
    builder.add_header(SECOND, select=("type", 7))
    builder.add_header(THIRD)
    start, second, third = builder.program().parser
    assert (start.name, start.extracts, start.select) == ("start", ("first",), ir.FieldRef("first", "type"))
    assert (start.cases, start.default) == ((ir.SelectCase.of_value(7, "parse_second"),), ir.ACCEPT)
    assert (second.select, second.default) == (None, "parse_third")
    assert third.default == ir.ACCEPT
    assert builder.packets(64).headers[0].values == (("type", 7),)
    assert builder.program().emit == ("first", "second", "third")


def test_names_are_made_unique() -> None:
    builder = ProgramBuilder("names")
    assert builder.unique("x") == "x"
    for name in ("x", "x_1"):
        builder.actions.append(ir.Action(name))
    assert builder.unique("x") == "x_2"
    builder.metadata.append(ir.Field("x_2", 8))
    assert builder.unique("x") == "x_3"


def test_queries_and_varying_fields() -> None:
    builder = ProgramBuilder("queries")
    builder.add_header(FIRST)
    assert builder.headers == [FIRST]
    assert builder.last_header == FIRST
    builder.vary(ir.FieldRef("first", "type"), 9)
    assert [(v.field.header, v.count) for v in builder.packets(64).varying] == [("first", 9)]


BRANCHES = [(n, ir.Header(f"branch_{n}", (ir.Field("type", 8),))) for n in (5, 6, 7)]


def test_a_fork_ends_the_chain_and_packets_take_the_first_branch() -> None:
    builder = ProgramBuilder("fork")
    builder.add_header(FIRST)
    builder.add_branches("type", BRANCHES, {"type": 9})
    program = builder.program()
    assert [s.name for s in program.parser] == ["start", "parse_branch_5", "parse_branch_6", "parse_branch_7"]
    assert program.parser[0].cases == tuple(ir.SelectCase.of_value(n, f"parse_branch_{n}") for n in (5, 6, 7))
    assert {s.default for s in program.parser} == {ir.ACCEPT}
    assert [(h.header, h.values) for h in builder.packets(64).headers] == [
        ("first", (("type", 5),)),
        ("branch_5", (("type", 9),)),
    ]
    for refused in (lambda: builder.add_header(SECOND), lambda: builder.add_branches("type", BRANCHES)):
        with pytest.raises(CapabilityError, match="branches of a parser"):
            refused()


def test_a_fork_that_goes_on_goes_on_after_its_last_branch() -> None:
    builder = ProgramBuilder("fork")
    builder.add_header(FIRST)
    builder.add_branches("type", BRANCHES, continued=True)
    builder.add_header(SECOND, select=("type", 3))
    program = builder.program()
    assert program.state("parse_branch_7").select == ir.FieldRef("branch_7", "type")
    assert program.state("parse_branch_7").cases == (ir.SelectCase.of_value(3, "parse_second"),)
    assert program.state("parse_branch_6").select is None
    assert [(h.header, h.values) for h in builder.packets(64).headers] == [
        ("first", (("type", 7),)),
        ("branch_7", (("type", 3),)),
        ("second", ()),
    ]


def test_declared_headers_come_last_and_are_not_parsed() -> None:
    builder = ProgramBuilder("declared")
    builder.add_header(FIRST)
    builder.headers.append(THIRD)
    builder.add_header(SECOND)
    assert builder.program().emit == ("first", "second", "third")
    assert builder.last_header == SECOND
    assert [h.header for h in builder.packets(64).headers] == ["first", "second"]
    assert THIRD in builder.headers


def test_state_and_checksums() -> None:
    builder = ProgramBuilder("state")
    builder.add_header(FIRST)
    builder.counters.append(ir.Counter("c", 2))
    builder.meters.append(ir.Meter("m", 4))
    builder.registers.append(ir.Register("r", 8, 16))
    builder.verified.append(ir.FieldRef("first", "type"))
    builder.updated.append(ir.FieldRef("first", "type"))
    builder.vary(ir.FieldRef("first", "type"), 3, 2)
    program = builder.program()
    assert (program.counters, program.meters, program.registers) == (
        (ir.Counter("c", 2),), (ir.Meter("m", 4),), (ir.Register("r", 8, 16),)
    )  # fmt: skip
    assert program.states == ("c", "r")
    assert (program.counter("c"), program.meter("m"), program.register("r")) == (
        ir.Counter("c", 2), ir.Meter("m", 4), ir.Register("r", 8, 16)
    )  # fmt: skip
    assert program.verified == program.updated == (ir.FieldRef("first", "type"),)
    assert builder.packets(64).varying[0].free_bits == 2
    assert [builder.unique(name) for name in "cmr"] == ["c_1", "m_1", "r_1"]
