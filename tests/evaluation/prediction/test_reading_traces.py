"""Captures that are run through programs: which way their packets take."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.captures import capture, ethernet, ipv4, tagged, udp

from p4perf.errors import DataError, UsageError
from p4perf.evaluation.prediction.reading import ReadOptions, read_program, shares_of_trace
from p4perf.evaluation.prediction.reading.own import read_own
from p4perf.evaluation.prediction.reading.packets import Lookups, passed_steps
from p4perf.evaluation.prediction.reading.points import load_point, point_program
from p4perf.evaluation.prediction.reading.program import own_runner
from p4perf.models.program.paths import analyse
from p4perf.programs.component import OWN, build_workload
from p4perf.programs.decisions import Decisions
from p4perf.programs.own import packed
from p4perf.programs.packets import frame
from p4perf.programs.reading.flow import resolve

PROGRAMS = Path(__file__).parent / "programs"
ROUTER = PROGRAMS / "router.json"
COMMANDS = ReadOptions(commands=PROGRAMS / "router.commands")


def test_packets_of_a_router_are_counted(tmp_path: Path) -> None:
    frames = [
        *[ethernet(0x0800, ipv4("192.0.2.1", "10.3.0.1", rest=udp(80)))] * 4,  # next hop 1
        ethernet(0x0800, ipv4("192.0.2.1", "10.1.0.1", protocol=6)),  # next hop 2
        ethernet(0x0800, ipv4("192.0.2.1", "10.2.0.1", protocol=6)),  # dropped by an entry
        ethernet(0x0800, ipv4("192.0.2.1", "172.16.0.1", protocol=6)),  # no route
        ethernet(0x0800, ipv4("10.0.0.1", "10.1.0.1", rest=udp(53))),  # denied
        tagged(1, ipv4("192.0.2.1", "10.1.0.1", rest=udp(80))),  # leaves by port 2, untagged
        ethernet(0x86DD, bytes(40)),
    ]
    shares, remarks = shares_of_trace(ROUTER, capture(tmp_path / "trace.pcap", frames), COMMANDS)
    graph = shares.apply(read_program(ROUTER, COMMANDS))
    found = analyse(graph, lambda _node, _edge: 0.0, taken_only=True)
    assert remarks == ("clones are counted, but not followed",)
    assert found.visits["parser.udp"] == pytest.approx(0.5)
    assert found.visits["parser.udp[1]"] == pytest.approx(0.1)

    def visits(name: str) -> float:
        return sum(v for n, v in found.visits.items() if n == name or n.startswith(f"{name} #"))

    assert visits("Route.denied") == pytest.approx(0.6)
    assert visits("Route.denied:Route.deny") == pytest.approx(0.1)
    assert visits("Route.routes") == pytest.approx(0.8)
    assert visits("Route.routes:Route.next_hop") == pytest.approx(0.6)
    assert visits("Route.routes:Route.drop") == pytest.approx(0.1)
    assert visits("Route.routes:Route.drop on miss") == pytest.approx(0.1)
    assert visits("Leave.ports:Leave.untag") == pytest.approx(0.1)
    assert visits("dropped") == pytest.approx(0.4)
    assert found.paths == 7


def test_more_tags_than_the_stack_holds_end_the_parser(tmp_path: Path) -> None:
    frames = [tagged(n, ipv4("192.0.2.1", "10.1.0.1", protocol=6)) for n in (2, 3, 3, 3)]
    shares, remarks = shares_of_trace(ROUTER, capture(tmp_path / "trace.pcap", frames), COMMANDS)
    assert shares.edges["parser.vlan[1]"] == {"0x8100": 0.75, "0x800": 0.25, "default": 0.0}
    assert len(remarks) == 1


def test_a_full_stack_leads_on_in_the_program() -> None:
    given = {"program": packed(ROUTER.read_text(encoding="utf-8"), str(ROUTER))}
    program = build_workload([(OWN, given)], frame_size_bytes=128).program
    flow = read_own(program, "router", 128, configured=True)
    data = tagged(3, ipv4("192.0.2.1", "10.1.0.1", protocol=6)).ljust(124, b"\0")
    (decisions,) = Decisions(program, Lookups).run(data)
    passed = [(each.step.name, each.label) for each in passed_steps(flow, decisions)]
    assert ("parser.vlan[2]", "stack full") in passed
    assert passed[-1][0] in ("sent", "dropped")


def test_packets_that_cannot_be_followed_are_said(tmp_path: Path) -> None:
    frames = [ethernet(0x0800, ipv4("192.0.2.1", "10.1.0.1"))[:30], ethernet(0x86DD, bytes(40))]
    _, remarks = shares_of_trace(ROUTER, capture(tmp_path / "trace.pcap", frames))
    assert "1 of 2 packets were not followed to the end: it depends on packets that are too short" in remarks[-1]
    assert any("are empty" in remark for remark in remarks)


def test_our_own_programs_run_in_the_reference_interpreter() -> None:
    workload = build_workload(
        [("match_action_table", {"entries": 100}), ("conditionals", {"conditionals": 2})], frame_size_bytes=128
    )
    graph = resolve(read_own(workload.program, "program", 128), "program")
    run = own_runner(workload.program)
    table = workload.program.tables[-1].name
    for drawn, outcome in ((5, "hit"), (150, "miss")):
        made, reason = run(frame(workload.program, workload.packets, drawn))
        assert reason == ""
        assert (table, outcome) in made
        assert {name for name, _ in made} <= set(graph.nodes) | {n.split(" #")[0] for n in graph.nodes}


def test_a_capture_and_a_spec(tmp_path: Path) -> None:
    options = ReadOptions(point={"entries": "100"}, constructs="primitives")
    experiment, point = load_point("mat/exact-entries", options.point)
    program = point_program(experiment, point)
    packets = build_workload(point.components, frame_size_bytes=point.frame_size_bytes).packets
    frames = [frame(program, packets, drawn) for drawn in (1, 2, 3, 150)]
    shares, remarks = shares_of_trace("mat/exact-entries", capture(tmp_path / "trace.pcap", frames), options)
    assert remarks == ()
    assert {"hit": 0.75, "miss": 0.25} in [dict(labels) for labels in shares.edges.values()]
    with pytest.raises(UsageError, match="says nothing of components"):
        shares_of_trace("mat/exact-entries", tmp_path / "trace.pcap", ReadOptions(point={"entries": "100"}))


def test_what_a_learner_has_learnt_is_not_known(tmp_path: Path) -> None:
    packet = ethernet(0x0800, ipv4("192.0.2.1", "10.1.0.1"))
    rules = tmp_path / "rules"
    rules.write_text("table_add routes forward 10.0.0.0/8 => 1 0\n")
    frames = capture(tmp_path / "t.pcap", [packet, ethernet(0x0806, bytes(60))])
    _, remarks = shares_of_trace(PROGRAMS / "tunnel.spec", frames, ReadOptions(commands=rules))
    assert any("1 of 2 packets were not followed to the end: it depends on what learner seen" in r for r in remarks)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("table_add routes next_hop 10.0.0.0/8 => 1", "takes 2 values, not 1"),
        ("table_add routes next_hop 10.0.0.0 => 1 2", "no prefix"),
        ("table_add routes next_hop 10.0.0.0/33 => 1 2", "no prefix of at most 32 bit"),
        ("table_add routes nexthop 10.0.0.0/8 => 1 2", "did you mean"),
        ("table_add rutes next_hop 10.0.0.0/8 => 1 2", "did you mean routes"),
        ("table_add routes next_hop 10.0.0.0/8 1 2", "needs =>"),
        ("table_add routes next_hop 10.0.0.0/8 7 => 1 2", "has 1 key fields, not 2"),
        ("table_add Leave.ports untag 512 =>", "does not fit into 9 bit"),
        ("table_add Leave.ports untag one =>", "is no number or address"),
        ("table_add routes", "needs a table and an action"),
    ],
)
def test_commands_that_do_not_belong_to_the_program(command: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "commands.txt"
    path.write_text(f"# comment\n{command}\n")
    with pytest.raises(DataError, match=f"(?s){message}") as caught:
        read_program(ROUTER, ReadOptions(commands=path))
    assert caught.value.location is not None
    assert caught.value.location.line == 2
