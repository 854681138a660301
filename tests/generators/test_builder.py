from __future__ import annotations

from p4perf.generators.builder import ProgramBuilder
from p4perf.generators.program import ACCEPT, Action, Field, FieldRef, Header, SelectCase

FIRST, SECOND, THIRD = (Header(name, (Field("type", 8),)) for name in ("first", "second", "third"))


def test_headers_form_a_chain_and_packets_take_it_to_its_end() -> None:
    builder = ProgramBuilder("chain")
    builder.add_header(FIRST, {"type": 1})
    builder.add_header(SECOND, select="type", select_value=7)
    builder.add_header(THIRD)
    start, second, third = builder.program().parser
    assert (start.name, start.extracts, start.select) == ("start", ("first",), FieldRef("first", "type"))
    assert (start.cases, start.default) == ((SelectCase(7, "parse_second"),), ACCEPT)
    assert (second.select, second.default) == (None, "parse_third")
    assert third.default == ACCEPT
    assert builder.packets(64).headers[0].values == (("type", 7),)
    assert builder.program().emit == ("first", "second", "third")


def test_names_are_made_unique() -> None:
    builder = ProgramBuilder("names")
    assert builder.unique("x") == "x"
    for name in ("x", "x_1"):
        builder.add_action(Action(name))
    assert builder.unique("x") == "x_2"
    builder.add_metadata(Field("x_2", 8))
    assert builder.unique("x") == "x_3"


def test_queries_and_varying_fields() -> None:
    builder = ProgramBuilder("queries")
    builder.add_header(FIRST)
    assert builder.has_header("first")
    assert not builder.has_header("second")
    assert builder.last_header == FIRST
    builder.vary(FieldRef("first", "type"), 9)
    assert [(v.field.header, v.count) for v in builder.packets(64).varying] == [("first", 9)]
