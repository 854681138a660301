"""Programs for bmv2, as p4c writes them: what is found in them, and what is refused."""

from __future__ import annotations

import copy
import json
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from support.bmv2_json import chain_of_tables
from support.pricing import met_on

from p4perf.errors import DataError
from p4perf.evaluation.prediction.programs import Wanted, open_subjects
from p4perf.evaluation.prediction.reading import ReadOptions, read_program
from p4perf.models.program import ProgramGraph
from p4perf.models.program.paths import ProgramPath, analyse, sorted_nodes
from p4perf.programs.reading.flow import MAX_NODES, base_name
from p4perf.programs.reading.tree import Tree
from p4perf.programs.reading.v1model import read_v1model

PROGRAMS = Path(__file__).parent / "programs"
ROUTER = PROGRAMS / "router.json"


def graph_of(document: Any) -> ProgramGraph:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "program.json"
        path.write_text(json.dumps(document))
        return read_program(path)


def router() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(ROUTER.read_text())
    return document


def kinds_on(graph: ProgramGraph, way: ProgramPath) -> Counter[str]:
    return Counter(what.kind for what, _ in met_on(graph, way))


def test_the_longest_way_through_the_router() -> None:
    graph = read_program(ROUTER)
    found = analyse(graph, lambda node, _edge: float(len(node.constructs)))
    kinds = kinds_on(graph, found.highest_cost)
    assert kinds["extract"] == 5, "Ethernet, two VLAN tags, IPv4, UDP"
    assert kinds["emit"] == 4, "one tag was taken away"
    assert kinds["lookup"] == 3
    assert kinds["hash"] == kinds["register read"] == kinds["register write"] == kinds["counter"] == 1
    assert kinds["checksum verify"] == kinds["checksum update"] == kinds["remove header"] == 1
    assert [s.node for s in found.highest_cost.steps][-1] == "sent"


def test_no_way_contradicts_itself() -> None:
    """Validity of headers and metadata that was set decide conditions, so that few of all ways are left."""
    graph = read_program(ROUTER)
    for node in sorted_nodes(graph):
        if node.kind == "condition":
            assert len(node.edges) == 1, f"{node.name} is decided by what the parser found"
    found = analyse(graph, lambda _node, _edge: 0.0, k=1000)
    for way in found.most_expensive:
        steps = [(base_name(s.node), s.label) for s in way.steps]
        parsed = {name for name, _ in steps if name.startswith("parser.")}
        assert ("node_2", "true" if any("ipv4" in p for p in parsed) else "false") in steps
        denied = any(name == "Route.denied:Route.deny" for name, _ in steps)
        assert not (denied and any(name == "Route.routes" for name, _ in steps))
        assert (steps[-1][0] == "dropped") == any(c.kind == "drop" for c, _ in met_on(graph, way)) or steps[-1][
            0
        ] == "sent"


def test_sizes_of_constructs() -> None:
    graph = read_program(ROUTER)
    nodes = graph.nodes
    assert dict(nodes["parser.ipv4"].constructs[1].sizes) == {"cases": 1, "key_bits": 21}
    (lookup,) = nodes["Route.routes"].constructs
    expected = {"match_kind": "lpm", "entries": 2048, "key_bits": 32, "action_data_bytes": 8, "hit": 0.5}
    assert dict(lookup.sizes) == expected
    assert "table Route.routes, router.p4:" in lookup.where
    (denied,) = nodes["Route.denied"].constructs
    assert (denied.size("match_kind"), denied.number("entries")) == ("ternary", 2), "constant entries are counted"
    verify = next(c for n in nodes.values() for c in n.constructs if c.kind == "checksum verify")
    assert verify.where == "checksum of ipv4"
    assert verify.number("bytes") == 18
    note = {c.kind: dict(c.sizes) for c in nodes["tbl_note:Route.note"].constructs}
    assert note["hash"] == {"algorithm": "crc32", "bytes": 12}
    assert note["register read"] == {"cells": 4096, "bits": 32}
    assert note["compute"] == {"operator": "+", "bits": 32}


