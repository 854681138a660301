"""Histograms of latencies: agree with HdrHistogram and with known distributions, and refuse what is damaged."""

import json
import math

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given, settings
from hypothesis import strategies as st
from support.load_session import record_of

from p4perf.errors import MeasurementError, UsageError
from p4perf.evaluation.load import LatencyHistogram, Layout

RECORD = {"lowest": 1, "highest": 10_000_000_000, "digits": 3}
LATENCIES = st.lists(st.integers(0, 10_000_000_000), min_size=1, max_size=60)


def record(counts, **other):
    return RECORD | {"counts": counts} | other


def test_a_tiny_histogram_by_hand():
    # Below 2048 ns the index is the value; above, a bucket of 2 ns begins at each even value: 2048 -> 2048.
    found = LatencyHistogram.from_record(record([[1000, 3], [2048, 1]]))
    assert found.samples == 4
    assert found.min_us == 1.0
    assert found.max_us == 2.049
    assert found.mean_us == pytest.approx((3 * 1000 + 2049) / 4 / 1000)
    assert found.stddev_us == pytest.approx(math.sqrt(3 / 16) * 1.049)
    assert found.percentile_us(0) == 1.0
    assert found.percentile_us(75) == 1.0
    assert found.percentile_us(100) == 2.049
    value_us, share = found.cumulative()
    assert value_us.tolist() == [1.0, 2.049]
    assert share.tolist() == [0.75, 1.0]


@settings(max_examples=15)
@given(LATENCIES)
def test_agrees_with_hdrhistogram(values):
    reference = HdrHistogram(1, 10_000_000_000, 3)
    for value in values:
        assert reference.record_value(value)
    found = LatencyHistogram.from_values(values)
    assert found.samples == reference.get_total_count() == len(values)
    assert found.min_us == reference.get_min_value() / 1000
    assert found.max_us == reference.get_max_value() / 1000
    assert found.mean_us == pytest.approx(reference.get_mean_value() / 1000)
    assert found.stddev_us == pytest.approx(reference.get_stddev() / 1000, abs=1e-6 * found.max_us)
    for p in (0, 1, 50, 90, 99.9, 100):
        assert found.percentile_us(p) == reference.get_value_at_percentile(p) / 1000
    assert [count for _, count in found.counts] == [c for c in reference.counts if c]


@settings(max_examples=50)
@given(LATENCIES)
def test_no_value_is_off_by_more_than_the_resolution(values):
    value_us, share = LatencyHistogram.from_values(values).cumulative()
    exact = np.sort(np.array(values)) / 1000
    for at, part in zip(value_us, share, strict=True):
        assert part == np.sum(exact <= at) / len(values)
    shown = value_us[np.searchsorted(value_us, exact)]
    assert (shown >= exact).all()
    assert (shown - exact <= exact * 1e-3 + 1e-9).all()


def test_percentiles_of_known_distributions():
    ranks = (np.arange(200_000) + 0.5) / 200_000
    exponential = LatencyHistogram.from_values(-50_000 * np.log(1 - ranks))  # mean 50 µs
    for p, value in exponential.percentiles().items():
        assert value == pytest.approx(-50 * math.log(1 - p / 100 + 0.5 / 200_000), rel=1.1e-3)
    assert exponential.mean_us == pytest.approx(50, rel=2e-3)
    assert exponential.stddev_us == pytest.approx(50, rel=5e-3)
    uniform = LatencyHistogram.from_values(10_000 + 1_000 * ranks)
    assert uniform.percentiles((25, 50, 75)) == pytest.approx({25: 10.25, 50: 10.5, 75: 10.75}, rel=1e-3)


def test_a_percentile_needs_samples_beyond_it():
    thousand = LatencyHistogram.from_values(np.arange(1000))
    told = thousand.percentiles()
    assert list(told) == [50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99]
    assert {p for p, value in told.items() if value is None} == {99.9, 99.99}
    assert told[99.0] == 0.989
    assert not LatencyHistogram.from_values(np.arange(949)).supports(99)
    exactly = LatencyHistogram.from_values(np.arange(100_000))
    assert exactly.supports(99.99)
    assert not LatencyHistogram.from_values(np.arange(94_000)).supports(99.99)
    assert not exactly.supports(100)
    assert not exactly.supports(0)
    assert exactly.supports(0.02)
    assert LatencyHistogram.from_values([7]).percentiles((50,)) == {50: None}
    assert LatencyHistogram.from_values([7]).percentile_us(50) == 0.007


