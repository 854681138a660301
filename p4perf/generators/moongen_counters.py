"""The counters of MoonGen: its CSV, and the lines that it prints.

The CSV has a row for each second and counter. The last row of a counter that was finished is no sample: it is the
mean of the rows from the second on, with the totals (libmoon, stats.lua). There is no mark, so it is told by its value.
A run that was killed has no such row; the mean of the rows from the second on is taken then as well.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from p4perf.errors import DataError, Location

HEADER = "Time,Device,Direction,PacketRate,Mbit,MbitWithFraming,TotalPackets,TotalBytes"
_COLUMNS = HEADER.split(",")
_SAME = 1e-9
"""Relative difference up to which the last row is the mean of those before it; in real files it is some 1e-14."""

_LINE = re.compile(
    r"\[(?P<device>[^\]\n]{1,200})\] (?P<direction>RX|TX): (?P<rate>\S+) "
    r"(?:\(StdDev \S+\) )?Mpps, .*?(?:, total (?P<total>\d+) packets.*)?"
)
FINAL = "(StdDev"


@dataclass(frozen=True, slots=True)
class Counter:
    """What one counter of one device counted.

    Args:
        device: its name, such as ``Device: id=0``.
        direction: ``RX`` or ``TX``.
        rate_mpps: mean packet rate without the first second [Mpps]; None if there are too few rows for one.
        packets: packets in total; None if that is not told.
        finished: whether the counter was finished, and not killed.
        line: line of the last row, from 1.
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


def parse_counters(text: str, file: str) -> tuple[Counter, ...]:
    """The counters of a CSV or of printed lines, those of received packets first; none of an empty file.

    MoonGen writes an empty file if it was killed before its first row.

    Args:
        text: the file, without colours.
        file: its name, for messages.

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
    for cells in reader:
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


def _counter(rows: list[_Row]) -> Counter:
    last = rows[-1]
    samples = rows[:-1] if last.final or _is_mean(rows) else rows
    finished = len(samples) < len(rows)
    rates = [row.rate for row in samples[1:]]
    mean = math.fsum(rates) / len(rates) if rates else math.nan
    rate = last.rate if finished else mean
    return Counter(
        last.device, last.direction, rate if math.isfinite(rate) else None, last.packets, finished, last.line
    )


def _is_mean(rows: list[_Row]) -> bool:
    """Whether the last row is the mean of the rows from the second on, or the ``nan`` of too few of them."""
    *samples, last = rows
    rates = [row.rate for row in samples[1:]]
    if not rates:
        return math.isnan(last.rate)
    mean = math.fsum(rates) / len(rates)
    return math.isnan(last.rate) or math.isclose(last.rate, mean, rel_tol=_SAME)
