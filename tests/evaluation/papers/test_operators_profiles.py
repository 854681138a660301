"""Profiles of operators: both laws, intervals that cover, and what is below the resolution."""

import numpy as np
import pytest
from support.operators import SIZES, made_costs, power

from p4perf.errors import DataError
from p4perf.evaluation.papers.ren2025 import profiles
from p4perf.evaluation.papers.ren2025.costs import OperatorCosts, StatedLaw
from p4perf.evaluation.papers.ren2025.profiles import profile
from p4perf.models.operator import PowerLaw


def exact(curve, sizes=SIZES, **more):
    return profile(made_costs(curve=curve, sizes=sizes, noise=0, **more))


class TestLaws:
    @pytest.mark.parametrize("exponent", [-0.1, 0.0, 0.16, 1.0, 1.37])
    def test_a_power_law_is_found_both_ways(self, exponent):
        found = exact(power(40, exponent))
        for law in (found.power, found.power_squares):
            assert (law.base_cycles, law.exponent) == pytest.approx((40, exponent), abs=1e-4)
        assert found.r_squared is None or found.r_squared == pytest.approx(1)

    def test_a_line_is_found_and_named(self):
        found = exact(lambda s: 12 + 0.25 * s)
        assert (found.affine.fixed_cycles, found.affine.cycles_per_byte) == pytest.approx((12, 0.25))
        assert found.model.better == "affine"
        assert found.error_affine < 1e-9 < found.error_power
        assert found.note == ""

    def test_a_power_law_is_better_than_a_line_where_it_is_one(self):
        assert exact(power(40, 1.4)).model.better == "power"
        assert exact(power(40, 0.2)).model.better == "power"

    def test_a_constant_is_both(self):
        found = exact(lambda s: 82.0)
        assert found.model.better == "undecided"
        assert found.exponent.value == pytest.approx(0, abs=1e-12)
        assert (found.r_squared, found.r_squared_squares) == (None, None)

    def test_two_sizes_decide_nothing(self):
        found = exact(lambda s: 12 + 0.25 * s, sizes=(64, 1500))
        assert found.model.better == "undecided"
        assert found.exponent.value == pytest.approx(np.log(387 / 28) / np.log(1500 / 64))

    def test_least_squares_weigh_large_packets(self):
        curve = {64: 100.0, 128: 100.0, 256: 100.0, 512: 1000.0}
        x, y = np.array([*curve], dtype=float), np.array([*curve.values()])
        by_logs, by_squares = profiles.power_by_logarithms(x, y), profiles.power_by_squares(x, y)
        for law, other in ((by_squares, by_logs),):
            assert np.sum((y - law.evaluate(x)) ** 2) < np.sum((y - other.evaluate(x)) ** 2)
        assert abs(float(by_squares.evaluate(512)) - 1000) < abs(float(by_logs.evaluate(512)) - 1000)

    def test_what_hides_behind_the_baseline_is_told(self):
        found = exact(lambda s: 0.375 * s - 9)
        assert found.exponent.value > 1
        assert found.model.better == "affine"
        assert "super-linear at small sizes only" in found.note
        assert "0.375 cycles" in found.note

    def test_out_of_order_execution_is_named_for_every_super_linear_operator(self):
        assert "out-of-order execution" in exact(power(40, 1.3)).note
        assert exact(power(40, 0.9)).note == ""

    def test_a_line_that_is_negative_somewhere_is_not_better(self):
        x = np.array([64.0, 128, 256])
        assert profiles.log_error(np.array([1.0, 2, 3]), np.array([-1.0, 2, 3])) == np.inf
        assert profiles.better_law(0.1, np.inf, len(x), 0.0) == "power"

    def test_errors_below_the_noise_decide_nothing(self):
        assert profiles.better_law(0.01, 0.09, 6, 0.0) == "power"
        assert profiles.better_law(0.01, 0.09, 6, 0.1) == "undecided"
        assert profiles.better_law(0.1, 0.11, 6, 0.0) == "undecided"

    def test_two_percent_decide_nothing(self):
        assert profiles.better_law(0.001, 0.019, 6, 0.0) == "undecided"
        assert profiles.better_law(0.001, 0.021, 6, 0.0) == "power"