@settings(max_examples=30)
@given(LATENCIES, LATENCIES)
def test_merging_is_counting_together(one, two):
    merged = LatencyHistogram.from_values(one).merge(LatencyHistogram.from_values(two))
    assert merged == LatencyHistogram.from_values(one + two)


def test_only_equal_layouts_merge():
    with pytest.raises(UsageError, match="different layouts"):
        LatencyHistogram.from_values([1]).merge(LatencyHistogram.from_values([1], layout=Layout(1, 10**9, 2)))


@settings(max_examples=30)
@given(LATENCIES)
def test_a_record_comes_back(values):
    found = LatencyHistogram.from_values(values)
    assert LatencyHistogram.from_record(json.loads(json.dumps(record_of(found)))) == found


def test_order_and_zeros_in_a_record_do_not_matter():
    assert LatencyHistogram.from_record(record([[9, 1], [7, 0], [3, 2]])).counts == ((3, 2), (9, 1))


@pytest.mark.parametrize("counts", [[], [[5, 0]]])
def test_no_sample_is_an_error(counts):
    with pytest.raises(MeasurementError, match="no latency sample"):
        LatencyHistogram.from_record(record(counts))


@pytest.mark.parametrize(
    ("damaged", "said"),
    [
        (record([[5, -1]]), "a count of latencies is not positive"),
        (record([[-5, 1]]), "no bucket -5"),
        (record([[25_600, 1]]), "no bucket 25600: they are 0 to 25599"),
        (record([[5, 1], [5, 2]]), "not ascending, or come twice"),
        (record([[5, 1.0]]), "a count is not a whole number"),
        (record([["5", 1]]), "an index is not a whole number"),
        (record([[5, True]]), "a count is not a whole number"),
        (record([[5, 2**63]]), "larger than any number"),
        (record([[5]]), "not a value and a count"),
        (record([5]), "not a value and a count"),
        (record({"5": 1}), "not a list"),
        (record([[5, 1]], lowest=0), "the layout of the latencies is wrong"),
        (record([[5, 1]], highest=1), "the layout of the latencies is wrong"),
        (record([[5, 1]], digits=6), "1 to 5 significant digits"),
        (record([[5, 1]], digits=None), "digits is not a whole number"),
        ({"lowest": 1, "counts": []}, "no highest and no digits"),
        ([], "not an object"),
    ],
)
def test_damaged_records_are_refused(damaged, said):
    with pytest.raises(MeasurementError, match=said):
        LatencyHistogram.from_record(damaged)


@pytest.mark.parametrize("values", [[-1], [math.nan], [math.inf], [1e12]])
def test_impossible_latencies_are_refused(values):
    with pytest.raises(MeasurementError):
        LatencyHistogram.from_values(values)


def test_values_come_with_counts():
    found = LatencyHistogram.from_values([5.4, 4.6, 9], [2, 1, 0])
    assert found.counts == ((5, 3),)
    for counts in ([1], [1, 1, -1], [1, 1, 0.5]):
        with pytest.raises(MeasurementError):
            LatencyHistogram.from_values([1, 2, 3], counts)


def test_the_largest_bucket_counts():
    layout = Layout()
    assert layout.buckets() == 25_600
    ((_, largest_ns),) = layout.edges([25_599])
    assert largest_ns >= 10_000_000_000
    assert LatencyHistogram.from_values([largest_ns]).counts == ((25_599, 1),)
    with pytest.raises(MeasurementError, match="more than the histogram can count"):
        LatencyHistogram.from_values([2 * largest_ns])


def test_a_latency_of_zero_is_a_latency():
    zero = LatencyHistogram.from_values([0] * 30)
    assert (zero.min_us, zero.max_us, zero.mean_us, zero.stddev_us) == (0, 0, 0, 0)
    assert zero.percentiles((50,)) == {50: 0.0}


@pytest.mark.parametrize("p", [-1, 101, math.nan])
def test_percentiles_out_of_range(p):
    found = LatencyHistogram.from_values([1])
    for ask in (found.percentile_us, found.supports, lambda p: found.percentiles((p,))):
        with pytest.raises(UsageError, match="0 to 100"):
            ask(p)


@given(st.lists(st.integers(0, 10_000_000_000), min_size=1, max_size=50))
def test_the_load_generator_counts_at_the_same_index(values):
    # histogram_record() of the harness: 1 ns steps below 2048 ns, 1024 steps in every power of two above.
    buckets = [max(value.bit_length() - 11, 0) for value in values]
    expected = [bucket * 1024 + (value >> bucket) for value, bucket in zip(values, buckets, strict=True)]
    assert Layout().index_of(values) == expected