def test_header_stacks_are_unrolled() -> None:
    graph = read_program(ROUTER)
    assert graph.nodes["parser.vlan"].edges[0].to == "parser.vlan[1]"
    assert graph.nodes["parser.vlan[1]"].edges[0].to == "parser.vlan[2]"
    (full,) = graph.nodes["parser.vlan[2]"].edges
    assert full.label == "stack full"


def test_entries_of_tables_can_be_said() -> None:
    for name in ("Route.routes", "routes"):
        graph = read_program(ROUTER, ReadOptions(entries={name: 7}))
        assert graph.nodes["Route.routes"].constructs[0].number("entries") == 7
    graph = read_program(ROUTER, ReadOptions(commands=PROGRAMS / "router.commands"))
    assert graph.nodes["Route.routes"].constructs[0].number("entries") == 3
    assert graph.nodes["Leave.ports"].constructs[0].number("entries") == 1
    with pytest.raises(DataError, match="there is no table 'routes2'"):
        read_program(ROUTER, ReadOptions(entries={"routes2": 7}))


def looping() -> tuple[dict[str, Any], dict[str, Any]]:
    """A router that parses IPv4 in UDP, and its state of UDP."""
    document = router()
    udp = next(s for s in document["parsers"][0]["parse_states"] if s["name"] == "udp")
    udp["transitions"][0]["next_state"] = "ipv4"
    return document, udp


def test_a_loop_is_unrolled_as_far_as_a_packet_goes() -> None:
    graph = graph_of(looping()[0])
    met = {base_name(node) for node in graph.nodes if node.startswith("parser.udp")}
    behind_tags = {f"parser.udp[{tags}]" for tags in (1, 2)} | {f"parser.udp[{tags}+1]" for tags in (1, 2)}
    assert met == {"parser.udp", "parser.udp[+1]"} | behind_tags, "2 * 28 bytes are 56 of 60"


def test_a_loop_that_takes_nothing_is_refused_with_its_states() -> None:
    document, udp = looping()
    udp["parser_ops"] = []
    ipv4 = next(s for s in document["parsers"][0]["parse_states"] if s["name"] == "ipv4")
    ipv4["parser_ops"] = []
    with pytest.raises(DataError, match=r"has a loop: .*parser\.(ipv4|udp).* -> parser\.(udp|ipv4)"):
        graph_of(document)


def test_what_has_no_price_is_counted_as_unknown_with_one_remark() -> None:
    document = chain_of_tables(3)
    number = {"type": "hexstr", "value": "0x1"}
    for action in document["actions"]:
        action["primitives"].append({"op": "generate_digest", "parameters": [number, number]})
    graph = graph_of(document)
    unknown = [c for n in graph.nodes.values() for c in n.constructs if c.kind == "unknown"]
    assert {c.size("name") for c in unknown} == {"digest"}
    assert unknown[0].where.startswith("action ingress.a0_")
    assert sum("digest" in remark for remark in graph.remarks) == 1


def test_the_mask_that_keeps_a_width_is_not_counted() -> None:
    graph = graph_of(chain_of_tables(1))
    assert [(c.kind, dict(c.sizes)) for c in graph.nodes["ingress.t0:ingress.a0_0"].constructs] == [
        ("compute", {"operator": "+", "bits": 32}),
        ("write", {"bits": 32, "to": "metadata"}),
    ]


def test_hit_and_miss_may_go_on_apart() -> None:
    document = chain_of_tables(2)
    table = document["pipelines"][0]["tables"][0]
    table["next_tables"] = {"__HIT__": "ingress.t1", "__MISS__": None}
    graph = graph_of(document)
    assert {e.to for e in graph.nodes["ingress.t0 hit"].edges} == {"ingress.t0:ingress.a0_0", "ingress.t0:ingress.a0_1"}
    miss = graph.nodes[graph.nodes["ingress.t0"].edges[1].to]
    assert miss.name == "ingress.t0:ingress.a0_0 on miss"
    assert miss.edges[0].to == "deparser"


