from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p4perf.errors import SpecError
from p4perf.specs.units import BASE_UNITS, UNITS, parse_quantity


@pytest.mark.parametrize(
    ("text", "dimension", "unit", "value"),
    [
        ("10 Gbit/s", "data rate", None, 10**10),
        ("10Gbit/s", "data rate", "Gbit/s", 10),
        ("1 MB/s", "data rate", None, 8 * 10**6),
        ("64 B", "data size", "B", 64),
        ("1 KiB", "data size", "B", 1024),
        ("1 kB", "data size", "B", 1000),
        ("2 MiB", "data size", "B", 2 * 1024**2),
        ("512 bit", "data size", "B", 64),
        ("0.5 Mpps", "packet rate", "Mpps", Fraction(1, 2)),
        ("500 kpps", "packet rate", "Mpps", Fraction(1, 2)),
        ("1e3 pps", "packet rate", None, 1000),
        ("200 ms", "time", "ms", 200),
        ("50 us", "time", "ms", Fraction(1, 20)),
        ("50 µs", "time", "us", 50),
        ("3 ns", "time", "s", Fraction(3, 10**9)),
        ("2 min", "time", "s", 120),
        ("2.0 GHz", "frequency", "GHz", 2),
        ("1_000 cycles", "cycles", None, 1000),
        ("1 cycle", "cycles", None, 1),
    ],
)
def test_quantities(text, dimension, unit, value):
    assert parse_quantity(text, dimension, unit) == value


def test_a_unit_of_another_dimension_names_the_expected_one():
    with pytest.raises(SpecError) as caught:
        parse_quantity("10 Gbit/s", "data size")
    assert str(caught.value) == (
        "'10 Gbit/s' is a data rate, not a data size\nhint: expected a data size such as 64 B or 1 KiB"
    )


def test_an_unknown_unit_of_other_case_is_respelt():
    with pytest.raises(SpecError, match=r"there is no unit 'mpps'\nhint: .*packet rate.*did you mean Mpps\?"):
        parse_quantity("1 mpps", "packet rate")


@pytest.mark.parametrize("text", ["", "64", "B", "ten B", "1e999 B", "64 B B", "0x40 B", "1/2 B", "9" * 10**6 + " B"])
def test_what_is_no_quantity(text):
    with pytest.raises(SpecError) as caught:
        parse_quantity(text, "data size")
    assert len(str(caught.value)) < 300


def test_every_dimension_has_a_base_unit_of_factor_one():
    for dimension, unit in BASE_UNITS.items():
        assert UNITS[unit].dimension == dimension
        assert UNITS[unit].factor == 1


@given(st.sampled_from(sorted(UNITS)), st.integers(0, 10**12) | st.floats(1e-9, 1e12))
def test_a_written_number_is_read_as_it_is(unit, number):
    assert float(parse_quantity(f"{number!r} {unit}", UNITS[unit].dimension, unit)) == number


@given(st.sampled_from(sorted(UNITS)), st.integers(1, 10**9))
def test_a_value_is_the_same_in_the_base_unit(unit, number):
    dimension = UNITS[unit].dimension
    base = parse_quantity(f"{number} {unit}", dimension)
    assert base == number * UNITS[unit].factor
