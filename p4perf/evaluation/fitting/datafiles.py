"""Samples from a file of measurements: one door for CSV and for the formats of Extra-P."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, zip_longest
from pathlib import Path
from typing import Literal

from p4perf.errors import DataError, Location, UsageError
from p4perf.evaluation.fitting.extrap import parse_extrap, select_series
from p4perf.results.files import read_text
from p4perf.results.table import Samples
from p4perf.specs.messages import nearest


def csv_rows(lines: Iterable[str], file: str) -> Iterator[tuple[int, list[str]]]:
    """Line numbers and cells of CSV without blank lines; the first line decides between comma, semicolon and tab."""
    source, head = iter(lines), [""]
    while not head[-1].strip():
        line = next(source, None)
        if line is None:
            raise _empty(file)
        head.append(line)
    reader = csv.reader(chain(head[1:], source), delimiter=max(",;\t", key=head[-1].count), strict=True)
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield reader.line_num, cells
    except csv.Error as error:
        raise DataError(f"is not CSV: {error}", location=Location(file, reader.line_num)) from error


def _empty(file: str) -> DataError:
    return DataError("the file is empty", location=Location(file), hint="the first line must name the columns")


def csv_records(text: str, file: str) -> tuple[list[str], Location, Iterator[tuple[Location, Mapping[str, str]]]]:
    """The columns of CSV, their place, and place and cells of each line; a cell that is not there is empty."""
    rows = csv_rows(text.splitlines(keepends=True), file)
    head, columns = next(rows, (0, []))
    if not columns:
        raise _empty(file)
    names = [name.strip() for name in columns]

    def records() -> Iterator[tuple[Location, Mapping[str, str]]]:
        for line, cells in rows:
            if any(cell.strip() for cell in cells[len(names) :]):
                what = f"has {len(cells)} cells, but the header names {len(names)} columns"
                raise DataError(
                    what, location=Location(file, line), hint="write decimals with a point, and name every column"
                )
            given = (cell.strip() for cell in cells[: len(names)])
            yield Location(file, line), dict(zip_longest(names, given, fillvalue=""))

    return names, Location(file, head), records()


def column_index(names: Sequence[str], wanted: str, place: object, option: str) -> int:
    """The index of a column that an option names; a UsageError unless there is just one."""
    if names.count(wanted) == 1:
        return names.index(wanted)
    what, hint = _wrong_column(names, wanted)
    raise UsageError(f"{place}: {what} ({option})", hint=hint)


def _wrong_column(names: Sequence[str], wanted: str) -> tuple[str, str]:
    """What is wrong with a column that is not there, or is there twice, and what to do."""
    what = f"there are {names.count(wanted)} columns" if wanted in names else "there is no column"
    hint = nearest(wanted, names, "columns")
    if len(names) == 1 and wanted in names[0].split():
        hint = "the header is a single column: separate columns by commas, semicolons or tabs, not by spaces"
    return f"{what} {wanted!r}", hint


def read_csv(path: Path, x: str, y: str) -> Samples:
    """Read two columns of a CSV file in UTF-8, see :func:`parse_csv`."""
    return parse_csv(read_text(path).removeprefix("\ufeff"), str(path), x, y)


def parse_csv(text: str, file: str, x: str, y: str) -> Samples:
    """Two columns of CSV with a header line. Several lines with the same x are repetitions.

    Comma, semicolon and tab are recognised as separators, by the header line. Blank lines are skipped.
    """
    names, head, records = csv_records(text, file)
    for wanted in (x, y):
        if names.count(wanted) != 1:
            what, hint = _wrong_column(names, wanted)
            raise DataError(what, location=head, hint=hint)
    pairs = [(cell_number(cells[x], x, place), cell_number(cells[y], y, place)) for place, cells in records]
    if not pairs:
        raise DataError("has a header but no rows", location=Location(file))
    xs, ys = zip(*pairs, strict=True)
    return Samples.from_arrays(xs, ys, x_name=x, y_name=y)


def finite_number(text: str) -> float:
    """The number that a text is; NaN if it is none, or not finite."""
    try:
        value = float(text)
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan


def cell_number(cell: str, name: str, place: Location) -> float:
    """The number in a cell of a column."""
    if not (cell := cell.strip()):
        raise DataError(f"column {name!r} is empty", location=place)
    if math.isnan(value := finite_number(cell)):
        hint = "write decimals with a point" if "," in cell else None
        raise DataError(f"column {name!r}: {cell!r} is not a finite number", location=place, hint=hint)
    return value


DataFormat = Literal["csv", "extrap-text", "extrap-json"]
_SECTION = re.compile(r"PARAMETER\s|(POINTS|METRIC|REGION|DATA) ")


def data_format(text: str) -> DataFormat:
    """The format of a text, by its content; what is nothing else is CSV.

    JSON begins with a brace. The text format of Extra-P begins, after comments (``#``), with a section; the name of a
    column of a CSV file is followed by a comma, a semicolon or a tab.
    """
    lines = (line.strip() for line in text.split("\n"))
    first = next((line for line in lines if line and not line.startswith("#")), "")
    if text.lstrip().startswith("{"):
        return "extrap-json"
    return "extrap-text" if _SECTION.match(first) else "csv"


def read_series(path: Path, x: str | None = None, y: str | None = None, *, region: str | None = None) -> Samples:
    """Read one series of samples from a CSV file, or from the text, JSON or JSON Lines format of Extra-P.

    Args:
        x: the column of abscissae of a CSV file; the parameter of an Extra-P file, by default the one that varies.
        y: the column of samples of a CSV file; the metric of an Extra-P file, if it has several.
        region: the region or callpath of an Extra-P file, if it has several.

    Raises:
        UsageError: a name is missing or unknown.
        DataError: the file cannot be read, or has no samples; with file, line and key.
    """
    text = read_text(path).removeprefix("\ufeff")
    if data_format(text) != "csv":
        return select_series(parse_extrap(text, str(path), x=x), region=region, metric=y).samples
    if region is not None:
        raise UsageError(f"{path} is a CSV file and has no regions", hint="regions are for files of Extra-P")
    if x is None or y is None:
        columns = ", ".join(csv_records(text, str(path))[0])
        raise UsageError(
            f"{path} is a CSV file: name the columns of x and y", hint=f"--x COLUMN --y COLUMN; columns: {columns}"
        )
    return parse_csv(text, str(path), x, y)