def test_direct_counters_meters_and_selectors_are_counted() -> None:
    document = chain_of_tables(1)
    pipeline = document["pipelines"][0]
    pipeline["tables"][0] |= {"with_counters": True, "direct_meters": "m"}
    target = ["standard_metadata", "egress_port"]
    document["meter_arrays"] = [{"name": "m", "id": 0, "is_direct": True, "size": 1, "result_target": target}]
    pipeline["tables"][0] |= {"type": "indirect_ws", "action_profile": "ap"}
    field = {"type": "field", "value": ["ethernet", "src"]}
    pipeline["action_profiles"] = [
        {"name": "ap", "id": 0, "max_size": 64, "selector": {"algo": "crc16", "input": [field]}}
    ]
    nodes = graph_of(document).nodes
    constructs = nodes["ingress.t0"].constructs
    chosen, metered = nodes["key_of_ingress_t0"].constructs
    assert (chosen.kind, dict(chosen.sizes)) == ("hash", {"algorithm": "crc16", "bytes": 6})
    assert (metered.kind, dict(metered.sizes)) == ("meter", {"cells": 1024})
    assert [c.kind for c in constructs] == ["lookup", "counter"], "what an entry has of the profile stands in it"
    assert constructs[0].number("action_data_bytes") == 4


def test_jumps_in_actions() -> None:
    document = chain_of_tables(1, actions=1)
    (action,) = document["actions"]
    (write,) = action["primitives"]
    condition = {"op": "==", "left": {"type": "local", "value": 0}, "right": {"type": "hexstr", "value": "0x1"}}
    asked = {"type": "expression", "value": {"type": "expression", "value": condition}}
    to = {"type": "hexstr", "value": "0x3"}
    jump = {"op": "_jump_if_zero", "parameters": [asked, to]}
    action["primitives"] = [jump, write, write, {"op": "drop", "parameters": []}]
    found = analyse(graph := graph_of(document), lambda node, _edge: float(len(node.constructs)))
    assert kinds_on(graph, found.highest_cost)["write"] == 2
    assert kinds_on(graph, found.lowest_cost)["write"] == 0
    assert kinds_on(graph, found.lowest_cost)["drop"] == 1
    to["value"] = "0x0"
    with pytest.raises(DataError, match=r"/actions/0/primitives/0: jumps out of a conditional statement"):
        graph_of(document)


def test_conditionals_within_conditionals_of_actions() -> None:
    document = chain_of_tables(1, actions=1)
    (action,) = document["actions"]
    (write,) = action["primitives"]

    def jump(to: int, *fields: int) -> dict[str, object]:
        conditions = [{"op": "==", "left": {"type": "local", "value": 0}, "right": _hexadecimal(n)} for n in fields]
        asked = [{"type": "expression", "value": {"type": "expression", "value": each}} for each in conditions]
        return {"op": "_jump_if_zero" if fields else "_jump", "parameters": [*asked, _hexadecimal(to)]}

    drop = {"op": "drop", "parameters": []}
    action["primitives"] = [jump(8, 1), write, jump(5, 2), write, jump(7), write, write, jump(9), drop]
    graph = graph_of(document)
    found = analyse(graph, lambda node, _edge: float(len(node.constructs)), k=100)
    met = [kinds_on(graph, path) for path in found.most_expensive]
    assert {(kinds["write"], kinds["drop"]) for kinds in met} >= {(3, 0), (2, 0), (0, 1)}


def _hexadecimal(number: int) -> dict[str, str]:
    return {"type": "hexstr", "value": hex(number)}


def test_a_program_for_psa() -> None:
    graph = read_program(Path(__file__).parents[2] / "data/psa_parts.json")
    found = analyse(graph, lambda _node, _edge: 0.0, k=1000)
    met = [kinds_on(graph, path) for path in found.most_expensive]
    assert {kind for kinds in met for kind in kinds} >= {"extract", "lookup", "clone", "multicast", "resubmit", "emit"}
    assert all(kinds["set egress"] + kinds["multicast"] + kinds["resubmit"] for kinds in met if kinds["emit"])
    assert "the deparser of ingress and the parser of egress are not counted" in graph.remarks


