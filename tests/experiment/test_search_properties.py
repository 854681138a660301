"""Whatever the device: an end, bounds that are numbers, and the same ones for the same trials."""

import math
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.simulated_device import SimulatedDevice

from p4perf.experiment.search import End, Flag, LoadTrial, SearchLimits, ndr_and_pdr
from p4perf.experiment.search.bisection import Bisection, Overload
from p4perf.experiment.search.mlrsearch import MLRSearch

every_search = pytest.mark.parametrize("search", [MLRSearch(), Bisection()], ids=lambda s: s.name)
all_methods = pytest.mark.parametrize("search", [MLRSearch(), Bisection(), Overload()], ids=lambda s: s.name)

goals = st.builds(
    ndr_and_pdr,
    st.sampled_from([0.05, 0.2, 1.0]),
    trials_per_load=st.sampled_from([1, 2, 12]),
    exceed_ratio=st.sampled_from([0.0, 0.5, 0.75]),
    width=st.sampled_from([0.005, 0.05, 0.3]),
)
limits = st.builds(
    lambda low, factor, trials: SearchLimits(low, low * factor, trials),
    st.floats(1e3, 1e6),
    st.sampled_from([1.001, 1.01, 2.0, 1e3]),
    st.sampled_from([7, 60, 500]),
)


@every_search
@settings(max_examples=50)
@given(
    capacity=st.floats(1e2, 1e9),
    queue=st.integers(0, 1000),
    degraded=st.sampled_from([1.0, 0.9, 0.3]),
    goals=goals,
    limits=limits,
)
def test_the_bounds_bracket_the_capacity(search, capacity, queue, degraded, goals, limits):
    device = SimulatedDevice(capacity, queue_packets=queue, degraded=degraded)
    result = search.find(device, goals, limits)
    for goal in goals:
        found = result.bounds[goal.name]
        seen = (capacity + device.hidden_pps(goal.final_trial_duration_s)) / (1 - goal.loss_ratio)
        assert found.lower_pps <= seen * (1 + 1e-9) + 1 / goal.final_trial_duration_s
        assert found.upper_pps is None or found.upper_pps > capacity * (1 - 1e-9) - 1 / goal.final_trial_duration_s
        if result.end is End.CONVERGED:
            ends = {Flag.AT_MAXIMUM, Flag.BELOW_MINIMUM}
            assert ends & set(found.flags) or found.width <= goal.width
            assert Flag.NOT_CONVERGED not in found.flags


@all_methods
@settings(max_examples=50)
@given(seed=st.integers(0, 1000), good=st.floats(0, 1), valid=st.floats(0, 1), goals=goals, limits=limits)
def test_a_device_without_any_order(search, seed, good, valid, goals, limits):
    """Nothing of its trials makes sense; still there is an end, and every result says what it is worth."""

    def find():
        random = Random(seed)

        def measure(load, duration):
            sent = max(1, round(load * duration))
            lost = 0 if random.random() < good else random.randint(0, sent)
            return LoadTrial(load, duration, sent, lost, duration, random.random() < valid)

        return search.find(measure, goals, limits)

    result = find()
    assert result == find()
    assert len(result.trials) <= limits.max_trials
    assert len(result.discarded) <= len(result.trials)
    for found in result.bounds.values():
        for number in (found.lower_pps, found.throughput_pps, found.upper_pps, found.width):
            assert number is None or math.isfinite(number)
        assert 0 <= found.throughput_pps <= found.lower_pps
        assert found.upper_pps is None or found.lower_pps <= found.upper_pps
        assert (
            found.lower_pps or {Flag.BELOW_MINIMUM, Flag.NO_LOWER_BOUND} & set(found.flags) or search.name == "overload"
        )
        assert (result.end is End.CONVERGED) or any(Flag.NOT_CONVERGED in b.flags for b in result.bounds.values())
