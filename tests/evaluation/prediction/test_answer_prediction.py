"""The answer for a program whose cost is worked out by hand."""

from dataclasses import replace

import pytest
from support.pricing import PRICES, FlatPricing, lookup, router

from p4perf.errors import CapabilityError, UsageError
from p4perf.evaluation.prediction.answer import Conditions, TargetModel, predict
from p4perf.evaluation.prediction.breakdown import CostLine, base_name, describe
from p4perf.evaluation.prediction.programs import (
    Change,
    Pair,
    ProgramSubject,
    changed,
    difference,
    parse_change,
    uniform,
    usual,
)
from p4perf.evaluation.prediction.record import answer, breakdown_rows, node_rows, record, summary
from p4perf.models.program import Charge, Construct, Edge, Node, ProgramGraph, construct
from p4perf.models.program.costs import NOTHING

CALM = Conditions(offered=None)


def model(**more):
    return TargetModel(FlatPricing(**more), "bench", 2e9, "test")


def test_every_way_of_the_router_has_its_price():
    found = predict(router(), model(), CALM)
    assert found.cycles("lowest-cost").value == pytest.approx(82)
    assert found.cycles("highest-cost").value == pytest.approx(92)
    assert found.cycles().value == pytest.approx(0.8 * 92 + 0.2 * 82)
    assert found.core_mpps.value == pytest.approx(2e3 / 90)
    assert [step.node for step in found.path("lowest-cost").steps] == ["start", "ingress.fib", "drop"]
    assert [step.node for step in found.path("highest-cost").steps] == ["start", "ingress.fib", "forward", "deparser"]
    assert found.analysis.paths == 2


def test_the_spread_has_the_mean_of_the_breakdown():
    found = predict(router(), model(interaction=-5.0), CALM)
    assert found.cycles().value == pytest.approx(85)
    assert found.spread.mean == pytest.approx(85)


def test_rows_of_a_breakdown_add_up():
    found = predict(router(), model(interaction=7.0), CALM)
    for rows in (breakdown_rows(found.expected), node_rows(found.expected)):
        assert sum(row["cycles"] for row in rows) == pytest.approx(found.cycles().value)
    assert sum(row["share"] for row in node_rows(found.expected)) == pytest.approx(1)
    nodes = [row["node"] for row in node_rows(found.expected)]
    assert nodes == ["", "start", "ingress.fib", "forward", "drop", "deparser", ""]


def test_items_of_a_breakdown_add_up():
    found = predict(router(), model(), CALM)
    items = found.expected.by_item()
    assert sum(cycles.value for cycles in items.values()) == pytest.approx(found.cycles().value - 20)
    assert [*items] == [("parser", ""), ("tables", "ingress.fib"), ("control", ""), ("deparser", "")]


@pytest.mark.parametrize(
    ("node", "part", "kind", "item"),
    [
        ("acl@2 #3", "tables", "lookup", ("tables", "acl")),
        ("ingress.acl:deny_2 #2", "actions", "drop", ("actions", "ingress.acl")),
        ("acl@2:deny@4", "conditions", "condition", ("actions", "acl")),
        ("line_139@2", "actions", "write", ("control", "")),
        ("apply@12", "conditions", "condition", ("control", "")),
        ("L_OTHER_7", "blocks", "compute", ("control", "")),
        ("L_PARSE_PARSE_IPV4_2", "parser", "extract", ("parser", "")),
        ("all decisions", "conditions", "mispredicted branch", ("mispredictions", "")),
        ("match_action_table@1", "blocks", "component", ("components", "match_action_table@1")),
    ],
)
def test_what_a_line_of_a_breakdown_belongs_to(node, part, kind, item):
    assert CostLine(node, part, Charge(Construct(kind), 1.0, NOTHING)).item == item


def test_what_has_only_a_bound_widens_the_interval_and_is_named():
    graph = router()
    hashed = construct("hash", "action forward", algorithm="crc32", bytes=12)
    node = graph.nodes["forward"]
    nodes = {**graph.nodes, "forward": Node("forward", "action", (*node.constructs, hashed), node.edges)}
    plain, found = predict(graph, model(), CALM), predict(ProgramGraph("r", nodes, "start", "test"), model(), CALM)
    assert found.cycles().high - plain.cycles().high == pytest.approx(0.8 * 40)
    assert found.cycles().low == pytest.approx(plain.cycles().low)
    assert any("bounds" in w and "hash crc32" in w for w in found.warnings)
    assert not found.open_above


