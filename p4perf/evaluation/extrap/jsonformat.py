"""The JSON formats of Extra-P.

The newer form is nested, the older one refers to its parts by numbers::

    {"parameters": ["p"], "measurements": {"main": {"time": [{"point": [4], "values": [8.3, 8.0]}]}}}

    {"parameters": [{"id": 1, "name": "p"}], "metrics": [...], "callpaths": [...],
     "coordinates": [{"id": 1, "parameter_value_pairs": [{"parameter_id": 1, "parameter_value": 4}]}],
     "measurements": [{"coordinate_id": 1, "callpath_id": 1, "metric_id": 1, "value": 8.3}]}

In JSON Lines every line is a measurement; callpath and metric can be left out::

    {"params": {"p": 4}, "callpath": "main", "metric": "time", "value": [8.3, 8.0]}
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, FiniteFloat, ValidationError

from p4perf.errors import DataError, Location
from p4perf.evaluation.extrap.series import Experiment
from p4perf.results.files import parse_object

T = TypeVar("T", bound=BaseModel)
Name = Annotated[str, Field(min_length=1)]
Numbers = Annotated[list[FiniteFloat], Field(min_length=1)]


def _as_list(value: object) -> object:
    return value if isinstance(value, list) else [value]


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
    value: Annotated[Numbers, BeforeValidator(_as_list)]
    callpath: str = ""
    metric: str = ""


def parse_json(text: str, file: str) -> Experiment:
    """Read JSON in either form, or JSON Lines.

    It is JSON Lines if the first line is an object by itself that has ``params``, or that another one follows.

    Args:
        text: contents of the file.
        file: its name, for messages.

    Raises:
        DataError: it is none of them; with file, line (of JSON Lines, or where the syntax is broken) and key.
    """
    lines = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    first: dict[str, Any] = {}
    with contextlib.suppress(DataError):
        first = parse_object(lines[0][1], Path(file))
    if first and ("params" in first or len(lines) > 1):
        return _lines(lines, file)
    data = parse_object(text, Path(file))
    if "measurements" not in data:
        raise DataError("is no experiment of Extra-P: there are no measurements", location=Location(file))
    if "callpaths" in data or "coordinates" in data:
        return _numbered(_checked(_Numbered, data, file), file)
    return _nested(_checked(_Nested, data, file), file)


def _nested(data: _Nested, file: str) -> Experiment:
    experiment = Experiment(file, _unique(data.parameters, file))
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


def _numbered(data: _Numbered, file: str) -> Experiment:
    parameters = sorted(data.parameters, key=lambda p: p.id)
    experiment = Experiment(file, _unique([p.name for p in parameters], file))
    points = {}
    for index, coordinate in enumerate(data.coordinates):
        values = {pair.parameter_id: pair.parameter_value for pair in coordinate.parameter_value_pairs}
        if set(values) != {p.id for p in parameters}:
            raise DataError(
                "must give a value to each parameter",
                location=Location(file),
                key=f"coordinates[{index}].parameter_value_pairs",
            )
        points[coordinate.id] = tuple(values[p.id] for p in parameters)
    callpaths = {part.id: part.name for part in data.callpaths}
    metrics = {part.id: part.name for part in data.metrics}
    for index, entry in enumerate(data.measurements):
        for key, known in (("coordinate_id", points), ("callpath_id", callpaths), ("metric_id", metrics)):
            if getattr(entry, key) not in known:
                raise DataError(
                    f"there is none with the id {getattr(entry, key)}",
                    location=Location(file),
                    key=f"measurements[{index}].{key}",
                )
        experiment.add(
            callpaths[entry.callpath_id], metrics[entry.metric_id], points[entry.coordinate_id], [entry.value]
        )
    return experiment


def _lines(lines: Sequence[tuple[int, str]], file: str) -> Experiment:
    experiment = Experiment(file, ())
    for number, text in lines:
        entry = _checked(_Line, parse_object(text, Path(file), line=number), file, number)
        if not experiment.parameters:
            experiment.parameters = tuple(entry.params)
        if set(entry.params) != set(experiment.parameters):
            raise DataError(
                f"names {', '.join(entry.params)} where the first line names {', '.join(experiment.parameters)}",
                location=Location(file, number),
                key="params",
            )
        point = tuple(entry.params[name] for name in experiment.parameters)
        experiment.add(entry.callpath, entry.metric, point, entry.value)
    return experiment


def _unique(names: Sequence[str], file: str) -> tuple[str, ...]:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"{twice!r} is there twice", location=Location(file), key="parameters")
    return tuple(names)


_MESSAGES = {
    "missing": "is missing",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "int_type": "must be a whole number",
    "string_type": "must be text",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "too_short": "must not be empty",
    "string_too_short": "must not be empty",
}


def _checked(kind: type[T], data: dict[str, Any], file: str, line: int | None = None) -> T:
    try:
        return kind.model_validate(data)
    except ValidationError as exc:
        error = exc.errors(include_url=False)[0]
        key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error["loc"]).removeprefix(".")
        raise DataError(
            _MESSAGES.get(error["type"], error["msg"]), location=Location(file, line), key=key or None
        ) from exc
