"""Which windows count, and what they say."""

import copy
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p4perf.errors import MeasurementError
from p4perf.targets.windows import (
    MIN_WINDOWS,
    WindowStatistics,
    detectable_difference,
    lower_mode,
    window_statistics,
)


def program_of(record, gate_ratio=None):
    return window_statistics(record, gate_ratio)["program"]


def test_undisturbed_windows_all_count(make_record):
    both = window_statistics(make_record())
    assert list(both) == ["program", "baseline"]
    assert (both["program"].core_cycles, both["baseline"].core_cycles) == (100, 20)
    assert both["program"].counted == both["program"].tried == 40
    assert both["program"].share == 1
    assert both["program"].failures() == ()


def test_core_cycles_follow_the_core_clock(make_record):
    def slower(n, window):
        # 15 TSC cycles for 12 core cycles: the core runs at 0.8 of the TSC.
        window.update(chain_before_tsc=15.0, chain_after_tsc=15.0, mix_before_tsc=3.75, mix_after_tsc=3.75)

    statistics = program_of(make_record(change=slower))
    assert statistics.tsc_cycles == 100
    assert statistics.core_cycles == pytest.approx(80)
    assert statistics.counted == 40


@pytest.mark.parametrize(
    ("spoilt", "what"),
    [
        ({"preemptions": 1}, "preempted"),
        ({"mix_before_tsc": 3.5}, "neighbour before"),
        ({"mix_after_tsc": 3.5}, "neighbour after"),
        ({"chain_after_tsc": 12.7, "mix_after_tsc": 3.1}, "clock faster before than after"),
        ({"chain_after_tsc": 11.3, "mix_after_tsc": 2.8}, "clock slower before than after"),
    ],
)
def test_a_disturbed_window_does_not_count(make_record, spoilt, what):
    def every_fourth(n, window):
        if n % 4 == 0:
            window.update(spoilt, tsc_per_packet=500.0)

    statistics = program_of(make_record(change=every_fourth))
    assert (statistics.counted, statistics.tried) == (30, 40), what
    assert statistics.core_cycles == 100


def test_a_small_movement_of_ratio_and_clock_is_tolerated(make_record):
    def little(n, window):
        window.update(mix_before_tsc=3.4, chain_after_tsc=12.5, mix_after_tsc=3.0)

    assert program_of(make_record(change=little)).counted == 40


def test_the_raw_median_is_over_all_windows(make_record):
    def most_are_slow(n, window):
        if n % 4:
            window.update(mix_before_tsc=6.0, mix_after_tsc=6.0, tsc_per_packet=200.0)

    statistics = program_of(make_record(windows=100, change=most_are_slow))
    assert statistics.core_cycles == 100
    assert statistics.raw_core_cycles == 200
    assert statistics.counted == 25


def test_the_gate_ratio_of_the_machine_decides(make_record):
    """A trial that never saw an undisturbed core takes its own slow ratio for the best there is."""
    record = make_record(gate_ratio=0.45)
    for when in ("before", "after"):
        record["windows"][f"mix_{when}_tsc"] = [0.45 * 12] * 80
    assert program_of(record).counted == 40
    assert program_of(record, 0.25).counted == 0
    assert program_of(record, 0.46).counted == 40
    assert program_of(record, 0.50).counted == 0, "chains that were disturbed all along make cycles too few"


def test_windows_with_disturbed_chains_do_not_count(make_record):
    def slower(n, window):
        window.update({f"chain_{when}_tsc": 12 if n % 4 < 2 else 13.3 for when in ("before", "after")})

    statistics = program_of(make_record(change=slower))
    assert (statistics.counted, statistics.tried, statistics.core_cycles) == (20, 40, 100)


def test_without_a_ratio_of_its_own_the_one_from_elsewhere_counts(make_record):
    assert program_of(make_record(gate_ratio=0.0), 0.25).counted == 40
    assert program_of(make_record(gate_ratio=0.0), None).counted == 0


