"""The average packet lies between the cheapest way and the dearest one, on which lookups are guessed wrong."""

import random
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from support.pricing import FlatPricing, lookup, router

from p4perf.evaluation.prediction.answer import Conditions, TargetModel, predict
from p4perf.evaluation.prediction.breakdown import WITH_MISPREDICTION
from p4perf.evaluation.prediction.library import open_models
from p4perf.evaluation.prediction.reading import read_program
from p4perf.evaluation.prediction.record import breakdown_rows
from p4perf.models.estimate import Estimate
from p4perf.models.program import Edge, Node, ProgramGraph
from p4perf.models.program.paths import weigh

CALM = Conditions(offered=None)
PROGRAMS = sorted((Path(__file__).parents[3] / "examples" / "programs").glob("*/*.json"))
GUESS = 40.0


@dataclass(frozen=True)
class GuessingPricing(FlatPricing):
    """A lookup costs 60 cycles on a hit, 30 on a miss, and 40 if it is guessed wrong; with 10 % to either side."""

    def charge(self, what, times=1.0):
        found = super().charge(what, times)
        if what.kind != "lookup":
            return found
        hit = what.number("hit")
        cycles = times * (60 * hit + 30 * (1 - hit) + GUESS * min(hit, 1 - hit))
        return replace(found, cycles=Estimate(cycles, 0.9 * cycles, 1.1 * cycles))


def predicted(graph, **more):
    return predict(graph, TargetModel(GuessingPricing(**more), "bench", 2e9, "test"), CALM)


@pytest.mark.parametrize("hit", [0.001, 0.1, 0.5, 0.7, 0.999])
def test_the_average_packet_is_between_the_best_and_the_worst_way(hit):
    found = predicted(router(hit))
    best, expected, worst = (found.cycles(path).value for path in ("lowest-cost", "expected", "highest-cost"))
    assert best == pytest.approx(20 + 2 + 30)
    assert worst == pytest.approx(20 + 2 + 60 + 6 + 4 + GUESS)
    assert expected == pytest.approx(22 + hit * 70 + (1 - hit) * 30 + GUESS * min(hit, 1 - hit))
    assert best <= expected <= worst


@pytest.mark.parametrize("hit", [0.0, 1.0])
def test_what_all_packets_do_is_guessed_right(hit):
    found = predicted(router(hit))
    assert found.cycles("highest-cost").value == pytest.approx(92)
    assert not any(WITH_MISPREDICTION in line.charge.remark for line in found.breakdowns["highest-cost"].lines)


def test_the_breakdown_of_the_worst_way_names_the_guess_and_adds_up():
    found = predicted(router(0.5), interaction=3.0)
    worst, best = found.breakdowns["highest-cost"], found.breakdowns["lowest-cost"]
    (line,) = [line for line in worst.lines if line.charge.what.kind == "lookup"]
    assert (line.charge.cycles.value, line.charge.remark) == (pytest.approx(60 + GUESS), WITH_MISPREDICTION)
    assert line.charge.cycles.low == pytest.approx(0.9 * (60 + GUESS))
    assert line.charge.cycles.high == pytest.approx(1.1 * (60 + GUESS))
    assert sum(row["cycles"] for row in breakdown_rows(worst)) == pytest.approx(worst.breakdown.cycles.value)
    assert worst.breakdown.high == pytest.approx(20 + 3 + 1.1 * (72 + GUESS))
    assert not any(WITH_MISPREDICTION in line.charge.remark for line in best.lines)


def test_a_path_with_more_mispredictions_can_cost_most():
    """Two lookups, 120 cycles and 80 for mispredictions, cost more than 150 cycles of headers on the other path."""
    tables = [Node(f"t{n}", "table", (lookup(),), (Edge("hit", f"{n}", 0.5), Edge("miss", f"{n}", 0.5))) for n in "12"]
    tables = [replace(t, edges=tuple(replace(e, to="t2" if t.name == "t1" else "") for e in t.edges)) for t in tables]
    plain = Node("plain", "action", (router().nodes["deparser"].constructs[0],) * 40)
    start = Node("start", "condition", (), (Edge("true", "t1", 0.5), Edge("false", "plain", 0.5)))
    graph = ProgramGraph("g", {n.name: n for n in (start, *tables, plain)}, "start", "test")
    found = predicted(graph)
    assert found.cycles("highest-cost").value == pytest.approx(20 + 120 + 2 * GUESS)
    assert [step.node for step in found.path("highest-cost").steps] == ["start", "t1", "t2"]
    assert [step.node for step in found.analysis.highest_cost.steps] == ["start", "plain"]


@pytest.fixture(scope="module")
def models():
    return open_models(())


@pytest.mark.sampled(3)
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_so_it_is_for_the_example_programs_and_the_models_that_ship(path, models):
    graph, rng = read_program(path), random.Random(path.stem)
    traffic = [graph]
    for sharpness in (1, 6):
        drawn = {n.name: [rng.random() ** sharpness for _ in n.edges] for n in graph.nodes.values() if len(n.edges) > 1}
        shares = {
            name: {e.label: w / sum(weights) for e, w in zip(graph.nodes[name].edges, weights, strict=True)}
            for name, weights in drawn.items()
        }
        traffic.append(weigh(graph, shares))
    for model in models:
        for weighed in traffic:
            found = predict(weighed, model, CALM)
            best, expected, worst = (found.cycles(way).value for way in ("lowest-cost", "expected", "highest-cost"))
            assert best <= expected + 1e-6, model.name
            assert expected <= worst + 1e-6, model.name
