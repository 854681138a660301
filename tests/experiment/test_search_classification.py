"""Which loads are bounds: by the rule of the draft, as the package MLRsearch applies it."""

import math

import MLRsearch
import pytest
from hypothesis import given
from hypothesis import strategies as st
from MLRsearch.target_stat import TargetStat

from p4perf.experiment.search import Goal, LoadTrial, conditional_throughput, meets, relevant_bounds

GOAL = Goal("ndr", exceed_ratio=0.5, final_trial_duration_s=1.0, duration_sum_s=4.0, initial_trial_duration_s=0.5)


def trial(lost=0, duration_s=1.0, load=1000.0):
    return LoadTrial(load, duration_s, round(load * duration_s), lost, duration_s)


@pytest.mark.parametrize(
    ("lost", "verdict"),
    [
        ((), None),
        ((0,), None),
        ((0, 0), True),
        ((1, 1), None),
        ((1, 1, 1), False),
        ((1, 1, 0), None),
        ((1, 1, 0, 0), True),
        ((1, 0, 1, 1), False),
        ((0, 0, 1, 1, 1), False),
    ],
)
def test_a_load_is_decided_as_soon_as_nothing_can_change_it(lost, verdict):
    assert meets([trial(one) for one in lost], GOAL) is verdict


def test_short_trials_count_against_a_load_only():
    assert meets([trial(0, 0.5)] * 8, GOAL) is None
    assert meets([trial(1, 0.5)] * 5, GOAL) is False
    assert meets([trial(1, 0.5)] * 5 + [trial(0, 0.5)], GOAL) is None


def test_without_exceed_ratio_one_loss_decides():
    strict = Goal("ndr", exceed_ratio=0, final_trial_duration_s=1.0, duration_sum_s=4.0)
    assert meets([trial()] * 3, strict) is None
    assert meets([trial()] * 4, strict) is True
    assert meets([*[trial()] * 3, trial(1)], strict) is False


durations = st.sampled_from([0.25, 0.5, 1.0])
trials = st.lists(st.builds(trial, st.sampled_from([0, 1, 5, 100]), durations), max_size=20)
goals = st.builds(
    Goal,
    name=st.just("any"),
    loss_ratio=st.sampled_from([0.0, 0.005]),
    exceed_ratio=st.sampled_from([0.0, 0.25, 0.5, 0.75]),
    final_trial_duration_s=st.just(1.0),
    duration_sum_s=st.sampled_from([1.0, 4.0, 10.0]),
)


@given(trials, goals)
def test_the_package_decides_likewise(trials, goal):
    target = TargetStat(
        target=type(
            "Target",
            (),
            {
                "loss_ratio": goal.loss_ratio,
                "exceed_ratio": goal.exceed_ratio,
                "trial_duration": goal.final_trial_duration_s,
                "duration_sum": goal.duration_sum_s,
            },
        )
    )
    for one in trials:
        target.add(
            MLRsearch.MeasurementResult(
                intended_duration=one.intended_duration_s,
                intended_load=one.intended_load_pps,
                offered_count=one.intended,
                loss_count=one.lost,
            )
        )
    optimistic, pessimistic = target.estimates()
    verdict = meets(trials, goal)
    assert verdict is (optimistic if optimistic == pessimistic else None)
    if verdict:
        theirs = 1000.0 * (1 - target.pessimistic_loss_ratio)
        assert conditional_throughput(1000.0, trials, goal) == pytest.approx(theirs)


def test_the_lowest_upper_bound_wins():
    loads = {100.0: [trial()] * 4, 200.0: [trial(1)] * 4, 300.0: [trial()] * 4}
    assert relevant_bounds(loads, GOAL) == (100, 200)
    assert relevant_bounds({300.0: [trial()] * 4}, GOAL) == (300, None)
    assert relevant_bounds({200.0: [trial(1)] * 4, 100.0: [trial()]}, GOAL) == (None, 200)
    assert relevant_bounds({}, GOAL) == (None, None)


def test_the_throughput_is_what_comes_back_in_the_worst_trial_that_is_not_excused():
    goal = Goal("pdr", 0.01, 0.5, final_trial_duration_s=1.0, duration_sum_s=4.0)
    lost = [trial(100), trial(0), trial(4), trial(8)]
    assert conditional_throughput(1000.0, lost, goal) == pytest.approx(996)
    assert math.isclose(conditional_throughput(1000.0, [trial(2), trial(6)], goal), 994)
