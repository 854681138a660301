"""Files of latency histograms: logs of HdrHistogram (``.hlog``), and the ``histogram.csv`` of MoonGen.

A log is text: comments, a legend, and a line for each histogram, ``Tag=tag,start,length,maximum,encoded``, the times in
seconds, the maximum in milliseconds (nanoseconds divided by a million, the default of all HdrHistogram tools), the
histogram itself compressed (encoding V2) in base64.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from p4perf.errors import DataError, Location, MeasurementError, UsageError
from p4perf.evaluation.fitting.datafiles import finite_number
from p4perf.evaluation.load.histogram import NO_SAMPLE, LatencyHistogram, Layout, decode, encode
from p4perf.results.files import read_text

VERSION = "1.3"
LEGEND = '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"'
MS_PER_US = 1000.0
YEAR_S = 365 * 24 * 3600.0
_VERSION = re.compile(r"#\[Histogram log format version ([^\]]*)\]")
_TIME = re.compile(r"#\[(Start|Base)Time: *([^ \]]*)")
_TAG = re.compile(r"[^\s,]+")


@dataclass(frozen=True, slots=True)
class LoggedHistogram:
    """One line of a log.

    Args:
        tag: what it belongs to, such as ``load-0.5`` or ``floor-0.5``; no spaces and commas. Empty: no tag.
        start_s: when its measurement began [s since the epoch]; a log keeps milliseconds.
    """

    histogram: LatencyHistogram
    tag: str = ""
    start_s: float = 0.0
    duration_s: float = 0.0

    def __post_init__(self) -> None:
        if self.tag and not _TAG.fullmatch(self.tag):
            raise UsageError(f"a tag in a histogram log has no spaces and commas, unlike {self.tag!r}")
        if not all(math.isfinite(time) and time >= 0 for time in (self.start_s, self.duration_s)):
            raise UsageError("the times of a histogram must be finite and not negative")


def hlog_text(histograms: Sequence[LoggedHistogram], *, comments: Sequence[str] = ()) -> str:
    """A log of HdrHistogram, version 1.3, with comment lines for people. The same histograms give the same text."""
    if not histograms:
        raise UsageError("there is no histogram to write")
    if any(not text.isprintable() or text.startswith("[") for text in comments):
        raise UsageError("a comment in a histogram log is one line and does not begin with a bracket")
    start_s = min(entry.start_s for entry in histograms)
    date = datetime.fromtimestamp(start_s, UTC).isoformat(" ", "milliseconds")
    lines = [
        *(f"#{text}" for text in comments),
        f"#[Histogram log format version {VERSION}]",
        f"#[StartTime: {start_s:.3f} (seconds since epoch), {date}]",
        LEGEND,
    ]
    for entry in histograms:
        tag = f"Tag={entry.tag}," if entry.tag else ""
        times = f"{entry.start_s:.3f},{entry.duration_s:.3f},{entry.histogram.max_us / MS_PER_US:.6f}"
        lines.append(f"{tag}{times},{encode(entry.histogram.layout, entry.histogram.counts)}")
    return "\n".join(lines) + "\n"


def parse_hlog(text: str, file: str) -> tuple[LoggedHistogram, ...]:
    """The histograms of a log of HdrHistogram, versions 1.0 to 1.3, whose values are nanoseconds.

    Where the log has times since its start, they become times since the epoch, by the rule of HdrHistogram: BaseTime is
    added if there is one, else StartTime if a time lies more than a year before it.

    Returns:
        One entry for each line, in the order of the file.
    """
    found = []
    known = {"Start": 0.0, "Base": 0.0}
    for number, line in enumerate(text.split("\n"), 1):
        where = Location(file, number)
        if line.startswith("#"):
            _read_comment(line, known, where)
        elif line.strip() and not line.startswith('"'):
            found.append(_read_line(line.strip(), known, where))
    if not found:
        raise DataError("there is no histogram in it", location=Location(file))
    return tuple(found)


def read_hlog(path: Path) -> tuple[LoggedHistogram, ...]:
    """Read a log of HdrHistogram, see :func:`parse_hlog`."""
    return parse_hlog(read_text(path), str(path))


def read_moongen_histogram(path: Path) -> LatencyHistogram:
    """Read the ``histogram.csv`` of MoonGen: a line ``latency,count`` for each latency [ns], without a header.

    Latencies may have decimals (hardware clocks tick in fractions of nanoseconds) and are rounded to nanoseconds.

    Raises:
        DataError: the file cannot be read or a line is damaged, negative or beyond 10 s; with file and line.
        MeasurementError: there is no sample in it; MoonGen writes an empty file where no probe came back.
    """
    values, counts = [], []
    largest = Layout().largest_ns()
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if not line.strip():
            continue
        where = Location(str(path), number)
        cells = line.split(",")
        if len(cells) != 2:
            raise DataError("is not latency,count", location=where)
        value, count = (_number(cell, where) for cell in cells)
        if count != int(count):
            raise DataError(f"{cells[1].strip()} is not a whole number of samples", location=where)
        if round(value) > largest:
            raise DataError(f"a latency of {value:g} ns is more than a histogram can count", location=where)
        values.append(value)
        counts.append(count)
    if not sum(counts):
        raise MeasurementError(NO_SAMPLE, location=Location(str(path)), hint="did any frame come back?")
    return LatencyHistogram.from_values(values, counts)


def _read_comment(line: str, known: dict[str, float], where: Location) -> None:
    if (version := _VERSION.match(line)) and version[1] not in ("1.0", "1.1", "1.2", "1.3"):
        raise DataError(f"the version of the histogram log is {version[1]}, not 1.0 to 1.3", location=where)
    if time := _TIME.match(line):
        known[time[1]] = _number(time[2], where)


def _read_line(line: str, known: dict[str, float], where: Location) -> LoggedHistogram:
    tag, rest = "", line
    if line.startswith("Tag="):
        tag, _, rest = line.removeprefix("Tag=").partition(",")
    cells = rest.split(",")
    if len(cells) != 4:
        raise DataError("is not start,length,maximum,histogram", location=where)
    stamp_s, duration_s, _ = (_number(cell, where) for cell in cells[:3])
    base_s = known["Base"]
    if not base_s and stamp_s < known["Start"] - YEAR_S:
        base_s = known["Start"]
    try:
        layout, counts = decode(cells[3])
        return LoggedHistogram(LatencyHistogram(counts, layout), tag, base_s + stamp_s, duration_s)
    except (DataError, MeasurementError, UsageError) as error:
        raise DataError(error.message, location=where) from error


def _number(text: str, where: Location) -> float:
    """A decimal number, zero at least."""
    value = finite_number(text)
    if not value >= 0:
        raise DataError(f"{text.strip()!r:.40} is not a number that can stand here", location=where)
    return value
