"""Histograms of latencies: their layout, statistics, and which percentiles the samples support.

HdrHistogram (Tene 2012, hdrhistogram.org) counts values in buckets whose width is a fixed share of the value: with
three significant digits, no value is off by more than 0.1 %. All its implementations share the layout and the encoding.

A log (``.hlog``) is text: comments, a legend, a line ``Tag=tag,start,length,maximum,encoded`` for each histogram, the
times in seconds, the maximum in milliseconds (nanoseconds divided by a million, as all HdrHistogram tools have it),
the histogram compressed (encoding V2) in base64.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from hdrh.histogram import HdrHistogram  # type: ignore[import-untyped]

from p4perf.errors import DataError, Location, MeasurementError, UsageError
from p4perf.evaluation.fitting.datafiles import finite_number
from p4perf.formats.moongen import parse_histogram
from p4perf.models.templates import FloatArray
from p4perf.results.files import read_text
from p4perf.specs.metrics import PERCENTILES

Counts = tuple[tuple[int, int], ...]
"""Index and count of every bucket that is not empty, ascending."""

LARGEST = 2**62
"""Counts and values stay below: the encoding has 64 bits with sign."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Which bucket counts which values.

    Args:
        lowest: smallest difference between values [ns], at least 1.
        highest: largest value that must be countable [ns], at least twice the lowest.
        digits: significant decimal digits, 1 to 5.

    Raises:
        UsageError: a number is out of its range.
    """

    lowest: int = 1
    highest: int = 10_000_000_000
    digits: int = 3

    def __post_init__(self) -> None:
        if not 1 <= self.digits <= 5:
            raise UsageError(f"a histogram has 1 to 5 significant digits, not {self.digits}")
        if self.lowest < 1 or not 2 * self.lowest <= self.highest < LARGEST:
            raise UsageError(
                f"the lowest value must be at least 1 and the highest twice that, not {self.lowest} and {self.highest}"
            )

    def histogram(self, counts: Iterable[tuple[int, int]] = ()) -> Any:
        """A histogram of the package with these counts; an IndexError if it has no such bucket."""
        made = HdrHistogram(self.lowest, self.highest, self.digits)
        for index, count in counts:
            if not 0 <= index < made.counts_len:
                raise IndexError(f"there is no bucket {index}: the last one is {made.counts_len - 1}")
            made.record_value(made.get_value_from_index(index), count)
        return made

    def buckets(self) -> int:
        return int(HdrHistogram(self.lowest, self.highest, self.digits).counts_len)

    def index_of(self, values_ns: Iterable[int]) -> list[int]:
        """The bucket of each value [ns]."""
        layout = HdrHistogram(self.lowest, self.highest, self.digits)
        found = []
        for value in values_ns:
            index = int(layout.get_counts_array_index(value))
            if index >= layout.counts_len:
                raise MeasurementError(f"a latency of {value} ns is more than the histogram can count")
            found.append(index)
        return found

    def edges(self, indices: Sequence[int]) -> list[tuple[int, int]]:
        layout = HdrHistogram(self.lowest, self.highest, self.digits)
        starts = [int(layout.get_value_from_index(index)) for index in indices]
        return [(start, int(layout.get_highest_equivalent_value(start))) for start in starts]


def encode(layout: Layout, counts: Counts) -> str:
    """The counts in HdrHistogram's compressed encoding V2, in base64."""
    return str(layout.histogram(counts).encode().decode("ascii"))


def decode(text: str) -> tuple[Layout, Counts]:
    """Layout and counts of an encoded histogram (V2, base64).

    Raises:
        DataError: it is damaged, of another version, or a histogram whose values were shifted or scaled.
    """
    try:
        base64.b64decode(text, validate=True)  # the package lets characters pass that are none
        found = HdrHistogram.decode(text)
        header = found.encoder.payload.payload
        shifted = int(header.normalizing_index_offset) != 0 or float(header.conversion_ratio_bits) != 1.0
        layout = Layout(
            int(found.lowest_trackable_value), int(found.highest_trackable_value), int(found.significant_figures)
        )
        counts = tuple((index, int(count)) for index, count in enumerate(found.counts) if count)
    except Exception as error:  # of many types: the package checks little
        reason = str(error) or type(error).__name__
        raise DataError(f"the histogram is not in the encoding V2 of HdrHistogram: {reason}") from error
    if shifted:
        raise DataError("the values of the histogram are shifted or scaled, which cannot be read")
    return layout, counts