def test_what_has_no_price_at_all_leaves_the_cost_open_above():
    found = predict(router(), model(prices={k: v for k, v in PRICES.items() if k != "lookup"}), CALM)
    assert found.open_above
    assert any("no price" in w and "ingress.fib" in w for w in found.warnings)
    assert summary(found).open_above is True
    assert [line.charge.basis for line in found.expected.lines].count("unknown") == 1


def test_entries_beyond_what_was_measured_are_named():
    found = predict(changed(router(), [parse_change("fib.entries=2e6")]), model(), CALM)
    assert any("outside of what was measured" in w for w in found.warnings)
    assert [line.charge.basis for line in found.expected.lines].count("extrapolated") == 1


def test_ways_that_nobody_weighed_are_named_unless_uniform_is_asked_for():
    nodes = {
        "if": Node("if", "condition", (construct("condition", bits=8),), (Edge("true", "t"), Edge("false", ""))),
        "t": Node("t", "action", (construct("write", bits=8, to="header"),)),
    }
    graph = ProgramGraph("branch", nodes, "if", "test")
    found = predict(graph, model(), CALM)
    assert found.cycles().value == pytest.approx(20 + 1 + 0.5 * 3)
    assert any("unknown branch probabilities" in w and "if" in w for w in found.warnings)
    assert not predict(uniform(graph), model(), CALM).warnings


def test_records_are_json_and_hold_the_three_paths():
    found = predict(router(frame_bytes=128), model(), Conditions())
    data = record(found).as_dict()
    assert [each["path"] for each in data["paths"]] == ["expected", "lowest-cost", "highest-cost"]
    assert data["conditions"]["frame_bytes"] == 128
    assert data["paths"][2]["steps"][1] == "ingress.fib: hit"
    assert data["latency"]["p50_us"]["value"] > 0
    assert data["sources"] == ["flat/drop", "flat/emit", "flat/extract", "flat/lookup", "flat/write"]


def test_more_entries_cost_what_the_prices_say():
    before = predict(router(), model(), CALM)
    after = predict(changed(router(), [parse_change("fib.entries=2000")]), model(), CALM, changes=("c",))
    found = difference(before, after)
    assert found.cycles.value == pytest.approx(10)
    assert [line.node for line in found.lines] == ["ingress.fib"]
    assert found.cycles.low < 10 < found.cycles.high
    assert found.mpps.value == pytest.approx(2e3 / 100 - 2e3 / 90)
    assert found.mpps.low <= found.mpps.value <= found.mpps.high


def test_what_is_the_same_cancels_with_its_errors():
    before = predict(router(), model(), CALM)
    after = predict(changed(router(), [Change("deparser")]), model(), CALM)
    found = difference(before, after)
    assert (found.cycles.value, found.cycles.low, found.cycles.high) == pytest.approx((-3.2, -3.52, -2.88))


def test_without_a_table_its_actions_go_too():
    graph = changed(router(), [Change("ingress.fib")])
    assert set(graph.nodes) == {"start", "ingress.fib", "deparser"}
    assert predict(graph, model(), CALM).cycles().value == pytest.approx(26)


def test_without_a_table_what_decides_between_its_actions_goes_too():
    nodes = {
        "t": Node("t", "table", (lookup(),), (Edge("hit", "t hit", 0.5), Edge("miss", "t:lose", 0.5))),
        "t hit": Node("t hit", "block", (), (Edge("send", "t:send", 0.5), Edge("drop", "t:lose", 0.5))),
        "t:send": Node("t:send", "action", (construct("write", bits=8, to="header"),), (Edge("", "out"),)),
        "t:lose": Node("t:lose", "action", (construct("drop"),)),
        "out": Node("out", "deparser", (construct("emit", bytes=14),)),
    }
    assert set(changed(ProgramGraph("p", nodes, "t", "test"), [Change("t")]).nodes) == {"t", "out"}


