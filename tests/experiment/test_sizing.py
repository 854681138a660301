"""What there is time for: first fewer points, then fewer repetitions, the same for all targets."""

import pytest

from p4perf.experiment.recorder import SweepOutcome
from p4perf.experiment.sizing import MIN_POINTS, Device, Pace, fit_into, try_out
from p4perf.specs import load_experiment
from p4perf.targets.base import NodeFacts
from p4perf.testbeds.local import LocalTestbed

FULL, REPETITIONS = 65, 3


def load(points, repetitions):
    overrides = [] if repetitions is None else [("trials.repetitions", str(repetitions))]
    return load_experiment("mat/exact-entries", overrides=overrides, points=points)


@pytest.fixture
def devices(fakes):
    """Three targets that take one second for a trial and nothing else, one of them only few entries, one nothing."""
    pace = {"build_s": 0.0, "trial_s": 1 / 1.25, "rest_s": 0.0}
    made = [Device(fakes(name)(), NodeFacts({}), "", Pace(**pace)) for name in ("fake", "fake-noisy", "fake-small")]
    return [*made, Device(fakes("fake-absent")(), None, "no flux capacitor", Pace(**pace))]


def trials(sized, labels=("fake", "fake-noisy", "fake-small")):
    return sum(len(sized.plans[label].points) * sized.repetitions for label in labels)


def test_with_enough_time_nothing_is_left_out(devices):
    sized = fit_into(1e9, load, devices)
    assert (len(sized.experiment.points), sized.repetitions) == (FULL, REPETITIONS)
    assert (sized.full_points, sized.full_repetitions) == (FULL, REPETITIONS)
    assert sized.refusals["fake-absent"].state == "unavailable"
    assert sized.refusals["fake-absent"].reason == "no flux capacitor"


@pytest.mark.parametrize("share_s", [400, 300, 200, 100, 60])
def test_points_are_left_out_first(devices, share_s):
    sized = fit_into(share_s, load, devices)
    assert MIN_POINTS <= len(sized.experiment.points) < FULL
    assert sized.repetitions == REPETITIONS
    # The few entries of one target are an estimate before the sweep is thinned, and known afterwards.
    assert 0.5 * share_s < trials(sized) < 1.1 * share_s


def test_then_repetitions(devices):
    sized = fit_into(20, load, devices)
    assert len(sized.experiment.points) == MIN_POINTS
    assert sized.repetitions in (1, 2)
    assert trials(sized) < 1.1 * 20


def test_some_of_it_is_always_left(devices):
    sized = fit_into(0, load, devices)
    assert (len(sized.experiment.points), sized.repetitions) == (MIN_POINTS, 1)


def test_the_first_and_the_last_point_stay_and_all_targets_have_the_same(devices):
    whole = load(None, None)
    sized = fit_into(100, load, devices)
    values = [p.values["entries"] for p in sized.experiment.points]
    assert values[0] == whole.points[0].values["entries"]
    assert values[-1] == whole.points[-1].values["entries"]
    for label in ("fake", "fake-noisy"):
        assert [p.point.values["entries"] for p in sized.plans[label].points] == values
    small = sized.plans["fake-small"]
    assert [p.point.values["entries"] for p in small.points] == [v for v in values if v <= 100]
    assert [r.point.values["entries"] for r in small.refused] == [v for v in values if v > 100]


def test_targets_that_measure_nothing_cost_nothing(devices):
    alone = fit_into(100, load, devices[:1])
    with_absent = fit_into(100, load, [devices[0], devices[-1]])
    assert len(alone.experiment.points) == len(with_absent.experiment.points)
    assert len(alone.experiment.points) > len(fit_into(100, load, devices[:2]).experiment.points)


def test_a_defect_in_a_plan_takes_no_other_target_along(devices, monkeypatch):
    monkeypatch.setattr(type(devices[1].target), "plan", lambda *_: {}["nothing"])
    sized = fit_into(1e9, load, devices)
    assert sized.refusals["fake-noisy"].state == "failed"
    assert "defect" in sized.refusals["fake-noisy"].reason
    assert "fake" in sized.plans


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


def test_the_first_trial_tells_what_one_takes(fakes, monkeypatch, tmp_path):
    experiment = load(1, None)
    monkeypatch.setenv("P4PERF_FAKE_SLEEP_S", "0.2")
    slow, unknown = Device(fakes("fake")(), NodeFacts({})), Device(fakes("fake-defect")(), None)
    for device in (slow, unknown):
        try_out(experiment, device, LocalTestbed(tmp_path))
    assert slow.pace.trial_s >= 0.2
    assert unknown.pace == Pace()


def test_a_target_that_cannot_begin_is_told_later(fakes, monkeypatch, tmp_path):
    device = Device(fakes("fake")(), NodeFacts({}))
    monkeypatch.setattr(type(device.target), "trial", lambda *_: {}["nothing"])
    try_out(load(1, None), device, LocalTestbed(tmp_path))
    assert device.pace == Pace()
