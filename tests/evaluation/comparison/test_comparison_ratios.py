"""Ratios of runs: known ones are recovered, and intervals cover them about as often as they say."""

import math
from dataclasses import replace

import numpy as np
import pytest
from support.models import line_model

from p4perf.evaluation.comparison.ratios import grid, measured_ratios, model_ratio, shared_domain
from p4perf.results.table import Samples


def samples(level, *, points=8, starts=3, noise=0.02, seed=0, first=1):
    generator = np.random.default_rng(seed)
    x = np.repeat(np.arange(float(first), first + points), starts)
    return Samples.from_arrays(x, (level + 3 * x) * np.exp(generator.normal(0, noise, x.size)))


def scaled(other, factor, seed, noise=0.02):
    generator = np.random.default_rng(seed)
    values = [factor * (100 + 3 * x) * np.exp(generator.normal(0, noise, 3)) for x in other.x]
    return Samples(other.x, tuple(tuple(v.tolist()) for v in values))


def test_a_known_ratio_is_recovered():
    base = samples(100)
    found = measured_ratios(scaled(base, 1.3, 7), base)
    assert [p.x for p in found.points] == list(base.x)
    assert found.mean.low < 1.3 < found.mean.high
    assert found.mean.high / found.mean.low < 1.06
    assert all(p.ratio.low < p.ratio.value < p.ratio.high for p in found.points)
    medians = scaled(base, 1.3, 7).medians() / base.medians()
    assert [p.ratio.value for p in found.points] == pytest.approx(medians.tolist())
    assert found.mean.value == pytest.approx(math.exp(np.log(medians).mean()))


def test_starts_that_disagree_widen_the_ratio_of_their_point_on_either_side():
    base = samples(100)
    flagged = replace(base, disagreeing=(3.0,))
    plain = measured_ratios(scaled(base, 1.3, 7), base)
    for found in (measured_ratios(scaled(base, 1.3, 7), flagged), measured_ratios(flagged, scaled(base, 1.3, 7))):
        wider = [p.deviation > 1.2 * known.deviation for p, known in zip(found.points, plain.points, strict=True)]
        assert wider == [x == 3.0 for x in base.x]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("starts", "points", "noise"), [(3, 1, 0.02), (3, 8, 0.02), (3, 8, 0.2), (5, 4, 0.02), (2, 5, 0.02)]
)
def test_intervals_cover_about_as_often_as_they_say(starts, points, noise):
    mean, single = [], []
    for seed in range(300):
        a = samples(100, points=points, starts=starts, noise=noise, seed=2 * seed)
        b = samples(100, points=points, starts=starts, noise=noise, seed=2 * seed + 1)
        found = measured_ratios(a, b, resamples=400, seed=seed)
        mean.append(found.mean.low <= 1 <= found.mean.high)
        single += [p.ratio.low <= 1 <= p.ratio.high for p in found.points]
    assert 0.91 <= np.mean(mean) <= 0.99
    assert 0.91 <= np.mean(single) <= 0.99


def test_intervals_hold_half_as_often_at_half_the_level():
    hits = []
    for seed in range(300):
        found = measured_ratios(samples(100, seed=2 * seed), samples(100, seed=2 * seed + 1), level=0.5, resamples=200)
        hits.append(found.mean.low <= 1 <= found.mean.high)
    assert 0.42 <= np.mean(hits) <= 0.58


def test_exchanging_the_sides_gives_the_reciprocal():
    a, b = samples(100, seed=1), samples(120, seed=2)
    there, back = measured_ratios(a, b).mean, measured_ratios(b, a).mean
    assert back.value == pytest.approx(1 / there.value)
    assert (back.low, back.high) == pytest.approx((1 / there.high, 1 / there.low), rel=0.01)


def test_equal_seeds_give_equal_intervals():
    a, b = samples(100, seed=1), samples(120, seed=2)
    assert measured_ratios(a, b) == measured_ratios(a, b)
    assert measured_ratios(a, b, seed=2) != measured_ratios(a, b)


def test_only_shared_points_count():
    found = measured_ratios(samples(100, points=5), samples(100, points=5, first=4))
    assert [p.x for p in found.points] == [4.0, 5.0]
    nothing = measured_ratios(samples(100), samples(100, first=50))
    assert (nothing.points, nothing.mean) == ((), None)


def test_one_start_has_a_ratio_but_no_interval():
    found = measured_ratios(samples(100, starts=1), samples(100))
    assert len(found.points) == 8
    assert all(not p.ratio.bounded and p.starts == 1 for p in found.points)
    assert (found.usable, found.mean) == ((), None)


def test_values_of_zero_or_less_have_no_ratio():
    a = Samples((1.0, 2.0), ((5.0, 5.1), (0.1, -0.1)))
    found = measured_ratios(a, Samples((1.0, 2.0), ((5.0, 5.1), (4.0, 4.0))))
    assert [p.x for p in found.points] == [1.0]
    assert found.undefined == (2.0,)


def test_what_does_not_scatter_is_exact():
    a, b = samples(100, noise=0), samples(200, noise=0)
    found = measured_ratios(a, b)
    assert found.mean.low == pytest.approx(found.mean.value) == pytest.approx(found.mean.high)


def test_an_outlier_among_the_starts_does_not_move_the_ratio():
    a = Samples((1.0,), ((100.0, 101.0, 900.0),))
    assert measured_ratios(a, Samples((1.0,), ((100.0, 101.0, 102.0),))).points[0].ratio.value == pytest.approx(1.0)


class TestModels:
    def test_ratio_and_band_by_square_and_add(self):
        a, b = line_model((200, 0, 1, 9), band=0.1), line_model((100, 0, 1, 9), band=0.2)
        found = model_ratio(a, b, np.array([1.0, 5.0]))
        assert found.value == pytest.approx([2.0, 2.0])
        low = math.log(2) - math.hypot(math.log(1 / 0.9), math.log(1.2))
        high = math.log(2) + math.hypot(math.log(1.1), math.log(1 / 0.8))
        assert found.low == pytest.approx(math.exp(low))
        assert found.high == pytest.approx(math.exp(high))

    def test_without_a_band_there_is_none(self):
        found = model_ratio(line_model((200, 0, 1, 9)), line_model((100, 0, 1, 9), band=0.2), np.array([1.0]))
        assert found.value == pytest.approx([2.0])
        assert np.isnan(found.low).all()

    def test_where_a_curve_is_not_positive_there_is_no_ratio(self):
        found = model_ratio(line_model((-2, 1, 1, 9)), line_model((1, 0, 1, 9)), np.array([1.0, 2.0, 5.0]))
        assert np.isnan(found.value[:2]).all()
        assert found.value[2] == pytest.approx(3.0)

    def test_the_grid_is_of_the_shared_domain(self):
        a, b = line_model((1, 1, 1, 4), (1, 2, 5, 9)), line_model((1, 1, 3, 20))
        assert shared_domain(a, b) == (3, 9)
        at = grid(a, b)
        assert (at[0], at[-1]) == (3, 9)
        assert {4.0, 5.0} <= set(at)
        assert (np.diff(at) > 0).all()
        assert shared_domain(line_model((1, 1, 1, 4)), line_model((1, 1, 4, 9))) is None
        assert len(grid(line_model((1, 1, 1, 4)), line_model((1, 1, 6, 9)))) == 0

    def test_on_a_logarithmic_axis_the_grid_is_even_there(self):
        at = grid(line_model((1, 1, 1, 100), scale="log"), line_model((1, 1, 1, 100), scale="log"))
        assert np.ptp(np.diff(np.log(at))) < 1e-9
