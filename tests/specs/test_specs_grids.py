import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from p4perf.errors import SpecError
from p4perf.specs.grids import VariableSpec, grid_of, thin


def grid(values: Any):
    return grid_of(TypeAdapter(VariableSpec).validate_python(values), "sweep.x")


def test_the_published_values_of_the_exact_match_experiment():
    published = [m * 10**k for k in range(7) for m in range(1, 10)] + [10_000_000, 20_000_000]
    values = list(grid({"log": [1, 20_000_000], "points_per_decade": 9}))
    assert values == published
    assert len(values) == 65
    assert all(type(value) is int for value in values)


@pytest.mark.parametrize(
    ("points", "values"),
    [
        (1, [1, 10, 100]),
        (2, [1, 3, 10, 30, 100]),
        (3, [1, 2, 5, 10, 20, 50, 100]),
        (4, [1, 2, 3, 6, 10, 18, 32, 56, 100]),
        (5, [1, 2, 3, 4, 6, 10, 16, 25, 40, 63, 100]),
    ],
)
def test_points_per_decade(points, values):
    assert list(grid({"log": [1, 100], "points_per_decade": points})) == values


def test_logarithmic_bounds_are_always_there():
    assert list(grid({"log": [4, 70], "points_per_decade": 1})) == [4, 10, 70]
    assert list(grid({"log": [7, 7], "points_per_decade": 3})) == [7]
    assert list(grid({"log": [0.02, 3.5], "points_per_decade": 3})) == [0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 3.5]


def test_ranges_and_steps():
    assert list(grid({"range": [0, 10]})) == list(range(11))
    assert list(grid({"range": [0, 10], "step": 3})) == [0, 3, 6, 9]
    assert list(grid({"range": [-2, 2]})) == [-2, -1, 0, 1, 2]
    assert list(grid({"linear": [0, 1], "step": 0.1})) == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    assert list(grid({"linear": [0, 10], "step": 5})) == [0, 5, 10]
    assert type(grid({"linear": [0, 10], "step": 5}).value(1)) is int


def test_lists_and_single_values():
    assert list(grid([3, 1, 2])) == [3, 1, 2]
    assert list(grid(["a", True, 1, 0.5])) == ["a", True, 1, 0.5]
    assert list(grid_of(5, "sweep.x")) == [5]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], "no values"),
        ([1, 2, 1], "duplicate value 1"),
        ({"range": [5, 1]}, "the upper bound 1 is below the lower bound 5, so the sweep is empty"),
        ({"linear": [1, 0], "step": 0.1}, "the sweep is empty"),
        ({"log": [10, 1]}, "the sweep is empty"),
        ({"log": [0, 10]}, "must start above 0, not at 0"),
        ({"log": [-5, 10]}, "must start above 0, not at -5"),
    ],
)
def test_sweeps_of_nothing(values, message):
    with pytest.raises(SpecError, match=message) as caught:
        grid(values)
    assert caught.value.key == "sweep.x"


@pytest.mark.parametrize(
    "values",
    [
        {"range": [0, 1.5]},
        {"range": [0, 5], "step": 0},
        {"linear": [0, 1], "step": 0},
        {"linear": [0, 1]},
        {"log": [1, 10], "points_per_decade": 0},
        {"log": [1, 10], "points_per_decade": 101},
        {"log": [1, 10], "range": [1, 10]},
        "abc",
        None,
        [[1]],
        ["$x"],
    ],
)
def test_rules_that_are_wrong(values):
    with pytest.raises(ValidationError):
        grid(values)


def test_huge_rules_are_counted_and_thinned_at_once():
    start = time.perf_counter()
    huge = grid({"range": [0, 10**18]})
    assert huge.size == 10**18 + 1
    assert thin(huge, 3) == (0, 5 * 10**17, 10**18)
    assert grid({"linear": [0, 10**18], "step": 1e-9}).size == 10**27 + 1
    assert time.perf_counter() - start < 1


def test_thinning():
    assert thin(grid({"range": [0, 10]}), 3) == (0, 5, 10)
    assert thin(grid({"range": [0, 10]}), 1) == (0,)
    assert thin(grid({"range": [0, 2]}), 5) == (0, 1, 2)


@given(st.integers(1, 500), st.integers(1, 60))
def test_thinned_values_are_distinct_and_keep_the_ends(size, points):
    few = thin(grid({"range": [1, size]}), points)
    assert len(few) == min(size, points)
    assert list(few) == sorted(set(few))
    assert few[0] == 1
    assert points == 1 or few[-1] == size


@given(st.integers(-1000, 1000), st.integers(0, 1000), st.integers(1, 50))
def test_the_size_of_a_range_is_the_number_of_its_values(low, extent, step):
    found = grid({"range": [low, low + extent], "step": step})
    assert list(found) == list(range(low, low + extent + 1, step))
    assert found.size == len(list(found))


@given(st.integers(1, 10**6), st.integers(0, 10**9), st.integers(1, 30))
def test_logarithmic_values_rise_from_bound_to_bound(low, extent, points):
    values = list(grid({"log": [low, low + extent], "points_per_decade": points}))
    assert values[0] == low
    assert values[-1] == low + extent
    assert values == sorted(set(values))
    assert all(type(value) is int for value in values)


@given(st.floats(-1e3, 1e3), st.floats(0, 1e3), st.floats(1, 1e3))
def test_linear_values_stay_within_their_bounds(low, extent, step):
    high = low + extent
    found = grid({"linear": [low, high], "step": step})
    values = list(found)
    assert values[0] == low
    assert all(low <= value <= high for value in values)
    assert len(values) == found.size


def test_the_finest_grid_there_is_takes_no_time():
    start = time.perf_counter()
    assert grid({"log": [1e-300, 1e300], "points_per_decade": 100}).size == 60_001
    assert time.perf_counter() - start < 5
