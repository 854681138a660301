"""Drift between runs: what several runs show of it, and that a gate keeps its promise whatever they drift by."""

import math

import numpy as np
import pytest

from p4perf.evaluation.comparison.drift import (
    ASSUMED,
    Drift,
    drift_of,
    pooled,
    run_levels,
    with_assumed_drift,
    with_drift,
)
from p4perf.evaluation.comparison.gate import ComponentShifts, judge
from p4perf.evaluation.comparison.shifts import PointShifts, paired_shifts
from p4perf.results.table import Samples

POINTS, RUNS = 4, 3
LABELS = tuple("abcd")


def run(level, factors=(1.0, 2.0, 4.0)):
    return Samples(tuple(map(float, range(len(factors)))), tuple((f * level,) * 3 for f in factors))


def test_levels_are_those_of_runs_over_their_shared_points():
    levels = run_levels([run(1.0), run(1.1), run(1.21, (1.0, 2.0))])
    assert levels == pytest.approx([-math.log(1.1), 0.0, math.log(1.1)])
    assert run_levels([run(1.0), Samples((9.0,), ((1.0,),))]).size == 0


def test_what_components_have_in_common_is_shared():
    alike = [np.array([-0.01, 0.0, 0.01])] * 4
    assert drift_of(alike) == Drift(pytest.approx(0.01), 2.0, pytest.approx(0.0, abs=1e-12), 6.0)
    apart = drift_of([np.array([-0.01, 0.01]), np.array([0.01, -0.01])])
    assert (apart.shared, apart.own) == (0.0, pytest.approx(0.02))
    assert drift_of([np.array([-0.01, 0.0, 0.01])]) == Drift(pytest.approx(0.01), 2.0)
    assert drift_of([np.empty(0)]) is None


def test_estimates_are_pooled_by_their_degrees_of_freedom():
    assert pooled([Drift(0.01, 1.0), Drift(0.02, 3.0)]) == Drift(pytest.approx(math.sqrt(13e-4 / 4)), 4.0)
    assert pooled([]) == Drift(0.0, 0.0)


def shifted(centre):
    size = np.full(POINTS, 0.003)
    return PointShifts(np.full(POINTS, centre), size, np.full(POINTS, 12.0), np.zeros(POINTS))


def test_a_shift_within_the_floor_is_none():
    plain, drifted = shifted(0.06), with_drift(shifted(0.06), Drift(0.01, 2.0), 1, RUNS, np.empty(0))
    assert judge([ComponentShifts("cycles_per_packet", plain, LABELS)])[0].worse
    (said,) = judge([ComponentShifts("cycles_per_packet", drifted, LABELS)])
    assert (said.worse, said.detectable > drifted.floor > 0.06) == (False, True)


def test_more_runs_lower_the_floor_and_an_assumption_has_none():
    floors = [with_drift(shifted(0.0), Drift(0.01, n - 1.0), 1, n, np.empty(0)).floor for n in (3, 4, 6, 12)]
    assert floors == sorted(floors, reverse=True)
    assumed = with_assumed_drift(shifted(0.0), ASSUMED, 1, 1)
    assert (assumed.floor, assumed.least_drift) == (0.0, pytest.approx(ASSUMED * math.sqrt(2)))


def false_alarms(generator, components, share, offset, gates, estimated):
    """Gates of components that fail though only runs drift."""
    failed = 0
    for _ in range(gates):
        drift = math.sqrt(share) * generator.normal(0, offset, RUNS + 1)
        drift = drift + math.sqrt(1 - share) * generator.normal(0, offset, (components, RUNS + 1))
        noise = 0.002
        seen = drift + generator.normal(0, noise, drift.shape)
        levels = [each[1:] - each[1:].mean() for each in seen]
        every = []
        for each, own in zip(seen, levels, strict=True):
            centre = each[0] - (np.median(each[1:]) if estimated else each[1])
            size = noise * math.sqrt(2) * math.sqrt(POINTS)
            shifts = PointShifts(
                np.full(POINTS, centre), np.full(POINTS, size), np.full(POINTS, 20.0), np.zeros(POINTS)
            )  # fmt: skip
            if estimated:
                shifts = with_drift(shifts, drift_of(levels), 1, RUNS, own)
            else:
                shifts = with_assumed_drift(shifts, offset, 1, 1)
            every.append(ComponentShifts("cycles_per_packet", shifts, LABELS))
        failed += any(v.worse for v in judge(every, 0.001))
        failed += any(v.worse for v in judge(every, 0.9))
    return failed


@pytest.mark.parametrize("estimated", [True, False])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("components", [1, 6])
def test_drift_is_no_false_alarm(components, share, estimated):
    generator = np.random.default_rng(int(10 * share) + components)
    gates = 60
    failed = sum(false_alarms(generator, components, share, offset, gates, estimated) for offset in (0.005, 0.04))
    # Of 2.5 % at most; a margin of nearly one leaves the test alone to decide, one of nearly zero the strictest level.
    assert failed <= 0.025 * 4 * gates + 2 * math.sqrt(0.025 * 4 * gates)


def pairs(generator, shift, *, drift=0.04, number=6, points=POINTS):
    """Logarithms of ratios of pairs whose starts share a drift that is much larger than their scatter."""
    shared = drift * generator.standard_normal((points, number))
    old = shared + 0.005 * generator.standard_normal(shared.shape)
    new = shared + 0.005 * generator.standard_normal(shared.shape) + shift
    return list(new - old)


def test_what_both_starts_of_a_pair_share_cancels():
    generator = np.random.default_rng(1)
    found = [paired_shifts(pairs(generator, math.log(1.05))).common() for _ in range(20)]
    assert all(each.p_value(1) < 0.001 for each in found)
    assert max(each.detectable(0.01) for each in found) < 0.03


@pytest.mark.parametrize("number", [3, 6])
def test_an_odd_start_moves_neither_the_shift_nor_its_scatter(number):
    plain = pairs(np.random.default_rng(2), 0.0, number=number)
    odd = [each.copy() for each in plain]
    odd[0][1] += 1.0
    one, other = paired_shifts(plain).common(), paired_shifts(odd).common()
    assert abs(other.centre) < 0.01
    assert other.detectable(0.01) < 3 * one.detectable(0.01)


def test_pairs_make_no_more_alarms_than_promised():
    generator = np.random.default_rng(3)
    tests = 400
    failed = 0
    for _ in range(tests):
        shifts = paired_shifts([0.01 * generator.standard_t(3, 5) for _ in range(POINTS)])
        failed += judge([ComponentShifts("cycles_per_packet", shifts, LABELS)], 0.0001)[0].worse
        failed += shifts.common().p_value(1) < 0.025
    assert failed <= 0.025 * tests + 2 * math.sqrt(0.025 * tests)


def test_single_pairs_scatter_over_the_points():
    assert paired_shifts([np.array([0.01])] * 2) is None
    assert paired_shifts([np.array([0.01]), np.array([0.02]), np.array([0.03])]).common().centre == pytest.approx(0.02)
