"""What packets meet in programs of ours, counted by hand."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.captures import capture
from support.parser_states import extracting

from p4perf.evaluation.prediction.answer import met_in
from p4perf.evaluation.prediction.learning.constructs import (
    PacketPath,
    packet_path,
    workload_increment,
    workload_path,
)
from p4perf.evaluation.prediction.operations import drawn_packets
from p4perf.evaluation.prediction.reading import ReadOptions, read_program, shares_of_trace
from p4perf.evaluation.prediction.reading.constructs import Values, of_table
from p4perf.evaluation.prediction.reading.left_out import idle_states
from p4perf.evaluation.prediction.reading.own import read_own
from p4perf.evaluation.prediction.reading.packets import Lookups
from p4perf.evaluation.prediction.reading.points import load_point
from p4perf.experiment.planning import point_workload
from p4perf.models.program import Construct, construct
from p4perf.models.program.graph import mispredicted_branch
from p4perf.models.program.paths import analyse
from p4perf.programs import ir
from p4perf.programs.component import OWN, TrafficPlan, build_workload
from p4perf.programs.own import packed
from p4perf.programs.packets import frame

FRAME_BYTES = 128


def met(name: str, *, hit_ratio: float = 1.0, frame_bytes: int = FRAME_BYTES, **parameters: Any) -> PacketPath:
    workload = build_workload([(name, parameters)], frame_size_bytes=frame_bytes)
    return workload_increment("dpdk-c", workload, TrafficPlan(frame_bytes, hit_ratio=hit_ratio))


def shown(path: PacketPath) -> list[str]:
    """``times kind sizes``, without where."""
    return [
        f"{times:g} {what.kind} {' '.join(f'{v:g}' if isinstance(v, float | int) else str(v) for _, v in what.sizes)}"
        for what, times in path
    ]


def test_the_baseline_extracts_forwards_and_emits() -> None:
    workload = build_workload([("l2fwd", {})], frame_size_bytes=64)
    path = packet_path(workload.baseline, workload, TrafficPlan(64))
    assert shown(path) == ["1 extract 14", "1 set egress ", "1 emit 14"]
    assert workload_increment("dpdk-c", workload, TrafficPlan(64)) == ()


def test_headers_with_their_selects() -> None:
    assert shown(met("parser_headers", headers=2)) == [
        "1 select 1 16",
        "1 extract 4",
        "1 select 1 8",
        "1 extract 4",
        "1 emit 4",
        "1 emit 4",
    ]


def test_a_table_is_looked_up_and_its_action_runs() -> None:
    path = met("match_action_table", entries=100, key_bits=32, action_data_bytes=12)
    assert shown(path)[2:] == [
        "1 lookup exact 100 32 12 1 0.84",  # seven keys in each of 16 buckets, but the last one
        "1 set egress ",
        "2 compute ^ 32",
        "1 write 32 header",
        "1 emit 8",
    ]
    assert [what.where for what, _ in path[2:4]] == ["table table_exact", "action set_data"]


def test_hits_are_a_share_and_dropped_packets_are_not_emitted() -> None:
    path = met("match_action_table", entries=100, key_bits=32, action_data_bytes=4, hit_ratio=0.25)
    assert "1 lookup exact 100 32 4 0.25 0" in shown(path)
    assert "0.75 drop " in shown(path)
    assert "0.25 emit 8" in shown(path)
    assert "-0.75 emit 14" in shown(path)
    assert "mispredicted branch" not in {what.kind for what, _ in path}


def test_every_table_of_a_program_stands_for_itself() -> None:
    path = met("match_action_table", entries=10, tables=3, key_bits=32, action_data_bytes=4)
    lookups = [(what.where, times) for what, times in path if what.kind == "lookup"]
    assert lookups == [("table table_exact", 1.0), ("table table_exact_1", 1.0), ("table table_exact_2", 1.0)]


def test_statements_are_writes_and_what_they_compute() -> None:
    assert shown(met("header_field_writes", writes=2))[2:-1] == ["2 compute + 32", "2 write 32 header"]
    assert shown(met("metadata_writes", writes=1))[2:-1] == [
        "1 compute + 32",
        "1 write 32 metadata",
        "1 write 32 header",
    ]
    decided = merged(met("conditionals", conditionals=2))
    assert {"2 condition 32", "2 compute + 32", "2 compute ^ 32", "3 write 32 metadata"} <= set(decided)


@pytest.mark.parametrize(
    ("name", "parameters", "expected"),
    [
        ("hash", {"size_bytes": 20, "algorithm": "crc16"}, "1 hash crc16 20"),
        ("checksum", {"size_bytes": 20}, "1 checksum verify 20"),
        ("checksum", {"size_bytes": 20, "operation": "update"}, "1 checksum update 20"),
        ("counter", {"updates": 2, "size": 16}, "2 counter 16"),
        ("meter", {"executions": 1}, "1 meter 1024"),
        ("register", {"accesses": 1, "operation": "read_write", "width_bits": 8}, "1 register write 1024 8"),
        ("random", {"numbers": 3}, "3 random 32"),
        ("added_headers", {"headers": 2, "header_bytes": 4}, "2 add header 4"),
        ("removed_headers", {"removed": 1, "header_bytes": 4}, "1 remove header 4"),
        ("clone", {"copies": 2}, "2 clone 124"),
        ("multicast", {"ports": 3}, "1 multicast 3"),
        ("operator", {"operator": "checksum"}, ""),
    ],
)
def test_every_construct(name: str, parameters: dict[str, Any], expected: str) -> None:
    path = met(name, **parameters)
    text = [line.split(" ", 1) for line in shown(path)]
    if expected:
        times, what = expected.split(" ", 1)
        assert sum(float(t) for t, w in text if w == what) == float(times)
    else:
        assert any(w.startswith("unknown operator") for _, w in text)


def test_headers_that_are_added_are_emitted_and_those_that_are_removed_are_not() -> None:
    assert "2 emit 4" in merged(met("added_headers", headers=2, header_bytes=4))
    assert not any("emit" in line for line in merged(met("removed_headers", removed=1, header_bytes=4)))


def merged(path: PacketPath) -> list[str]:
    totals: dict[str, float] = {}
    for line in shown(path):
        times, what = line.split(" ", 1)
        totals[what] = totals.get(what, 0) + float(times)
    return [f"{times:g} {what}" for what, times in totals.items()]


def test_recirculated_packets_meet_the_program_again_resubmitted_ones_are_not_emitted_before() -> None:
    again = merged(met("recirculate", times=2))
    assert {"2 extract 14", "3 extract 4", "2 recirculate ", "2 emit 14", "3 emit 4", "2 set egress "} <= set(again)
    back = merged(met("resubmit", times=2))
    assert {"2 extract 14", "3 extract 4", "2 resubmit ", "1 emit 4"} <= set(back)
    assert not any(line.endswith("emit 14") for line in back)


def test_selects_that_packets_take_differently_are_mispredicted() -> None:
    assert shown(met("parser_branches", branches=4))[-1] == "0.75 mispredicted branch start"
    assert not any("mispredicted" in line for line in shown(met("parser_branches", branches=1)))


@pytest.mark.parametrize("target", ["dpdk-c", "dpdk-swx"])
def test_a_decision_that_an_earlier_one_has_made_is_predicted(target: str) -> None:
    """Whether there is a tag is asked by the parser, and once more."""

    def mispredicted(condition: str) -> float:
        body = f"{condition}\nmov h.tag.value 0x7\nmov h.ethernet.dst 0x1\nON : mov h.ethernet.src 0x2"
        return sum(times for what, times in path_of_spec(body, target=target) if what.kind == "mispredicted branch")

    once = mispredicted("mov m.spare 0x1")
    assert 0 < mispredicted("jmpnv ON h.tag") == pytest.approx(once)
    assert mispredicted("jmplt ON h.ethernet.src 0x7fffffffffff") > 1.5 * once


def counted(met: Iterable[tuple[Construct, float]]) -> dict[tuple[object, ...], float]:
    """How often each construct is met wherever it stands, and how often a lookup finds an entry.

    Where entries are is known of packets only.
    """
    found: Counter[tuple[object, ...]] = Counter()
    for what, times in met:
        sizes = dict(what.sizes)
        hit = sizes.pop("hit", 0.0)
        sizes.pop("astray", None)
        found[what.kind, *sizes.items()] += times  # type: ignore[assignment]
        found["hit", what.where] += float(hit) * times  # type: ignore[assignment]
    return {key: times for key, times in found.items() if times}


@pytest.mark.parametrize(
    ("name", "point"),
    [
        ("parser/headers", {"headers": "3"}),
        ("parser/select-branches", {"branches": "4"}),
        ("action/nested-conditionals", {"conditionals": "4"}),
        ("deparser/headers-removed", {"removed": "2"}),
        ("mat/exact-entries", {"entries": "100"}),
        ("mat/same-table", {"applications": "3"}),
        ("extern/checksum-update", {"size_bytes": "20"}),
        ("path/clone", {"copies": "2"}),
    ],
)
def test_packets_meet_the_same_for_learning_and_for_predicting(
    name: str, point: dict[str, str], tmp_path: Path
) -> None:
    """What is learnt from the packets of a point, and what is predicted from the shares that they take."""
    experiment, chosen = load_point(name, point)
    workload, traffic = point_workload(experiment, chosen)
    drawn = [number for number, _ in drawn_packets(workload, traffic)]
    frames = [frame(workload.program, workload.packets, number) for number in drawn]
    options = ReadOptions(point=point, constructs="primitives")
    shares, remarks = shares_of_trace(name, capture(tmp_path / "packets.pcap", frames), options)
    assert remarks == ()
    graph = shares.apply(read_program(name, options))
    predicted = counted((m.what, m.times) for m in met_in(graph, analyse(graph, lambda node, edge: 0.0).visits))
    assert predicted == pytest.approx(counted(packet_path(workload.program, workload, traffic)))


def test_a_pass_that_ends_in_a_resubmission_is_not_deparsed() -> None:
    graph = read_program("path/resubmit", ReadOptions(point={"times": "3"}, constructs="primitives"))
    again = [node for node in graph.nodes.values() if any(what.kind == "resubmit" for what in node.constructs)]
    assert {edge.to for node in again for edge in node.edges} == {"sent"}
    once = read_program("path/recirculate", ReadOptions(point={"times": "3"}, constructs="primitives"))
    again = [node for node in once.nodes.values() if any(what.kind == "recirculate" for what in node.constructs)]
    assert again
    assert all(edge.to.startswith("deparser") for node in again for edge in node.edges)


def test_the_number_of_passes_is_as_wide_as_an_index() -> None:
    program = build_workload([("match_action_table", {"entries": 10, "key_bits": 8})], frame_size_bytes=128).program
    (key,) = program.tables[-1].keys
    for condition, bits in (
        (ir.Compare("==", key.field, ir.Const(1)), 8),
        (ir.Compare("==", key.field, ir.PassNumber()), 32),
        (ir.Compare("==", ir.PassNumber(), ir.Const(1)), 32),
        (ir.IsValid(key.field.header), 1),
    ):
        (what,) = Values(program).condition(condition, "here")
        assert what.number("bits") == bits


SPEC = """struct ethernet_t {
	bit<48> dst
	bit<48> src
	bit<16> type
}
struct tag_t {
	bit<16> value
	bit<16> type
}
header ethernet instanceof ethernet_t
header tag instanceof tag_t
header scratch instanceof tag_t
struct metadata_t {
	bit<32> port
	bit<32> drop
	bit<32> spare
}
metadata instanceof metadata_t
apply {
	rx m.port
	extract h.ethernet
	jmpeq TAGGED h.ethernet.type 0x8100
	jmp SEND
	TAGGED : extract h.tag
	SEND : BODY
	emit h.ethernet
	emit h.tag
	LAST
}
"""


def path_of_spec(body: str, last: str = "tx m.port", target: str = "dpdk-c", text: str = SPEC) -> PacketPath:
    """What packets meet in a program that looks for a tag."""
    text = text.replace("BODY", body.replace("\n", "\n\t")).replace("LAST", last)
    given = {"program": packed(text, "own.spec"), "seed": 1}
    workload = build_workload([(OWN, given)], frame_size_bytes=FRAME_BYTES)
    return workload_path(target, workload, TrafficPlan(FRAME_BYTES))


def of_spec(body: str, last: str = "tx m.port", text: str = SPEC) -> list[str]:
    """Kinds of what packets meet on dpdk-c in a program that looks for a tag."""
    return [what.kind for what, times in path_of_spec(body, last, text=text) if times]


NOTHING = "mov m.spare 0x1"


KNOWN = SPEC.replace(
    "apply {",
    """action mark args none {
	mov h.ethernet.src 0x2
	return
}
table known {
	key {
		h.ethernet.dst exact
	}
	actions {
		mark
	}
	default_action mark args none
	size 0x40
}
apply {""",
)


CHOOSING = SPEC.replace(
    "apply {",
    """selector paths {
	group_id m.drop
	selector {
		h.ethernet.dst
		h.ethernet.src
	}
	member_id m.spare
	n_groups_max 0x100
	n_members_per_group_max 0x10
}
apply {""",
)


def test_a_selector_is_looked_up_among_the_groups_that_it_has() -> None:
    met = path_of_spec("mov m.drop 0x1\ntable paths", target="dpdk-swx", text=CHOOSING)
    (found,) = [what for what, times in met if what.kind == "lookup" and times]
    assert 0 < found.number("entries") < 0x100
    assert [what.number("bytes") for what, times in met if what.kind == "hash" and times] == [12]


def test_packets_that_take_more_turns_than_others_are_out_of_step_on_swx() -> None:
    """About half of the packets look up a table, or one more."""

    def turns(body: str, target: str = "dpdk-swx") -> float:
        wrong = mispredicted_branch("turn")
        return sum(times for what, times in path_of_spec(body, target=target, text=KNOWN) if what == wrong)

    some = "jmplt ON h.ethernet.src 0x7fffffffffff\ntable known\nON : mov h.ethernet.dst 0x1"
    assert turns(some) == pytest.approx(1.5, abs=0.3)
    assert turns(f"{some}\ntable known") == pytest.approx(turns(some) + 1, abs=0.3)
    assert turns("table known") == turns(some, "dpdk-c") == 0


def test_turns_of_shares_are_those_of_packets(tmp_path: Path) -> None:
    body = "jmpnv ON h.tag\n\ttable known\n\tON : mov h.ethernet.dst 0x1"
    (tmp_path / "own.spec").write_text(KNOWN.replace("BODY", body).replace("LAST", "tx m.port"))
    graph = read_program(str(tmp_path / "own.spec"), ReadOptions())
    uniform = {
        n: replace(v, edges=tuple(replace(e, probability=None) for e in v.edges)) for n, v in graph.nodes.items()
    }
    graph = replace(graph, nodes=uniform)
    visits = analyse(graph, lambda node, edge: 0.0).visits
    wrong = [met.times for met in met_in(graph, visits) if met.what == mispredicted_branch("turn")]
    assert wrong == [pytest.approx(1.5)]
    assert not [met for met in met_in(replace(graph, source="bmv2"), visits) if met.what == mispredicted_branch("turn")]


def test_states_that_find_only_what_nothing_depends_on_are_left_out() -> None:
    assert of_spec(NOTHING) == ["extract", "set egress", "emit"]
    asked = of_spec("mov h.tag.value 0x7")
    assert asked.count("extract") == 2
    assert {"select", "mispredicted branch", "write"} <= set(asked)


def test_headers_that_are_never_sent_move_nothing() -> None:
    made = "validate h.scratch\nmov h.scratch.value 0x5"
    assert of_spec(made) == of_spec(NOTHING), "nothing reads it"
    read = of_spec(f"{made}\nmov h.ethernet.type h.scratch.value")
    assert "add header" not in read
    assert "write" in read
    assert "add header" in of_spec("validate h.tag")


def test_a_field_that_is_written_again_is_written_once() -> None:
    once = of_spec("mov h.ethernet.dst 0x2")
    assert of_spec("mov h.ethernet.dst 0x1\nmov h.ethernet.dst 0x2").count("write") == once.count("write") == 1


def test_what_is_done_for_packets_that_are_dropped_in_any_case_costs_nothing() -> None:
    assert of_spec("mov h.ethernet.dst 0x2", "drop") == []


A, B, C = (ir.FieldRef("h", name) for name in "abc")
M, BIT = (ir.FieldRef(ir.METADATA, name) for name in ("m", "bit"))


def small(*body: ir.Statement, keys: tuple[ir.FieldRef, ...] = (A,)) -> ir.Program:
    """One header of three bytes; an exact table whose action sends packets after some statements."""
    return ir.Program(
        name="small",
        headers=(ir.Header("h", (ir.Field("a", 8), ir.Field("b", 8), ir.Field("c", 8))),),
        metadata=(ir.Field("m", 8), ir.Field("bit", 1)),
        parser=(extracting("start", ("h",)),),
        actions=(ir.Action("go", body=(*body, ir.SetEgress(ir.Const(1)))),),
        tables=(ir.Table("t", tuple(ir.Key(key) for key in keys), ("go",), "go", ir.EntryList(())),),
        control=(ir.ApplyTable("t"),),
        emit=("h",),
    )


@pytest.mark.parametrize(
    ("keys", "gathered"),
    [((A,), 0), ((A, B), 0), ((A, C), 1), ((B, A), 1), ((A, M), 1), ((A, BIT), 0), ((M, A), 1), ((M,), 0)],
)
def test_a_key_of_several_places_is_put_together(keys: tuple[ir.FieldRef, ...], gathered: int) -> None:
    program = small(keys=keys)
    found = of_table(program, program.table("t"), "")
    assert [what.size("code") for what in found if what.kind == "overlap"] == ["gathered"] * gathered


def test_a_field_that_was_just_written_is_waited_for() -> None:
    body = (ir.Assign(A, ir.BinaryOp("+", A, ir.Const(1))), ir.Assign(B, ir.BinaryOp("+", A, A)), ir.Assign(M, B))
    graph = read_own(small(*body), "small", 64)
    waits = [c for step in graph.steps.values() for c in step.constructs if c.kind == "overlap"]
    assert [c.size("code") for c in waits] == ["stored", "stored"]


@pytest.mark.parametrize(("again", "left_out"), [(ir.Const(1), {"next"}), (M, set())])
def test_a_state_that_keeps_what_nothing_reads_is_left_out(again: ir.Expression, left_out: set[str]) -> None:
    header, case = ir.Header("i", (ir.Field("d", 8),)), ir.SelectCase((ir.Match(0xFF, 7, 7),), "next")
    states = (extracting("start", ("h",), A, (case,)), extracting("next", ("i",)))
    kept = replace(states[1], body=(*states[1].body, ir.Assign(M, ir.FieldRef("i", "d"))))
    program = small(ir.Assign(B, again))
    program = replace(program, headers=(*program.headers, header), parser=(states[0], kept), emit=("h", "i"))
    assert idle_states(program) == left_out


SUM = ir.Cast(ir.BinaryOp("+", A, B), 8)
TWICE = ir.BinaryOp("^", SUM, ir.BinaryOp(">>", SUM, ir.Const(1)))


@pytest.mark.parametrize(
    ("between", "operators"),
    [
        (ir.Assign(BIT, ir.Const(1)), "+>>^"),
        (ir.Assign(M, ir.Const(1)), "+>>^"),
        (ir.Assign(A, ir.Const(1)), "+>>^+>>^"),
        (ir.Hash(B, "crc16", (C,)), "+>>^+>>^"),
        (ir.RemoveHeader("h"), "+>>^+>>^"),
        (ir.AddHeader("h", ()), "+>>^+>>^"),
    ],
)
def test_what_a_statement_has_computed_is_not_computed_again(between: ir.Statement, operators: str) -> None:
    graph = read_own(small(ir.Assign(C, TWICE), between, ir.Assign(M, TWICE), ir.Assign(B, M)), "small", 64)
    found = [c for step in graph.steps.values() for c in step.constructs if c.kind == "compute"]
    assert "".join(str(c.size("operator")) for c in found) == operators


def test_a_store_to_one_header_may_change_what_was_computed_of_another() -> None:
    values = Values(small())
    condition = ir.Compare("<", ir.BinaryOp("+", A, B), ir.Const(3))
    other = ir.Assign(ir.FieldRef("ethernet", "src"), ir.Const(1))
    kinds = [[c.kind for c in values.condition(condition, "")]]
    for statement in (ir.Assign(C, ir.Const(1)), ir.Assign(M, ir.Const(1)), other):
        values.after(statement)
        kinds.append([c.kind for c in values.condition(condition, "")])
    assert kinds == [["compute", "condition"], [], [], ["compute", "condition"]]


def test_clocks_and_the_validity_of_headers_are_asked_again() -> None:
    values, clock = Values(small()), ir.BinaryOp("-", ir.Intrinsic("unknown"), M)
    assert [len(list(values.computed(clock, 8, ""))) for _ in range(2)] == [1, 1]
    asked = [len(list(values.condition(ir.IsValid("h"), ""))) for _ in range(2)]
    values.after(ir.RemoveHeader("h"))
    assert [*asked, len(list(values.condition(ir.IsValid("h"), "")))] == [1, 0, 1]


@pytest.mark.parametrize(("fields", "gathered"), [((A, B, C), 0), ((A, C), 1), ((A, M), 1)])
def test_bytes_of_several_places_are_put_together_before_they_are_hashed(
    fields: tuple[ir.FieldRef, ...], gathered: int
) -> None:
    graph = read_own(small(ir.Hash(M, "crc16", fields), ir.Assign(A, M)), "small", 64)
    waits = [c for step in graph.steps.values() for c in step.constructs if c.kind == "overlap"]
    assert [c.size("code") for c in waits] == ["gathered"] * gathered


def copying(*before: ir.Statement) -> Counter[str]:
    """What a packet meets that gets a copy of another header, after some statements."""
    same = tuple((ref.field, replace(ref, header="other")) for ref in (A, B, C))
    copied = ir.Branch(ir.IsValid("other"), (ir.AddHeader("h", same),), (ir.RemoveHeader("h"),))
    program = small(*before, copied, keys=())
    program = replace(program, headers=(*program.headers, replace(program.headers[0], name="other")))
    program = replace(program, actions=(replace(program.actions[0], label="go"),))
    workload = ir.Workload(program, program, ir.PacketSpec((), (), 64), ("",), (bytes(60),))
    found: Counter[str] = Counter()
    for what, times in packet_path(program, workload, TrafficPlan(64)):
        found[f"overlap {what.size('code')}" if what.kind == "overlap" else what.kind] += times  # type: ignore[assignment]
    return found


def test_a_copy_of_a_header_that_is_not_there_makes_none() -> None:
    assert copying()["add header"] == 0
    assert copying()["remove header"] == 1
    made = copying(ir.AddHeader("other", ()))
    assert (made["add header"], made["remove header"]) == (1, 0)


def test_headers_that_were_written_in_pieces_are_waited_for_where_they_are_copied() -> None:
    other = replace(A, header="other")
    whole = copying(ir.AddHeader("other", ()))
    assert whole["overlap copied"] == 0
    asked = ir.Branch(ir.Compare("==", B, ir.Const(7)), (ir.Assign(M, ir.Const(1)),), ())
    pieces = (ir.AddHeader("other", ()), ir.Assign(other, ir.Const(1)))
    assert copying(*pieces, asked)["overlap copied"] == 1
    assert copying(*pieces)["overlap copied"] == 0, "what was written is still in registers"
    assert copying(ir.AddHeader("other", ()), ir.Assign(A, ir.Const(1)), asked)["overlap copied"] == 0, "overwritten"


def test_a_deparser_waits_for_headers_that_were_written_in_pieces_if_it_moves_them() -> None:
    def waits(body: str) -> int:
        return sum(what.kind == "overlap" and what.size("code") == "copied" for what, _ in path_of_spec(body))

    assert waits("mov h.ethernet.dst 0x2") == 0
    assert waits("validate h.tag") == 0
    assert waits("mov h.ethernet.dst 0x2\nvalidate h.scratch\nmov h.scratch.value 0x5") == 0, "that is never sent"
    assert waits("mov h.ethernet.dst 0x2\nvalidate h.tag") == 1
    everywhere = path_of_spec("mov h.ethernet.dst 0x2", target="xdp")
    kept = Counter({what.size("step"): times for what, times in everywhere if what.kind == "kept header"})
    assert 0 < kept["written"] <= kept["read"] < kept["cleared"] == 2, "of two headers"
    assert "kept header" not in [what.kind for what, _ in path_of_spec("mov h.ethernet.dst 0x2")]
    assert ("overlap", "copied") in [(what.kind, dict(what.sizes).get("code")) for what, _ in everywhere]


def test_a_deparser_asks_for_every_header_if_it_moves_them() -> None:
    def asked(body: str) -> float:
        return sum(times for what, times in path_of_spec(body) if what.kind == "kept header")

    assert asked("mov h.ethernet.dst 0x2") == 0
    assert asked("validate h.tag") == asked("invalidate h.tag") == 2, "of two headers"


def test_a_header_that_is_extracted_and_never_sent_is_taken_away() -> None:
    lost = SPEC.replace("\temit h.tag\n", "")
    assert "remove header" in of_spec("mov m.spare 0x1", text=lost)
    assert "remove header" not in of_spec("mov m.spare 0x1")


def test_a_search_of_a_list_that_always_ends_at_one_entry_is_predicted() -> None:
    """The price of a list is that of searches that end at another entry for every packet."""
    program = small()
    entries = tuple(ir.Entry((ir.Match.masked(n, 0xFF),), "go") for n in range(8))
    table = replace(program.tables[0], keys=(ir.Key(A, "ternary"),), entries=ir.EntryList(entries))
    program = replace(program, tables=(table,))
    (what,) = of_table(program, table, "table t")
    what = replace(what, sizes=tuple((name, 1.0 if name == "hit" else size) for name, size in what.sizes))

    def mispredicted(*keys: int) -> float:
        lookups = Lookups(program)
        for key in keys:
            lookups.run(bytes((key,)).ljust(60, b"\0"))
        return sum(times for part, times in lookups.searched(what, 1.0) if part.kind == "mispredicted branch")

    assert mispredicted(*range(8)) == pytest.approx(0, abs=0.01)
    assert mispredicted(*[7] * 8) == pytest.approx(-7 / 8)
    assert mispredicted(*[0] * 8) == 0


def test_a_list_without_entries_is_missed() -> None:
    program = small()
    table = replace(program.tables[0], keys=(ir.Key(A, "ternary"),), entries=ir.EntryList(()))
    program = replace(program, tables=(table,))
    (what,) = of_table(program, table, "table t", 0)
    what = replace(what, sizes=tuple((name, 0.0 if name == "hit" else size) for name, size in what.sizes))
    lookups = Lookups(program)
    lookups.run(bytes(60))
    assert [part.number("hit") for part, _ in lookups.searched(what, 1.0)] == [0]


def test_ranges_are_searched_as_the_rows_that_they_become() -> None:
    program = small()
    ranges = (ir.Match(0xFF, 1, 14), ir.Match(0xFF, 16, 31))  # 1, 2-3, 4-7, 8-11, 12-13, 14; 16-31
    entries = tuple(ir.Entry((each,), "go") for each in ranges)
    table = replace(program.tables[0], keys=(ir.Key(A, "range"),), entries=ir.EntryList(entries), label="t")
    program = replace(program, tables=(table,))
    (what,) = of_table(program, table, "table t")
    assert what.size("match_kind") == "range"
    lookups = Lookups(program)
    for key in (20, 25, 200, 201):
        lookups.run(bytes((key,)).ljust(60, b"\0"))
    found = [part for part, _ in lookups.searched(what, 1.0) if part.kind == "lookup"]
    assert [part.size("match_kind") for part in found] == ["ternary", "ternary"]
    assert [part.number("entries") for part in found] == [7, 7], "the last of seven rows, or all of them"


def test_entries_with_more_choices_than_others_are_mispredicted() -> None:
    program = small()
    several = (("go", ()),) * 3
    entries = tuple(ir.Entry((ir.Match.masked(n, 0xFF),), "go", (), several if n % 2 else ()) for n in range(8))
    table = replace(program.tables[0], entries=ir.EntryList(entries), selector=M)
    program = replace(program, tables=(table,))
    lookups = Lookups(program)
    for n in (0, 1, 2, 4):
        lookups.run(bytes((n,)).ljust(60, b"\0"))
    (what,) = of_table(program, table, "table t")
    assert lookups.within(what, 2.0) == ((mispredicted_branch("lookup"), 0.5),)


def test_prefixes_beyond_the_first_level_are_read_and_mispredicted() -> None:
    program = small()
    wide = replace(program.headers[0], fields=(replace(program.headers[0].fields[0], width_bits=32),))
    entries = tuple(
        ir.Entry((ir.Match.prefix(n << 24 | 1, length, 32),), "go") for n, length in enumerate((24, 32, 16, 8))
    )
    table = replace(program.tables[0], keys=(ir.Key(A, "lpm"),), entries=ir.EntryList(entries), label="t")
    program = replace(program, headers=(wide, *program.headers[1:]), tables=(table,))
    lookups = Lookups(program)
    for n in range(4):
        lookups.run(bytes((n, 0, 0, 1)).ljust(60, b"\0"))
    (what,) = of_table(program, table, "table t")
    assert dict(lookups.within(what, 2.0)) == {mispredicted_branch("prefix"): 0.5, construct("level"): 0.5}


@pytest.mark.parametrize("wanted", ["verify", "update"])
def test_a_checksum_under_a_condition_is_met_by_the_packets_for_which_it_holds(wanted: str) -> None:
    """What the condition asks for is in the packet, so that nothing of the program decides it."""
    file = Path(__file__).parents[3] / "examples" / "programs" / "ipv4_router" / "ipv4_router.json"
    program = json.loads(file.read_text())
    (checksum,) = program["checksums"]
    protocol = {"type": "field", "value": ["ipv4", "protocol"]}
    condition = {"op": "<", "left": protocol, "right": {"type": "hexstr", "value": "0x40"}}
    checksum |= {"verify": wanted == "verify", "update": wanted == "update"}
    shares = {}
    for op in ("<", "=="):
        checksum["if_cond"] = {"type": "expression", "value": condition | {"op": op}}
        given = {"program": packed(json.dumps(program), str(file)), "seed": 1, "packets": 512}
        workload = build_workload([(OWN, given)], frame_size_bytes=FRAME_BYTES)
        whole = packet_path(workload.program, workload, TrafficPlan(FRAME_BYTES))
        holds = [
            f for f in workload.frames if (f[23] < 0x40 if op == "<" else f[23] == 0x40) and f[12:14] == b"\x08\x00"
        ]
        found = sum(times for what, times in whole if what.kind == f"checksum {wanted}")
        shares[op] = found, len(holds) / len(workload.frames)
    assert shares["<"][0] == pytest.approx(shares["<"][1], abs=0.02)
    found, share = shares["=="]
    assert 0 < found <= share < 0.02


def test_packets_that_end_within_a_header_pass_the_control_flow() -> None:
    file = Path(__file__).parents[3] / "examples" / "programs" / "dual_stack_router" / "dual_stack_router.json"
    text = packed(file.read_text(encoding="utf-8"), str(file))
    workload = build_workload([(OWN, {"program": text, "seed": 1})], frame_size_bytes=FRAME_BYTES)
    quarter = len(workload.frames) // 4
    frames = (*(data[:20] for data in workload.frames[:quarter]), *workload.frames[quarter:])
    times: dict[str, Counter[str]] = {"dpdk-c": Counter(), "dpdk-swx": Counter()}
    for target, found in times.items():
        for what, share in workload_path(target, replace(workload, frames=frames), TrafficPlan(FRAME_BYTES)):
            found[what.kind if what.kind != "extract" else f"extract {what.number('bytes'):g}"] += float(share)
    compiled, interpreted = times.values()
    assert compiled["extract 20"] + compiled["extract 40"] == 0.75
    assert compiled["drop"] == 0.25  # neither header is valid
    assert compiled["lookup"] == 1.5
    assert interpreted["extract 20"] + interpreted["extract 40"] == 1.0  # SWX extracts what is behind a packet


def test_packets_that_come_again_find_what_they_left_in_registers() -> None:
    new = (ir.Assign(B, ir.BinaryOp("+", B, C)), ir.Hash(C, "crc16", (A,)), ir.WriteRegister("seen", A, ir.Const(1)))
    program = small(ir.ReadRegister(M, "seen", A), ir.Branch(ir.Compare("==", M, ir.Const(0)), new, ()), keys=())
    program = replace(program, registers=(ir.Register("seen", 256, 8),))
    program = replace(program, actions=(replace(program.actions[0], label="go"),))
    frames = tuple(bytes((n,)).ljust(60, b"\0") for n in range(4))
    workload = ir.Workload(program, program, ir.PacketSpec((), (), 64), ("",) * 4, frames)
    met = {what.kind for what, _ in packet_path(program, workload, TrafficPlan(64))}
    assert "register read" in met
    assert not {"hash", "register write"} & met
