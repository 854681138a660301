"""Crossings of curves: found where they are, all of them, with intervals that hold them."""

import numpy as np
import pytest
from support.models import line_model

from p4perf.evaluation.comparison.ratios import crossings
from p4perf.evaluation.fitting.component import derive_model
from p4perf.evaluation.fitting.derivation import FitOptions
from p4perf.results.table import Samples


def test_two_lines_cross_once():
    (found,) = crossings(line_model((0, 2, 1, 20), band=0.05), line_model((10, 1, 1, 20), band=0.05))
    assert found.x.value == pytest.approx(10.0)
    assert found.x.low < 10 < found.x.high
    assert (found.above, found.sure, found.step) == (True, True, False)
    (back,) = crossings(line_model((10, 1, 1, 20), band=0.05), line_model((0, 2, 1, 20), band=0.05))
    assert back.x.value == pytest.approx(10.0)
    assert not back.above


def test_a_narrow_band_makes_a_narrow_interval():
    wide, narrow = (
        crossings(line_model((0, 2, 1, 20), band=b), line_model((10, 1, 1, 20), band=b))[0] for b in (0.05, 0.01)
    )
    assert wide.x.low < narrow.x.low < 10 < narrow.x.high < wide.x.high
    # where the ratio of the curves leaves a band of sqrt(2) 1 %
    assert narrow.x.high == pytest.approx(10 / (1 - 2 * 0.0141), abs=0.1)


def test_parallel_touching_and_equal_curves_do_not_cross():
    line = line_model((0, 2, 1, 20), band=0.05)
    assert crossings(line, line_model((1, 2, 1, 20), band=0.05)) == ()
    assert crossings(line, line) == ()
    touching = line_model((21, -1, 1, 10), (0, 1, 11, 20))
    assert crossings(touching, line_model((10, 0, 1, 20))) == ()


def test_all_of_several_are_found():
    zigzag = line_model((0, 1, 1, 10), (19, -1, 11, 20), (-20, 1, 21, 30), band=0.001)
    found = crossings(zigzag, line_model((5.5, 0, 1, 30), band=0.001))
    assert [c.x.value for c in found] == pytest.approx([5.5, 13.5, 25.5])
    assert [c.above for c in found] == [True, False, True]
    assert all(c.sure and c.x.low < c.x.value < c.x.high for c in found)


def test_a_step_over_the_other_curve_is_a_crossing_at_the_split():
    stepping = line_model((10, 0, 1, 10), (30, 0, 11, 20), band=0.05, split_reach=1.5)
    (found,) = crossings(stepping, line_model((20, 0, 1, 20), band=0.05))
    assert (found.x.value, found.step, found.sure) == (11.0, True, True)
    assert (found.x.low, found.x.high) == (9.5, 12.5)


def test_curves_that_are_equal_for_a_while_cross_in_the_middle():
    same = line_model((0, 1, 1, 9), (10, 0, 10, 20), (-11, 1, 21, 30))
    (found,) = crossings(same, line_model((10, 0, 1, 30)))
    assert 10 <= found.x.value <= 21
    assert not found.step


def test_within_their_bands_curves_may_not_cross_at_all():
    (found,) = crossings(line_model((100, 0.1, 1, 20), band=0.2), line_model((101, 0, 1, 20), band=0.2))
    assert found.x.value == pytest.approx(10.0)
    assert (found.x.ends, found.sure) == ((None, None), False)


def test_without_bands_a_crossing_is_not_sure():
    (found,) = crossings(line_model((0, 2, 1, 20)), line_model((10, 1, 1, 20)))
    assert found.x.value == pytest.approx(10.0)
    assert (found.x.ends, found.sure) == ((None, None), False)


def test_beyond_the_shared_domain_nothing_is_looked_for():
    assert crossings(line_model((0, 2, 1, 9)), line_model((10, 1, 1, 20))) == ()
    assert crossings(line_model((0, 2, 1, 5)), line_model((10, 1, 8, 20))) == ()


def test_on_a_logarithmic_axis():
    a = line_model((0, 2, 1, 1000), band=0.01, scale="log")
    (found,) = crossings(a, line_model((3, 1, 1, 1000), band=0.01, scale="log"))
    assert found.x.value == pytest.approx(3.0)


@pytest.mark.thorough
def test_intervals_of_derived_models_hold_the_true_crossing():
    x, held, sure = np.arange(1.0, 21), 0, 0
    for seed in range(40):
        models = []
        for number, (offset, slope) in enumerate([(50.0, 2.0), (61.0, 1.0)]):
            generator = np.random.default_rng(2 * seed + number)
            at = np.repeat(x, 3)
            y = (offset + slope * at) * np.exp(generator.normal(0, 0.01, at.size))
            samples = Samples.from_arrays(at, y)
            models.append(derive_model(samples, options=FitOptions(max_segments=1, threads=1)).model)
        found = [c for c in crossings(*models) if c.sure]
        sure += len(found) == 1
        held += any(c.x.low <= 11 <= c.x.high for c in found)
    assert sure >= 38
    assert held >= 35