def test_plain_mode_looks_at_preemptions_only(make_record):
    def rough(n, window):
        window.update(mix_before_tsc=9.0, chain_after_tsc=20.0, preemptions=int(n < 5))

    statistics = program_of(make_record(change=rough, gated=False))
    assert (statistics.counted, statistics.tried) == (35, 40)


def test_few_outliers_do_not_spoil_a_trial_but_a_wide_spread_does(make_record):
    def one_in_ten(n, window):
        if n % 10 == 0:
            window["tsc_per_packet"] *= 3

    def two_states(n, window):
        if n % 2 == 0:
            window["tsc_per_packet"] *= 1.5

    outliers, wide = program_of(make_record(change=one_in_ten)), program_of(make_record(change=two_states))
    assert outliers.failures() == ()
    assert outliers.cv > 0.15 > outliers.spread
    assert outliers.core_cycles == 100
    assert wide.failures() == ("high_spread",)


def test_too_few_windows_are_flagged(make_record):
    assert program_of(make_record(windows=MIN_WINDOWS - 1)).failures() == ("few_windows",)
    assert program_of(make_record(windows=MIN_WINDOWS)).failures() == ()


@pytest.mark.parametrize(("one_of", "failures"), [(15, ()), (25, ("low_acceptance",))])
def test_a_low_share_of_counted_windows_is_flagged(make_record, one_of, failures):
    def mostly_disturbed(n, window):
        window["preemptions"] = int(n % one_of != 0)

    statistics = program_of(make_record(windows=25 * one_of, change=mostly_disturbed))
    assert statistics.counted == 25
    assert statistics.failures() == failures


def test_without_any_counted_window_there_is_no_number(make_record):
    statistics = program_of(make_record(change=lambda n, w: w.update(preemptions=1)))
    assert statistics.core_cycles != statistics.core_cycles
    assert statistics.raw_core_cycles == 100
    assert {"few_windows", "low_acceptance"} <= set(statistics.failures())


def test_no_windows_have_no_share():
    assert WindowStatistics(1, 1, 1, 0, 0, 0, 0).share == 0


@pytest.mark.parametrize("key", ["programs", "gate_ratio", "gate_tolerance", "drift_tolerance", "gated"])
def test_a_record_without_a_key_is_damaged(make_record, key):
    record = make_record()
    del record[key]
    with pytest.raises(MeasurementError, match=key):
        window_statistics(record)


def damage(path, value):
    def change(record):
        *folders, last = path
        for folder in folders:
            record = record[folder]
        if value is KeyError:
            del record[last]
        else:
            record[last] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        damage(["windows", "tsc_per_packet"], KeyError),
        damage(["windows", "tsc_per_packet"], ["fast"] * 80),
        damage(["windows", "tsc_per_packet"], [1.0]),
        damage(["windows", "tsc_per_packet"], None),
        damage(["windows", "preemptions"], [[0], [0, 1]]),
        damage(["windows"], None),
        damage(["windows"], []),
        damage(["windows"], {}),
        damage(["gate_ratio"], "low"),
        damage(["chain_core_cycles"], KeyError),
    ],
)
def test_a_damaged_record_is_a_measurement_error(make_record, change):
    record = copy.deepcopy(make_record())
    change(record)
    with pytest.raises(MeasurementError, match="record of a trial"):
        window_statistics(record)


def test_a_record_without_windows_is_a_measurement_error(make_record):
    with pytest.raises(MeasurementError, match="no windows"):
        window_statistics(make_record(windows=0))


