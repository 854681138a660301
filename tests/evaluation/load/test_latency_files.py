"""Files of latency histograms: exact round trips, the package's own reader, damaged files, and MoonGen's."""

import base64
import re
import struct
import zlib

import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader
from hypothesis import given, settings
from hypothesis import strategies as st

from p4perf.errors import DataError, MeasurementError, UsageError
from p4perf.evaluation.load import (
    LatencyHistogram,
    Layout,
    LoggedHistogram,
    hlog_text,
    read_hlog,
    read_moongen_histogram,
)
from p4perf.evaluation.load.histogram import parse_hlog

SPARSE = st.dictionaries(st.integers(0, 25_599), st.integers(1, 2**50), min_size=1, max_size=40)
START_S = 1_763_735_443.25


def example():
    return LatencyHistogram.from_values([900, 1200, 1200, 52_000])


def log(*entries):
    return hlog_text(entries or [LoggedHistogram(example(), "load-0.5", START_S, 2.0)])


def test_the_text_is_what_the_tools_expect():
    lines = log().split("\n")
    assert lines[:3] == [
        "#[Histogram log format version 1.3]",
        "#[StartTime: 1763735443.250 (seconds since epoch), 2025-11-21 14:30:43.250+00:00]",
        '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"',
    ]
    # 52 000 ns lies in a bucket of 32 ns that begins there; the maximum is told in milliseconds.
    assert lines[3].startswith("Tag=load-0.5,1763735443.250,2.000,0.052031,HISTF")
    assert lines[4:] == [""]
    assert log() == log()


@settings(max_examples=40)
@given(SPARSE)
def test_every_count_comes_back(sparse):
    histogram = LatencyHistogram(tuple(sorted(sparse.items())))
    (found,) = parse_hlog(log(LoggedHistogram(histogram, "t", START_S, 1.5)), "a.hlog")
    assert found == LoggedHistogram(histogram, "t", START_S, 1.5)


@settings(max_examples=15)
@given(st.integers(1, 5), st.integers(1, 4096), st.lists(st.integers(0, 10**9), min_size=1, max_size=20))
def test_every_layout_comes_back(digits, lowest, values):
    histogram = LatencyHistogram.from_values(values, layout=Layout(lowest, 10**9, digits))
    (found,) = parse_hlog(log(LoggedHistogram(histogram)), "a.hlog")
    assert found.histogram == histogram


def test_the_package_reads_it(tmp_path):
    floor = LatencyHistogram.from_values([300] * 50)
    path = tmp_path / "a.hlog"
    path.write_text(
        log(
            LoggedHistogram(example(), "load-0.5", START_S, 2.0),
            LoggedHistogram(floor, "floor-0.5", START_S + 3, 1.0),
            LoggedHistogram(floor, "", START_S + 5, 1.0),
        )
    )
    reader = HistogramLogReader(str(path), HdrHistogram(1, 10_000_000_000, 3))
    read = [reader.get_next_interval_histogram() for _ in range(4)]
    reader.close()
    assert read.pop() is None
    assert reader.get_start_time_sec() == START_S
    assert [each.get_tag() for each in read] == ["load-0.5", "floor-0.5", None]
    assert [each.get_start_time_stamp() for each in read] == [1000 * (START_S + s) for s in (0, 3, 5)]
    assert [each.get_end_time_stamp() for each in read] == [1000 * (START_S + s) for s in (2, 4, 6)]
    for each, ours in zip(read, (example(), floor, floor), strict=True):
        assert tuple((i, c) for i, c in enumerate(each.counts) if c) == ours.counts
        assert each.get_value_at_percentile(50) / 1000 == ours.percentile_us(50)


def test_what_the_package_writes_is_read():
    theirs = HdrHistogram(1, 3_600_000_000_000, 3)
    for value in (5, 70_000, 70_000, 10**11):
        theirs.record_value(value)
    line = f"Tag=A,0.127,1.007,2.769,{theirs.encode().decode()}"
    base = "#[Histogram log format version 1.2]\n#[BaseTime: 100.5 (seconds since epoch)]\r\n"
    (found,) = parse_hlog(f"{base}\n{line}\r\n", "x")
    assert (found.tag, found.start_s, found.duration_s) == ("A", 100.5 + 0.127, 1.007)
    assert found.histogram.counts == tuple((i, c) for i, c in enumerate(theirs.counts) if c)
    assert found.histogram.layout.highest == 3_600_000_000_000
    # Times since the start, as the rule of a year says.
    (found,) = parse_hlog(f"#[StartTime: 1441812279.474 (seconds since epoch), Wed]\n{line}\n", "x")
    assert found.start_s == pytest.approx(1441812279.474 + 0.127)


