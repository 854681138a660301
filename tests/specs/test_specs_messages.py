import pytest
from pydantic import ValidationError

from p4perf.errors import SpecError
from p4perf.programs.component import component_parameters
from p4perf.specs import load_experiment
from p4perf.specs.messages import explain, nearest, placed, quoted
from p4perf.specs.schema import ExperimentSpec
from p4perf.specs.source import parse_text

GOOD = "name: a/b\nprogram: {component: c}\n"


def explained(text):
    root = parse_text(text, "spec.yaml")
    with pytest.raises(ValidationError) as caught:
        ExperimentSpec.model_validate(root.plain())
    return explain(caught.value, root)


def test_the_nearest_name():
    assert nearest("entires", ["entries", "writes"]) == "did you mean entries?"
    assert nearest("zzz", ["b", "a"]) == "known: a, b"
    assert nearest("zzz", []) == "known: none"
    assert nearest("demo/*", ["demo/exact-entries", "mat/b"]) == "did you mean demo/exact-entries?"
    assert nearest("mat", ["demo/exact-entries", "mat/long-name-b", "mat/long-name-a"]).endswith(
        ": mat/long-name-a, mat/long-name-b"
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "nothing"),
        (True, "true"),
        ({}, "a mapping"),
        ([], "a list"),
        ("a", "'a'"),
        (5, "5"),
        ("\x1b[2J", "'\\\\x1b[2J'"),
    ],
)
def test_values_are_shown_briefly(value, text):
    assert quoted(value).replace("\\\\", "\\") == text.replace("\\\\", "\\")
    assert quoted(value).isprintable()


def test_long_values_are_cut():
    assert len(quoted("x" * 1000)) <= 60


def test_an_unknown_key_has_place_caret_and_nearest_name():
    error = explained(GOOD + "traffic:\n  frame_sise: 64\n")
    assert str(error) == (
        "spec.yaml:4:3: traffic.frame_sise: unknown key 'frame_sise'\n"
        "    frame_sise: 64\n"
        "    ^\n"
        "hint: did you mean frame_size?"
    )


def test_a_wrong_word_has_the_allowed_ones():
    error = explained(GOOD + "trials: {order: sequental}\n")
    assert str(error) == (
        "spec.yaml:3:17: trials.order: 'sequental' is not one of random, sequential\n"
        "  trials: {order: sequental}\n"
        "                  ^\n"
        "hint: did you mean sequential?"
    )


def test_the_first_error_of_the_file_is_reported_and_the_others_are_counted():
    error = explained(GOOD + "trials: {order: x}\nmodel: {max_segments: 9}\nmetrics: {collect: [nothing]}\n")
    assert error.message == "'x' is not one of random, sequential (and 2 more errors)"
    assert error.location.line == 3
    assert str(error).count("more error") == 1


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("trials: {repetitions: 0}", (3, 23), "must be at least 1, got 0"),
        ("trials: {repetitions: true}", (3, 23), "expected a whole number, got true"),
        ("trials: {repetitions: 1.5}", (3, 23), "expected a whole number, got 1.5"),
        ("trials: {repetitions: '5'}", (3, 23), "expected a whole number, got '5'"),
        ("trials: {interleave_baseline: 1}", (3, 31), "expected true or false, got 1"),
        ("model: {max_segments: 7}", (3, 23), "must be at most 6, got 7"),
        ("metrics: {collect: []}", (3, 20), "needs at least 1, has 0"),
        ("metrics: {collect: latency}", (3, 20), "expected a list, got 'latency'"),
        ("metrics: {collect: [x]}", (3, 21), "unknown metric 'x'"),
        ("metrics: 5", (3, 10), "expected a mapping (key: value), got 5"),
        ("spec_version: 2", (3, 15), "2 is not 1"),
        ("title: 5", (3, 8), "expected a word, got 5"),
        ("sweep: {a: {log: [1]}}", (3, 13), "needs two values, has fewer"),
        ("sweep: {a: {log: [1, 2, 3]}}", (3, 18), "takes at most 2, has 3"),
        ("sweep: {a: {lin: [1]}}", (3, 12), "expected a list of values, {log: [lo, hi]}, {range: [lo, hi]}"),
        ("traffic: {offered_load: min}", (3, 25), "expected max, {rate_mpps: 1.0} or"),
    ],
)
def test_plain_sentences_with_places(text, place, message):
    error = explained(GOOD + text + "\n")
    assert message in error.message
    assert "more error" not in error.message
    assert (error.location.line, error.location.column) == place


def test_a_missing_key_is_blamed_on_the_key_above():
    error = explained("name: a/b\nprogram: {baseline: l2fwd}\n")
    assert error.message == "the key 'component' is missing"
    assert error.key == "program"
    assert error.location.line == 2


def test_what_is_not_a_mapping_at_all():
    assert explained("- a\n").message == "expected a mapping (key: value), got a list"


def raised(error, root):
    with pytest.raises(SpecError) as caught, placed(root):
        raise error
    return caught.value


def test_errors_get_the_place_of_their_key_once():
    root = parse_text("sweep:\n  filter: [a]\n", "spec.yaml")
    error = raised(SpecError("wrong", key="sweep.filter.0"), root)
    assert (error.location.line, error.location.column) == (2, 12)
    place = error.location
    assert raised(error, parse_text("b: 1", "other.yaml")).location is place
    assert raised(SpecError("wrong"), root).location.line is None


def test_bounds_are_named_where_a_value_is_no_multiple():
    with pytest.raises(SpecError, match=r"must be a multiple of 8 from 8 to 512, got -1"):
        load_experiment(
            "demo/exact-entries",
            overrides=[("program.parameters.key_bits", "-1")],
            parameters_of=component_parameters,
        )
