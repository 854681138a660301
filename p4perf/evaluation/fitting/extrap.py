"""Measurements in the input formats of Extra-P (https://github.com/extra-p/extrap), read and written.

Read are JSON, nested or (older) with numbers that refer to its parts, JSON Lines, and the text format, which is written
as well. Not read are what only profilers write (Cube), and what only Extra-P itself does (``.extra-p``, Extra-P 3).

    {"parameters": ["p"], "measurements": {"main": {"time": [{"point": [4], "values": [8.3, 8.0]}]}}}

    {"parameters": [{"id": 1, "name": "p"}], "metrics": [...], "callpaths": [...],
     "coordinates": [{"id": 1, "parameter_value_pairs": [{"parameter_id": 1, "parameter_value": 4}]}],
     "measurements": [{"coordinate_id": 1, "callpath_id": 1, "metric_id": 1, "value": 8.3}]}

    {"params": {"p": 4}, "callpath": "main", "metric": "time", "value": [8.3, 8.0]}

In the text format ``PARAMETER`` and ``POINTS`` add up, ``METRIC`` and ``REGION`` hold until the next, and below either
there is one ``DATA`` line for each point, with its repetitions. Coordinates of several parameters stand in brackets.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, FiniteFloat, ValidationError

from p4perf.errors import DataError, Location, UsageError
from p4perf.results.files import parse_object, read_text
from p4perf.results.table import Samples
from p4perf.specs.messages import describe, nearest

Point = tuple[float, ...]
VALUE = "value"
"""Name of a metric that the file does not name."""


@dataclass(frozen=True)
class ExtrapSeries:
    """One metric of one region over one parameter, without a unit: Extra-P knows none.

    ``constants`` are the other parameters, which did not vary. Names that the file leaves out are empty.
    """

    region: str
    metric: str
    samples: Samples
    constants: tuple[tuple[str, float], ...] = ()

    def label(self) -> str:
        named = [f"{noun} {name!r}" for noun, name in (("region", self.region), ("metric", self.metric)) if name]
        return ", ".join(named) or "the only series"


@dataclass
class ExtrapExperiment:
    """Repetitions by region and metric, then by point, in the order of the file."""

    file: str
    parameters: tuple[str, ...]
    values: dict[tuple[str, str], dict[Point, list[float]]] = field(default_factory=dict)

    def add(self, region: str, metric: str, point: Point, values: Sequence[float]) -> None:
        """Repetitions at a point; they come after those that are there."""
        self.values.setdefault((region, metric), {}).setdefault(point, []).extend(values)

    def series(self, x: str | None = None) -> tuple[ExtrapSeries, ...]:
        """All series over a parameter, by default the one that varies.

        Raises:
            UsageError: there is no parameter of that name.
            DataError: there are no measurements, or another parameter varies as well.
        """
        if x is not None and x not in self.parameters:
            hint = nearest(x, self.parameters, "parameters")
            raise UsageError(f"{self.file} has no parameter {x!r}", hint=hint)
        if not self.values:
            raise DataError("has no measurements", location=Location(self.file))
        return tuple(self._one(region, metric, points, x) for (region, metric), points in self.values.items())

    def _one(self, region: str, metric: str, points: dict[Point, list[float]], x: str | None) -> ExtrapSeries:
        columns = dict(zip(self.parameters, zip(*points, strict=True), strict=True))
        varying = [name for name, column in columns.items() if len(set(column)) > 1]
        name = x or next(iter(varying), self.parameters[0])
        others = [other for other in varying if other != name]
        if others:
            both = ", ".join(dict.fromkeys([name, *others]))
            raise DataError(
                f"several parameters vary: {both}; one curve describes one of them",
                location=Location(self.file),
                key=".".join(part for part in (region, metric) if part) or None,
                hint="put the points with one value of all parameters but one into a file of their own",
            )
        pairs = [(at, value) for at, values in zip(columns[name], points.values(), strict=True) for value in values]
        samples = Samples.from_arrays(
            [at for at, _ in pairs], [value for _, value in pairs], x_name=name, y_name=metric or VALUE
        )
        constants = tuple((other, column[0]) for other, column in columns.items() if other != name)
        return ExtrapSeries(region, metric, samples, constants)


def select_series(
    series: Sequence[ExtrapSeries], *, region: str | None = None, metric: str | None = None
) -> ExtrapSeries:
    """The series of a region and a metric; a name can be left out where it leaves no choice."""
    found = list(series)
    for noun, wanted, attribute in (("region", region, "region"), ("metric", metric, "samples.y_name")):
        names = list(map(attrgetter(attribute), found))
        if wanted is not None and wanted not in names:
            raise UsageError(f"there is no {noun} {wanted!r}", hint=nearest(wanted, names, f"{noun}s"))
        found = [one for one, name in zip(found, names, strict=True) if wanted in (None, name)]
    if len(found) == 1:
        return found[0]
    regions, metrics = (
        list(dict.fromkeys(names)) for names in zip(*((s.region, s.metric) for s in found), strict=True)
    )
    choices = [(noun, names) for noun, names in (("region", regions), ("metric", metrics)) if len(names) > 1]
    said = "; ".join(f"{noun}s: {', '.join(repr(n) for n in names)}" for noun, names in choices)
    raise UsageError(f"there are {len(found)} series: name {' and '.join(noun for noun, _ in choices)}", hint=said)


T = TypeVar("T", bound=BaseModel)
Name = Annotated[str, Field(min_length=1)]
Numbers = Annotated[list[FiniteFloat], Field(min_length=1)]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")


class _Values(_Part):
    point: Numbers
    values: Numbers


class _Nested(_Part):
    parameters: Annotated[list[Name], Field(min_length=1)]
    measurements: dict[str, dict[str, list[_Values]]]


class _Named(_Part):
    id: int
    name: Name


class _Pair(_Part):
    parameter_id: int
    parameter_value: FiniteFloat


class _Coordinate(_Part):
    id: int
    parameter_value_pairs: list[_Pair]


class _Reference(_Part):
    coordinate_id: int
    callpath_id: int
    metric_id: int
    value: FiniteFloat


class _Numbered(_Part):
    parameters: Annotated[list[_Named], Field(min_length=1)]
    callpaths: list[_Named]
    metrics: list[_Named]
    coordinates: list[_Coordinate]
    measurements: list[_Reference]


class _Line(_Part):
    params: Annotated[dict[Name, FiniteFloat], Field(min_length=1)]
    value: Annotated[Numbers, BeforeValidator(lambda value: value if isinstance(value, list) else [value])]
    callpath: str = ""
    metric: str = ""


def parse_json(text: str, file: str) -> ExtrapExperiment:
    """Read JSON in either form, or JSON Lines.

    It is JSON Lines if the first line is an object by itself that has ``params``, or that another one follows.
    """
    lines = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    first: dict[str, Any] = {}
    with contextlib.suppress(DataError):
        first = parse_object(lines[0][1], Path(file))
    if first and ("params" in first or len(lines) > 1):
        return _lines(lines, file)
    data = parse_object(text, Path(file))
    if "measurements" not in data:
        raise DataError("is not an experiment of Extra-P: there are no measurements", location=Location(file))
    if "callpaths" in data or "coordinates" in data:
        return _numbered(_checked(_Numbered, data, file), file)
    return _nested(_checked(_Nested, data, file), file)


def _nested(data: _Nested, file: str) -> ExtrapExperiment:
    experiment = ExtrapExperiment(file, _unique(data.parameters, file))
    for region, metrics in data.measurements.items():
        for metric, entries in metrics.items():
            for index, entry in enumerate(entries):
                if len(entry.point) != len(data.parameters):
                    names = ", ".join(data.parameters)
                    raise DataError(
                        f"must have one coordinate for each parameter ({names}), not {len(entry.point)}",
                        location=Location(file),
                        key=f"measurements.{region}.{metric}[{index}].point",
                    )
                experiment.add(region, metric, tuple(entry.point), entry.values)
    return experiment


def _numbered(data: _Numbered, file: str) -> ExtrapExperiment:
    parameters = sorted(data.parameters, key=lambda p: p.id)
    experiment = ExtrapExperiment(file, _unique([p.name for p in parameters], file))
    points = {}
    for index, coordinate in enumerate(data.coordinates):
        values = {pair.parameter_id: pair.parameter_value for pair in coordinate.parameter_value_pairs}
        if set(values) != {p.id for p in parameters}:
            message = "must give a value to each parameter"
            raise DataError(message, location=Location(file), key=f"coordinates[{index}].parameter_value_pairs")
        points[coordinate.id] = tuple(values[p.id] for p in parameters)
    callpaths = {part.id: part.name for part in data.callpaths}
    metrics = {part.id: part.name for part in data.metrics}
    for index, entry in enumerate(data.measurements):
        for key, known in (("coordinate_id", points), ("callpath_id", callpaths), ("metric_id", metrics)):
            if getattr(entry, key) not in known:
                message = f"there is none with the id {getattr(entry, key)}"
                raise DataError(message, location=Location(file), key=f"measurements[{index}].{key}")
        experiment.add(
            callpaths[entry.callpath_id], metrics[entry.metric_id], points[entry.coordinate_id], [entry.value]
        )
    return experiment


def _lines(lines: Sequence[tuple[int, str]], file: str) -> ExtrapExperiment:
    experiment = ExtrapExperiment(file, ())
    for number, text in lines:
        entry = _checked(_Line, parse_object(text, Path(file), line=number), file, number)
        if not experiment.parameters:
            experiment.parameters = tuple(entry.params)
        if set(entry.params) != set(experiment.parameters):
            message = f"names {', '.join(entry.params)} where the first line names {', '.join(experiment.parameters)}"
            raise DataError(message, location=Location(file, number), key="params")
        point = tuple(entry.params[name] for name in experiment.parameters)
        experiment.add(entry.callpath, entry.metric, point, entry.value)
    return experiment


def _unique(names: Sequence[str], file: str) -> tuple[str, ...]:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"duplicate {twice!r}", location=Location(file), key="parameters")
    return tuple(names)


def _checked(kind: type[T], data: dict[str, Any], file: str, line: int | None = None) -> T:
    try:
        return kind.model_validate(data)
    except ValidationError as exc:
        error = exc.errors(include_url=False)[0]
        path = error["loc"][:-1] if error["type"] == "missing" else error["loc"]
        key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")
        message, hint = describe(error)
        raise DataError(message, location=Location(file, line), key=key or None, hint=hint) from exc


_TOKEN = re.compile(r"[()]|[^\s()]+")


class _Reader:
    def __init__(self, file: str) -> None:
        self.experiment = ExtrapExperiment(file, ())
        self.points: list[Point] = []
        self.region = self.metric = ""
        self.filled = 0
        """DATA lines below the last REGION or METRIC."""
        self.opened = 0
        """Number of the line with the last REGION or METRIC."""
        self.number, self.text = 0, ""
        self.sections: dict[str, Callable[[int], None]] = {
            "PARAMETER": self.parameter,
            "POINTS": self.add_points,
            "METRIC": self.name,
            "REGION": self.name,
            "DATA": self.data,
        }

    def fail(
        self, message: str, column: int | None = None, *, key: str | None = None, hint: str | None = None
    ) -> NoReturn:
        place = Location(self.experiment.file, self.number, column, None if column is None else self.text)
        raise DataError(message, location=place, key=key, hint=hint)

    def take(self, number: int, text: str) -> None:
        self.number, self.text = number, text
        section = _TOKEN.search(text)
        if section is None or section[0].startswith("#"):
            return
        if section[0] not in self.sections:
            hint = nearest(section[0].upper(), self.sections, "sections")
            self.fail(f"unknown section {section[0]!r}", section.start() + 1, hint=hint)
        if not text[section.end() :].strip():
            self.fail("is empty", key=section[0])
        self.sections[section[0]](section.end())

    def parameter(self, start: int) -> None:
        if self.points:
            self.fail("must stand before all POINTS", key="PARAMETER")
        for name in self.text[start:].split():
            if name in self.experiment.parameters:
                self.fail(f"duplicate {name!r}", key="PARAMETER")
            self.experiment.parameters += (name,)

    def add_points(self, start: int) -> None:
        parameters = self.experiment.parameters
        if not parameters:
            self.fail("there must be a PARAMETER above", key="POINTS")
        if self.experiment.values:
            self.fail("must stand before all DATA", key="POINTS")
        depth, point = 0, []
        for token in _TOKEN.finditer(self.text, start):
            column = token.start() + 1
            if token[0] == "(":
                depth += 1
                if depth > 2:
                    self.fail("brackets are nested too deeply", column, key="POINTS")
                continue
            if token[0] == ")":
                depth -= 1
                if depth < 0:
                    self.fail("a bracket is closed that was not opened", column, key="POINTS")
            else:
                point.append(self.value(token[0], column, "POINTS"))
            if depth == 0:
                if len(point) != len(parameters):
                    names = ", ".join(parameters)
                    self.fail(
                        f"a point has one coordinate for each parameter ({names}), not {len(point)}",
                        column,
                        key="POINTS",
                    )
                self.points.append(tuple(point))
                point = []
        if depth:
            self.fail("a bracket is not closed", key="POINTS")

    def name(self, start: int) -> None:
        self.close()
        words = " ".join(self.text[start:].split())
        if self.text[:start].strip() == "REGION":
            self.region = words
        else:
            self.metric = words
        self.filled, self.opened = 0, self.number

    def data(self, start: int) -> None:
        if not self.points:
            self.fail("there must be POINTS above", key="DATA")
        if self.filled == len(self.points):
            self.fail(f"there are more DATA lines than points ({len(self.points)})", key="DATA")
        tokens = re.finditer(r"\S+", self.text[start:])
        values = [self.value(token[0], start + token.start() + 1, "DATA") for token in tokens]
        self.experiment.add(self.region, self.metric, self.points[self.filled], values)
        self.filled += 1

    def value(self, token: str, column: int, key: str) -> float:
        try:
            value = float(token)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            self.fail(f"{token!r} is not a finite number", column, key=key)
        return value

    def close(self) -> None:
        """See that the data below the last REGION or METRIC are complete; there may be none before the next one."""
        if 0 < self.filled < len(self.points):
            self.number = self.opened or self.number
            named = " ".join(name for name in (self.region, self.metric) if name)
            self.fail(f"{named}: {self.filled} DATA lines for {len(self.points)} points".removeprefix(": "))


def parse_text(text: str, file: str) -> ExtrapExperiment:
    """Read the text format; a DataError has file, line, column and section."""
    reader = _Reader(file)
    for number, line in enumerate(text.split("\n"), start=1):
        reader.take(number, line.rstrip("\r"))
    reader.close()
    return reader.experiment


def parse_extrap(text: str, file: str, *, x: str | None = None) -> tuple[ExtrapSeries, ...]:
    """Series of an Extra-P experiment in its text, JSON or JSON Lines format, recognised by the first character."""
    parse = parse_json if text.lstrip().startswith("{") else parse_text
    return parse(text, file).series(x)


def read_extrap(path: Path, *, x: str | None = None) -> tuple[ExtrapSeries, ...]:
    """Read all series of a file of Extra-P in its text, JSON or JSON Lines format, in the order of the file.

    Where one region and metric comes more than once, or one point, they are further repetitions.

    Raises:
        UsageError: there is no parameter x.
        DataError: the file cannot be read, and as in :func:`parse_extrap`.
    """
    return parse_extrap(read_text(path).removeprefix("\ufeff"), str(path), x=x)
