"""Any CSV file, with the columns that the user names.

Wide: a column for each metric. Long: a column of values, and one of the names of metrics. Comma, semicolon and tab
separate; the header line decides which.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from typing_extensions import override

from p4perf.errors import DataError, Location, UsageError
from p4perf.evaluation.fitting.datafiles import column_index, csv_rows, finite_number
from p4perf.evaluation.imports import base
from p4perf.specs.metrics import metric_named

_UNIT = re.compile(r".*[\[(]([^\])]{1,30})[\])]\s*")


class CsvImporter(base.Importer):
    name: ClassVar[str] = "csv"
    summary: ClassVar[str] = "any CSV file: columns of variables, metrics, repetitions and units, by name"

    @override
    def recognises(self, path: Path) -> bool:
        head = next((line for line in base.head_of(path).splitlines() if line.strip()), "")
        cells = re.split(r"[,;\t]", head)
        first = base.fact(cells[0])
        return len(cells) > 1 and not head.lstrip().startswith(("{", "[")) and isinstance(first, str) and first != ""

    @override
    def read(self, path: Path, options: base.ImportOptions) -> base.Reading:
        told, number, _ = options.facts_of(path.name)
        table = _Table(path, options)
        left_out: list[base.LeftOut] = []
        trials = []
        for line, cells in table.lines():
            values = tuple(table.values(cells, line, left_out))
            if values:
                facts = {**told, **table.facts(cells, line)}
                trials.append(base.ImportedTrial(facts, values, base.Place(path, line), number))
        return base.Reading(tuple(trials), tuple(left_out), (path,))


@dataclass(frozen=True, slots=True)
class _Column:
    index: int
    name: str
    metric: str
    unit: str


class _Table:
    def __init__(self, path: Path, options: base.ImportOptions) -> None:
        self._path, self._options = path, options
        rows = csv_rows(base.read_plain_text(path).splitlines(keepends=True), str(path))
        first = next(rows, None)
        if first is None:
            raise DataError("names no columns", location=Location(str(path)), hint="the first line must name them")
        self._head_line, names = first
        self._names = [name.strip() for name in names]
        self._rest = rows
        self._facts = {name: self._index(name, option) for name, option in self._fact_names()}
        self._long = bool(options.value)
        if self._long:
            self._value = self._index(options.value, "--value")
            if not options.metric_column and len(options.metrics) != 1:
                raise UsageError("--value: say which metric the values are", hint="--metric METRIC, or --metric-column")
        self._metric = self._index(options.metric_column, "--metric-column") if options.metric_column else None
        self._unit = self._index(options.unit_column, "--unit-column") if options.unit_column else None
        self._columns = () if self._long else tuple(self._wide())

    def _fact_names(self) -> Iterator[tuple[str, str]]:
        options = self._options
        told = options.facts_of(self._path.name)[0]
        if not options.variables and not options.settings and not told:
            hint = f"--x NAME=COLUMN; columns: {', '.join(self._names)}"
            raise UsageError(f"{self._path} is a CSV file: name the column of the variable", hint=hint)
        renamed = {named.name: named.wanted for named in options.variables}
        for named in options.variables:
            if named.wanted not in told:
                yield named.wanted, "--x"
        if options.repetition:
            yield options.repetition, "--repetition"
        for name in options.only:
            if name not in told and name not in options.settings:
                yield renamed.get(name, name), "--only"

    def _index(self, name: str, option: str) -> int:
        return column_index(self._names, name, Location(str(self._path), self._head_line), option)

    def _wide(self) -> Iterator[_Column]:
        options = self._options
        asked = options.metrics or tuple(base.Named(name) for name in self._names if metric_named(name) is not None)
        if not asked:
            hint = f"--metric METRIC=COLUMN; columns: {', '.join(self._names)}"
            raise UsageError(f"{self._path} has no column with the name of a metric", hint=hint)
        for named in asked:
            index = self._index(named.wanted, "--metric")
            yield _Column(index, named.wanted, named.name, self._unit_of(named.name, named.wanted))

    def _unit_of(self, metric: str, column: str) -> str:
        """The unit that the user or the header names; empty for the only one that a metric has."""
        options = self._options
        if self._unit is not None:
            return ""
        bracket = _UNIT.fullmatch(column)
        unit = options.units.get(metric) or options.units.get("") or (bracket[1] if bracket else "")
        if not unit and metric_named(metric) is not None and base.needs_unit(metric):
            hint = f"--unit {metric}=UNIT, or --unit-column"
            raise UsageError(f"{self._path}: in which unit is {metric}?", hint=hint)
        return unit

    def lines(self) -> Iterator[tuple[int, Sequence[str]]]:
        empty = True
        for line, cells in self._rest:
            empty = False
            if len(cells) != len(self._names):
                what = f"has {len(cells)} cells, but the header names {len(self._names)}"
                raise DataError(what, location=Location(str(self._path), line))
            yield line, [cell.strip() for cell in cells]
        if empty:
            raise DataError("has a header but no rows", location=Location(str(self._path)))

    def facts(self, cells: Sequence[str], line: int) -> Mapping[str, base.Fact]:
        found = {name: base.fact(cells[index]) for name, index in self._facts.items()}
        for name, value in found.items():
            if value == "":
                raise base.Place(self._path, line, name).error("is empty")
            if isinstance(value, str) and value.lower().lstrip("+-") in ("nan", "inf", "infinity"):
                raise base.Place(self._path, line, name).error(f"{value!r} is not a finite number")
        return found

    def values(self, cells: Sequence[str], line: int, left_out: list[base.LeftOut]) -> Iterator[base.ImportedValue]:
        """The values of a line; empty cells of metrics are left out."""
        for column in (self._of_long(cells, line),) if self._long else self._columns:
            place = base.Place(self._path, line, self._names[column.index])
            unit = column.unit if self._unit is None else cells[self._unit]
            if cells[column.index] == "":
                left_out.append(base.LeftOut(str(place), "the cell is empty"))
                continue
            why = "" if metric_named(column.metric) else "is not a metric of p4perf"
            metric = "" if why else column.metric
            yield base.ImportedValue(column.name, _number(cells[column.index], place), unit, place, metric, why)

    def _of_long(self, cells: Sequence[str], line: int) -> _Column:
        if self._metric is None:
            named = self._options.metrics[0]
            return _Column(self._value, named.wanted, named.name, self._unit_of(named.name, self._options.value))
        name = cells[self._metric]
        if not name:
            raise base.Place(self._path, line, self._options.metric_column).error("is empty")
        metric = next((n.name for n in self._options.metrics if n.wanted == name), name)
        return _Column(self._value, name, metric, self._unit_of(metric, self._options.value))


def _number(text: str, place: base.Place) -> float:
    if math.isnan(value := finite_number(text)):
        raise place.error(f"{text!r:.60} is not a finite number")
    return value
