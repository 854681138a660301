"""Files of MoonGen: the mean row that is no sample, colours, empty files, nan, histograms."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.imports import HEADER, LOG, counter_csv, counter_row, histogram

from p4perf.errors import DataError, UsageError
from p4perf.evaluation.imports import ImportOptions
from p4perf.evaluation.imports.base import read_plain_text
from p4perf.evaluation.imports.moongen import MoonGenImporter
from p4perf.formats.moongen import parse_counters

READER = MoonGenImporter()

REAL = f"""{HEADER}
1599232462,Device: id=0,RX,7.0062060070163,3587.1799447592,4708.1729058818,12645781,809331200
1599232463,Device: id=0,RX,6.7451923076923,3453.5384615385,4532.7692307692,19390973,1241022272
1599232483,Device: id=0,RX,6.7223958474826,3441.8752769191,4517.4586125164,155128634,9928233856
1599232483,Device: id=0,RX,6.73379407758745,3447.7068692288,4525.1139216427,156735997,10031103808
"""


def read(path, text, **options):
    path.write_text(text)
    assert READER.recognises(path) == bool(text.strip())
    return READER.read(path, ImportOptions(**options))


def values(reading):
    return {value.metric: value.value for trial in reading.trials for value in trial.values}


def test_the_mean_row_of_a_real_file_is_no_sample(tmp_path):
    (counter,) = parse_counters(REAL, "x")
    assert counter.finished
    assert counter.rate_mpps == pytest.approx((6.7451923076923 + 6.7223958474826) / 2)
    assert counter.packets == 156735997
    reading = read(tmp_path / "rx.csv", REAL)
    assert values(reading) == {"packet_rate": counter.rate_mpps}
    assert reading.trials[0].values[0].place.line == 5


@given(st.lists(st.floats(0, 200, allow_nan=False), min_size=2, max_size=40))
def test_a_finished_and_a_killed_run_have_the_same_rate(rates):
    (finished,) = parse_counters(counter_csv(rates), "x")
    (killed,) = parse_counters(counter_csv(rates, finished=False), "x")
    assert finished.finished
    assert finished.rate_mpps == pytest.approx(math.fsum(rates[1:]) / len(rates[1:]), rel=1e-9, abs=1e-9)
    if not killed.finished:  # rates that are all alike end as a mean does
        assert killed.rate_mpps == pytest.approx(finished.rate_mpps, rel=1e-9, abs=1e-9)


def test_a_killed_run_is_marked(tmp_path):
    reading = read(tmp_path / "rx.csv", counter_csv([5.0, 7.0, 8.0], finished=False))
    assert values(reading) == {"packet_rate": 7.5}
    assert reading.trials[0].flags == ("unfinished",)


@pytest.mark.parametrize("rates", [[5.0], []])
def test_too_few_rows_for_a_mean_are_nan_and_left_out(tmp_path, rates):
    reading = read(tmp_path / "rx.csv", counter_csv(rates))
    assert "nan" in (tmp_path / "rx.csv").read_text()
    assert reading.trials == ()
    assert "too few rows" in reading.left_out[0].reason


def test_an_empty_file_is_left_out(tmp_path):
    reading = read(tmp_path / "rx.csv", "")
    assert reading.trials == ()
    assert "ended before its first row" in reading.left_out[0].reason


def test_both_directions_in_one_file_give_the_loss(tmp_path):
    text = counter_csv([1.0, 2.0, 4.0], total=750)
    text += counter_csv([1.0, 2.0, 4.0], direction="TX", device="Device: id=1", total=1000, header=False)
    found = values(read(tmp_path / "both.csv", text))
    assert found == {"packet_rate": 3.0, "loss_ratio": 0.25}


@pytest.mark.parametrize("total", [0, 999])
def test_a_loss_that_cannot_be_is_left_out(tmp_path, total):
    text = counter_csv([1.0, 2.0, 4.0], total=1000)
    text += counter_csv([1.0, 2.0, 4.0], direction="TX", total=total, header=False)
    reading = read(tmp_path / "both.csv", text)
    assert "loss_ratio" not in values(reading)
    assert "the loss is not known" in reading.left_out[0].reason


def test_printed_lines_with_colours(tmp_path):
    found = values(read(tmp_path / "throughput.log", LOG))
    assert found == {"packet_rate": 0.0097, "loss_ratio": pytest.approx(0.2)}


def test_several_devices_have_to_be_chosen(tmp_path):
    text = counter_csv([1.0, 2.0, 2.0]) + counter_csv([1.0, 3.0, 3.0], device="Device: id=1", header=False)
    with pytest.raises(UsageError, match="several RX counters") as caught:
        read(tmp_path / "rx.csv", text)
    assert "--device 'Device: id=0'" in caught.value.hint
    assert values(read(tmp_path / "rx.csv", text, device="Device: id=1")) == {"packet_rate": 3.0}


def test_a_histogram(tmp_path):
    found = values(read(tmp_path / "histogram.csv", histogram({1000: 50, 2000: 49, 9000: 1})))
    assert found["latency_p50"] == pytest.approx(1.0, rel=2e-3)
    assert found["latency_max"] == pytest.approx(9.0, rel=2e-3)
    assert found["latency_mean"] == pytest.approx((50 + 98 + 9) / 100, rel=2e-3)
    assert "latency_p999" not in found


def test_names_of_files_tell_facts(tmp_path):
    reading = read(tmp_path / "rx-64-2.csv", REAL, pattern="rx-{frame_size}-{repetition}.csv")
    assert (reading.trials[0].facts, reading.trials[0].repetition) == ({"frame_size": 64}, 2)
    with pytest.raises(UsageError, match="does not fit"):
        read(tmp_path / "rx.csv", REAL, pattern="rx-{frame_size}.csv")


ROW = counter_row(1, "Device: id=0", "RX", 1.0, 5)


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (f"{HEADER}\n{ROW[:20]}\n", 2, "cells"),
        (f"{HEADER}\n{ROW}\n{ROW.replace('RX', 'UP')}\n", 3, "not RX or TX"),
        (f"{HEADER}\n{ROW.replace(',RX,1,', ',RX,fast,')}\n", 2, "not a number"),
        (f"{HEADER}\n{ROW.replace(',RX,1,', ',RX,-1,')}\n", 2, "negative"),
        ("100,5\n200;5\n", 2, "latency,count"),
        ("100,5\n200,many\n", 2, "latency,count"),
    ],
)
def test_damage_names_file_and_line(tmp_path, text, line, said):
    path = tmp_path / "rx.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=said) as caught:
        READER.read(path, ImportOptions())
    assert (caught.value.location.file, caught.value.location.line) == (str(path), line)


def test_something_else_is_refused(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("no counters here\n")
    assert not READER.recognises(path)
    with pytest.raises(DataError, match="neither counters nor a histogram"):
        READER.read(path, ImportOptions())


# --- files of any kind


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\x1f\x8b\x08", "archive"),
        (b"PK\x03\x04", "archive"),
        (b"one\ntwo\0three", ":2: is binary"),
        (b"one\n\xff\xfe", ":2: is not text"),
    ],
)
def test_what_is_no_text(tmp_path, data, said):
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(DataError, match=said):
        read_plain_text(tmp_path / "file")


def test_huge_files_folders_and_missing_files(tmp_path):
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(65 * 2**20)
    for name, said in (("huge", "65 MiB"), (".", "is not a file"), ("absent", "no such file")):
        with pytest.raises(DataError, match=said):
            read_plain_text(tmp_path / name)


def test_byte_order_mark_and_colours_go(tmp_path):
    (tmp_path / "file").write_bytes(b"\xef\xbb\xbf\x1b[1;36mRX\x1b[0m\r\n")
    assert read_plain_text(tmp_path / "file") == "RX\n"