class TestIntervals:
    @pytest.mark.sampled(1)
    @pytest.mark.parametrize("starts", [2, 3, 5])
    def test_intervals_of_exponents_and_base_costs_cover(self, starts):
        """At 95 % they shall hold the truth in about 95 % of 300 experiments: 91 % to 99 % is four standard errors."""
        held = np.zeros(2)
        for seed in range(300):
            costs = made_costs(curve=power(100, 0.9), starts=starts, noise=0.03, seed=seed)
            found = profile(costs, resamples=400, seed=seed)
            held += [0.9 in found.exponent, 100.0 in found.base]
        assert found.interval_from == "repetitions"
        assert held[0] / 300 == pytest.approx(0.95, abs=0.045)
        # A base cost rests on the repetitions at one size; of two, their range is all that is known.
        assert held[1] / 300 == pytest.approx(0.95, abs=0.045 if starts > 2 else 0.06)

    def test_without_repetitions_the_residuals_tell(self):
        held = 0
        for seed in range(300):
            found = profile(made_costs(curve=power(100, 0.9), starts=1, noise=0.03, seed=seed))
            held += 0.9 in found.exponent
        assert found.interval_from == "residuals"
        assert found.replicates is None
        assert held / 300 == pytest.approx(0.95, abs=0.05)

    def test_two_sizes_without_repetitions_have_no_interval(self):
        found = profile(made_costs(sizes=(64, 128), starts=1))
        assert (found.exponent.bounded, found.interval_from) == (False, "")
        assert not found.base.bounded

    def test_equal_seeds_give_equal_numbers(self):
        costs = made_costs(noise=0.1)
        assert profile(costs, seed=3).exponent == profile(costs, seed=3).exponent
        assert profile(costs, seed=3).exponent != profile(costs, seed=4).exponent

    def test_a_wider_level_gives_wider_intervals(self):
        costs = made_costs(noise=0.05)
        narrow, wide = (profile(costs, level=level).exponent for level in (0.8, 0.99))
        assert wide.low < narrow.low < narrow.high < wide.high


class TestBase:
    def test_the_base_cost_is_what_was_measured(self):
        found = profile(OperatorCosts("op", "here", (64, 128, 256), ((50.0,), (10.0,), (20.0,)), (1.0,) * 3))
        assert (found.base.value, found.base_measured) == (50, True)
        assert found.power.base_cycles != pytest.approx(50)

    def test_or_what_the_law_says(self):
        found = profile(made_costs(curve=power(40, 0.5), sizes=(128, 256, 512), noise=0.01))
        assert not found.base_measured
        assert found.base.low < 40 < found.base.high
        assert found.replicates[:, 0].std() > 0


class TestResolution:
    def test_below_it_there_are_no_numbers(self):
        found = exact(lambda s: 0.9, resolution=1.2)
        assert found.unseen
        assert found.base is None
        assert found.below_cycles == 1.2
        assert (found.exponent, found.power, found.affine, found.replicates) == (None, None, None, None)
        assert found.model.below_cycles == 1.2
        assert all(s.cycles is None and s.below_cycles == 1.2 for s in found.sizes)
        assert found.rank_cycles == 1.2

    def test_a_cost_at_the_resolution_is_a_number_unless_both_are_zero(self):
        assert exact(lambda s: 1.2, resolution=1.2).base.value == pytest.approx(1.2)
        assert exact(lambda s: 0.0, resolution=0.0).unseen

    def test_a_negative_cost_is_below_it(self):
        found = exact(lambda s: -0.5)
        assert found.unseen
        assert found.warning == ""
        assert "faster with it" in exact(lambda s: -5.0).warning

    def test_sizes_below_it_are_left_out_of_the_fit(self):
        found = exact(lambda s: 0.01 * s, resolution=1.0)
        assert [s.cycles is None for s in found.sizes] == [True, False, False, False, False, False]
        assert (found.base, found.below_cycles) == (None, 1.0)
        assert found.power.exponent == pytest.approx(1)
        assert found.model.sizes_bytes == (128, 1500)
        assert found.replicates[:, 0] == pytest.approx(1.0)

    def test_one_size_above_it_is_a_number_without_a_law(self):
        found = exact(lambda s: 0.001 * s, resolution=1.2)
        assert found.sizes[-1].cycles.value == 1.5
        assert (found.power, found.exponent, found.replicates) == (None, None, None)


def test_published_rows():
    found = profile(StatedLaw("CRC", "Arm", PowerLaw(823, 1.37), 0.9976, (64, 128, 256)))
    assert (found.published, found.base.value, found.exponent.value, found.r_squared) == (True, 823, 1.37, 0.9976)
    assert (found.affine, found.replicates, found.interval_from) == (None, None, "")


@pytest.mark.parametrize(
    ("sizes", "cycles", "resolutions"),
    [
        ((), (), ()),
        ((64, 64), ((1.0,), (1.0,)), (0.0, 0.0)),
        ((128, 64), ((1.0,), (1.0,)), (0.0, 0.0)),
        ((64,), ((),), (0.0,)),
        ((64,), ((float("nan"),),), (0.0,)),
        ((64,), ((1.0,),), (-1.0,)),
        ((64,), ((1.0,),), ()),
        ((0,), ((1.0,),), (0.0,)),
    ],
)
def test_costs_are_checked(sizes, cycles, resolutions):
    with pytest.raises(DataError, match="the costs of op on here"):
        OperatorCosts("op", "here", sizes, cycles, resolutions)
