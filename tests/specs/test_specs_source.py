import time

import pytest

from p4perf.errors import Location, SpecError
from p4perf.specs.source import MAX_BYTES, MAX_DEPTH, parse_bytes, parse_text, read_bytes


def refused(text):
    with pytest.raises(SpecError) as caught:
        parse_text(text, "spec.yaml")
    return caught.value


def test_values_are_plain():
    node = parse_text("a: {b: [1, 2.5, word, true, null], c: '1'}\n", "spec.yaml")
    assert node.plain() == {"a": {"b": [1, 2.5, "word", True, None], "c": "1"}}


def test_every_key_and_value_knows_its_place():
    node = parse_text("a: 1\nb:\n  c: [x, yy]\n", "spec.yaml")
    assert node.locate(("b", "c", 1)) == Location("spec.yaml", 3, 10, "  c: [x, yy]")
    assert node.locate(("b", "c"), key=True) == Location("spec.yaml", 3, 3, "  c: [x, yy]")
    assert node.locate(("b", "c")) == Location("spec.yaml", 3, 6, "  c: [x, yy]")


def test_the_place_of_what_does_not_exist_is_the_key_above():
    node = parse_text("a: 1\nb:\n  c: [x, yy]\n", "spec.yaml")
    assert node.locate(("b", "d", "e")) == Location("spec.yaml", 2, 1, "b:")
    assert node.locate(("z",)) == Location("spec.yaml", 1, 1, "a: 1")


def test_nodes_at_paths():
    node = parse_text("a: [{b: 7}]", "spec.yaml")
    assert node.at(("a", 0, "b")).content == 7
    assert node.at(("a", 1, "b")) is None
    assert node.at(("a", "b")) is None


def test_an_empty_document_is_null():
    assert parse_text("# nothing\n", "spec.yaml").plain() is None


def test_aliases_are_expanded():
    assert parse_text("a: &x {k: 1}\nb: *x\n", "spec.yaml").plain() == {"a": {"k": 1}, "b": {"k": 1}}


def test_moved_values_are_all_in_one_place():
    place = Location("--set a")
    node = parse_text("{b: [1]}", "x").moved(place)
    assert node.locate(("b", 0)) == place
    assert node.locate(("b",), key=True) == place


def test_broken_yaml_has_a_place_and_a_caret():
    error = refused("a: 1\nb: [1, 2\nc: 3\n")
    place, _, what = str(error).splitlines()[0].partition(" ")
    assert place == "spec.yaml:2:4:"
    assert what == "this is not YAML: the list that begins here is not closed with ], or lacks a comma"
    assert str(error).splitlines()[1:3] == ["  b: [1, 2", "     ^"]


def test_a_key_that_is_there_twice():
    error = refused("a: 1\nb: 2\na: 3\n")
    assert str(error) == "spec.yaml:3:1: duplicate key 'a' (first in line 1)\n  a: 3\n  ^"


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("a: !!python/object:os.system x", (1, 4), "are not allowed"),
        ("a: !!str 5", (1, 4), "are not allowed"),
        ("a: ! x", (1, 4), "are not allowed"),
        ("1.5: x", (1, 1), "a key must be a word, not 1.5"),
        ("a: {true: x}", (1, 5), "a key must be a word, not true"),
        ("[a]: x", (1, 1), "a key must be a word, not a list"),
        ("yes: x", (1, 1), "ambiguous"),
        ("a: on", (1, 4), "ambiguous"),
        ("a: [1, .nan]", (1, 8), "not a finite number"),
        ("a: 1e999", (1, 4), "too large"),
        ("b: {}\na: {<<: *b}", (2, 9), "undefined alias"),
        ("b: &b {}\na: {<<: *b}", (2, 5), "merge keys are not supported"),
        ('a: "\\ud800"', (1, 4), "surrogate"),
        ("a: 1\n---\nb: 2\n", (2, 1), "single document"),
        ("a: *nowhere", (1, 4), "undefined alias"),
    ],
)
def test_what_is_not_allowed_has_its_place(text, place, message):
    error = refused(text)
    assert message in error.message
    assert (error.location.line, error.location.column) == place


def test_quoted_keys_and_values_are_strings():
    assert parse_text("'1': 'yes'", "spec.yaml").plain() == {"1": "yes"}


def test_control_characters_are_refused_and_not_shown():
    error = refused("a: 1\nb: \x1b[31m\n")
    assert str(error) == "spec.yaml:2: this is not YAML: a control character"


def test_impossible_escapes_are_refused():
    assert "this is not YAML" in refused('a: "\\UFFFFFFFF"').message


LAUGHS = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12))


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LAUGHS, "more than 100000 values when its aliases are expanded"),
        ("a: &a [*a]", "nested more than 50 levels"),
        ("[" * 400_000, "nested more than 50 levels"),
        ("- " * 200_000, "nested more than 50 levels"),
        ("? " * 200_000, "nested more than 50 levels"),
        ("a: [" + "1," * 300_000 + "1]", "more than 100000 values"),
        ("a: " + "1" * 900_000, "too long"),
        ("x" * MAX_BYTES + ": 1", "larger than 1048576 bytes"),
    ],
    ids=["billion laughs", "recursion", "brackets", "dashes", "question marks", "wide", "long number", "large"],
)
def test_bombs_are_refused_quickly(text, message):
    start = time.perf_counter()
    error = refused(text)
    assert message in error.message
    assert time.perf_counter() - start < 20
    assert len(str(error)) < 1000


def test_the_depth_that_is_allowed():
    nested = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert parse_text(nested, "spec.yaml").plain() is not None
    assert "levels deep" in refused(f"[{nested}]" + " ").message


def test_bytes_are_utf8():
    assert parse_bytes("\ufeffa: ä".encode(), "f").plain() == {"a": "ä"}
    with pytest.raises(SpecError, match="not UTF-8") as caught:
        parse_bytes(b"a: 1\nb: \xff\n", "f")
    assert caught.value.location.line == 2


def test_files_are_read_no_further_than_the_limit(tmp_path):
    large = tmp_path / "large.yaml"
    large.write_bytes(b"#" * (MAX_BYTES + 100))
    data = read_bytes(large)
    assert len(data) == MAX_BYTES + 1
    with pytest.raises(SpecError, match="larger than"):
        parse_bytes(data, str(large))


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(SpecError, match="there is no such file"):
        read_bytes(tmp_path / "none.yaml")
    with pytest.raises(SpecError, match="is a directory"):
        read_bytes(tmp_path)
