"""Dynamic programming over programs against the enumeration of all ways, and its speed on many of them."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator

import pytest
from support.pricing import met_on

from p4perf.errors import UsageError
from p4perf.models.program import Edge, Node, ProgramGraph, construct
from p4perf.models.program.graph import NowhereError, in_order
from p4perf.models.program.paths import (
    analyse,
    assumed_nodes,
    constructs_on,
    met,
    sorted_nodes,
    weigh,
)


def graph_of(edges: dict[str, tuple[Edge, ...]], start: str = "n0") -> ProgramGraph:
    return ProgramGraph("program", {name: Node(name, "block", (), e) for name, e in edges.items()}, start, "p4perf")


def random_graph(seed: int, nodes: int = 9) -> tuple[ProgramGraph, dict[tuple[str, str], float]]:
    rng = random.Random(seed)
    edges, costs = {}, {}
    for n in range(nodes):
        count = rng.choice([0, 1, 2, 3]) if n else 2
        weights = [rng.random() for _ in range(count)]
        targets = [rng.choice(["", *(f"n{m}" for m in range(n + 1, nodes))]) for _ in range(count)]
        edges[f"n{n}"] = tuple(
            Edge(f"e{i}", to, w / sum(weights)) for i, (to, w) in enumerate(zip(targets, weights, strict=True))
        )
        costs |= {(f"n{n}", label): rng.randrange(100) / 4 for label in ["", *(f"e{i}" for i in range(count))]}
    return graph_of(edges), costs


def every_way(graph: ProgramGraph, name: str) -> Iterator[tuple[tuple[tuple[str, str], ...], float]]:
    node = graph.nodes[name]
    if not node.edges:
        yield ((name, ""),), 1.0
    for edge in node.edges:
        rest = every_way(graph, edge.to) if edge.to else iter([((), 1.0)])
        for steps, probability in rest:
            yield ((name, edge.label), *steps), probability * (edge.probability or 0.0)


@pytest.mark.parametrize("seed", range(40))
def test_agrees_with_the_enumeration(seed: int) -> None:
    graph, costs = random_graph(seed)
    found = analyse(graph, lambda node, edge: costs[node.name, edge.label if edge else ""], k=4)
    ways = [(steps, p, sum(costs[s] for s in steps)) for steps, p in every_way(graph, graph.start)]
    mean = sum(p * cost for _, p, cost in ways)
    assert found.paths == len(ways)
    assert found.expected == pytest.approx(mean)
    assert found.deviation == pytest.approx(math.sqrt(sum(p * (c - mean) ** 2 for _, p, c in ways)), abs=1e-6)
    assert found.highest_cost.cost == pytest.approx(max(c for _, _, c in ways))
    assert found.lowest_cost.cost == pytest.approx(min(c for _, _, c in ways))
    dearest = sorted((c for _, _, c in ways), reverse=True)[:4]
    assert [w.cost for w in found.most_expensive] == pytest.approx(dearest)
    likeliest = sorted((p for _, p, _ in ways), reverse=True)[:4]
    assert [w.probability for w in found.most_probable] == pytest.approx(likeliest)
    for way in (found.highest_cost, found.lowest_cost, *found.most_expensive, *found.most_probable):
        steps = tuple((s.node, s.label) for s in way.steps)
        assert any(
            steps == s and math.isclose(p, way.probability) and math.isclose(c, way.cost, abs_tol=1e-9)
            for s, p, c in ways
        )
    for name in graph.nodes:
        expected = sum(p for steps, p, _ in ways if name in {n for n, _ in steps})
        assert found.visits[name] == pytest.approx(expected)


def test_two_hundred_tables_have_too_many_ways_to_enumerate() -> None:
    edges: dict[str, tuple[Edge, ...]] = {}
    for n in range(200):
        following = f"n{n + 1}" if n < 199 else ""
        edges[f"n{n}"] = (Edge("a", following), Edge("b", following))
    found = analyse(graph_of(edges), lambda _node, edge: 3.0 if edge and edge.label == "b" else 1.0, k=3)
    assert found.paths == 2**200
    assert found.expected == pytest.approx(400.0)
    assert found.highest_cost.cost == 600.0
    assert [w.cost for w in found.most_expensive] == [600.0, 598.0, 598.0]
    assert found.highest_cost.log_probability == pytest.approx(200 * math.log(0.5))
    assert len(found.assumed) == 200


def test_long_programs_need_no_deep_recursion() -> None:
    edges = {f"n{n}": (Edge("", f"n{n + 1}"),) for n in range(5000)} | {"n5000": ()}
    assert analyse(graph_of(edges), lambda _node, _edge: 1.0).expected == 5001.0


def test_a_cycle_is_refused_with_its_nodes() -> None:
    graph = graph_of({"n0": (Edge("", "a"),), "a": (Edge("", "b"), Edge("x", "")), "b": (Edge("", "a"),)})
    with pytest.raises(UsageError, match="a -> b -> a"):
        sorted_nodes(graph)


def test_an_edge_to_nowhere_is_refused() -> None:
    with pytest.raises(UsageError, match="'b', which is not there"):
        sorted_nodes(graph_of({"n0": (Edge("", "b"),)}))


def test_the_order_holds_what_can_be_reached_each_before_what_it_leads_to() -> None:
    graph = graph_of({"n0": (Edge("", "b"), Edge("x", "a")), "a": (Edge("", "b"),), "b": (Edge("", ""),), "c": ()})
    assert [node.name for node in in_order("n0", graph.nodes)] == ["n0", "a", "b"]
    with pytest.raises(NowhereError, match="nowhere") as caught:
        in_order("nowhere", graph.nodes)
    assert (caught.value.name, caught.value.source) == ("nowhere", "")


@pytest.mark.parametrize("given", [(0.5, 0.4), (0.7, 0.7), (-0.5, 1.5), (math.nan, 0.5)])
def test_probabilities_that_do_not_add_up_are_refused(given: tuple[float, float]) -> None:
    graph = graph_of({"n0": (Edge("a", "", given[0]), Edge("b", "", given[1]))})
    with pytest.raises(UsageError, match="probabilities at n0"):
        analyse(graph, lambda _node, _edge: 0.0)


def test_edges_without_a_share_divide_what_is_left() -> None:
    graph = weigh(graph_of({"n0": (Edge("a", ""), Edge("b", ""), Edge("c", ""))}), {"n0": {"a": 0.5}})
    costs = {"a": 1.0, "b": 10.0, "c": 100.0}
    found = analyse(graph, lambda _node, edge: costs[edge.label] if edge else 0.0)
    assert found.expected == pytest.approx(0.5 + 0.25 * 110)
    assert assumed_nodes(graph) == ("n0",)
    assert assumed_nodes(weigh(graph, {"n0": {"a": 0.5, "b": 0.1}})) == ()


def test_unknown_nodes_and_labels_are_refused() -> None:
    graph = graph_of({"n0": (Edge("a", ""), Edge("b", ""))})
    with pytest.raises(UsageError, match="'n7'"):
        weigh(graph, {"n7": {"a": 1.0}})
    with pytest.raises(UsageError, match="n0 has no edge z"):
        weigh(graph, {"n0": {"z": 1.0}})


def test_ways_that_nobody_takes_can_be_left_out() -> None:
    graph = weigh(graph_of({"n0": (Edge("a", ""), Edge("b", ""))}), {"n0": {"a": 1.0, "b": 0.0}})

    def cost(_node: Node, edge: Edge | None) -> float:
        return 5.0 if edge and edge.label == "b" else 1.0

    assert analyse(graph, cost).highest_cost.cost == 5.0
    taken = analyse(graph, cost, taken_only=True)
    assert (taken.highest_cost.cost, taken.paths) == (1.0, 1)
    assert [w.probability for w in taken.most_probable] == [1.0]


def lookup_graph() -> ProgramGraph:
    lookup = construct("lookup", "table t", match_kind="exact", entries=8, key_bits=32, action_data_bytes=4, hit=0.5)
    count = construct("counter", "action a", cells=8)
    nodes = {
        "t": Node("t", "table", (lookup,), (Edge("hit", "t:a"), Edge("miss", ""))),
        "t:a": Node("t:a", "action", (count,)),
    }
    return ProgramGraph("program", nodes, "t", "p4perf")


def test_lookups_know_how_often_they_hit() -> None:
    graph = weigh(lookup_graph(), {"t": {"hit": 0.25, "miss": 0.75}})
    node = graph.nodes["t"]
    assert node.constructs[0].number("hit") == 0.25
    assert [constructs_on(node, e)[0].number("hit") for e in node.edges] == [1.0, 0.0]
    assert [(c.kind, times) for c, times in met(graph)] == [("lookup", 1.0), ("counter", 0.25)]


def test_constructs_of_one_way() -> None:
    graph = lookup_graph()
    found = analyse(graph, lambda node, _edge: float(len(node.constructs)))
    assert [c.kind for c, _ in met_on(graph, found.highest_cost)] == ["lookup", "counter"]
    assert [(c.kind, c.number("hit")) for c, _ in met_on(graph, found.lowest_cost)] == [("lookup", 0.0)]


def test_the_order_of_equals_is_that_of_the_graph() -> None:
    edges = {"n0": tuple(Edge(x, "n1") for x in "ab"), "n1": tuple(Edge(x, "") for x in "cd")}
    found = analyse(graph_of(edges), lambda _node, _edge: 1.0, k=4)
    labels = ["".join(s.label for s in way.steps) for way in found.most_expensive]
    assert labels == ["".join(pair) for pair in itertools.product("ab", "cd")]
