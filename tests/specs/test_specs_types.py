from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from p4perf.specs.types import (
    DistributionName,
    DurationMs,
    ExperimentName,
    Fraction,
    FrameSize,
    Number,
    PatternName,
    RateMpps,
    Strict,
    SweptValue,
    Whole,
    Word,
    ZipfExponent,
    reference_name,
)


def read(kind, value) -> Any:
    return TypeAdapter(kind).validate_python(value)


@pytest.mark.parametrize(
    ("kind", "value", "result"),
    [
        (FrameSize, 64, 64),
        (FrameSize, "64 B", 64),
        (FrameSize, "1 KiB", 1024),
        (FrameSize, "$frame_size", "$frame_size"),
        (RateMpps, 1, 1.0),
        (RateMpps, "500 kpps", 0.5),
        (RateMpps, "$rate", "$rate"),
        (DurationMs, 200, 200.0),
        (DurationMs, "0.2 s", 200.0),
        (DurationMs, "50 us", 0.05),
        (ZipfExponent, 1, 1.0),
        (ZipfExponent, "$s", "$s"),
        (Fraction, 1, 1.0),
        (Number, 5, 5),
        (Number, 5.0, 5.0),
        (Whole, 5, 5),
        (SweptValue, True, True),
        (SweptValue, 1, 1),
        (SweptValue, 1.0, 1.0),
        (SweptValue, "exact", "exact"),
        (PatternName, "cbr", "cbr"),
        (DistributionName, "$d", "$d"),
        (Word, "key_bits", "key_bits"),
        (ExperimentName, "mat/exact-entries", "mat/exact-entries"),
        (ExperimentName, "a", "a"),
    ],
)
def test_what_is_right(kind, value, result):
    found = read(kind, value)
    assert found == result
    assert type(found) is type(result)


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (FrameSize, 63, "must be 64 to 9216 bytes"),
        (FrameSize, 9217, "must be 64 to 9216 bytes"),
        (FrameSize, "63 B", "must be 64 to 9216 bytes"),
        (FrameSize, 64.0, "expected a whole number of B, got 64.0"),
        (FrameSize, "64.5 B", "not a whole number of B"),
        (FrameSize, "10 Gbit/s", "is a data rate, not a data size"),
        (FrameSize, "64", "is not a number with a unit"),
        (FrameSize, True, "expected a number, got true"),
        (FrameSize, [64], "expected a number, got a list"),
        (FrameSize, "$Bad", "is not a reference"),
        (FrameSize, "$", "is not a reference"),
        (RateMpps, 0, "Mpps, got 0"),
        (RateMpps, "10 Gbit/s", "is a data rate, not a packet rate"),
        (DurationMs, -1, "ms, got -1"),
        (DurationMs, "$t", "references are not possible here"),
        (DurationMs, "5 pps", "is a packet rate, not a time"),
        (ZipfExponent, 0, "as exponent, got 0"),
        (ZipfExponent, "a", "expected a number, got 'a'"),
        (Fraction, 0, "above 0 and up to 1"),
        (Fraction, 1.01, "above 0 and up to 1"),
        (Number, True, "expected a number, got true"),
        (Number, float("inf"), "finite"),
        (Number, 10**19, "at most 1000000000000000000 in magnitude"),
        (SweptValue, None, "expected a number, a word or a truth value"),
        (SweptValue, "$x", "cannot be a reference"),
        (PatternName, "cbrr", "is not one of cbr, poisson, burst"),
        (DistributionName, 5, "is not one of uniform, sequential, single, zipf"),
        (Word, "Key", "is not a name"),
        (Word, "a\n", "is not a name"),
        (Word, 5, "is not a name"),
        (ExperimentName, "../etc", "is not a name of an experiment"),
        (ExperimentName, "/etc", "is not a name of an experiment"),
        (ExperimentName, "a/../b", "is not a name of an experiment"),
        (ExperimentName, "a//b", "is not a name of an experiment"),
        (ExperimentName, "A", "is not a name of an experiment"),
        (ExperimentName, "a\n", "is not a name of an experiment"),
        (ExperimentName, "a" * 101, "is not a name of an experiment"),
    ],
)
def test_what_is_wrong_is_one_plain_error(kind, value, message):
    with pytest.raises(ValidationError) as caught:
        read(kind, value)
    assert len(caught.value.errors()) == 1
    assert message in caught.value.errors()[0]["msg"]


def test_references():
    assert reference_name("$entries") == "entries"
    assert reference_name("entries") is None
    assert reference_name(5) is None


def test_parts_of_a_spec_are_frozen_and_know_their_keys():
    class Part(Strict):
        size: int = 1

    with pytest.raises(ValidationError, match="frozen"):
        Part().size = 2
    with pytest.raises(ValidationError, match="unknown key 'sise'"):
        Part.model_validate({"sise": 1})
