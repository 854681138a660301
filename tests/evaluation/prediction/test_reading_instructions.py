"""Programs that are read as the instructions that are generated for SWX: shares, captures and changes mean the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.captures import capture, ethernet, ipv4

from p4perf.errors import CapabilityError
from p4perf.evaluation.prediction.answer import Conditions, predict
from p4perf.evaluation.prediction.library import open_models
from p4perf.evaluation.prediction.programs import Wanted, open_subjects
from p4perf.evaluation.prediction.reading import ReadOptions, read_instructions, read_program, read_shares
from p4perf.evaluation.prediction.reading.packets import raked
from p4perf.models.program import ProgramGraph
from p4perf.models.program.paths import analyse
from p4perf.programs.decisions import Decision
from p4perf.programs.reading.flow import FULL, base_name

EXAMPLES = Path(__file__).parents[3] / "examples/programs"
FIREWALL = EXAMPLES / "acl_firewall/acl_firewall.json"
SHARES = EXAMPLES / "acl_firewall/shares.yaml"
LIST, STATIONS = "MainControl.access_list", "MainControl.destinations"


def visits(graph: ProgramGraph, name: str) -> float:
    found = analyse(graph, lambda _node, _edge: 0.0).visits
    return sum(times for node, times in found.items() if base_name(node) == name)


def test_instructions_have_all_actions_of_tables_without_rules() -> None:
    """Else packets that hit would run the default action, which drops them."""
    graph = read_instructions(FIREWALL, ReadOptions())
    hit = {edge.label for edge in graph.nodes[f"{LIST} hit"].edges}
    assert {"MainControl_permit", "MainControl_deny"} <= hit


def test_stated_shares_hold_for_instructions() -> None:
    own = read_program(FIREWALL)
    own = read_shares(SHARES, own).apply(own)
    graph = read_instructions(FIREWALL, ReadOptions(), SHARES)
    for table in (LIST, STATIONS):
        assert visits(graph, table) == pytest.approx(visits(own, table), abs=0.02)
    denied = visits(graph, f"{LIST}:MainControl_deny")
    assert denied == pytest.approx(0.95 * 0.05 * visits(own, LIST), abs=0.01)
    lookups = {n: [c for c in node.constructs if c.kind == "lookup"] for n, node in graph.nodes.items()}
    assert [lookups[table][0].number("entries") for table in (LIST, STATIONS)] == [100, 10_000]
    assert FULL not in graph.remarks


def test_packets_of_a_capture_run_through_instructions(tmp_path: Path) -> None:
    packets = [ethernet(0x0800, ipv4("10.1.2.3", "192.0.2.1", protocol=6, rest=bytes(20)))] * 3
    packets += [ethernet(0x86DD, bytes(46))]
    graph = read_instructions(FIREWALL, ReadOptions(), capture=capture(tmp_path / "trace.pcap", packets))
    assert visits(graph, LIST) == pytest.approx(0.75)
    assert visits(graph, f"{LIST}:MainControl_deny_unmatched") == pytest.approx(0.75)  # there are no entries


@pytest.mark.parametrize(
    ("target", "wait"), [("dpdk-swx", {"compiled"}), ("dpdk-swx:interpreter", {"interpreted"}), ("dpdk-c", set())]
)
def test_waits_are_those_of_the_code_that_a_target_runs(target: str, wait: set[str]) -> None:
    """As of the programs that a model has learnt from: with others, none of these is like the program."""
    (model,) = (m for m in open_models((), (target,)) if m.target == target)
    (pair,) = open_subjects(Wanted(str(FIREWALL)))
    lines = predict(pair.subject.graph_for(target), model, Conditions()).expected.lines
    waits = {line.charge.what.size("code") for line in lines if line.charge.what.kind == "overlap"}
    assert waits & {"compiled", "interpreted"} == wait


def test_changes_of_tables_are_those_of_instructions() -> None:
    (pair,) = open_subjects(Wanted(str(FIREWALL), without=("access_list",), sets=("destinations.entries=7",)))
    assert pair.before is not None
    before, after = (subject.graph_for("dpdk-swx") for subject in (pair.before, pair.subject))
    assert visits(before, LIST) == 1
    assert not any(
        c.kind == "lookup" for name, n in after.nodes.items() if base_name(name) == LIST for c in n.constructs
    )
    entries = [c.number("entries") for n, node in after.nodes.items() for c in node.constructs if c.kind == "lookup"]
    assert set(entries) == {7}


def test_what_instructions_do_not_have_is_refused_for_swx_only() -> None:
    (pair,) = open_subjects(Wanted(str(FIREWALL), without=("node_3",)))
    assert pair.subject.graph_for("dpdk-c") is pair.subject.graph
    with pytest.raises(CapabilityError, match=r"in the instructions of SWX, .* has no node_3"):
        pair.subject.graph_for("dpdk-swx")


def test_weights_make_stated_shares_hold() -> None:
    made: dict[bytes, list[Decision]] = {
        b"1": [("a", "hit"), ("b", "true")],
        b"2": [("a", "hit"), ("b", "false")],
        b"3": [("a", "miss")],
        b"4": [("a", "hit"), ("b", "true")],
    }
    weights = dict(
        zip(
            made,
            raked(tuple(made), lambda frame: (made[frame], ""), {"a": {"miss": 0.8}, "b": {"true": 0.1, "no": 0.5}}),
            strict=True,
        )
    )
    assert weights[b"3"] / sum(weights.values()) == pytest.approx(0.8)
    # Nobody takes "no": what is left of the shares is shared by the others as it is stated.
    assert weights[b"2"] / (weights[b"1"] + weights[b"4"]) == pytest.approx(0.4 / 0.1)
    assert weights[b"1"] == weights[b"4"]
    assert raked((b"1", b"3"), lambda frame: (made[frame], ""), {}) == (1.0, 1.0)