def test_too_many_combinations_of_headers_are_bounded() -> None:
    """Sixteen headers that sixteen tables may add: what depends on them is counted apart, and said."""
    document = chain_of_tables(16)
    for n, action in enumerate(document["actions"]):
        header = f"h{n // 2}"
        document["headers"].append({"name": header, "id": 10 + n, "header_type": "ethernet_t", "metadata": False})
        if n % 2:
            action["primitives"] = [{"op": "add_header", "parameters": [{"type": "header", "value": header}]}]
    document["deparsers"][0]["order"] += [f"h{n}" for n in range(16)]
    graph = graph_of(document)
    assert len(graph.nodes) < MAX_NODES
    assert sum("too many combinations" in remark for remark in graph.remarks) == 1
    assert len(graph.nodes["deparser"].constructs) == 17


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("pipelines"), "no program for bmv2"),
        (lambda d: d.update(parsers=[]), "has no parser"),
        (lambda d: d["parsers"][0].update(init_state="nowhere"), "/parsers/0: there is no parser state"),
        (lambda d: d["actions"][0].pop("primitives"), ""),
        (lambda d: d["actions"][0].pop("id"), "/actions/0: has no 'id'"),
        (lambda d: d["headers"][0].update(header_type="x"), "/headers/0/header_type: there is no header type 'x'"),
        (lambda d: d["pipelines"][0]["tables"][0].update(action_ids=[7]), "/tables/0/action_ids/0: there is no action"),
        (lambda d: d["pipelines"][0].update(init_table="x"), "/pipelines/0: there is no table"),
        (
            lambda d: d["pipelines"][0]["tables"][0].update(next_tables={"__HIT__": "", "__MISS__": None}),
            "or condition ''",
        ),
        (lambda d: d["pipelines"][0]["tables"][0].update(max_size="many"), "/max_size: is not a whole number"),
        (lambda d: d["deparsers"][0].update(order=[7]), "/deparsers/0/order/0: is not a string"),
        (lambda d: d["deparsers"][0].update(order=["standard_metadata"]), "order/0: 'standard_metadata' is metadata"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(change: Any, message: str) -> None:
    document = copy.deepcopy(chain_of_tables(2))
    change(document)
    if not message:
        assert graph_of(document).nodes
        return
    with pytest.raises(DataError, match=message):
        graph_of(document)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("{", "ends too early"),
        (ROUTER.read_text()[:5000], "ends too early|is not JSON"),
        ("[1, 2]", "no program for bmv2"),
        ('{"a": 1}', "no program for bmv2"),
        ("[" * 100_000, "nested too deeply|ends too early|is not JSON"),
    ],
)
def test_files_that_are_no_programs(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "program.json"
    path.write_text(text)
    with pytest.raises(DataError, match=message) as caught:
        read_program(path)
    assert caught.value.location is not None
    assert caught.value.location.file == str(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        read_program(tmp_path / "no.json")


def test_deep_expressions_are_refused() -> None:
    document = chain_of_tables(1)
    value: dict[str, Any] = {"type": "field", "value": ["meta", "m0"]}
    for _ in range(600):
        value = {"type": "expression", "value": {"op": "~", "left": None, "right": value}}
    document["actions"][0]["primitives"][0]["parameters"][1] = value
    with pytest.raises(DataError, match="is nested more than 200 times"):
        read_v1model(Tree(document, "", "program.json"))


def test_only_xdp_keeps_headers_apart_from_the_packet() -> None:
    changes = ("Route.routes.entries=10",)
    for (pair,) in (open_subjects(Wanted(str(ROUTER))), open_subjects(Wanted(str(ROUTER), sets=changes))):
        kept = {
            target: Counter(
                what.size("step")
                for node in pair.subject.graph_for(target).nodes.values()
                for what in node.constructs
                if what.kind == "kept header"
            )
            for target in ("dpdk-c", "xdp", "xdp:a-variant")
        }
        assert kept["dpdk-c"].keys() <= {"asked"}
        assert kept["xdp"]["cleared"] > 0
        assert "asked" not in kept["xdp"]
        assert kept["xdp"] == kept["xdp:a-variant"]
