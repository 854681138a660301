"""Every flag of a trial comes from what it says, and from nothing else."""

import pytest
from support.load_session import columns

from p4perf.targets.windows import GATE_TOLERANCE
from p4perf.testbeds.loadgen.base import Load, Spacing
from p4perf.testbeds.loadgen.native import (
    LINK_SHARE,
    MAX_DRIFT,
    RATE_TOLERANCE,
    Segments,
    counted_segments,
    trial_flags,
)

AT_1M = Load(1e6, 0.2)
SLOTS = 1024
BRIDGED_US = LINK_SHARE * SLOTS  # at one packet in a microsecond
RATIO = 3.0 / 12.0


def flags(load=AT_1M, gate_ratio=RATIO, slots=SLOTS, **changes):
    return trial_flags(Segments.of(columns(2, **changes)), load, slots, gate_ratio)


def counted(gate_ratio=RATIO, **changes):
    return tuple(counted_segments(Segments.of(columns(3, **changes)), AT_1M, SLOTS, gate_ratio))


def test_all_segments_count_if_nothing_disturbs_them():
    assert counted() == (True, True, True)


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("switches", [0, 1, 0]),
        ("device_switches", [0, 2, 0]),
        ("max_gap_us", [1.0, 1.01 * BRIDGED_US, 1.0]),
        ("device_max_gap_us", [1.0, 1.01 * BRIDGED_US, 1.0]),
        ("device_mix_before_tsc", [3.0, 3.0 * (1.01 + GATE_TOLERANCE), 3.0]),
        ("device_mix_after_tsc", [3.0, 3.0 * (1.01 + GATE_TOLERANCE), 3.0]),
    ],
)
def test_a_disturbed_segment_does_not_count(key, values):
    assert counted(**{key: values}) == (True, False, True)


def test_without_a_gate_ratio_nothing_is_said_of_the_core():
    assert counted(None, device_mix_after_tsc=[3.0, 9.0, 3.0]) == (True, True, True)


@pytest.mark.parametrize("key", ["received", "link_full", "max_lag_us", "mix_after_tsc"])
def test_loss_alone_does_not_excuse_a_segment(key):
    assert counted(**{key: [0, 50_000, 0]}) == (True, True, True)


def test_an_undisturbed_trial_has_none():
    assert flags() == ()


@pytest.mark.parametrize("key", ["switches", "device_switches"])
def test_a_switch_to_another_thread(key):
    assert flags(**{key: [0, 1]}) == ("preempted",)


@pytest.mark.parametrize("key", ["max_gap_us", "device_max_gap_us"])
class TestGaps:
    def test_longer_than_the_link_can_bridge(self, key):
        assert flags(**{key: [1.0, 1.01 * BRIDGED_US]}) == ("preempted",)

    def test_as_long_as_the_link_can_bridge(self, key):
        assert flags(**{key: [1.0, 0.99 * BRIDGED_US]}) == ()

    def test_a_longer_link_bridges_more(self, key):
        assert flags(slots=2 * SLOTS, **{key: 1.5 * BRIDGED_US}) == ()
        assert flags(slots=SLOTS // 2, **{key: 0.75 * BRIDGED_US}) == ("preempted",)

    def test_a_lower_rate_takes_longer_to_fill_the_link(self, key):
        slow = {"sending_us": 999_990.0, "sent": 100_000, "planned": 100_000}
        assert flags(Load(1e5, 2.0), **slow, **{key: 5 * BRIDGED_US}) == ()
        assert flags(Load(1e5, 2.0), **slow, **{key: 11 * BRIDGED_US}) == ("preempted",)

    def test_without_a_rate_the_achieved_one_counts(self, key):
        """The record has a million packets per second."""
        assert flags(Load(None, 0.2), **{key: 0.99 * BRIDGED_US}) == ()
        assert flags(Load(None, 0.2), **{key: 1.01 * BRIDGED_US}) == ("preempted",)


class TestSharedCore:
    @pytest.mark.parametrize("when", ["before", "after"])
    def test_the_ratio_of_the_device_is_above_that_of_an_undisturbed_core(self, when):
        limit = 12.0 * RATIO * (1 + GATE_TOLERANCE)
        assert flags(**{f"device_mix_{when}_tsc": [3.0, 1.01 * limit]}) == ("disturbed_core",)
        assert flags(**{f"device_mix_{when}_tsc": [3.0, 0.99 * limit]}) == ()

    def test_the_core_of_the_generator_does_not_count(self):
        assert flags(mix_before_tsc=9.0, mix_after_tsc=9.0) == ()

    def test_without_a_known_ratio_nothing_can_be_said(self):
        assert flags(gate_ratio=None, device_mix_before_tsc=9.0) == ()


class TestDrift:
    @pytest.mark.parametrize("who", ["", "device_"])
    def test_the_clock_changed_while_traffic_ran(self, who):
        faster = 12.0 / (1 + 1.1 * MAX_DRIFT)
        keys = {f"{who}chain_after_tsc": [12.0, faster], f"{who}mix_after_tsc": [3.0, 3.0 * faster / 12.0]}
        assert flags(**keys) == ("drift",)
        assert flags(**{f"{who}chain_after_tsc": [12.0, 12.0 / (1 + 0.9 * MAX_DRIFT)]}) == ()

    def test_cores_may_have_different_clocks(self):
        keys = {f"device_chain_{when}_tsc": 6.0 for when in ("before", "after")}
        assert flags(**keys, **{f"device_mix_{when}_tsc": 1.5 for when in ("before", "after")}) == ()

    def test_a_clock_that_was_not_seen_did_not_drift(self):
        assert flags(gate_ratio=None, chain_before_tsc=0.0, mix_before_tsc=0.0) == ()


def test_real_time_scheduling_was_not_granted():
    assert flags(realtime=[True, False]) == ("no_realtime",)


def test_packets_of_somebody_else():
    assert flags(foreign=[0, 1]) == ("foreign_packets",)


class TestRate:
    def test_it_was_missed(self):
        for factor in (1 - 1.1 * RATE_TOLERANCE, 1 + 1.1 * RATE_TOLERANCE):
            assert flags(sending_us=99_999.0 / factor) == ("rate_off_target",)

    def test_it_was_met(self):
        for factor in (1 - 0.9 * RATE_TOLERANCE, 1 + 0.9 * RATE_TOLERANCE):
            assert flags(sending_us=99_999.0 / factor) == ()

    def test_fewer_packets_than_planned(self):
        """At the right pace, but the trial was cut off."""
        assert flags(planned=100_001) == ("rate_off_target",)

    @pytest.mark.parametrize(
        "load", [Load(None, 0.2), Load(1e6, 0.2, Spacing("poisson")), Load(1e6, 0.2, Spacing("burst"))]
    )
    def test_what_has_no_exact_rate_cannot_miss_it(self, load):
        assert flags(load, sending_us=110_000.0) == ()

    def test_single_packets_have_no_rate(self):
        assert flags(Load(10, 0.2), sent=1, planned=1, received=1, sending_us=0.0) == ()


def test_everything_at_once():
    found = flags(switches=1, device_mix_before_tsc=9.0, chain_after_tsc=6.0, realtime=False, sending_us=2e5, foreign=9)
    assert found == ("preempted", "disturbed_core", "drift", "no_realtime", "rate_off_target", "foreign_packets")