def test_without_a_table_packets_go_on_where_its_ways_meet():
    nodes = {
        "t": Node("t", "table", (lookup(),), (Edge("hit", "a", 0.5), Edge("miss", "b", 0.5))),
        "a": Node("a", "action", (construct("write", bits=8, to="header"),), (Edge("", "out"),)),
        "b": Node("b", "action", (), (Edge("", "out"),)),
        "out": Node("out", "deparser", (construct("emit", bytes=14),)),
    }
    graph = changed(ProgramGraph("p", nodes, "t", "test"), [Change("t")])
    assert set(graph.nodes) == {"t", "out"}
    assert predict(graph, model(), CALM).cycles().value == pytest.approx(24)


def test_without_a_table_packets_still_come_to_the_next_one_if_an_action_had_led_to_a_copy_of_it():
    nodes = {
        "acl": Node("acl", "table", (lookup(),), (Edge("hit", "acl hit", 1.0), Edge("miss", "fib", 0.0))),
        "acl hit": Node("acl hit", "block", (), (Edge("lose", "acl:lose", 1.0), Edge("NoAction", "fib", 0.0))),
        "acl:lose": Node("acl:lose", "action", (construct("set egress"),), (Edge("", "fib #2"),)),
        "fib": Node("fib", "table", (lookup(),), (Edge("", "out"),)),
        "fib #2": Node("fib #2", "table", (lookup(),), (Edge("", "out"),)),
        "out": Node("out", "deparser", (construct("emit", bytes=14),)),
    }
    graph = changed(ProgramGraph("p", nodes, "acl", "test"), [Change("acl")])
    assert set(graph.nodes) == {"acl", "fib", "out"}


def test_the_share_of_hits_moves_packets():
    graph = changed(router(), [parse_change("fib.hit=0.25")])
    assert predict(graph, model(), CALM).cycles().value == pytest.approx(0.25 * 92 + 0.75 * 82)


def test_changes_go_to_all_copies_of_a_node():
    graph = router()
    twin = Node("ingress.fib #2", "table", graph.nodes["ingress.fib"].constructs, ())
    start = Node("start", "parser state", (), (Edge("a", "ingress.fib", 0.5), Edge("b", "ingress.fib #2", 0.5)))
    both = ProgramGraph("r", {**graph.nodes, "start": start, twin.name: twin}, "start", "test")
    after = changed(both, [parse_change("fib.entries=2000")])
    assert [after.nodes[n].constructs[0].number("entries") for n in ("ingress.fib", "ingress.fib #2")] == [2000, 2000]
    rows = node_rows(predict(after, model(), CALM).expected)
    assert [(r["node"], r["times"]) for r in rows if r["part"] == "tables"] == [("ingress.fib", 1.0)]
    assert base_name("ingress.fib #12") == "ingress.fib"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("fib", "expected NAME.SIZE=VALUE"),
        ("fib.entrys=3", "did you mean entries"),
        ("fib.entries=many", "number"),
        ("fib.hit=2", "hit must be at most 1, got 2"),
        ("fib.entries=-3", "entries must be at least 0, got -3"),
        ("fib.match_kind=fuzzy", "match kind"),
    ],
)
def test_changes_that_say_nothing_are_refused(text, said):
    with pytest.raises(UsageError) as error:
        parse_change(text)
    assert said in str(error.value)


@pytest.mark.parametrize(("text", "said"), [("acl.entries=3", "no acl"), ("drop.entries=3", "drop has no entries")])
def test_changes_of_what_is_not_there_are_refused(text, said):
    with pytest.raises(UsageError, match=said):
        changed(router(), [parse_change(text)])


def test_a_program_that_does_nothing_costs_the_baseline():
    graph = ProgramGraph("nothing", {"a": Node("a", "end")}, "a", "test")
    found = predict(graph, model(), CALM)
    assert found.cycles().value == found.expected.breakdown.baseline > 0


