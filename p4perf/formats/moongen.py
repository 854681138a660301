"""Output of generated MoonGen scripts: lines for p4perf, counters, histograms.

The CSV has a row for each second and counter. The last row of a counter that was finished is no sample: it is the
mean of the rows from the second on, with the totals (libmoon, stats.lua). There is no mark; its value
identifies it. A run that was killed has no such row; the mean of the rows from the second on is taken then as well.

MoonGen ends with 0 though a task of it failed, and continues without links, so success is what the script says at its
very end (:data:`COMPLETION_MARKER`).
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeVar

from p4perf.errors import DataError, Location, MeasurementError

TOKEN = "P4PERF"  # noqa: S105 - not a password
"""Start of every line that a script prints for p4perf."""

COMPLETION_MARKER = f"{TOKEN} COMPLETE"
"""The line that a script prints when everything it measured is written. MoonGen's exit code does not tell that."""

HEADER = "Time,Device,Direction,PacketRate,Mbit,MbitWithFraming,TotalPackets,TotalBytes"
_COLUMNS = HEADER.split(",")
T = TypeVar("T")

_SAME = 1e-9
"""Relative difference up to which the last row is the mean of those before it; in real files it is some 1e-14."""

_LINE = re.compile(
    r"\[(?P<device>[^\]\n]{1,200})\] (?P<direction>RX|TX): (?P<rate>\S+) "
    r"(?:\(StdDev \S+\) )?Mpps, .*?(?:, total (?P<total>\d+) packets.*)?"
)
FINAL = "(StdDev"


@dataclass(frozen=True, slots=True)
class DeviceCounter:
    """What one counter of one device counted: mean packet rate without the first second, and packets in total.

    A rate is None of too few rows. A counter that was killed is not ``finished``. The line is that of the last row.
    """

    device: str
    direction: str
    rate_mpps: float | None
    packets: int | None
    finished: bool
    line: int


@dataclass(frozen=True, slots=True)
class _Row:
    device: str
    direction: str
    rate: float
    packets: int | None
    line: int
    final: bool = False


def is_counter_csv(text: str) -> bool:
    """Whether a text begins as the CSV of MoonGen."""
    return text.lstrip().startswith(HEADER)


def is_counter_log(text: str) -> bool:
    """Whether a text has lines that MoonGen prints of its counters."""
    return any(_LINE.fullmatch(line.strip()) for line in text.splitlines())


def parse_counters(text: str, file: str) -> tuple[DeviceCounter, ...]:
    """The counters of a CSV or of printed lines, those of received packets first; none of an empty file.

    MoonGen writes an empty file if it was killed before its first row.

    Raises:
        DataError: a row is damaged; with file and line.
    """
    if not text.strip():
        return ()
    rows = list(_csv_rows(text, file) if is_counter_csv(text) else _log_rows(text, file))
    key = lambda row: (row.direction, row.device)  # noqa: E731
    return tuple(_counter(list(group)) for _, group in groupby(sorted(rows, key=key), key=key))


def _csv_rows(text: str, file: str) -> Iterator[_Row]:
    lines = text.splitlines()
    reader = csv.reader(lines)
    for cells in _cells(reader, file):
        where = Location(file, reader.line_num)
        if not cells or cells == _COLUMNS:
            continue
        if len(cells) != len(_COLUMNS):
            raise DataError(f"has {len(cells)} cells, but the header names {len(_COLUMNS)}", location=where)
        row = dict(zip(_COLUMNS, (cell.strip() for cell in cells), strict=True))
        if row["Direction"] not in ("RX", "TX"):
            raise DataError(f"is {row['Direction']!r:.40}, not RX or TX", location=where, key="Direction")
        rate = _number(row["PacketRate"], where, "PacketRate")
        packets = _number(row["TotalPackets"], where, "TotalPackets")
        whole = int(packets) if math.isfinite(packets) else None
        yield _Row(row["Device"], row["Direction"], rate, whole, reader.line_num)


def _cells(reader: Any, file: str) -> Iterator[list[str]]:
    try:
        yield from reader
    except csv.Error as error:
        raise DataError(f"is not CSV: {error}", location=Location(file, reader.line_num)) from error


def _log_rows(text: str, file: str) -> Iterator[_Row]:
    for number, line in enumerate(text.splitlines(), 1):
        if match := _LINE.fullmatch(line.strip()):
            rate = _number(match["rate"], Location(file, number), "rate")
            total = None if match["total"] is None else int(match["total"])
            yield _Row(match["device"], match["direction"], rate, total, number, FINAL in line)


def _number(text: str, where: Location, key: str) -> float:
    """A number of Lua: ``nan`` and ``inf`` occur."""
    try:
        value = float(text)
    except ValueError as error:
        raise DataError(f"{text!r:.40} is not a number", location=where, key=key) from error
    if value < 0 and math.isfinite(value):
        raise DataError(f"{text} is negative", location=where, key=key)
    return value


def _counter(rows: list[_Row]) -> DeviceCounter:
    """The last row is the mean of the rows from the second on, or the ``nan`` of too few of them, if it is finished."""
    last = rows[-1]
    mean = _mean(rows[1:-1])
    finished = last.final or math.isnan(last.rate) or math.isclose(last.rate, mean, rel_tol=_SAME)
    rate = last.rate if finished else _mean(rows[1:])
    return DeviceCounter(
        last.device, last.direction, rate if math.isfinite(rate) else None, last.packets, finished, last.line
    )