@given(
    costs=st.lists(st.floats(1, 1e5), min_size=1, max_size=60),
    preempted=st.lists(st.booleans(), min_size=60, max_size=60),
    clock=st.floats(0.2, 5),
)
def test_the_median_lies_between_the_counted_windows(costs, preempted, clock):
    n = len(costs)
    chain = [12 * clock] * n
    record = {
        "programs": ["program"],
        "gated": True,
        "gate_ratio": 0.25,
        "gate_tolerance": 0.15,
        "drift_tolerance": 0.05,
        "chain_core_cycles": 12.0,
        "windows": {
            "program": [0] * n,
            "preemptions": [int(p) for p in preempted[:n]],
            "tsc_per_packet": costs,
            "chain_before_tsc": chain,
            "chain_after_tsc": chain,
            "mix_before_tsc": [c * 0.25 for c in chain],
            "mix_after_tsc": [c * 0.25 for c in chain],
        },
    }
    statistics = program_of(record)
    counted = [c for c, p in zip(costs, preempted, strict=False) if not p]
    assert statistics.counted == len(counted)
    assert statistics.tried == n
    if counted:
        assert min(counted) * 0.999 <= statistics.core_cycles * clock <= max(counted) * 1.001
        assert statistics.spread >= 0


class TestLowerMode:
    def test_of_an_undisturbed_core_it_is_what_it_repeats(self):
        ratios = sorted([0.2717 + 1e-5 * (n % 7) for n in range(95)] + [0.35, 0.4, 0.45, 0.5, 0.55])
        assert lower_mode(ratios) == pytest.approx(0.2717, rel=1e-3)

    def test_disturbed_chains_below_it_do_not_count_however_many_they_are(self):
        chains = [0.02 + 0.24 * n / 30 for n in range(30)]
        ratios = sorted(chains + [0.2717 + 1e-5 * (n % 7) for n in range(71)])
        assert ratios[10] < 0.11
        assert lower_mode(ratios) == pytest.approx(0.2717, rel=1e-3)

    def test_disturbed_chains_that_are_much_alike_do_not_count(self):
        chains = [0.2385 * (0.98 + 0.04 * n / 60) for n in range(60)]
        ratios = sorted(chains + [0.2639 + 1e-5 * (n % 7) for n in range(41)])
        assert lower_mode(ratios) == pytest.approx(0.2639, rel=1e-3)

    def test_of_two_states_it_is_the_lower_one(self):
        ratios = sorted([0.2717] * 20 + [0.45 + 1e-4 * n for n in range(81)])
        assert lower_mode(ratios) == 0.2717

    def test_without_any_cluster_it_is_the_tenth_percentile(self):
        ratios = [1.1**n for n in range(101)]
        assert lower_mode(ratios) == ratios[10]


def test_the_clock_around_windows(make_record):
    def slower(n, window):
        clock = 14.8 if n % 2 else 99.0
        window.update(chain_before_tsc=clock, chain_after_tsc=clock + 0.4, preemptions=(n + 1) % 2)
        window.update(mix_before_tsc=clock / 4, mix_after_tsc=clock / 4)

    assert program_of(make_record(change=slower)).chain_tsc == pytest.approx(15)
    assert program_of(make_record()).chain_tsc == 12


def of_spread(cycles, spread, counted):
    return WindowStatistics(cycles, cycles, cycles, spread, spread, counted, counted)


@given(st.integers(0, 2**32))
def test_the_error_of_a_median_is_what_repetition_shows(seed):
    """Medians of many normally distributed windows are as far apart as one of them says."""
    draws = np.random.default_rng(seed).normal(100, 2, (400, 41))
    said = of_spread(100, 0.02, 41).standard_error
    assert np.std(np.median(draws, axis=1)) == pytest.approx(said, rel=0.25)


def test_a_detectable_difference():
    """It falls with the root of the windows, and adds up in squares."""
    one, none = of_spread(100, 0.02, 40), of_spread(20, 0.0, 40)
    assert detectable_difference(one, none) == pytest.approx(1.96 * 1.2533 * 2 / math.sqrt(40), rel=1e-3)
    assert detectable_difference(of_spread(100, 0.02, 160), none) == pytest.approx(detectable_difference(one, none) / 2)
    assert detectable_difference(one, one) == pytest.approx(math.sqrt(2) * detectable_difference(one, none))