SUPPORT = 10
"""Fewest samples beyond a percentile that is reported. Their number scatters like a Poisson number, by its square
root: of ten samples the share in the tail is known to about a third, of fewer it is mostly chance."""
NO_SAMPLE = "no latency sample was taken"
NS_PER_US = 1000.0


@dataclass(frozen=True, slots=True)
class LatencyHistogram:
    """Latencies of many frames, each with an error below the resolution of the layout (0.1 % by default).

    Args:
        counts: index into HdrHistogram's array of counts, and count, of each bucket that is not empty, ascending.

    Raises:
        MeasurementError: there is no sample, or an index or a count cannot be one.
    """

    counts: Counts
    layout: Layout = field(default_factory=Layout)

    def __post_init__(self) -> None:
        if not self.counts:
            raise MeasurementError(NO_SAMPLE, hint="did any frame come back?")
        if any(count <= 0 for _, count in self.counts):
            raise MeasurementError("a count of latencies is not positive")
        if sum(count for _, count in self.counts) >= LARGEST:
            raise MeasurementError("the counts of latencies are larger than any number of samples")
        indices = [index for index, _ in self.counts]
        if any(after <= before for before, after in pairwise(indices)):
            raise MeasurementError("the buckets of a histogram of latencies are not ascending, or come twice")
        last = self.layout.buckets() - 1
        if indices[0] < 0 or indices[-1] > last:
            wrong = indices[0] if indices[0] < 0 else indices[-1]
            raise MeasurementError(f"the histogram of latencies has no bucket {wrong}: they are 0 to {last}")

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> LatencyHistogram:
        """The histogram that the load generator prints.

        Args:
            record: ``lowest``, ``highest`` [ns], ``digits``, and ``counts``, a list of ``[index, count]`` in any order;
                buckets may be given with a count of zero. Or ``latencies_ns``, a list of ``[latency, count]``.

        Raises:
            MeasurementError: a key is missing, something is not a whole number, negative or out of range, a bucket
                comes twice, or there is no sample.
        """
        if not isinstance(record, Mapping):
            raise MeasurementError("the histogram of latencies is not an object")
        if "latencies_ns" in record:
            pairs = _pairs(record, "latencies_ns")
            if strange := [pair for pair in pairs if isinstance(pair[0], bool) or not isinstance(pair[0], int | float)]:
                raise MeasurementError(f"the latencies: {strange[0]!r:.40} is not [latency, count]")
            return cls.from_values([pair[0] for pair in pairs], [_whole(count, "a count") for _, count in pairs])
        missing = [key for key in ("lowest", "highest", "digits", "counts") if key not in record]
        if missing:
            raise MeasurementError(f"the histogram of latencies has no {' and no '.join(missing)}")
        lowest, highest, digits = (_whole(record[key], key) for key in ("lowest", "highest", "digits"))
        try:
            layout = Layout(lowest, highest, digits)
        except UsageError as error:
            raise MeasurementError(f"the layout of the latencies is wrong: {error.message}") from error
        counts = sorted(
            (_whole(index, "an index"), _whole(count, "a count")) for index, count in _pairs(record, "counts")
        )
        return cls(tuple((index, count) for index, count in counts if count), layout)

    @classmethod
    def from_values(
        cls, values_ns: npt.ArrayLike, counts: npt.ArrayLike | None = None, *, layout: Layout | None = None
    ) -> LatencyHistogram:
        """The histogram of single latencies.

        Args:
            values_ns: latencies [ns]; decimals are rounded.
            counts: how often each was seen, whole numbers; once by default.

        Raises:
            MeasurementError: there is no sample, a latency is negative, too long or not finite, a count is negative or
                not whole.
        """
        layout = layout or Layout()
        values = np.asarray(values_ns, dtype=np.float64).ravel()
        times = np.ones(values.size) if counts is None else np.asarray(counts, dtype=np.float64).ravel()
        if times.size != values.size:
            raise MeasurementError(f"there are {values.size} latencies but {times.size} counts")
        if not np.isfinite(values).all() or (values < 0).any():
            raise MeasurementError("a latency is negative or not finite")
        if not np.isfinite(times).all() or (times < 0).any() or (times != np.floor(times)).any():
            raise MeasurementError("how often a latency was seen is not a whole number")
        rounded, which = np.unique(np.rint(values), return_inverse=True)
        indices = layout.index_of([int(value) for value in rounded])
        total: dict[int, int] = {}
        for at, count in zip(which.tolist(), times.tolist(), strict=True):
            total[indices[at]] = total.get(indices[at], 0) + int(count)
        return cls(tuple((index, count) for index, count in sorted(total.items()) if count), layout)

    @property
    def samples(self) -> int:
        return sum(count for _, count in self.counts)

    @property
    def min_us(self) -> float:
        """Smallest latency [µs]: the lower end of its bucket."""
        return self.layout.edges([self.counts[0][0]])[0][0] / NS_PER_US

    @property
    def max_us(self) -> float:
        """Largest latency [µs]: the upper end of its bucket."""
        return self.layout.edges([self.counts[-1][0]])[0][1] / NS_PER_US

    @property
    def mean_us(self) -> float:
        """Arithmetic mean [µs], each latency taken as the middle of its bucket."""
        middles, counts = self.middles_us()
        return float(np.average(middles, weights=counts))

    @property
    def stddev_us(self) -> float:
        """Standard deviation [µs] of these latencies (divided by their number), each as the middle of its bucket."""
        middles, counts = self.middles_us()
        mean = np.average(middles, weights=counts)
        return math.sqrt(float(np.average((middles - mean) ** 2, weights=counts)))

    def percentile_us(self, p: float) -> float:
        """The latency that p percent of the samples do not exceed [µs], supported or not (see :meth:`supports`).

        It is the upper end of the bucket of the sample with rank p n / 100, rounded (HdrHistogram's definition).
        """
        _check(p)
        return float(self.layout.histogram(self.counts).get_value_at_percentile(p)) / NS_PER_US

    def supports(self, p: float) -> bool:
        """Whether at least :data:`SUPPORT` samples lie beyond a percentile, on its side away from the median.

        The minimum and the maximum (p = 0 and 100) are single samples, never supported.
        """
        _check(p)
        total = self.samples
        rank = max(int(p * total / 100 + 0.5), 1)
        return (total - rank if p >= 50 else rank - 1) >= SUPPORT

    def percentiles(self, wanted: Sequence[float] = tuple(PERCENTILES.values())) -> dict[float, float | None]:
        """Several percentiles [µs]; None is one that the number of samples does not support."""
        supported = [p for p in wanted if self.supports(p)]
        found = self.layout.histogram(self.counts).get_percentile_to_value_dict(supported) if supported else {}
        return {p: float(found[p]) / NS_PER_US if p in found else None for p in wanted}

    def merge(self, *others: LatencyHistogram) -> LatencyHistogram:
        if any(other.layout != self.layout for other in others):
            raise UsageError("histograms of different layouts cannot be merged")
        total = dict(self.counts)
        for other in others:
            for index, count in other.counts:
                total[index] = total.get(index, 0) + count
        return LatencyHistogram(tuple(sorted(total.items())), self.layout)

    def cumulative(self) -> tuple[FloatArray, FloatArray]:
        """The cumulative distribution: upper ends of the buckets [µs], ascending, and shares of samples up to there.

        The shares are exact at these latencies, ascending, and the last is 1.
        """
        value_us = np.array([high for _, high in self.edges()], dtype=np.float64) / NS_PER_US
        running = np.cumsum([count for _, count in self.counts], dtype=np.int64)
        return value_us, running / running[-1]

    def edges(self) -> list[tuple[int, int]]:
        """First and last latency of every bucket that is not empty [ns]."""
        return self.layout.edges([index for index, _ in self.counts])

    def middles_us(self) -> tuple[FloatArray, FloatArray]:
        """Middles of the buckets as HdrHistogram takes them (of one nanosecond: the value itself), and counts."""
        middles = [low + (high - low + 1) // 2 for low, high in self.edges()]
        return np.array(middles) / NS_PER_US, np.array([count for _, count in self.counts], dtype=np.float64)


def _whole(value: object, key: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise MeasurementError(f"the histogram of latencies: {key} is not a whole number but {value!r:.40}")
    return value


def _pairs(record: Mapping[str, Any], key: str) -> Sequence[Sequence[Any]]:
    given = record[key]
    if not isinstance(given, (list, tuple)):
        raise MeasurementError(f"the histogram of latencies: {key} is not a list of pairs")
    for pair in given:
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise MeasurementError(f"the histogram of latencies: {pair!r:.40} of {key} is not a value and a count")
    return given


def _check(p: float) -> None:
    if not 0 <= p <= 100:
        raise UsageError(f"a percentile is 0 to 100, not {p:g}")


VERSION = "1.3"
LEGEND = '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"'
YEAR_S = 365 * 24 * 3600.0
_VERSION = re.compile(r"#\[Histogram log format version ([^\]]*)\]")
_TIME = re.compile(r"#\[(Start|Base)Time: *([^ \]]*)")
_TAG = re.compile(r"[^\s,]+")


@dataclass(frozen=True, slots=True)
class LoggedHistogram:
    """One line of a log.

    The tag is what it belongs to, such as ``load-0.5``, without spaces and commas; ``start_s`` counts from the epoch.
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


def hlog_text(histograms: Sequence[LoggedHistogram]) -> str:
    """A log of HdrHistogram, version 1.3. The same histograms give the same text."""
    if not histograms:
        raise UsageError("there is no histogram to write")
    start_s = min(entry.start_s for entry in histograms)
    date = datetime.fromtimestamp(start_s, UTC).isoformat(" ", "milliseconds")
    lines = [
        f"#[Histogram log format version {VERSION}]",
        f"#[StartTime: {start_s:.3f} (seconds since epoch), {date}]",
        LEGEND,
    ]
    for entry in histograms:
        tag = f"Tag={entry.tag}," if entry.tag else ""
        times = f"{entry.start_s:.3f},{entry.duration_s:.3f},{entry.histogram.max_us / 1e3:.6f}"
        lines.append(f"{tag}{times},{encode(entry.histogram.layout, entry.histogram.counts)}")
    return "\n".join(lines) + "\n"


def parse_hlog(text: str, file: str) -> tuple[LoggedHistogram, ...]:
    """The histograms of a log of HdrHistogram, versions 1.0 to 1.3, in nanoseconds, in the order of the file.

    Where the log has times since its start, they become times since the epoch, by the rule of HdrHistogram: BaseTime is
    added if there is one, else StartTime if a time lies more than a year before it.
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
    """Read the ``histogram.csv`` of MoonGen; latencies are rounded to nanoseconds.

    Raises:
        DataError: the file cannot be read or a line is damaged, negative or beyond 10 s; with file and line.
        MeasurementError: there is no sample in it; MoonGen writes an empty file where no probe came back.
    """
    latencies = parse_histogram(read_text(path), str(path))
    if not any(count for _, count in latencies):
        raise MeasurementError(NO_SAMPLE, location=Location(str(path)), hint="did any frame come back?")
    values_ns, counts = zip(*latencies, strict=True)
    return LatencyHistogram.from_values(values_ns, counts)


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
