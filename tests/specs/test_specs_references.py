import pytest

from p4perf.errors import SpecError
from p4perf.specs.sweep import Scope, parse_condition

SCOPE = Scope(frozenset({"n"}), (("a", {"x": "$n", "y": 3, "z": "$y"}), ("b", {"x": 7, "w": "$x", "only": "word"})))


def variables(value, own=None):
    return list(SCOPE.variables_of(value, own or {}, "k"))


def test_all_names():
    assert SCOPE.names() == {"n", "x", "y", "z", "w", "only"}


def test_the_variables_that_a_value_depends_on():
    own = SCOPE.components[0][1]
    assert variables("$n") == ["n"]
    assert variables("$x", own) == ["n"]
    assert variables("$z") == []
    assert variables(5) == []


def test_the_own_parameter_comes_first():
    own_a, own_b = (parameters for _, parameters in SCOPE.components)
    assert SCOPE.resolve("$x", own_a, {"n": 1}, "k") == 1
    assert SCOPE.resolve("$x", own_b, {"n": 1}, "k") == 7
    assert SCOPE.resolve("$w", own_b, {"n": 1}, "k") == 7
    assert SCOPE.resolve("$z", {}, {"n": 1}, "k") == 3
    assert SCOPE.resolve("word", {}, {}, "k") == "word"


def test_a_name_of_several_components_is_ambiguous():
    with pytest.raises(SpecError, match=r"\$x is ambiguous"):
        variables("$x")


def test_a_reference_to_nothing_names_the_nearest():
    with pytest.raises(
        SpecError, match=r"k: \$onyl refers to no swept variable or parameter\nhint: did you mean only\?"
    ):
        variables("$onyl")


def test_references_in_a_circle():
    scope = Scope(frozenset(), (("a", {"x": "$y", "y": "$x"}),))
    with pytest.raises(SpecError, match=r"\$x refers to itself: x -> y -> x"):
        list(scope.variables_of("$x", {}, "k"))


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("$n <= $y", True),
        ("$n<3", False),
        ("$n <= 3", True),
        ("$n > 2.5", True),
        ("$n >= 4", False),
        ("$n == 3", True),
        ("$n != 3", False),
        ("1e6 > $n", True),
        ("$only == word", True),
        ("$only != other", True),
    ],
)
def test_conditions(text, holds):
    assert parse_condition(text, "sweep.filter.0").holds(SCOPE, {"n": 3}) is holds


@pytest.mark.parametrize(
    "text", ["", "$n", "$n <=", "$n <= 1 and 2", "__import__('os')", "$n = 3", "1 < $n < 3", "f($n) > 1", "$n < 1e999"]
)
def test_what_is_no_condition(text):
    with pytest.raises(SpecError) as caught:
        parse_condition(text, "sweep.filter.0")
    assert caught.value.key == "sweep.filter.0"


def test_numbers_and_words_do_not_compare():
    with pytest.raises(SpecError, match="cannot compare 3 with 'word'"):
        parse_condition("$n < $only", "k").holds(SCOPE, {"n": 3})
