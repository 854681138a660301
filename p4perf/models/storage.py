"""Component models as JSON, schema version 1."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, NoReturn, cast

from p4perf.errors import DataError, Location, UsageError
from p4perf.models.component import ComponentModel, Interval, Quantity, Scale, Uncertainty
from p4perf.models.fitting import Fitting, PiecewiseFitting
from p4perf.models.templates import Template, find_template

SCHEMA = "p4perf/component-model"
SCHEMA_VERSION = 1


def model_to_json(model: ComponentModel) -> str:
    """A model as JSON text, keys in a fixed order, numbers in full precision."""
    parts = [
        {
            "template": part.template.name,
            "parameters": dict(zip(part.template.parameter_names, part.parameters, strict=True)),
            "origin": part.origin,
            "start": part.start,
            "end": part.end,
            "points": part.points,
            "error": part.error,
            "rank": part.rank,
            "formula": part.text(x=model.x.name, y=model.y.name),
        }
        for part in model.fitting.parts
    ]
    data: dict[str, Any] = {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "name": model.name,
        "target": model.target,
        "x": asdict(model.x),
        "y": asdict(model.y),
        "error_metric": model.error,
        "fitting": {
            "error": model.fitting.error,
            "rank": model.fitting.rank,
            "splits": list(model.fitting.splits),
            "split_x": list(model.fitting.split_x),
            "parts": parts,
        },
        "uncertainty": asdict(model.uncertainty) if model.uncertainty else None,
        "provenance": dict(model.provenance),
    }
    return json.dumps(data, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def model_from_json(text: str, *, file: str, templates: Sequence[Template] | None) -> ComponentModel:
    """Read what :func:`model_to_json` wrote.

    Raises:
        DataError: as in :meth:`ComponentModel.from_json`.
    """
    try:
        data = json.loads(text)
    except json.JSONDecodeError as exc:
        raise DataError(f"not JSON: {exc.msg}", location=Location(file, exc.lineno, exc.colno)) from exc
    root = _Reader(data, file)
    if root.raw("schema") != SCHEMA:
        root.fail("schema", f"must be {SCHEMA!r}: this is no component model")
    if root.raw("schema_version") != SCHEMA_VERSION:
        version = root.raw("schema_version")
        root.fail("schema_version", f"must be {SCHEMA_VERSION}, not {version!r}", "upgrade p4perf to read newer models")
    fit = root.child("fitting")
    parts = tuple(_part(part, templates) for part in fit.children("parts"))
    uncertainty = None if root.raw("uncertainty") is None else _uncertainty(root.child("uncertainty"))
    provenance = root.raw("provenance")
    if not isinstance(provenance, dict):
        root.fail("provenance", "must be an object")
    try:
        return ComponentModel(
            name=root.string("name"),
            target=root.string("target"),
            x=_quantity(root.child("x")),
            y=_quantity(root.child("y")),
            fitting=PiecewiseFitting(parts, fit.integers("splits"), fit.number("error"), fit.number("rank")),
            error=root.string("error_metric"),
            uncertainty=uncertainty,
            provenance=provenance,
        )
    except UsageError as exc:
        raise DataError(exc.message, location=Location(file)) from exc


class _Reader:
    """Typed access to a JSON object; every failure names the file and the dotted key."""

    def __init__(self, data: object, file: str, path: str = "") -> None:
        self.file, self.path = file, path
        if not isinstance(data, dict):
            raise DataError("must be an object", location=Location(file), key=path.rstrip(".") or None)
        self.data: Mapping[str, object] = data

    def fail(self, key: str, message: str, hint: str | None = None) -> NoReturn:
        raise DataError(message, location=Location(self.file), key=self.path + key, hint=hint)

    def raw(self, key: str) -> object:
        if key not in self.data:
            self.fail(key, "is missing")
        return self.data[key]

    def child(self, key: str) -> _Reader:
        return _Reader(self.raw(key), self.file, f"{self.path}{key}.")

    def items(self, key: str) -> Sequence[object]:
        value = self.raw(key)
        if not isinstance(value, list):
            self.fail(key, "must be a list")
        return cast("list[object]", value)

    def children(self, key: str) -> list[_Reader]:
        return [_Reader(item, self.file, f"{self.path}{key}[{i}].") for i, item in enumerate(self.items(key))]

    def string(self, key: str) -> str:
        value = self.raw(key)
        if not isinstance(value, str):
            self.fail(key, f"must be text, not {value!r}")
        return value

    def to_number(self, key: str, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            self.fail(key, f"must be a finite number, not {value!r}")
        return float(value)

    def number(self, key: str) -> float:
        return self.to_number(key, self.raw(key))

    def to_integer(self, key: str, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            self.fail(key, f"must be a whole number, not {value!r}")
        return value

    def integer(self, key: str) -> int:
        return self.to_integer(key, self.raw(key))

    def numbers(self, key: str) -> tuple[float, ...]:
        return tuple(self.to_number(f"{key}[{i}]", v) for i, v in enumerate(self.items(key)))

    def integers(self, key: str) -> tuple[int, ...]:
        return tuple(self.to_integer(f"{key}[{i}]", v) for i, v in enumerate(self.items(key)))


def _quantity(reader: _Reader) -> Quantity:
    scale = reader.string("scale")
    if scale not in ("linear", "log"):
        reader.fail("scale", f"must be linear or log, not {scale!r}")
    return Quantity(reader.string("name"), reader.string("unit"), cast("Scale", scale))


def _part(reader: _Reader, templates: Sequence[Template] | None) -> Fitting:
    name = reader.string("template")
    try:
        template = find_template(name, templates)
    except UsageError as exc:
        reader.fail("template", exc.message, exc.hint)
    values = reader.child("parameters")
    unknown = set(values.data) - set(template.parameter_names)
    if unknown:
        reader.fail(f"parameters.{min(unknown)}", f"is no parameter of {name}")
    return Fitting(
        template=template,
        parameters=tuple(values.number(p) for p in template.parameter_names),
        start=reader.number("start"),
        end=reader.number("end"),
        error=reader.number("error"),
        points=reader.integer("points"),
        origin=reader.number("origin"),
        rank=reader.number("rank") if "rank" in reader.data else template.rank,
    )


def _interval(reader: _Reader) -> Interval:
    return Interval(reader.number("low"), reader.number("high"))


def _uncertainty(reader: _Reader) -> Uncertainty:
    parameters = []
    for i, row in enumerate(reader.items("parameters")):
        if not isinstance(row, list):
            reader.fail(f"parameters[{i}]", "must be a list")
        items = cast("list[object]", row)
        path = f"{reader.path}parameters[{i}]"
        parameters.append(tuple(_interval(_Reader(v, reader.file, f"{path}[{k}].")) for k, v in enumerate(items)))
    x, low, high = (reader.numbers(key) for key in ("x", "low", "high"))
    if not len(x) == len(low) == len(high):
        reader.fail("x", "must be as long as low and high")
    return Uncertainty(
        level=reader.number("level"),
        parameters=tuple(parameters),
        splits=tuple(_interval(item) for item in reader.children("splits")),
        x=x,
        low=low,
        high=high,
        resamples=reader.integer("resamples"),
        seed=reader.integer("seed"),
    )
