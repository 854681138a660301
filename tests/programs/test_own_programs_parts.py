"""Packets and entries that are made for programs that were read, ranges of expressions, and damaged JSON."""

from __future__ import annotations

import json
import random
from functools import cache
from pathlib import Path

import pytest
from support.parser_states import extracting

from p4perf.errors import DataError
from p4perf.programs import ir
from p4perf.programs.analysis import control_nodes
from p4perf.programs.exercise import frames
from p4perf.programs.fill import Fill, filled
from p4perf.programs.interpreter import Interpreter
from p4perf.programs.packet_state import PacketState
from p4perf.programs.ranges import value_range
from p4perf.programs.reading.tree import parse_json
from p4perf.programs.reading.v1model import read_v1model
from p4perf.programs.reading.values import identifier

EXAMPLES = Path(__file__).parents[2] / "examples/programs"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*/*.json"))


@cache
def text(name: str) -> str:
    return (EXAMPLES / name / f"{name}.json").read_text()


@cache
def program(name: str) -> ir.Program:
    return read_v1model(parse_json(text(name), name))


@pytest.mark.parametrize("name", NAMES)
def test_packets_come_to_all_states_of_the_parser_and_hit_the_tables(name):
    whole = filled(program(name), {}, default=16)
    met, taken = set(), set()

    def watch(what, outcome):
        if isinstance(what, ir.ParserState):
            met.add(what.name)
            taken.add((what.name, outcome))

    interpreter = Interpreter(whole, watch=watch)
    outcomes = [interpreter.run(frame) for frame in frames(whole, 1000)]
    assert met == {state.name for state in whole.parser}
    assert taken >= {(s.name, case.next_state) for s in whole.parser for case in s.cases}
    assert {hit for o in outcomes for hit in o.hits} == {t.name for t in whole.tables if t.keys}
    assert any(o.sent for o in outcomes)


def test_what_was_read_keeps_the_names_of_the_program():
    nat = program("nat")
    declared = json.loads(text("nat"))
    pipelines = declared["pipelines"]
    assert [t.label for t in nat.tables] == [t["name"] for p in pipelines for t in p["tables"]]
    assert {t.size for t in nat.tables} == {t["max_size"] for p in pipelines for t in p["tables"]}
    assert {a.label for a in nat.actions} - {""} <= {a["name"] for a in declared["actions"]}
    conditions = {c["name"]: c["source_info"]["source_fragment"] for p in pipelines for c in p["conditionals"]}
    found = {n.label: n.text for n in control_nodes(nat.control) if isinstance(n, ir.If) and n.label}
    assert found == conditions
    assert {s.label for s in nat.parser} == {f"parser.{s['name']}" for s in declared["parsers"][0]["parse_states"]}


def test_names_become_identifiers_of_c():
    assert [identifier(name) for name in ("hdr.stack[0]", "ツ.a-b", "ハ", "int", "acl", "1st", "..")] == (
        ["hdr_stack_0", "u30c4_a_b", "u30cf", "_int", "_acl", "_1st", "x"]
    )


def test_the_same_seed_gives_the_same_packets_and_entries():
    nat = program("nat")
    assert filled(nat, {}, default=8) == filled(nat, {}, default=8) != filled(nat, {}, default=8, seed=2)
    assert frames(nat, 50) == frames(nat, 50) != frames(nat, 50, seed=2)
    assert len({len(frame) for frame in frames(nat, 200)}) > 3


def test_so_many_entries_are_made_as_were_asked_for():
    router = filled(program("ipv4_router"), {"MainControl_routes": Fill(300)}, default=5)
    routes, next_hops = (router.table(f"MainControl_{name}") for name in ("routes", "next_hops"))
    assert (len(routes.listing), len(next_hops.listing)) == (300, 5)
    lengths = [entry.matches[0].mask.bit_count() for entry in routes.listing]
    assert lengths == sorted(lengths, reverse=True), "the longest prefix is found first"
    for name in ("routes", "MainControl.routes"):
        assert filled(program("ipv4_router"), {name: Fill(300)}, default=5) == router
    with pytest.raises(DataError, match="no table 'rutes'") as caught:
        filled(program("ipv4_router"), {"rutes": Fill(3)})
    assert caught.value.hint == "did you mean routes?"


@pytest.mark.parametrize("name", ["nat", "int_transit", "rate_limiter", "srv6_endpoint"])
def test_values_lie_within_their_ranges(name, monkeypatch):
    whole = filled(program(name), {}, default=16)
    widths = {p.name: 128 for a in whole.actions for p in a.parameters}
    evaluate, seen = PacketState.evaluate, []

    def checked(self, expression, arguments):
        value, random_ = evaluate(self, expression, arguments)
        within = value_range(whole, expression, widths)
        assert within.low <= value <= within.high, expression
        seen.append(type(expression))
        return value, random_

    monkeypatch.setattr(PacketState, "evaluate", checked)
    interpreter = Interpreter(whole)
    for frame in frames(whole, 300):
        interpreter.run(frame)
    assert {ir.FieldRef, ir.Const, ir.Cast} <= set(seen)


def damaged(content, rng: random.Random):
    """The content with one part removed or replaced."""
    path, at = [], content
    while isinstance(at, dict | list) and at and (len(path) < 2 or rng.random() < 0.85):
        key = rng.choice(list(at)) if isinstance(at, dict) else rng.randrange(len(at))
        path.append((at, key))
        at = at[key]
    holder, key = path[-1]
    if isinstance(holder, dict) and rng.random() < 0.4:
        del holder[key]
    else:
        holder[key] = rng.choice([None, 0, -1, 10**30, "", "x", "0xzz", [], {}, True, [[]], {"op": "?"}])
    return content


@pytest.mark.parametrize("name", NAMES)
def test_damaged_json_is_refused_with_its_place_or_read(name):
    rng = random.Random(name)
    refused = 0
    for _ in range(120):
        root = parse_json(json.dumps(damaged(json.loads(text(name)), rng)), "damaged.json")
        try:
            read_v1model(root)
        except DataError as error:
            refused += bool(error.key or error.location)
            assert error.key or error.location, error  # noqa: PT017
    assert refused > 20


def test_packets_take_a_select_on_bits_that_are_looked_at():
    """A lookahead of 4 B, of which the second byte decides after it was cut out."""
    ahead, seen = ir.FieldRef(ir.METADATA, "ahead"), ir.FieldRef(ir.METADATA, "seen")
    cut = ir.Cast(ir.Cast(ir.BinaryOp(">>", ahead, ir.Const(16)), 32), 8)
    start = ir.ParserState(
        "start",
        (ir.Extract("first"), ir.Assign(ahead, ir.Lookahead(0, 32)), ir.Assign(seen, cut)),
        (seen,),
        (ir.SelectCase((ir.Match.masked(0x34, 0xFF),), "second"),),
        ir.ACCEPT,
    )
    looking = ir.Program(
        name="looking",
        headers=(ir.Header("first", (ir.Field("a", 16),)), ir.Header("next", (ir.Field("b", 32),))),
        metadata=(ir.Field("ahead", 32), ir.Field("seen", 8)),
        parser=(start, ir.ParserState("second", (ir.Extract("next"),), (), (), ir.ACCEPT)),
        actions=(),
        tables=(),
        control=(),
        emit=("first", "next"),
    )
    taken = [frame for frame in frames(looking, 200) if frame[3:4] == b"\x34"]
    assert 40 < len(taken) < 160


def test_packets_choose_among_the_actions_of_an_entry_by_a_field_and_entries_are_counted():
    """As many packets by each of its ports as there are values of the field that lead there."""
    port, choice, key = (ir.FieldRef("h", name) for name in ("port", "choice", "key"))
    send = ir.Action("send", (ir.Field("to", 9),), (ir.SetEgress(ir.ParameterRef("to")),))
    drop = ir.Action("drop", (), (ir.Drop(),))
    header = ir.Header("h", tuple(ir.Field(ref.field, 8) for ref in (port, choice, key)))
    hit = ir.Match.masked(7, 0xFF)
    entry = ir.Entry((hit,), "send", (1,), (("send", (2,)), ("send", (3,))))
    table = ir.Table(
        "t", (ir.Key(key),), ("send", "drop"), "drop", ir.EntryList((entry,)), selector=choice, counter="of_entries"
    )
    whole = ir.Program(
        "chosen",
        (header,),
        (),
        (extracting("start", ("h",)),),
        (send, drop),
        (table,),
        (ir.ApplyTable("t"),),
        ("h",),
        (ir.Counter("of_entries", 1),),
    )
    interpreter = Interpreter(whole)
    ports = [interpreter.run(bytes((0, n, 7))).port for n in range(6)]
    assert ports == [1, 2, 3, 1, 2, 3]
    assert interpreter.run(bytes((0, 0, 8))).port is None
    assert interpreter.state("of_entries") == {0: 6}
    more = filled(whole, {"t": Fill(9)})
    assert more.counter("of_entries").size == len(more.table("t").listing) == 9
    assert any(e.choices for e in more.table("t").listing[1:])