def branching(*, deny):
    """A parser with two branches; one leads to a table whose entries forward (or deny) and to a second table."""
    edges = (Edge("0x800", "acl"), Edge("default", "dropped"))
    hit = "dropped" if deny else "fib"
    nodes = [
        Node("start", "parser state", (construct("select", cases=1, key_bits=16),), edges),
        Node("acl", "table", (lookup(),), (Edge("hit", hit), Edge("miss", "fib"))),
        Node("fib", "table", (lookup(),), (Edge("miss", "dropped"), Edge("hit", "sent", 0.75))),
        Node("dropped", "end", (construct("drop"),)),
        Node("sent", "end"),
    ]
    return ProgramGraph("branching", {node.name: node for node in nodes}, "start", "test")


@pytest.mark.parametrize(("deny", "hit"), [(False, 1.0), (True, 0.0)])
def test_packets_usually_hit_and_are_sent(deny, hit):
    found = usual(branching(deny=deny))
    shares = {name: {e.label: e.probability for e in node.edges} for name, node in found.nodes.items()}
    assert shares["start"] == {"0x800": 1.0, "default": 0.0}
    assert shares["acl"] == {"hit": hit, "miss": 1 - hit}
    assert shares["fib"] == {"miss": 0.25, "hit": 0.75}, "what is stated stays"
    assert found.assumed == ("start", "acl", "fib")


def test_a_difference_that_is_not_known_is_not_stated():
    """Prices that are only bounded say nothing of another size; what is left out is known within its bounds."""
    nodes = router().nodes
    hashed = replace(nodes["forward"], constructs=(construct("hash", algorithm="crc32", bytes=12),))
    graph = replace(router(), nodes={**nodes, "forward": hashed})
    before = predict(graph, model(), CALM)
    grown = difference(before, predict(changed(graph, [parse_change("forward.bytes=1e3")]), model(), CALM))
    assert (grown.cycles, grown.mpps, grown.unknown) == (None, None, ("forward",))
    without = difference(before, predict(changed(graph, [Change("forward")]), model(), CALM))
    assert (without.cycles.value, without.cycles.low, without.cycles.high) == pytest.approx((-16, -32, 0))


def test_a_model_without_a_clock_needs_one():
    bare = TargetModel(FlatPricing(), "bench", None, "test")
    with pytest.raises(UsageError, match="clock"):
        predict(router(), bare, CALM)
    assert predict(router(), bare, Conditions(offered=None, clock_hz=1e9)).core_mpps.value == pytest.approx(1e3 / 90)


def test_what_a_target_refuses_is_listed_and_the_others_are_answered():
    def check(subject, target):
        if target == "flat":
            raise CapabilityError("flat has no tables")

    models = [model(), model(target="other")]
    found = answer([Pair(ProgramSubject(router()))], models, CALM, check=check)
    assert [p.model.target for p in found.predictions] == ["other"]
    assert [(r.model, r.reason) for r in found.refusals] == [("flat@bench", "flat has no tables")]
    with pytest.raises(CapabilityError, match="no tables"):
        answer([Pair(ProgramSubject(router()))], models[:1], CALM, check=check)


def test_the_unchanged_program_stands_in_front_of_the_changed_one():
    after = ProgramSubject(changed(router(), [Change("deparser")]), ("without deparser",))
    found = answer([Pair(after, ProgramSubject(router()))], [model()], CALM)
    assert [p.changes for p in found.predictions] == [(), ("without deparser",)]
    assert found.changed == found.predictions[1:]
    assert found.differences[0].cycles.value == pytest.approx(-3.2)


def test_constructs_in_words():
    assert describe(lookup()) == "lookup exact, 1000 entries, 32 bit key"
    assert describe(lookup(hit=0.5)) == "lookup exact, 1000 entries, 32 bit key, hit 0.5"
    assert describe(construct("component", name="meter", executions=8)) == "meter executions=8"


def test_what_is_only_met_more_often_keeps_its_error():
    before = predict(router(), model(), CALM)
    after = predict(changed(router(), [parse_change("fib.hit=1")]), model(), CALM)
    lines = {line.node: line.cycles for line in difference(before, after).lines}
    emit = lines["deparser"]
    assert (emit.value, emit.low, emit.high) == pytest.approx((0.8, 0.72, 0.88))
    assert lines["drop"].value == 0
