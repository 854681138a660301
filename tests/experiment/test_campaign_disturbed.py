"""The whole catalogue within some minutes on a machine that is rarely undisturbed, in simulated time."""

import json
import random
from threading import Lock

import pytest
from support.campaigns import measure, new_campaign

from p4perf.cli.measure import chosen_experiments
from p4perf.experiment import bench, campaign, conductor, recorder
from p4perf.experiment.evaluate import evaluate_run
from p4perf.experiment.sizing import MEASURED
from p4perf.results import Run
from p4perf.targets.base import BuildPlan, JobResult, PointPlan
from p4perf.testbeds.local import LocalTestbed

UNDISTURBED = 0.05
"""Share of the windows."""

START_S, WINDOW_S, TIMEOUT_S = 0.25, 1e-3, 2.5
"""Of a trial: its start, a window with its calibration, and its longest duration."""

WANTED, NEEDED = 40, 20
"""Undisturbed windows after which a trial ends, and of which it is accepted."""

BUILD_S, CELL_S = 0.3, 1.0
"""A build on one of two processors; all that a cell takes beside its builds and trials, whenever it is continued."""


class Machine:
    """Its clock stands still unless something is built or measured."""

    def __init__(self):
        self.now, self._built, self._lock, self._windows = 1000.0, set(), Lock(), random.Random(26)

    def monotonic(self):
        return self.now

    def pass_time(self, seconds):
        with self._lock:
            self.now += seconds

    def build(self, plan):
        if plan.key not in self._built:
            self._built.add(plan.key)
            self.pass_time(BUILD_S)

    def run(self, job):
        tried = counted = 0
        while counted < WANTED and tried * WINDOW_S < TIMEOUT_S:
            tried += 1
            counted += self._windows.random() < UNDISTURBED
        self.pass_time(START_S + tried * WINDOW_S)
        return JobResult(0, json.dumps(json.loads(job.argv[-1]) | {"counted": counted}), "", 0.0)


@pytest.fixture
def machine(monkeypatch, fakes):
    machine, fake = Machine(), fakes("fake")
    plan, summarise = fake.plan, fake.summarise

    def planned(self, workload, traffic, facts):
        found = plan(self, workload, traffic, facts)
        build = BuildPlan({"program.c": found.key}, (("cc", "program.c"),), "program")
        return PointPlan(found.key, build, workload, traffic, found.memory_bytes)

    def summarised(self, record, gate_ratio):
        self.accepted = record["counted"] >= NEEDED
        return summarise(self, record, gate_ratio)

    monkeypatch.setattr(fake, "plan", planned)
    monkeypatch.setattr(fake, "summarise", summarised)
    facts = LocalTestbed().facts()
    monkeypatch.setattr(LocalTestbed, "facts", lambda self: facts)
    monkeypatch.setattr(LocalTestbed, "build", lambda self, plan: machine.build(plan))
    monkeypatch.setattr(LocalTestbed, "run", lambda self, job, folder: machine.run(job))
    for module in (bench, campaign, conductor, recorder):
        monkeypatch.setattr(module, "time", machine)
    return machine


@pytest.mark.parametrize(
    ("targets", "budget_s"),
    [
        pytest.param(["fake"], 120.0, id="one target"),
        pytest.param(["fake", "fake-small:careful", "fake-small:bold"], 360.0, id="three", marks=pytest.mark.thorough),
    ],
)
def test_no_cell_is_without_a_first_model(tmp_path, machine, targets, budget_s):
    def conclude(run, plots):
        machine.pass_time(CELL_S)
        return evaluate_run(run, plots=plots, changes={"resamples": 0})

    names = chosen_experiments((), every=True, only=())
    made = new_campaign(tmp_path, names, targets, budget_s=budget_s)
    begun_s = machine.now
    cells = measure(made, conclude=conclude).values()
    assert machine.now - begun_s <= budget_s
    assert {c.state for c in cells} <= {MEASURED, "refused"}
    assert sum(c.state == MEASURED for c in cells) > 20 * len(targets)
    for cell in cells:
        if cell.state == MEASURED:
            run = Run.open(made.run(cell.run))
            assert cell.accepted >= min(2, cell.points), cell
            if run.variable is not None and run.spec.model is not None:
                assert (run.path / "model.json").exists(), cell