def test_a_file_is_read(tmp_path):
    path = tmp_path / "a.hlog"
    path.write_text(log())
    assert [each.tag for each in read_hlog(path)] == ["load-0.5"]
    with pytest.raises(DataError, match="there is no such file"):
        read_hlog(tmp_path / "none.hlog")


def repack(text, change):
    """An encoded histogram whose uncompressed bytes were changed, with right lengths and check sum."""
    raw = base64.b64decode(text)
    packed = zlib.compress(change(zlib.decompress(raw[8:])))
    return base64.b64encode(raw[:4] + struct.pack(">I", len(packed)) + packed).decode()


ENCODED = log().split(",")[-1].strip()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (f"Tag=a,1.0,1.0,{ENCODED}", "is not start,length,maximum,histogram"),
        (f"1.0,x,1.0,{ENCODED}", "'x' is not a number"),
        (f"-1.0,1.0,1.0,{ENCODED}", "'-1.0' is not a number"),
        (f"nan,1.0,1.0,{ENCODED}", "'nan' is not a number"),
        (f"1.0,1.0,1.0,{ENCODED[:-8]}", "not in the encoding V2"),
        (f"1.0,1.0,1.0,{ENCODED[:30]}*{ENCODED[31:]}", "not in the encoding V2"),
        (f"1.0,1.0,1.0,{ENCODED[:40]}AAAA{ENCODED[44:]}", "not in the encoding V2"),
        ("1.0,1.0,1.0,", "not in the encoding V2"),
        ("1.0,1.0,1.0,AAAA" + ENCODED[4:], "not in the encoding V2"),
        (f"1.0,1.0,1.0,{repack(ENCODED, lambda b: b[:8] + bytes([0, 0, 0, 9]) + b[12:])}", "shifted"),
        (f"1.0,1.0,1.0,{repack(ENCODED, lambda b: b[:12] + bytes([0, 0, 0, 9]) + b[16:])}", "not in the encoding"),
        (f"1.0,1.0,1.0,{HdrHistogram(1, 1000, 3).encode().decode()}", "no latency sample|not in the encoding"),
        ("what is this", "is not start,length,maximum,histogram"),
        ("#[Histogram log format version 2.0]", "version of the histogram log is 2.0"),
        ("#[StartTime: soon (seconds since epoch)]", "'soon' is not a number"),
    ],
)
def test_damaged_logs_are_refused_with_their_line(line, said):
    with pytest.raises(DataError, match=said) as caught:
        parse_hlog(f"#a comment\n\n{line}\n", "bad.hlog")
    assert (caught.value.location.file, caught.value.location.line) == ("bad.hlog", 3)


def test_a_log_without_histograms_is_refused():
    with pytest.raises(DataError, match=r"a\.hlog: there is no histogram"):
        parse_hlog("#[Histogram log format version 1.3]\n", "a.hlog")
    with pytest.raises(UsageError, match="no histogram to write"):
        hlog_text([])


@pytest.mark.parametrize("tag", ["a b", "a,b", "a\nb"])
def test_tags_have_no_commas(tag):
    with pytest.raises(UsageError, match="tag"):
        LoggedHistogram(example(), tag)


def test_odd_times_are_refused():
    for times in ((-1.0, 0.0), (0.0, float("nan"))):
        with pytest.raises(UsageError, match="times"):
            LoggedHistogram(example(), "", *times)


def moongen(tmp_path, text):
    path = tmp_path / "histogram.csv"
    path.write_text(text)
    return path


def test_moongen_histograms(tmp_path):
    found = read_moongen_histogram(moongen(tmp_path, "409.6,3\n416,1\n\n1e3,2\r\n2000,0\n"))
    assert found.counts == ((410, 3), (416, 1), (1000, 2))
    assert found.max_us == 1.0


@pytest.mark.parametrize("text", ["", "\n", "400,0\n"])
def test_moongen_without_samples(tmp_path, text):
    with pytest.raises(MeasurementError, match="no latency sample"):
        read_moongen_histogram(moongen(tmp_path, text))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("latency,count", "'latency,count' is not latency,count"),
        ("400", "is not latency,count"),
        ("400,1,2", "is not latency,count"),
        ("400,1.5", "is not latency,count"),
        ("-400,1", "is not latency,count"),
        ("400,-1", "is not latency,count"),
        ("inf,1", "is not latency,count"),
        ("1.2.3,1", "is not latency,count"),
        ("1e12,1", "more than 10 s"),
    ],
)
def test_damaged_moongen_histograms(tmp_path, line, said):
    with pytest.raises(DataError, match=re.escape(said)) as caught:
        read_moongen_histogram(moongen(tmp_path, f"400,1\n{line}\n"))
    assert caught.value.location.line == 2
