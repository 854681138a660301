"""A number with its interval."""

import math

import pytest

from p4perf.models.estimate import Estimate, exactly


def test_the_ends_of_sums_and_differences_are_the_widest() -> None:
    a, b = Estimate(2.0, 1.0, 4.0), Estimate(1.0, 0.5, 1.5)
    assert a + b == Estimate(3.0, 1.5, 5.5)
    assert a - b == Estimate(1.0, -0.5, 3.5)
    assert exactly(2.0) + exactly(3.0) == exactly(5.0)


def test_functions_that_fall_exchange_the_ends() -> None:
    assert Estimate(2.0, 1.0, 4.0) * -1 == Estimate(-2.0, -4.0, -1.0)
    assert Estimate(2.0, 1.0, 4.0) / 2 == Estimate(1.0, 0.5, 2.0)
    assert Estimate(2.0, 1.0, 4.0).map(lambda x: 4 / x) == Estimate(2.0, 1.0, 4.0)


def test_an_unknown_end_is_infinite() -> None:
    alone = Estimate(1.05)
    assert alone == Estimate(1.05)
    assert not alone.bounded
    assert (alone.low, alone.high) == (-math.inf, math.inf)
    assert alone.ends == (None, None)
    assert alone.drawn_ends == (1.05, 1.05)
    assert alone.side_of(0.9, 1.0) == 0
    assert 7.0 in alone
    assert not (alone - Estimate(1.0, 0.9, 1.1)).bounded
    half_open = Estimate(1.0, 0.5)
    assert half_open.ends == (0.5, None)
    assert half_open.drawn_ends == (0.5, 1.0)


@pytest.mark.parametrize(("low", "high", "side"), [(1.1, 1.2, 1), (0.8, 0.9, -1), (0.9, 1.1, 0), (1.05, 1.2, 0)])
def test_side_of(low: float, high: float, side: int) -> None:
    assert Estimate(1.0, low, high).side_of(1 / 1.05, 1.05) == side


def test_text() -> None:
    assert Estimate(1.05, 1.02, 1.08).text() == "1.05 [1.02, 1.08]"
    assert Estimate(1.05).text("{:.3f}".format) == "1.050"
    assert Estimate(206.0, 206.0, 206.0).text() == Estimate(206.0, 206.0, 206.0).rounded() == "206"


def test_a_value_stays_where_its_interval_is_wider_on_one_side() -> None:
    assert Estimate(48.03, 31.59, 926.9).rounded() == "50 (30 .. 930)"
    assert Estimate(7.1, 5.0, 200.0).rounded() == "7 (5 .. 200)"
    assert Estimate(0.0, -12.0, 31.0).rounded() == "0 (-10 .. 30)"


def test_another_number_has_as_many_digits_as_the_interval_supports() -> None:
    assert Estimate(94.3, 71.0, 142.0).alike(-13.082) == "-10"
    assert Estimate(94.3, 94.1, 94.5).alike(-13.082) == "-13.1"
    assert Estimate(94.3).alike(-13.082) == "-13.08"
