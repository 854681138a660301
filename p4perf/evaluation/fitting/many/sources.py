"""Many series from files: CSV in long format, or every region and metric of a file of Extra-P."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Protocol

from p4perf.errors import DataError, Location, P4PerfError, UsageError
from p4perf.evaluation.fitting.datafiles import cell_number, column_index, csv_rows, data_format
from p4perf.evaluation.fitting.extrap import read_extrap
from p4perf.evaluation.fitting.many import NamedSamples
from p4perf.models.component import Scale
from p4perf.results.files import reading
from p4perf.results.table import Samples
from p4perf.specs.messages import nearest

MOST_SERIES = 1_000_000
"""More series are refused: they are told apart by a wrong column."""
HEAD_CHARACTERS = 65536
"""Length of the beginning of a file by which its format is recognised."""
FILE = "file"
"""The label that names the file of a series."""


class SeriesSource(Protocol):
    """Series that can be counted and gone through several times."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[NamedSamples]:
        """The series, always in the same order."""
        ...


class _Rows:
    """Samples of one series while a file is read; the first thing that is wrong with one of them."""

    __slots__ = ("error", "x", "y")

    def __init__(self) -> None:
        self.x, self.y = array("d"), array("d")
        self.error: P4PerfError | None = None

    def samples(self, x: str, y: str) -> Samples | P4PerfError:
        if self.error is not None:
            return self.error
        return Samples.from_arrays(self.x, self.y, x_name=x, y_name=y)


class LongTable:
    """A CSV file with a header line and a series for every combination of the columns ``by``; without any, one series.

    Lines of a series may stand anywhere in the file; several with the same x are repetitions. A cell that is no number
    spoils its series only.
    """

    def __init__(
        self, path: Path, x: str, y: str, by: Sequence[str] = (), *, x_scale: Scale = "linear", most: int = MOST_SERIES
    ) -> None:
        for name in by:
            if name in (x, y):
                raise UsageError(f"the column {name!r} holds numbers of the series and cannot distinguish series")
        self._path, self._x, self._y, self._by, self._scale = path, x, y, tuple(by), x_scale
        self._series: dict[tuple[str, ...], _Rows] = {}
        try:
            with reading(path):
                self._read(most)
        except UnicodeDecodeError as error:
            raise DataError("is not text in UTF-8", location=Location(str(path))) from error
        if not self._series:
            raise DataError("has no rows", location=Location(str(path)))

    def __len__(self) -> int:
        return len(self._series)

    def __iter__(self) -> Iterator[NamedSamples]:
        for values, rows in self._series.items():
            labels = {_file_label(self._by): str(self._path), **dict(zip(self._by, values, strict=True))}
            name = " / ".join(values) or self._path.stem
            yield NamedSamples(labels, rows.samples(self._x, self._y), name=name, x_scale=self._scale)

    def _read(self, most: int) -> None:
        with self._path.open(encoding="utf-8-sig", newline="") as file:
            columns: list[int] | None = None
            for line, cells in csv_rows(file, str(self._path)):
                if columns is None:
                    columns = self._columns(cells, Location(str(self._path), line))
                else:
                    self._add(cells, columns, line, most)

    def _columns(self, cells: Sequence[str], place: Location) -> list[int]:
        names = [cell.strip() for cell in cells]
        wanted = (("--x", self._x), ("--y", self._y), *(("--by", name) for name in self._by))
        return [column_index(names, name, place, option) for option, name in wanted]

    def _add(self, cells: Sequence[str], columns: Sequence[int], line: int, most: int) -> None:
        x, y, *by = columns
        if by and max(by) >= len(cells):
            raise DataError("has fewer cells than the header", location=Location(str(self._path), line))
        key = tuple(cells[index].strip() for index in by)
        rows = self._series.get(key)
        if rows is None:
            if len(self._series) >= most:
                hint = f"do {', '.join(self._by)} really distinguish series?" if self._by else None
                raise UsageError(f"{self._path}:{line}: there are more than {MOST_SERIES:,} series", hint=hint)
            rows = self._series[key] = _Rows()
        if rows.error is None:
            place = Location(str(self._path), line)
            try:
                at, value = (
                    cell_number(cells[index] if index < len(cells) else "", name, place)
                    for index, name in ((x, self._x), (y, self._y))
                )
            except DataError as error:
                rows.error = error
                return
            rows.x.append(at)
            rows.y.append(value)


def _file_label(others: Sequence[str]) -> str:
    """Name of the label of the file, other than those of the columns."""
    return next(name for name in chain((FILE,), (f"{FILE}_{k}" for k in count(2))) if name not in others)


def extrap_series(
    path: Path, x: str | None = None, metric: str | None = None, *, x_scale: Scale = "linear"
) -> list[NamedSamples]:
    """Every region and metric of a file of Extra-P over ``x``, by default the parameter that varies."""
    found = []
    series = read_extrap(path, x=x)
    names = [s.samples.y_name for s in series]
    if metric is not None and metric not in names:
        raise UsageError(f"{path} has no metric {metric!r}", hint=nearest(metric, names, "metrics"))
    for one in series:
        named = {"region": one.region, "metric": one.samples.y_name}
        if metric in (None, one.samples.y_name):
            name = " / ".join(text for text in named.values() if text)
            found.append(NamedSamples({FILE: str(path), **named}, one.samples, name=name, x_scale=x_scale))
    return found


def open_series(
    path: Path,
    x: str | None = None,
    y: str | None = None,
    by: Sequence[str] = (),
    *,
    x_scale: Scale = "linear",
    most: int = MOST_SERIES,
) -> SeriesSource:
    """The series of a CSV file, or of one of Extra-P in its text, JSON or JSON Lines format; recognised by content.

    Raises:
        UsageError: a name is missing or unknown, or there are too many series.
        DataError: the file cannot be read; with file and line.
    """
    if _format(path) == "csv":
        if x is None or y is None:
            raise UsageError(f"{path} is a CSV file: name the columns of x and y", hint="--x COLUMN --y COLUMN")
        return LongTable(path, x, y, by, x_scale=x_scale, most=most)
    if set(by) - {"region", "metric"}:
        what = f"{path} is a file of Extra-P: its series are its regions and metrics"
        raise UsageError(what, hint="leave out --by, or write --by region,metric")
    found = extrap_series(path, x, y, x_scale=x_scale)
    if len(found) > most:
        raise UsageError(f"{path}: there are more than {MOST_SERIES:,} series")
    return found


def _format(path: Path) -> str:
    with reading(path), path.open(encoding="utf-8-sig", errors="replace") as file:
        return data_format(file.read(HEAD_CHARACTERS))
