"""Which experiments run where: what the matrix says is what a plan does."""

import pytest

from p4perf.errors import P4PerfError
from p4perf.experiment.planning import Column, Coverage, coverage, limits, plan_sweep
from p4perf.programs.capabilities import Capabilities, Limit
from p4perf.specs import list_catalogue, load_experiment
from p4perf.targets.base import NodeFacts

EVERYTHING = Column(Capabilities("all"))
FEW = Column(Capabilities("few", missing={"lpm": "why not"}, limits={"exact entries": Limit(1000, "a book")}))


def test_all_some_and_none():
    names = ["mat/exact-entries", "mat/lpm-tables", "parser/headers"]
    rows = coverage(names, {"all": EVERYTHING, "few": FEW})
    assert [row["experiment"] for row in rows] == names
    entries, prefixes, headers = rows
    assert [str(row["all"]) for row in rows] == ["all 65", "all 10", "all 11"]
    assert entries["few"].points == 65
    possible = sum(p.values["entries"] <= 1000 for p in load_experiment("mat/exact-entries").points)
    assert entries["few"].possible == possible
    assert str(entries["few"]).startswith(f"{possible} of 65: ")
    assert "more than the 1,000 that few takes (a book)" in entries["few"].reason
    assert str(prefixes["few"]) == "no: few has no lpm: why not"
    assert headers["few"] == Coverage(11, 11)


def test_metrics_that_a_target_does_not_give():
    poor = Column(Capabilities("poor"), metrics=("packet_rate",))
    (row,) = coverage(["parser/headers"], {"poor": poor, "all": EVERYTHING})
    assert row["poor"].possible == 0
    assert row["poor"].reason.startswith("poor does not give ")
    assert row["all"].possible == 11


def test_limits_are_listed_with_their_sources():
    assert limits({"few": FEW, "all": EVERYTHING}) == [
        {"of": "few", "what": "lpm", "most": 0, "source": "why not"},
        {"of": "few", "what": "exact entries", "most": 1000, "source": "a book"},
    ]


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["fake", "fake-small"])
def test_plans_agree_with_the_matrix(fakes, name):
    target = fakes(name)()
    facts = NodeFacts({"cpu_lowest_khz": "100000", "cpu_highest_khz": "9000000"})
    names = [e.name for e in list_catalogue()]
    for row in coverage(names, {name: Column(target.capabilities, target.metrics)}):
        experiment = load_experiment(row["experiment"])
        try:
            planned = len(plan_sweep(experiment, target, facts).points)
        except P4PerfError as error:
            planned = 0
            # The fake target calls different programs the same; that is no matter of capabilities.
            if "are the same program" in error.message:
                continue
        assert planned == row[name].possible, row["experiment"]
