"""Specifications of SWX pipelines: what is found in them, and what is refused."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from support.pricing import met_on

from p4perf.errors import DataError
from p4perf.evaluation.prediction.reading import ReadOptions, read_program
from p4perf.evaluation.prediction.reading.swx import swx_flow
from p4perf.formats.swx_spec import read_specification
from p4perf.generators.swx.spec import Pipeline
from p4perf.models.program import ProgramGraph
from p4perf.models.program.paths import analyse, sorted_nodes
from p4perf.programs.component import build_workload
from p4perf.programs.reading.flow import resolve

TUNNEL = Path(__file__).parent / "programs" / "tunnel.spec"


def graph_of(text: str) -> ProgramGraph:
    return resolve(swx_flow(read_specification(text, "program.spec"), "program.spec", "program", {}), "program.spec")


def test_a_specification_is_read_whole() -> None:
    graph = read_program(TUNNEL)
    kinds = Counter(c.kind for n in graph.nodes.values() for c in n.constructs)
    for kind in ("extract", "select", "lookup", "hash", "register read", "register write", "meter", "counter"):
        assert kinds[kind] > 0, kind
    assert kinds["checksum update"] > 0
    assert {c.size("name") for n in graph.nodes.values() for c in n.constructs if c.kind == "unknown"} == {"learn"}
    assert graph.source == "swx"


def test_comparisons_in_the_parser_are_one_select() -> None:
    graph = read_program(TUNNEL)
    selects = [n for n in graph.nodes.values() if any(c.kind == "select" for c in n.constructs)]
    (select,) = selects
    assert dict(select.constructs[-1].sizes) == {"cases": 2, "key_bits": 16}
    assert [e.label for e in select.edges] == ["0x800", "0x86dd", "default"]
    assert select.kind == "parser state"


def test_ways_follow_hits_actions_headers_and_metadata() -> None:
    graph = read_program(TUNNEL)
    found = analyse(graph, lambda node, _edge: float(len(node.constructs)), k=500)
    assert len(found.most_expensive) == found.paths
    for way in found.most_expensive:
        kinds = Counter(c.kind for c, _ in met_on(graph, way))
        nodes = " ".join(s.node for s in way.steps)
        wrapped = "routes:wrap" in nodes
        sent = way.steps[-1].node == "sent"
        # Only actions forward and wrap make m.drop zero, and only wrap makes the outer header valid.
        assert sent == (wrapped or "routes:forward" in nodes)
        assert kinds["emit"] == (0 if not sent else 3 if wrapped else 2)
        assert kinds["drop"] == (0 if sent else 1)
        assert ("members" in nodes.split()) == ("routes:forward" in nodes)


def test_sizes_of_lookups() -> None:
    nodes = read_program(TUNNEL).nodes
    expected = {"match_kind": "lpm", "entries": 0x800, "key_bits": 32, "action_data_bytes": 10, "hit": 0.5}
    assert dict(nodes["routes"].constructs[0].sizes) == expected
    assert nodes["seen"].constructs[0].number("key_bits") == 64
    assert [c.kind for c in nodes["members"].constructs] == ["hash", "lookup"]
    assert nodes["members"].constructs[0].number("bytes") == 8
    graph = read_program(TUNNEL, ReadOptions(entries={"routes": 5}))
    assert graph.nodes["routes"].constructs[0].number("entries") == 5


def test_a_table_may_be_applied_twice() -> None:
    text = TUNNEL.read_text().replace("\ttable seen\n", "\ttable seen\n\tjmph END\n\ttable seen\n")
    nodes = graph_of(text).nodes
    assert {"seen", "seen@2"} <= set(nodes)


def test_a_table_without_keys_is_a_call() -> None:
    keyed = "\tkey {\n\t\th.ipv4.dst lpm\n\t}\n"
    text = TUNNEL.read_text()
    assert keyed in text

    def calls(text: str) -> list[str]:
        nodes = graph_of(text).nodes.values()
        return [n.name for n in nodes if any(c.kind == "call" for c in n.constructs)]

    assert calls(text) == []
    assert calls(text.replace(keyed, "")) == ["routes"]


def test_loops_are_refused() -> None:
    text = (
        TUNNEL.read_text()
        .replace("\tjmp ACCEPT\n\tIPV4 :", "\tjmp IPV4\n\tIPV4 :")
        .replace("\tACCEPT :\tjmpnv END h.ipv4", "\tACCEPT :\tjmpnv END h.ipv4\n\tjmpeq IPV4 h.ipv4.ttl 0x7")
    )
    with pytest.raises(DataError, match="has a loop: "):
        graph_of(text)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("jmpnh END", "jmpnh ENDE", "there is no label 'ENDE'"),
        ("extract h.ipv4", "extract h.ipv6", "there is no header 'h.ipv6'"),
        ("table routes\n\tjmpnh", "table paths\n\tjmpnh", "there is no table 'paths'"),
        ("regrd m.count flows", "regrd m.count flowz", "there is no array 'flowz'"),
        ("mov m.port_out t.port", "mov m.port_out t.prot", "there is no field 't.prot'"),
        ("struct learned_args {", "union learned_args {", "'union' begins nothing"),
        ("bit<8> timeout", "byte timeout", "'byte' is no type of a field"),
        ("default_action learn_it", "default_action lernt", "there is no action 'lernt'"),
        ("instanceof ethernet_t\nheader", "instanceof ether_t\nheader", "there is no struct 'ether_t'"),
        ("apply {", "", "closes a brace that is not open|begins nothing"),
        ("meter limits m.flow", "meter", "ends too early|there is no array"),
        ("jmpnh END", "jmpnh", "'jmpnh' ends too early"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(old: str, new: str, message: str) -> None:
    text = TUNNEL.read_text()
    assert old in text
    with pytest.raises(DataError, match=message) as caught:
        graph_of(text.replace(old, new, 1))
    where = caught.value.location
    assert where is not None
    assert where.line is not None


def test_files_that_are_no_specifications(tmp_path: Path) -> None:
    path = tmp_path / "program.spec"
    path.write_text("  \n")
    with pytest.raises(DataError, match="is empty"):
        read_program(path)
    path.write_text("; only a comment\n")
    with pytest.raises(DataError, match="no block 'apply'"):
        read_program(path)
    path.write_text(TUNNEL.read_text()[:-20])
    with pytest.raises(DataError, match="before the brace of line"):
        read_program(path)


@pytest.mark.parametrize(
    ("components", "expected"),
    [
        ([("match_action_table", {"entries": 100})], {"lookup": 1}),
        ([("parser_headers", {"headers": 3})], {"extract": 4}),
        ([("counter", {"updates": 2, "size": 64})], {"counter": 2}),
    ],
)
def test_what_p4perf_writes_for_swx_is_what_is_read(
    components: list[tuple[str, dict[str, int]]], expected: dict[str, int]
) -> None:
    program = build_workload(components, frame_size_bytes=256).program
    text = Pipeline(program, "program", 252).specification(table_size=100)
    graph = graph_of(text)
    sorted_nodes(graph)
    found = analyse(graph, lambda node, _edge: float(len(node.constructs)))
    kinds = Counter(c.kind for c, _ in met_on(graph, found.highest_cost))
    assert {kind: kinds[kind] for kind in expected} == expected