def _mean(rows: list[_Row]) -> float:
    return math.fsum(row.rate for row in rows) / len(rows) if rows else math.nan


def parse_histogram(text: str, file: str) -> list[tuple[float, int]]:
    """The lines ``latency,count`` of a ``histogram.csv`` [ns], which has no header.

    Latencies may have decimals: hardware clocks tick in fractions of nanoseconds.

    Raises:
        DataError: a line is damaged or beyond 10 s; with file and line.
    """
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        match = _LATENCY.fullmatch(line.strip())
        if match is None:
            raise DataError(f"{line.strip()[:40]!r} is not latency,count", location=Location(file, number))
        if float(match[1]) > MAX_LATENCY_NS:
            raise DataError(f"a latency of {match[1]} ns is more than 10 s", location=Location(file, number))
        found.append((float(match[1]), int(match[2])))
    return found


_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_FATAL = re.compile(r"\[FATAL\]|Lua error")
_DOWN = re.compile(r"Device \d+ \(.*\) is DOWN")
_PAIR = re.compile(r"([a-z_]+)=(\S+)")
_LATENCY = re.compile(r"([0-9]+(?:\.[0-9]*)?(?:[eE]\+?[0-9]{1,2})?),([0-9]{1,18})")
MAX_LATENCY_NS = 10_000_000_000
_TAIL = 3


@dataclass(frozen=True, slots=True)
class ScriptOutput:
    """What a script measured.

    Args:
        sent, received: packets in the measured time, probes among them, counted after they had drained.
        send_rate_mpps, receive_rate_mpps: means without the first and the last second [Mpps].
        probes_sent, probes_lost: of the measurement of latency; 0 without one.
        latencies_ns: latency in ns and how often it was seen, ascending; empty without one.
    """

    sent: int
    received: int
    send_rate_mpps: float
    receive_rate_mpps: float
    probes_sent: int = 0
    probes_lost: int = 0
    latencies_ns: tuple[tuple[float, int], ...] = ()


def without_colours(text: str) -> str:
    """A text without the codes by which terminals colour it."""
    return _ANSI.sub("", text)


def read_output(stdout: str, files: Mapping[str, str], status: int) -> ScriptOutput:
    """Read what a run of ``max-load.lua`` or ``latency.lua`` printed and wrote.

    Args:
        files: the texts of its files that are there, by name: ``*-tx.csv``, ``*-rx.csv``, ``histogram.csv``.

    Raises:
        MeasurementError: a task failed, a link is down, the script did not come to its end, or a file is missing,
            empty or damaged.
    """
    lines = [line.strip() for line in without_colours(stdout).splitlines() if line.strip()]
    for pattern, what in ((_FATAL, "MoonGen failed"), (_DOWN, "a link of MoonGen is down")):
        if found := next((line for line in lines if pattern.search(line)), None):
            raise MeasurementError(f"{what}: {found}")
    if COMPLETION_MARKER not in lines:
        said = " / ".join(lines[-_TAIL:]) or "no output"
        raise MeasurementError(f"MoonGen ended with status {status} before its script was complete: {said}")
    packets = _said(lines, "packets")
    histogram = files.get("histogram.csv", "")
    probes = _said(lines, "probes") if any(line.startswith(f"{TOKEN} probes ") for line in lines) else {}
    return ScriptOutput(
        sent=_whole(packets, "sent"),
        received=_whole(packets, "received"),
        send_rate_mpps=_rate(files, "tx"),
        receive_rate_mpps=_rate(files, "rx"),
        probes_sent=_whole(probes, "sent") if probes else 0,
        probes_lost=_whole(probes, "lost") if probes else 0,
        latencies_ns=tuple(sorted(_parsed(parse_histogram, histogram, "histogram.csv"))) if probes else (),
    )


def _said(lines: list[str], what: str) -> dict[str, str]:
    """The values of the line ``P4PERF what key=value ...``."""
    start = f"{TOKEN} {what} "
    line = next((line for line in lines if line.startswith(start)), None)
    if line is None:
        raise MeasurementError(f"MoonGen did not say its {what}")
    return dict(_PAIR.findall(line.removeprefix(start)))


def _whole(said: Mapping[str, str], key: str) -> int:
    text = said.get(key, "")
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise MeasurementError(f"MoonGen said {key}={text[:40]!r}, which is not a number of packets")
    return int(text)


def _parsed(parse: Callable[[str, str], T], text: str, name: str) -> T:
    try:
        return parse(text, name)
    except DataError as error:
        raise MeasurementError(f"{error.location}: {error.message}") from error


def _rate(files: Mapping[str, str], direction: str) -> float:
    name = next((name for name in files if name.endswith(f"-{direction}.csv")), None)
    if name is None:
        raise MeasurementError(f"MoonGen left no file of its {direction} counter")
    counters = _parsed(parse_counters, without_colours(files[name]), name)
    if len(counters) != 1:
        what = "is empty: MoonGen ended before its first row" if not counters else "has several counters"
        raise MeasurementError(f"{name} {what}")
    if (rate_mpps := counters[0].rate_mpps) is None:
        raise MeasurementError(f"the {direction} counter of MoonGen has too few rows for a mean rate")
    return rate_mpps
