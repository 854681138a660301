"""The rule of the gate: what could be found comes first, noise is never green, many components are no more alarms."""

import math

import numpy as np
import pytest

from p4perf.errors import UsageError
from p4perf.evaluation.comparison.gate import ComponentShifts, holm, judge, no_verdict, worse_side
from p4perf.evaluation.comparison.ratios import ComparisonOutcome
from p4perf.evaluation.comparison.shifts import PointShifts


def component(centres, deviation=0.005, *, metric="cycles_per_packet", freedom=20.0):
    """A component with these logarithms of ratios."""
    size = len(centres)
    shifts = PointShifts(
        np.asarray(centres, dtype=float), np.full(size, deviation), np.full(size, freedom), np.zeros(size)
    )
    return ComponentShifts(metric, shifts, tuple(f"x={i}" for i in range(size)))


def verdict(centres, deviation=0.005, *, others=0, margin=0.05, **more):
    every = [component(centres, deviation, **more), *(component([0.0] * 8) for _ in range(others))]
    return judge(every, margin)[0]


def test_nothing_changed_is_the_same():
    said = verdict([0.001, -0.002, 0.0, 0.003, 0.001, -0.001, 0.002, 0.0])
    assert (said.outcome, said.worse, said.points) == (ComparisonOutcome.SAME, False, 8)
    assert said.detectable < 0.05
    assert "within" in said.reason


@pytest.mark.parametrize(("centre", "outcome", "worse"), [
    (0.06, ComparisonOutcome.SLOWER, True),
    (-0.06, ComparisonOutcome.FASTER, False),
    (0.02, ComparisonOutcome.SAME, False),
])  # fmt: skip
def test_a_common_change_is_found_if_it_matters(centre, outcome, worse):
    said = verdict([centre] * 8)
    assert (said.outcome, said.worse) == (outcome, worse)


def test_a_change_of_the_margin_itself_is_found():
    assert verdict([math.log(1.05)] * 8).outcome is ComparisonOutcome.SLOWER


@pytest.mark.parametrize("centre", [0.0, 0.03, 0.06])
def test_noise_beyond_the_margin_is_no_verdict(centre):
    said = verdict([centre] * 8, 0.08)
    assert (said.outcome, said.worse) == (ComparisonOutcome.NO_VERDICT, False)
    assert said.detectable > 0.05
    assert "could have been missed" in said.reason


def test_what_cannot_be_missed_is_found_in_any_noise():
    said = verdict([math.log(2)] * 8, 0.08)
    assert (said.outcome, said.worse) == (ComparisonOutcome.SLOWER, True)


def test_between_same_and_slower_there_is_no_verdict():
    said = verdict([0.034] * 8, 0.0243, others=200)
    assert said.outcome is ComparisonOutcome.NO_VERDICT


def test_a_stretch_is_found_though_the_rest_is_the_same():
    said = verdict([0.0] * 8 + [0.1] * 3)
    assert (said.outcome, said.worse) == (ComparisonOutcome.SLOWER, True)
    assert (said.local.first, said.local.last, said.local.points) == ("x=8", "x=10", 3)
    assert said.ratio.value == pytest.approx(1.0, abs=0.02)
    assert "x=8 to x=10 (3 points of 11)" in said.reason


def test_a_stretch_below_the_margin_does_not_matter():
    assert verdict([0.0] * 8 + [0.03] * 3).outcome is ComparisonOutcome.SAME


def test_a_regression_at_one_end_outweighs_a_gain_at_the_other():
    said = verdict([-0.2] * 5 + [0.2] * 5)
    assert (said.outcome, said.worse) == (ComparisonOutcome.SLOWER, True)


@pytest.mark.parametrize(("metric", "centre", "outcome", "worse"), [
    ("packet_rate", 0.1, ComparisonOutcome.FASTER, False),
    ("packet_rate", -0.1, ComparisonOutcome.SLOWER, True),
    ("throughput_pdr", -0.1, ComparisonOutcome.LOWER, True),
    ("memory_bytes", 0.1, ComparisonOutcome.HIGHER, True),
    ("memory_bytes", -0.1, ComparisonOutcome.LOWER, False),
])  # fmt: skip
def test_the_metric_says_what_is_worse(metric, centre, outcome, worse):
    said = verdict([centre] * 8, metric=metric)
    assert (said.outcome, said.worse) == (outcome, worse)


def test_worse_is_more_of_everything_but_rates():
    assert (worse_side("latency_p99"), worse_side("packet_rate"), worse_side("throughput_ndr")) == (1, -1, -1)


def test_more_components_have_to_show_more():
    alone, among = verdict([0.0] * 8), verdict([0.0] * 8, others=100)
    assert among.detectable > alone.detectable


@pytest.mark.thorough
def test_many_components_make_no_more_alarms():
    generator = np.random.default_rng(1)
    alarms = 0
    for _ in range(25):
        every = [component(0.02 * generator.standard_t(20, 4), 0.02) for _ in range(30)]
        alarms += any(v.worse for v in judge(every, 0.3))
        alarms += any(v.worse for v in judge(every, 0.001))
    assert alarms <= 4


def test_a_component_without_data_is_no_verdict_and_no_burden():
    nothing = ComponentShifts("cycles_per_packet", None, reason="not measured")
    first, second = judge([nothing, component([0.0] * 8)])
    assert first == no_verdict("not measured")
    assert second == judge([component([0.0] * 8)])[0]
    assert judge([]) == ()


def test_holm_is_holm():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


@pytest.mark.parametrize("margin", [0.0, 1.0, float("nan")])
def test_margins_that_make_no_sense_are_refused(margin):
    with pytest.raises(UsageError, match="must lie between"):
        judge([], margin)
