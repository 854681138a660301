"""Files of shares: how they are read, what they do, and what is refused with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from p4perf.errors import DataError, UsageError
from p4perf.evaluation.prediction.programs import Wanted, open_subjects
from p4perf.evaluation.prediction.reading import Shares, read_program, read_shares
from p4perf.models.program import ProgramGraph
from p4perf.models.program.paths import analyse, met, shares

PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture(scope="module")
def router() -> ProgramGraph:
    return read_program(PROGRAMS / "router.json")


def weighed(text: str, graph: ProgramGraph, tmp_path: Path) -> ProgramGraph:
    path = tmp_path / "shares.yaml"
    path.write_text(text)
    return read_shares(path, graph).apply(graph)


def test_shares_of_tables_parser_and_conditions(router: ProgramGraph, tmp_path: Path) -> None:
    text = """
tables:
  routes: {hit: 0.95, actions: {next_hop: 0.9, drop: 0.1}, entries: 1000}
  denied: {hit: 0}
parser:
  start: {0x0800: 0.8, 0x8100: 0.15}
  ipv4: {"0, 0x11": 1}
"""
    graph = weighed(text, router, tmp_path)
    found = analyse(graph, lambda _node, _edge: 0.0)
    assert shares(graph.nodes["parser.start"]) == pytest.approx((0.15, 0.8, 0.05))
    assert found.visits["parser.udp"] == pytest.approx(0.8)
    assert found.visits["Route.routes #2"] == pytest.approx(0.8), "denied never hits"
    assert found.visits["Route.denied:Route.deny"] == 0
    assert found.visits["Route.routes:Route.next_hop #2"] == pytest.approx(0.8 * 0.95 * 0.9)
    lookups = [c for c, times in met(graph) if times and c.where.startswith("table Route.routes")]
    assert {(c.number("entries"), c.number("hit")) for c in lookups} == {(1000, 0.95)}


def test_what_nobody_said_is_shared_equally_and_said(router: ProgramGraph, tmp_path: Path) -> None:
    assert "Route.routes" in analyse(router, lambda _node, _edge: 0.0).assumed
    graph = weighed("tables: {routes: {hit: 1}}", router, tmp_path)
    assumed = analyse(graph, lambda _node, _edge: 0.0).assumed
    assert "Route.routes" not in assumed
    assert "parser.start" in assumed


def test_entries_have_other_actions_than_the_default_one(router: ProgramGraph, tmp_path: Path) -> None:
    assert sum("default action of their table" in remark for remark in router.remarks) == 1
    assert shares(router.nodes["Route.routes hit"]) == (1.0, 0.0)
    graph = weighed("tables: {routes: {actions: {drop: 0.25}}}", router, tmp_path)
    assert shares(graph.nodes["Route.routes hit"]) == (0.75, 0.25)


def test_conditions_by_name_and_by_their_text(tmp_path: Path) -> None:
    graph = read_program(PROGRAMS / "tunnel.spec")
    name = next(n.name for n in graph.nodes.values() if n.kind == "condition" and len(n.edges) > 1)
    weighed_graph = weighed(f"conditions: {{{name}: 0.25}}", graph, tmp_path)
    assert shares(weighed_graph.nodes[name]) == (0.25, 0.75)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("tables: {rotues: {hit: 1}}", 1, "no table 'rotues'.*did you mean routes"),
        ("tables:\n  routes: {hti: 1}", 2, "no key 'hti'.*did you mean hit"),
        ("tabels: {}", 1, "no section 'tabels'.*did you mean tables"),
        ("tables:\n  routes:\n    actions: {next_hop: 0.9, drop: 0.2}", 3, "add up to 1.1, to more than 1"),
        ("tables:\n  routes:\n    actions: {next_hop: 0.5, drop: 0.2}", 3, "add up to 0.7, not to 1"),
        ("tables:\n  routes:\n    hit: 1.5", 3, "from 0 to 1"),
        ("tables:\n  routes:\n    hit: often", 3, "from 0 to 1"),
        ("tables:\n  routes:\n    actions: {nexthop: 1}", 3, "did you mean"),
        ("tables:\n  routes:\n    entries: -1", 3, "not a number of entries"),
        ("tables:\n  tbl_note: {hit: 1}", 2, "has no key"),
        ("parser:\n  start: {0x86dd: 0.5}", 2, "no case of start"),
        ("parser:\n  begin: {0x800: 0.5}", 2, "no parser state 'begin'"),
        ("conditions:\n  node_99: 0.5", 2, "no condition 'node_99'.*did you mean node_"),
        ("conditions:\n  node_5: [1]", 2, "from 0 to 1"),
        ("tables:\n  denied: {actions: {deny: 1.0}}", 2, "one action only"),
        ("tables: 7", 1, "no mapping"),
        ("tables: {routes: {hit: 1}", 1, "not YAML"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(
    text: str, line: int, message: str, router: ProgramGraph, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=f"(?s){message}") as caught:
        weighed(text, router, tmp_path)
    assert caught.value.location is not None
    assert caught.value.location.line == line


def test_names_that_could_be_several_are_refused(tmp_path: Path) -> None:
    graph = read_program(PROGRAMS / "router.json")
    nodes = dict(graph.nodes)
    other = nodes["Route.routes"]
    nodes["Leave.routes"] = type(other)("Leave.routes", other.kind, other.constructs, other.edges)
    graph = ProgramGraph("two", nodes, graph.start, "bmv2")
    with pytest.raises(DataError, match="could be several of table"):
        weighed("tables: {routes: {hit: 1}}", graph, tmp_path)


def test_shares_of_another_program_are_refused(router: ProgramGraph) -> None:
    with pytest.raises(UsageError, match="no table 'x'"):
        Shares({}, {"x": 1}).apply(router)


def test_a_file_that_is_not_there(router: ProgramGraph, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        read_shares(tmp_path / "no.yaml", router)


def test_entries_of_the_command_line_win_over_the_file(tmp_path: Path) -> None:
    path = tmp_path / "shares.yaml"
    path.write_text("tables: {routes: {entries: 100}, ports: {entries: 3}}")
    program = str(PROGRAMS / "router.json")
    (pair,) = open_subjects(Wanted(program, entries={"Route.routes": 7}, probabilities=str(path)))
    lookups = {
        (node.name.partition(" ")[0], dict(construct.sizes)["entries"])
        for node in pair.subject.graph.nodes.values()
        for construct in node.constructs
        if construct.kind == "lookup"
    }
    assert lookups == {("Route.denied", 2), ("Route.routes", 7), ("Leave.ports", 3)}
