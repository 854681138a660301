"""Shifts between runs: found where they are, not where they are not, and never by a single odd point or start."""

import math

import numpy as np
import pytest

from p4perf.evaluation.comparison.ratios import measured_ratios
from p4perf.evaluation.comparison.shifts import PointShifts, Shift, hodges_lehmann, point_shifts, scattered
from p4perf.results.table import Samples


def samples(generator, factors, *, starts=3, noise=0.01, start=20.0):
    values = [
        tuple(float(v) for v in start * (i + 1) * f * np.exp(noise * generator.normal(size=starts)))
        for i, f in enumerate(factors)
    ]
    return Samples(tuple(float(i) for i in range(len(values))), tuple(values))


def shifts(factors, *, seed=1, **more):
    generator = np.random.default_rng(seed)
    old = samples(generator, [1.0] * len(factors), **more)
    return point_shifts(measured_ratios(samples(generator, factors, **more), old))


def exact(centre, deviation=0.01, freedom=8.0, drift=0.0):
    size = len(centre)
    return PointShifts(
        np.asarray(centre), np.full(size, deviation), np.full(size, freedom), np.full(size, drift)
    )  # fmt: skip


def test_hodges_lehmann_is_the_median_of_pairwise_means():
    values = np.array([[1.0, 2.0, 10.0], [0.0, 0.0, 0.0]])
    # means of pairs: 1, 1.5, 5.5, 2, 6, 10
    assert hodges_lehmann(values).tolist() == [3.75, 0.0]


def test_a_quarter_of_the_points_may_be_anything():
    plain = exact([0.05] * 8).common()
    odd = exact([0.05] * 6 + [1.0, 1.0]).common()
    assert odd.centre == pytest.approx(plain.centre, abs=0.01)


def test_a_common_shift_is_found_with_its_size():
    found = shifts([1.05] * 8).common()
    ratio = found.ratio(0.95)
    assert ratio.low < 1.05 < ratio.high
    assert ratio.high - ratio.low < 0.06
    assert found.p_value(1) < 0.001
    assert found.p_value(-1) > 0.999


def test_the_deviation_is_that_of_repeated_comparisons():
    found = [shifts([1.0] * 8, seed=seed).common() for seed in range(60)]
    spread = float(np.std([f.centre for f in found]))
    told = float(np.median([f.deviation for f in found]))
    assert 0.8 * spread < told < 2.5 * spread


def test_more_starts_and_more_points_find_less():
    def detectable(points, starts):
        return float(np.median([
            shifts([1.0] * points, seed=s, starts=starts).common().detectable(0.01) for s in range(9)
        ]))  # fmt: skip

    assert detectable(8, 3) < detectable(2, 3)
    assert detectable(4, 10) < detectable(4, 3)


def test_the_detectable_shift_is_found_with_its_power():
    shift = Shift(0.0, 0.01, 20.0, 8)
    size, generator = math.log1p(shift.detectable(0.01)), np.random.default_rng(3)
    deviations = 0.01 * np.sqrt(generator.chisquare(20, 4000) / 20)
    found = [
        Shift(c, d, 20.0, 8).p_value(1) < 0.01
        for c, d in zip(generator.normal(size, 0.01, 4000), deviations, strict=True)
    ]
    assert np.mean(found) == pytest.approx(0.9, abs=0.03)


def test_the_most_shifted_stretch_is_found():
    found = shifts([1.0] * 6 + [1.1] * 4).stretch(1)
    assert (found.first, found.last) == (6, 9)
    assert math.exp(found.shift.centre) == pytest.approx(1.1, abs=0.03)
    assert found.p_value < 0.01
    assert shifts([1.0] * 6 + [1.1] * 4).stretch(1, math.log(1.2)) is None
    assert shifts([1.0] * 6 + [0.9] * 4).stretch(-1).first == 6


def test_a_stretch_is_significant_by_chance_as_rarely_as_it_should():
    found = [shifts([1.0] * 8, seed=seed).stretch(1) for seed in range(60)]
    assert sum(stretch is not None and stretch.p_value < 0.05 for stretch in found) <= 4


def test_runs_that_drift_hide_a_stretch():
    quiet, drifting = exact([0.0] * 4 + [0.08] * 4), exact([0.0] * 4 + [0.08] * 4, drift=0.05)
    assert quiet.stretch(1).p_value < 1e-6
    assert drifting.stretch(1).p_value > 0.05


def test_several_runs_drift_less():
    generator = np.random.default_rng(1)
    ratios = measured_ratios(samples(generator, [1.0] * 8), samples(generator, [1.0] * 8))
    one, four = point_shifts(ratios), point_shifts(ratios, 4, 4)
    assert np.allclose(four.drift, one.drift / 2)
    assert four.common().deviation < one.common().deviation


def test_noise_of_loud_points_is_not_taken_for_that_of_quiet_ones():
    generator = np.random.default_rng(4)
    one, other = (
        Samples(tuple(range(8)), tuple(
            tuple(100 * np.exp((0.1 if i > 5 else 0.002) * generator.normal(size=3))) for i in range(8)
        ))
        for _ in range(2)
    )  # fmt: skip
    found = point_shifts(measured_ratios(one, other))
    assert found.deviation[6:].min() > 5 * np.median(found.deviation[:6])
    assert found.common().deviation < 0.01


def test_single_starts_are_judged_by_the_scatter_over_the_points():
    found = shifts([1.1] * 8, starts=1)
    assert found.common().centre == pytest.approx(math.log(1.1), abs=0.02)
    assert found.common().p_value(1) < 0.001
    assert shifts([1.1] * 2, starts=1) is None


def test_the_scatter_has_the_degrees_of_freedom_of_its_points():
    assert scattered([0.0, 0.1, -0.1, 0.05]).common().freedom == pytest.approx(3.0)


def test_without_noise_everything_is_certain():
    same, more = shifts([1.0] * 4, noise=0.0), shifts([1.2] * 4, noise=0.0)
    assert same.common().detectable(0.001) == 0
    assert same.stretch(1) is None
    assert (more.common().p_value(1), more.common().p_value(-1)) == pytest.approx((0.0, 1.0))
    assert more.stretch(1).p_value == pytest.approx(0.0)


def test_one_point_needs_no_more_than_starts():
    assert shifts([1.0], starts=20).common().detectable(0.01) < shifts([1.0], starts=3).common().detectable(0.01)
