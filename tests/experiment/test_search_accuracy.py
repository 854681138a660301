"""On devices of known capacity: how many trials the searches need, and how near they come."""

from random import Random

import pytest
from support.simulated_device import SimulatedDevice, random_capacity, single_losses

from p4perf.experiment.search import PDR_LOSS_RATIO, End, SearchLimits, ndr_and_pdr
from p4perf.experiment.search.bisection import Bisection, Overload
from p4perf.experiment.search.mlrsearch import MLRSearch

SEEDS = range(100)
LIMITS = SearchLimits(1e3, 40e6)
TRIAL_S = 0.2
STANDARD = ndr_and_pdr(TRIAL_S)
RFC_2544 = ndr_and_pdr(TRIAL_S, trials_per_load=1)

METHODS = {
    "mlrsearch": (MLRSearch(), STANDARD),
    "mlrsearch, one trial per load": (MLRSearch(), RFC_2544),
    "bisection, one trial per load": (Bisection(), RFC_2544),
    "arithmetic bisection, one trial per load": (Bisection(midpoint="arithmetic"), RFC_2544),
}


def devices(**options):
    return [SimulatedDevice(random_capacity(seed), seed=seed, **options) for seed in SEEDS]


def lossy(device, seed, low=0.1, high=1 / 3):
    """The same device, whose trials lose a single packet: every tenth to every third at its capacity."""
    return single_losses(device, TRIAL_S, Random(-seed).uniform(low, high))


@pytest.mark.parametrize("queue", [0, 64, 512])
@pytest.mark.parametrize("method", METHODS)
def test_both_rates_within_half_a_percent_in_30_trials(method, queue):
    search, goals = METHODS[method]
    for device in devices(queue_packets=queue):
        result = search.find(device, goals, LIMITS)
        ndr, pdr = result.bounds["ndr"], result.bounds["pdr"]
        assert (result.end, ndr.flags, pdr.flags) == (End.CONVERGED, (), ())
        assert len(result.trials) == device.calls <= 30
        # A queue of Q packets hides a loss of up to Q packets of each trial; a trial has whole packets.
        hidden, packet = device.hidden_pps(TRIAL_S), 1 / TRIAL_S
        assert 0.995 * device.capacity_pps <= ndr.lower_pps <= device.capacity_pps + hidden
        assert ndr.upper_pps >= device.capacity_pps + hidden - 2 * packet
        highest = (device.capacity_pps + hidden) / (1 - PDR_LOSS_RATIO)
        assert 0.995 * device.capacity_pps / (1 - PDR_LOSS_RATIO) - packet <= pdr.lower_pps <= highest
        assert pdr.throughput_pps <= device.capacity_pps + hidden


@pytest.mark.parametrize("degraded", [0.95, 0.7, 0.3])
def test_devices_that_get_slower_under_overload(degraded):
    for device in devices(degraded=degraded):
        result = MLRSearch().find(device, STANDARD, LIMITS)
        assert 0.995 * device.capacity_pps <= result.bounds["ndr"].lower_pps <= device.capacity_pps + 5
        assert len(result.trials) <= 30


@pytest.mark.parametrize("degraded", [1.0, 0.7])
def test_single_losses_do_not_move_the_result_of_mlrsearch(degraded):
    counts = []
    for seed, device in zip(SEEDS, devices(degraded=degraded), strict=True):
        result = MLRSearch().find(lossy(device, seed), STANDARD, LIMITS)
        found = result.bounds["ndr"]
        assert found.flags == ()
        assert 0.99 * device.capacity_pps <= found.lower_pps <= device.capacity_pps + 5
        counts.append(len(result.trials))
    assert sorted(counts)[len(counts) // 2] <= 35


def test_the_exceed_ratio_of_the_draft_bears_a_loss_in_every_tenth_trial():
    goals = ndr_and_pdr(TRIAL_S, trials_per_load=21, exceed_ratio=0.5)
    for seed, device in zip(SEEDS, devices(), strict=True):
        result = MLRSearch().find(lossy(device, seed, 0.1, 0.1), goals, LIMITS)
        assert result.bounds["ndr"].lower_pps >= 0.99 * device.capacity_pps


def test_a_bisection_with_one_trial_per_load_does_not_resist_single_losses():
    far = 0
    for seed, device in zip(SEEDS, devices(), strict=True):
        found = Bisection().find(lossy(device, seed), RFC_2544, LIMITS).bounds["ndr"]
        far += found.lower_pps < 0.99 * device.capacity_pps
    assert far > 20


def test_a_bisection_with_many_trials_per_load_resists_them():
    goals = ndr_and_pdr(TRIAL_S)
    for seed, device in zip(SEEDS, devices(), strict=True):
        found = Bisection().find(lossy(device, seed), goals, LIMITS).bounds["ndr"]
        assert found.lower_pps >= 0.99 * device.capacity_pps


def test_trials_of_one_goal_decide_for_the_other():
    both, ndr, pdr = SimulatedDevice(1e6), SimulatedDevice(1e6), SimulatedDevice(1e6)
    goals = RFC_2544
    Bisection().find(both, goals, LIMITS)
    Bisection().find(ndr, goals[:1], LIMITS)
    Bisection().find(pdr, goals[1:], LIMITS)
    assert both.calls < ndr.calls + pdr.calls / 2


def test_overload_is_the_rate_that_comes_back_at_the_highest_load():
    device = SimulatedDevice(1e6, degraded=0.8, overhead_s=0.3)
    result = Overload().find(device, ndr_and_pdr(TRIAL_S, trials_per_load=5), LIMITS)
    (found,) = result.bounds.values()
    assert (found.goal, result.method, len(result.trials)) == ("overload", "overload", 5)
    assert found.lower_pps == found.upper_pps == found.throughput_pps == pytest.approx(0.8e6)
    assert (found.width, found.flags) == (0, ())
    assert result.duration_s == pytest.approx(2.5)


def test_overload_is_the_median_of_the_trials():
    device = SimulatedDevice(1e6, queue_packets=100)
    rates = iter((1e6, 1.5e6, 1.2e6))

    def measure(load_pps, duration_s):
        device.capacity_pps = next(rates)
        return device(load_pps, duration_s)

    found = Overload().find(measure, ndr_and_pdr(0.1, trials_per_load=3), LIMITS).bounds["overload"]
    # A queue that is emptied after the traffic counts.
    assert found.throughput_pps == pytest.approx(1.201e6)
