"""The ends of the range, of the time and of patience: every search gives a result and says what it is worth."""

import pytest
from support.simulated_device import SimulatedDevice

from p4perf.errors import MeasurementError, UsageError
from p4perf.experiment.search import REPEATS, End, Flag, Goal, LoadTrial, SearchLimits, ndr_and_pdr
from p4perf.experiment.search.bisection import Bisection, Overload
from p4perf.experiment.search.mlrsearch import MLRSearch

GOALS = ndr_and_pdr(0.2)
LIMITS = SearchLimits(1e3, 14.88e6)
SEARCHES = [MLRSearch(), Bisection()]
every_search = pytest.mark.parametrize("search", SEARCHES, ids=lambda s: s.name)
all_methods = pytest.mark.parametrize("search", [*SEARCHES, Overload()], ids=lambda s: s.name)


@every_search
def test_a_device_that_carries_the_highest_load(search):
    result = search.find(SimulatedDevice(20e6), GOALS, LIMITS)
    for found in result.bounds.values():
        assert (found.lower_pps, found.upper_pps, found.width) == (14.88e6, None, None)
        assert found.flags == (Flag.AT_MAXIMUM,)
        assert found.lower_pps


@every_search
def test_a_device_that_loses_at_the_lowest_load(search):
    result = search.find(SimulatedDevice(500), GOALS, LIMITS)
    assert result.end is End.CONVERGED
    for found in result.bounds.values():
        assert (found.lower_pps, found.upper_pps, found.throughput_pps, found.width) == (0, 1e3, 0, 1)
        assert found.flags == (Flag.BELOW_MINIMUM,)
        assert not found.lower_pps


@every_search
def test_a_device_that_returns_nothing(search):
    result = search.find(lambda load, s: LoadTrial(load, s, round(load * s), round(load * s), s), GOALS, LIMITS)
    assert {found.flags for found in result.bounds.values()} == {(Flag.BELOW_MINIMUM,)}


@every_search
def test_a_generator_that_does_not_reach_the_load_looks_like_loss(search):
    result = search.find(SimulatedDevice(20e6, generator_pps=5e6), GOALS, LIMITS)
    assert result.bounds["ndr"].lower_pps == pytest.approx(5e6, rel=0.005)


@every_search
def test_the_number_of_trials_ends_a_search(search):
    complete = search.find(SimulatedDevice(1e6), GOALS, LIMITS)
    for most in range(1, len(complete.trials)):
        device = SimulatedDevice(1e6)
        result = search.find(device, GOALS, SearchLimits(1e3, 14.88e6, max_trials=most))
        assert len(result.trials) == device.calls == most
        assert result.trials == complete.trials[:most]
        assert result.end is End.MAX_TRIALS
        assert any(Flag.NOT_CONVERGED in found.flags for found in result.bounds.values())
        for found in result.bounds.values():
            assert found.lower_pps <= 1.0051e6
            assert found.upper_pps is None or found.upper_pps >= 1e6
            assert (Flag.NO_LOWER_BOUND in found.flags) == (not found.lower_pps)


@all_methods
def test_the_time_ends_a_search(search):
    result = search.find(SimulatedDevice(1e6, overhead_s=0.3), GOALS, SearchLimits(1e3, 14.88e6, max_duration_s=4.0))
    assert result.end is End.TIME_LIMIT
    assert len(result.trials) == 8  # a ninth would begin in time and end too late
    assert all(Flag.NOT_CONVERGED in found.flags for found in result.bounds.values())


@all_methods
def test_no_time_at_all(search):
    result = search.find(SimulatedDevice(1e6), GOALS, SearchLimits(1e3, 14.88e6, max_duration_s=0.1))
    assert result.trials == ()
    for found in result.bounds.values():
        assert (found.lower_pps, found.upper_pps) == (0, None)
        assert found.flags == (Flag.NO_LOWER_BOUND, Flag.NOT_CONVERGED)


