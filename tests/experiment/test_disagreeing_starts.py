"""A point whose starts are in two states gets more of them, a flag, and an interval that holds both states."""

import itertools
from dataclasses import replace

import pytest
from support.campaigns import HEADERS, specs

from p4perf.experiment import new_run, open_testbed, resume_run
from p4perf.experiment.conductor import Conductor, TimeLimit
from p4perf.experiment.evaluate import point_rows
from p4perf.experiment.gate_sides import read_sides
from p4perf.results import Run
from p4perf.results.table import STARTS_DISAGREE
from p4perf.specs import load_experiment

SLOW = 106 / 100


@pytest.fixture
def target(fakes, monkeypatch):
    """A target whose programs with two headers or more take 6 % longer in every second start."""
    kind = type(fakes("fake")())
    summarise = kind.summarise

    def two_states(self, record, gate_ratio):
        summary = summarise(self, record, gate_ratio)
        factor = SLOW if record["slow"] else 1.0
        values = tuple(replace(m, value=round(m.value) * factor, error=0.3) for m in summary.metrics)
        return replace(summary, metrics=values)

    def parse(self, result):
        record = kind.read(self, result)
        return {**record, "cycles": 100.0, "slow": record["seed"] % 2 == 0 and record["unsteady"]}

    def trial(self, plan, options, facts):
        job = kind.begun(self, plan, options, facts)
        unsteady = "true" if len(plan.workload.program.headers) > 2 else "false"
        return replace(job, argv=(*job.argv[:-1], job.argv[-1].replace("{", f'{{"unsteady": {unsteady}, ', 1)))

    monkeypatch.setattr(kind, "read", kind.parse, raising=False)
    monkeypatch.setattr(kind, "begun", kind.trial, raising=False)
    for name, function in (("summarise", two_states), ("parse", parse), ("trial", trial)):
        monkeypatch.setattr(kind, name, function)
    return kind()


def measured(tmp_path, target):
    experiment = load_experiment(*specs(tmp_path, HEADERS))
    testbed = open_testbed("local")
    run, plan = new_run(experiment, target, testbed, tmp_path / "runs")
    Conductor(experiment, plan.points, target, testbed, run).measure()
    return run, plan.points


def counts(run, points):
    return [len(run.trials(p.key)) for p in points]


def test_they_get_further_starts_a_flag_and_a_wide_interval(tmp_path, target):
    run, points = measured(tmp_path, target)
    assert counts(run, points) == [3, 6, 6]
    assert run.state().complete
    opened = Run.open(run.path)
    rows, _, _ = point_rows(opened, "cycles_per_packet")
    assert [STARTS_DISAGREE in row["flags"] for row in rows] == [False, True, True]
    for row in rows[1:]:
        assert row["low"] <= 100
        assert row["high"] >= 100 * SLOW
    assert opened.samples("cycles_per_packet").disagreeing == (2.0, 4.0)
    assert opened.flag_counts == {STARTS_DISAGREE: 12}
    sides, _ = read_sides([run.path])
    (side,) = sides.values()
    (starts,) = side.starts_of_runs("cycles_per_packet")
    assert starts.disagreeing == {(2,), (4,)}
    assert starts.samples([(0,), (4,)]).disagreeing == (1.0,)


@pytest.mark.parametrize(("most", "trials"), [(3, 9), (4, 11)])
def test_without_time_they_have_the_flag_and_a_resume_makes_further_starts(tmp_path, target, monkeypatch, most, trials):
    begun = itertools.count()
    with monkeypatch.context() as patch:
        patch.setattr(TimeLimit, "over", lambda self, judgement: next(begun) >= trials)
        run, points = measured(tmp_path, target)
    assert counts(run, points) == [3, most, most]
    assert not run.state().complete
    assert STARTS_DISAGREE in Run.open(run.path).flag_counts
    resumed, _ = resume_run(run.path)
    attempts = [[entry["trial"]["attempt"] for entry in resumed.trials(p.key)] for p in points]
    assert attempts == [list(range(n)) for n in (3, 6, 6)]
    assert resumed.state().complete
