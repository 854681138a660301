import math
import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p4perf.errors import SpecError
from p4perf.specs.schema import SweepSpec
from p4perf.specs.sweep import Scope, expand, parse_condition, sweep_axes, thinned, variable_names


def points(data, *, limit=100_000, conditions=()):
    sweep = SweepSpec.model_validate(data)
    scope = Scope(frozenset(variable_names(sweep)), (("c", {"fields": 2}),))
    return expand(sweep, scope, [parse_condition(text, "sweep.filter.0") for text in conditions], limit=limit)


def test_a_sweep_has_100_000_points_at_most():
    sweep = SweepSpec.model_validate({"a": {"range": [1, 101]}, "b": {"range": [1, 1000]}})
    with pytest.raises(SpecError, match="101,000 points, more than the limit of 100,000"):
        expand(sweep, Scope(frozenset(variable_names(sweep)), ()))


def test_no_sweep_is_one_point():
    assert points({}) == ({},)
    assert sweep_axes(SweepSpec()) == ()


def test_the_product_with_the_last_variable_fastest():
    assert points({"a": [1, 2], "b": ["x", "y"]}) == (
        {"a": 1, "b": "x"},
        {"a": 1, "b": "y"},
        {"a": 2, "b": "x"},
        {"a": 2, "b": "y"},
    )


def test_zipped_variables_advance_together():
    found = points({"a": [1, 2], "c": [0, 5], "b": {"range": [7, 8]}, "zip": ["b", "a"]})
    assert found == (
        {"a": 1, "b": 7, "c": 0},
        {"a": 1, "b": 7, "c": 5},
        {"a": 2, "b": 8, "c": 0},
        {"a": 2, "b": 8, "c": 5},
    )


def test_two_groups():
    data = {"a": [1, 2], "b": [3, 4], "c": [5, 6], "d": [7, 8], "zip": [["a", "b"], ["c", "d"]]}
    assert len(points(data)) == 4
    assert points(data)[1] == {"a": 1, "b": 3, "c": 6, "d": 8}


def test_filters():
    assert [p["writes"] for p in points({"writes": {"range": [0, 4]}}, conditions=["$writes <= $fields"])] == [0, 1, 2]


def test_variants_run_one_after_another_within_the_product():
    found = points({"e": [1, 2], "multiplex": {"small": {"k": 8}, "large": {"k": [16, 32]}}})
    assert [(p["e"], p["variant"], p["k"]) for p in found] == [
        (1, "small", 8),
        (1, "large", 16),
        (1, "large", 32),
        (2, "small", 8),
        (2, "large", 16),
        (2, "large", 32),
    ]
    assert variable_names(SweepSpec.model_validate({"e": [1], "multiplex": {"v": {"k": 1}}})) == ("e", "variant", "k")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"a": [1, 2], "b": [1], "zip": ["a", "b"]}, "as many values each: a has 2, b has 1"),
        ({"a": [1], "zip": ["a"]}, "at least two"),
        ({"aa": [1], "zip": ["aa", "ab"]}, "ab is zipped, but is not a swept variable"),
        ({"a": [1], "b": [1], "zip": [["a", "b"], ["b", "a"]]}, "zipped twice"),
        ({"a": [1], "zip": ["a", "a"]}, "zipped twice"),
        ({"multiplex": {"v": {"a": 1}, "w": {"b": 1}}}, "the variant v does not assign b"),
        ({"a": [1], "multiplex": {"v": {"a": 1}}}, "a is swept already"),
        ({"multiplex": {"v": {"variant": 1}}}, "cannot be assigned"),
        ({"multiplex": {"v": {"a": []}}}, "the sweep is empty"),
    ],
)
def test_combinations_that_are_wrong(data, message):
    with pytest.raises(SpecError, match=message):
        points(data)


def test_a_filter_that_leaves_nothing():
    with pytest.raises(SpecError, match="the filter leaves none of the 2 points, so the sweep is empty"):
        points({"a": [1, 2]}, conditions=["$a > 5"])


@pytest.mark.parametrize(
    ("data", "size"),
    [
        ({"a": {"range": [1, 10**12]}}, "1,000,000,000,000"),
        ({"a": {"range": [1, 10**6]}, "b": {"range": [1, 10**6]}}, "1,000,000,000,000"),
        ({"a": {"linear": [0, 10**18], "step": 1e-300}}, "about 10\\^318"),
        ({"multiplex": {"v": {"a": {"range": [1, 10**12]}}, "w": {"a": 1}}}, "1,000,000,000,001"),
        ({f"v{n}": {"range": [1, 10**18]} for n in range(300)}, "about 10\\^5400"),
    ],
)
def test_huge_sweeps_are_refused_at_once(data, size):
    tracemalloc.start()
    start = time.perf_counter()
    try:
        with pytest.raises(SpecError, match=f"the sweep has {size} points, more than the limit of 100,000"):
            points(data)
        assert time.perf_counter() - start < 2
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def test_the_longest_list_is_blamed():
    with pytest.raises(SpecError) as caught:
        points({"a": [1, 2], "b": {"range": [1, 10**6]}})
    assert caught.value.key == "sweep.b"


def test_the_limit():
    assert len(points({"a": {"range": [1, 10]}}, limit=10)) == 10
    with pytest.raises(SpecError, match="11 points, more than the limit of 10"):
        points({"a": {"range": [1, 11]}}, limit=10)


def test_thinning_keeps_zips_and_variants():
    sweep = SweepSpec.model_validate(
        {
            "a": {"range": [0, 10]},
            "b": {"range": [10, 20]},
            "few": [1],
            "zip": ["a", "b"],
            "multiplex": {"v": {"k": {"range": [0, 100]}}, "w": {"k": 5}},
        }
    )
    few = thinned(sweep, 3)
    assert few.variables == {"a": (0, 5, 10), "b": (10, 15, 20), "few": (1,)}
    assert few.zip == (("a", "b"),)
    assert few.multiplex == {"v": {"k": (0, 50, 100)}, "w": {"k": 5}}


def test_thinning_to_nothing():
    with pytest.raises(SpecError, match="at least 1, got 0"):
        thinned(SweepSpec(), 0)


@given(st.lists(st.integers(1, 6), max_size=4), st.lists(st.integers(1, 5), max_size=3))
def test_the_size_is_known_before_and_right_after(lengths, variants):
    data = {f"v{i}": {"range": [1, length]} for i, length in enumerate(lengths)}
    data["multiplex"] = {f"m{i}": {"k": {"range": [1, length]}} for i, length in enumerate(variants)}
    found = points(data)
    size = math.prod(axis.size for axis in sweep_axes(SweepSpec.model_validate(data)))
    assert len(found) == size == math.prod(lengths) * (sum(variants) or 1)
    assert len({tuple(sorted(p.items())) for p in found}) == len(found)


@given(st.integers(1, 20), st.integers(1, 5))
def test_zipping_takes_no_product(length, others):
    data = {"a": {"range": [1, length]}, "b": {"range": [1, length]}, "c": {"range": [1, others]}, "zip": ["a", "b"]}
    assert len(points(data)) == length * others
