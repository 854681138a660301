"""The cells of a campaign: what is planned for every target, and the pace of runs."""

import pytest

from p4perf.experiment.recorder import SweepOutcome
from p4perf.experiment.sizing import Device, Pace, plan_everywhere
from p4perf.specs import load_experiment
from p4perf.targets.base import NodeFacts


@pytest.fixture
def devices(fakes):
    """Three targets, one of them for few entries only, and one that cannot be used."""
    made = [Device(fakes(name)(), NodeFacts({})) for name in ("fake", "fake-noisy", "fake-small")]
    return [*made, Device(fakes("fake-absent")(), None, "no flux capacitor")]


def test_every_target_gets_the_points_that_it_can_do(devices):
    plans, refusals = plan_everywhere(load_experiment("mat/exact-entries"), devices)
    assert {label: len(plan.points) for label, plan in plans.items()} == {
        "fake": 65,
        "fake-noisy": 65,
        "fake-small": 19,
    }
    assert len(plans["fake-small"].refused) == 65 - 19
    assert (refusals["fake-absent"].state, refusals["fake-absent"].reason) == ("unavailable", "no flux capacitor")


def test_a_defect_in_a_plan_takes_no_other_target_along(devices, monkeypatch):
    monkeypatch.setattr(type(devices[1].target), "plan", lambda *_: {}["nothing"])
    plans, refusals = plan_everywhere(load_experiment("mat/exact-entries"), devices)
    assert refusals["fake-noisy"].state == "failed"
    assert "defect" in refusals["fake-noisy"].reason
    assert "fake" in plans


def outcome(trials, measured_s, built_s, wall_s):
    return SweepOutcome(4, 4, (), (), trials, measured_s, built_s, wall_s)


def test_the_pace_is_learnt():
    pace = Pace(build_s=9.0, trial_s=9.0, rest_s=9.0)
    for _ in range(20):
        pace.learn(outcome(trials=10, measured_s=20.0, built_s=12.0, wall_s=33.0), builds=4, wall_s=37.0)
    assert (pace.trial_s, pace.build_s, pace.rest_s) == pytest.approx((2.0, 3.0, 5.0), rel=1e-3)


def test_nothing_is_learnt_from_a_run_without_trials_and_builds():
    pace = Pace(build_s=9.0, trial_s=9.0, rest_s=1.0)
    pace.learn(outcome(trials=0, measured_s=0.0, built_s=1.0, wall_s=2.0), builds=0, wall_s=2.0)
    assert (pace.build_s, pace.trial_s) == (9.0, 9.0)
