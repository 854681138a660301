import pytest
from hypothesis import given
from hypothesis import strategies as st

from p4perf.specs.source import needs_quotes, read_plain


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("12", 12),
        ("-3", -3),
        ("0", 0),
        ("2_000_000", 2_000_000),
        ("0x88B5", 0x88B5),
        ("0o17", 15),
        ("1e6", 1_000_000),
        ("2E7", 20_000_000),
        ("2.5e6", 2_500_000),
        ("1e18", 10**18),
        ("0.5", 0.5),
        (".5", 0.5),
        ("70%", 0.7),
        ("0.5%", 0.005),
        ("70 %", "70 %"),
        ("1.", 1.0),
        ("1.0", 1.0),
        ("1e-3", 0.001),
        ("1.25e1", 12.5),
        ("1e19", 1e19),
        ("0e99999999999999999999", 0.0),
        ("1e-400", 0.0),
        ("word", "word"),
        ("1:30", "1:30"),
        ("2024-01-01", "2024-01-01"),
        ("$entries", "$entries"),
        ("-", "-"),
        ("0x", "0x"),
        ("1e", "1e"),
        ("=", "="),
        ("yesterday", "yesterday"),
    ],
)
def test_words_and_numbers(word, value):
    read = read_plain(word)
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize("word", ["yes", "No", "ON", "off"])
def test_the_truth_values_of_yaml_1_1_are_refused(word):
    with pytest.raises(ValueError, match=f"{word} is ambiguous in YAML; write true or false"):
        read_plain(word)


@pytest.mark.parametrize("word", [".inf", "-.INF", ".nan", "1e999", "-1e400"])
def test_numbers_are_finite(word):
    with pytest.raises(ValueError, match="finite number"):
        read_plain(word)


def test_octal_is_refused():
    with pytest.raises(ValueError, match="017 starts with a zero"):
        read_plain("017")


def test_very_long_numbers_are_refused_and_very_long_words_are_words():
    with pytest.raises(ValueError, match="too long"):
        read_plain("1" * 100_000)
    assert read_plain("1" * 100_000 + "z") == "1" * 100_000 + "z"


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_are_read_back(value):
    assert float(read_plain(repr(value))) == value


@given(st.integers(-(10**30), 10**30))
def test_integers_are_read_back(value):
    assert read_plain(str(value)) == value


@pytest.mark.parametrize("text", ["yes", "1e6", "12", "", "null", "017", ".nan", "true", "0.5", "70%"])
def test_words_that_mean_something_else_need_quotes(text):
    assert needs_quotes(text)


def test_words_need_no_quotes():
    assert not needs_quotes("exact")
    assert not needs_quotes("$entries")
