"""Verdicts: the rule to the letter, and how often it is wrong."""

import math

import numpy as np
import pytest

from p4perf.errors import UsageError
from p4perf.evaluation.comparison.ratios import (
    LEAST_POINTS,
    ComparisonOutcome,
    MeasuredRatios,
    PointRatio,
    measured_ratios,
    verdict,
)
from p4perf.models.estimate import Estimate
from p4perf.results.table import Samples


def ratios(value, low, high, *, points=5, each=None):
    """Ratios with that mean; points have the same interval, or those of ``each``."""
    every = each or [(value, low, high)] * points
    found = tuple(PointRatio(float(n), Estimate(*ends), 3, 3) for n, ends in enumerate(every))
    return MeasuredRatios(found, Estimate(value, low, high), ())


def outcome(*arguments, metric="cycles_per_packet", margin=0.05, **more):
    return verdict(ratios(*arguments, **more), metric=metric, x_name="entries", margin=margin)


@pytest.mark.parametrize(
    ("ends", "wanted"),
    [
        ((1.0, 0.98, 1.02), ComparisonOutcome.SAME),
        ((1.03, 1.02, 1.04), ComparisonOutcome.SAME),
        ((1.2, 1.1, 1.3), ComparisonOutcome.SLOWER),
        ((1.07, 1.01, 1.13), ComparisonOutcome.SLOWER),
        ((0.8, 0.7, 0.9), ComparisonOutcome.FASTER),
        ((1.0, 0.9, 1.1), ComparisonOutcome.NO_VERDICT),
        ((1.2, 0.9, 1.6), ComparisonOutcome.NO_VERDICT),
        ((1.03, 0.99, 1.07), ComparisonOutcome.NO_VERDICT),
        ((1.045, 1.02, 1.07), ComparisonOutcome.NO_VERDICT),
        ((1.08, 0.99, 1.17), ComparisonOutcome.NO_VERDICT),
    ],
)
def test_the_rule(ends, wanted):
    said = outcome(*ends)
    assert said.outcome == wanted
    assert said.reason
    turned = outcome(1 / ends[0], 1 / ends[2], 1 / ends[1]).outcome
    opposite = {ComparisonOutcome.SLOWER: ComparisonOutcome.FASTER, ComparisonOutcome.FASTER: ComparisonOutcome.SLOWER}
    assert turned == opposite.get(wanted, wanted), "it does not matter which run is the reference"


@pytest.mark.parametrize(
    ("metric", "wanted"),
    [
        ("packet_rate", ComparisonOutcome.FASTER),
        ("latency", ComparisonOutcome.SLOWER),
        ("memory_bytes", ComparisonOutcome.HIGHER),
    ],
)
def test_the_metric_says_which_is_faster(metric, wanted):
    assert outcome(1.2, 1.1, 1.3, metric=metric).outcome == wanted


def test_the_margin_decides_what_is_the_same():
    assert outcome(1.08, 1.07, 1.09, margin=0.1).outcome == ComparisonOutcome.SAME
    assert outcome(1.02, 1.015, 1.025, margin=0.01).outcome == ComparisonOutcome.SLOWER
    for margin in (0, -1, 1, 5):
        with pytest.raises(UsageError, match="margin"):
            outcome(1, 1, 1, margin=margin)


def test_too_few_points():
    said = outcome(1.2, 1.1, 1.3, points=LEAST_POINTS - 1)
    assert said.outcome == ComparisonOutcome.NO_VERDICT
    assert "2 shared points" in said.reason
    assert outcome(1.2, 1.1, 1.3, points=LEAST_POINTS).outcome == ComparisonOutcome.SLOWER
    nothing = verdict(MeasuredRatios((), None, ()), metric="latency")
    assert (nothing.outcome, nothing.ratio, nothing.detectable, nothing.points) == (
        ComparisonOutcome.NO_VERDICT,
        None,
        None,
        0,
    )
    single = MeasuredRatios((PointRatio(1.0, Estimate(1.0), 1, 3),), None, (2.0,))
    reason = verdict(single, metric="latency").reason
    assert "1 have one start on a side" in reason
    assert "1 have values of zero or less" in reason


def test_the_detectable_difference():
    assert outcome(1.0, 0.99, 1.01).detectable == 0.05
    assert outcome(1.0, 0.8, 1.25).detectable == pytest.approx(0.25)


def test_curves_that_cross_are_not_the_same():
    each = [(0.5, 0.48, 0.52)] * 4 + [(2.0, 1.9, 2.1)] * 4
    said = outcome(1.0, 0.98, 1.02, each=each)
    assert said.outcome == ComparisonOutcome.NO_VERDICT
    assert "depends on entries: above at 4 and below at 4 of 8 points" in said.reason
    chance = [(1.3, 1.2, 1.4)] + [(1.0, 0.97, 1.03)] * 19
    assert outcome(1.01, 1.0, 1.02, each=chance).outcome == ComparisonOutcome.SAME, "one of twenty is chance"


def test_faster_on_average_but_not_everywhere():
    each = [(0.5, 0.48, 0.52)] * 6 + [(1.2, 1.1, 1.3)] * 2
    said = outcome(0.62, 0.6, 0.64, each=each)
    assert said.outcome == ComparisonOutcome.FASTER
    assert "the other way at 2 of 8 points" in said.reason


def judged(factor, *, noise, seed, points=10, starts=3):
    generator = np.random.default_rng(seed)
    x = np.repeat(np.arange(float(points)), starts)
    run, base = (
        Samples.from_arrays(x, level * np.exp(generator.normal(0, noise, x.size))) for level in (100 * factor, 100)
    )
    return verdict(measured_ratios(run, base, resamples=300, seed=seed), metric="cycles_per_packet").outcome


def share(wanted, factor, **more):
    return sum(judged(factor, seed=seed, **more) == wanted for seed in range(200)) / 200


def test_equal_curves_are_the_same():
    assert share(ComparisonOutcome.SAME, 1.0, noise=0.02) > 0.98


def test_a_difference_is_found():
    assert share(ComparisonOutcome.SLOWER, 1.1, noise=0.02) > 0.98
    assert share(ComparisonOutcome.FASTER, 0.9, noise=0.02) > 0.98


@pytest.mark.sampled(1)
@pytest.mark.parametrize("noise", [0.02, 0.1, 0.5])
def test_a_difference_that_is_not_there_is_hardly_ever_found(noise):
    wrong = share(ComparisonOutcome.SLOWER, 1.0, noise=noise) + share(ComparisonOutcome.FASTER, 1.0, noise=noise)
    assert wrong <= 0.08


@pytest.mark.sampled(1)
@pytest.mark.parametrize("noise", [0.02, 0.1, 0.5])
def test_a_difference_of_the_margin_is_hardly_ever_the_same(noise):
    assert share(ComparisonOutcome.SAME, 1.05, noise=noise) <= 0.06


def test_few_noisy_starts_give_no_verdict():
    assert share(ComparisonOutcome.NO_VERDICT, 1.02, noise=0.3, points=4) > 0.9
    assert share(ComparisonOutcome.NO_VERDICT, math.sqrt(1.05), noise=0.02, starts=1) == 1