@every_search
def test_disturbed_trials_are_measured_again(search):
    calm = search.find(SimulatedDevice(1e6), GOALS, LIMITS)
    result = search.find(SimulatedDevice(1e6, disturbed=0.2, seed=7), GOALS, LIMITS)
    assert result.bounds == calm.bounds
    assert len(result.trials) == len(calm.trials) + len(result.discarded)
    assert result.discarded
    for index in result.discarded:
        assert not result.trials[index].valid
        assert result.trials[index].lost > 0


def test_a_disturbed_trial_without_loss_counts():
    def measure(load, duration):
        trial = SimulatedDevice(1e6)(load, duration)
        return LoadTrial(load, duration, trial.sent, trial.lost, duration, valid=trial.lost > 0)

    result = Bisection().find(measure, GOALS, LIMITS)
    assert (result.discarded, result.bounds["ndr"].flags) == ((), ())


def test_a_disturbed_trial_that_still_meets_the_goal_counts():
    def measure(load, duration):
        sent = round(load * duration)
        return LoadTrial(load, duration, sent, sent // 500, duration, valid=False)

    result = MLRSearch().find(measure, GOALS[1:], LIMITS)
    assert (result.discarded, result.bounds["pdr"].flags) == ((), (Flag.AT_MAXIMUM,))


def test_disturbed_loss_that_changes_nothing_is_no_flaw():
    """The loads above the capacity are disturbed as well: they would lose anyway, but only of what they lose then."""

    def measure(load, duration):
        trial = SimulatedDevice(1e6)(load, duration)
        return LoadTrial(load, duration, trial.sent, trial.lost, duration, valid=load < 4e6)

    result = Bisection().find(measure, GOALS, LIMITS)
    assert {flag for found in result.bounds.values() for flag in found.flags} == set()
    assert any(not trial.valid and trial.lost for trial in result.trials)


@all_methods
def test_a_device_that_is_disturbed_all_the_time(search):
    def measure(load, duration):
        sent = round(load * duration)
        return LoadTrial(load, duration, sent, sent // 10, duration, valid=False)

    result = search.find(measure, GOALS, LIMITS)
    assert all(Flag.DISTURBED in found.flags for found in result.bounds.values())
    assert len(result.discarded) == len(result.trials) * REPEATS // (REPEATS + 1)


@every_search
def test_a_loss_at_all_loads_is_no_throughput(search):
    def measure(load, duration):  # loses one packet of each trial, and more beyond 10 Mpps
        sent = round(load * duration)
        return LoadTrial(load, duration, sent, max(1, sent - round(10e6 * duration)), duration)

    bounds = search.find(measure, GOALS, LIMITS).bounds
    assert bounds["ndr"].flags == (Flag.BELOW_MINIMUM, Flag.NDR_FAR_BELOW_PDR)
    assert bounds["pdr"].flags == ()
    assert bounds["pdr"].lower_pps == pytest.approx(10e6, rel=0.011)


@all_methods
@pytest.mark.parametrize("goals", [(), (Goal("ndr"), Goal("ndr", 0.01))])
def test_goals_have_different_names(search, goals):
    with pytest.raises(UsageError, match="different names"):
        search.find(SimulatedDevice(1e6), goals, LIMITS)


@every_search
def test_goals_that_differ_in_their_names_only(search):
    bounds = search.find(SimulatedDevice(1e6), (Goal("a"), Goal("b")), LIMITS).bounds
    assert bounds["a"].lower_pps == bounds["b"].lower_pps


@all_methods
def test_what_the_measurement_raises_ends_the_search(search):
    def measure(load, duration):
        raise RuntimeError("the cable is loose")

    with pytest.raises(RuntimeError, match="cable"):
        search.find(measure, GOALS, LIMITS)


@all_methods
def test_trials_have_to_be_those_that_were_asked_for(search):
    with pytest.raises(MeasurementError, match="was asked for"):
        search.find(lambda load, s: SimulatedDevice(1e6)(load / 2, s), GOALS, LIMITS)
