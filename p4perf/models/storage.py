"""The pieces of a component model as JSON values, and typed access to what was read."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, cast

from p4perf.errors import DataError, Location, UsageError
from p4perf.models.fitting import Fitting, PiecewiseFitting
from p4perf.models.quantities import Interval, Quantity, Scale, Uncertainty
from p4perf.models.templates import Template, find_template


def fitting_record(fitting: PiecewiseFitting, x: str, y: str) -> dict[str, Any]:
    """A curve as JSON values, keys in a fixed order; ``x`` and ``y`` are names for its formulas."""
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
            "formula": part.text(x=x, y=y),
        }
        for part in fitting.parts
    ]
    return {
        "error": fitting.error,
        "rank": fitting.rank,
        "splits": list(fitting.splits),
        "split_x": list(fitting.split_x),
        "parts": parts,
    }


class Reader:
    """Typed access to a JSON object; every failure names the file and the dotted key."""

    def __init__(self, data: object, file: str, path: str = "") -> None:
        self.file, self.path = file, path
        if not isinstance(data, dict):
            raise DataError("must be an object", location=Location(file), key=path.rstrip(".") or None)
        self.data: Mapping[str, object] = data

    @classmethod
    def of_text(cls, text: str, file: str) -> Reader:
        """The object in a JSON text."""
        try:
            return cls(json.loads(text), file)
        except json.JSONDecodeError as exc:
            raise DataError(f"not JSON: {exc.msg}", location=Location(file, exc.lineno, exc.colno)) from exc
        except (ValueError, RecursionError) as exc:
            raise DataError(f"not a model: {exc}", location=Location(file)) from exc

    def fail(self, key: str, message: str, hint: str | None = None) -> NoReturn:
        """Raise the error of a key."""
        raise DataError(message, location=Location(self.file), key=self.path + key, hint=hint)

    def raw(self, key: str) -> object:
        """The value of a key that must be there."""
        if key not in self.data:
            self.fail(key, "is missing")
        return self.data[key]

    def child(self, key: str) -> Reader:
        """An object."""
        return Reader(self.raw(key), self.file, f"{self.path}{key}.")

    def items(self, key: str) -> Sequence[object]:
        """A list."""
        value = self.raw(key)
        if not isinstance(value, list):
            self.fail(key, "must be a list")
        return cast("list[object]", value)

    def children(self, key: str) -> list[Reader]:
        """A list of objects."""
        return [Reader(item, self.file, f"{self.path}{key}[{i}].") for i, item in enumerate(self.items(key))]

    def string(self, key: str) -> str:
        """A text."""
        value = self.raw(key)
        if not isinstance(value, str):
            self.fail(key, f"must be text, not {value!r}")
        return value

    def to_number(self, key: str, value: object) -> float:
        """A finite number."""
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= sys.float_info.max:
            self.fail(key, f"must be a finite number, not {value!r}")
        return float(value)

    def number(self, key: str) -> float:
        """A finite number."""
        return self.to_number(key, self.raw(key))

    def to_integer(self, key: str, value: object) -> int:
        """A whole number."""
        if isinstance(value, bool) or not isinstance(value, int):
            self.fail(key, f"must be a whole number, not {value!r}")
        return value

    def integer(self, key: str) -> int:
        """A whole number."""
        return self.to_integer(key, self.raw(key))

    def numbers(self, key: str) -> tuple[float, ...]:
        """A list of finite numbers."""
        return tuple(self.to_number(f"{key}[{i}]", v) for i, v in enumerate(self.items(key)))

    def integers(self, key: str) -> tuple[int, ...]:
        """A list of whole numbers."""
        return tuple(self.to_integer(f"{key}[{i}]", v) for i, v in enumerate(self.items(key)))


def read_quantity(reader: Reader) -> Quantity:
    """Name, unit and scale of an axis."""
    scale = reader.string("scale")
    if scale not in ("linear", "log"):
        reader.fail("scale", f"must be linear or log, not {scale!r}")
    return Quantity(reader.string("name"), reader.string("unit"), cast("Scale", scale))


def _part(reader: Reader, templates: Sequence[Template] | None) -> Fitting:
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


def read_fitting(reader: Reader, templates: Sequence[Template] | None) -> PiecewiseFitting:
    """The curve that :func:`fitting_record` wrote.

    Raises:
        UsageError: its parts do not belong together.
    """
    parts = tuple(_part(part, templates) for part in reader.children("parts"))
    return PiecewiseFitting(parts, reader.integers("splits"), reader.number("error"), reader.number("rank"))


def _interval(reader: Reader) -> Interval:
    return Interval(reader.number("low"), reader.number("high"))


def read_uncertainty(reader: Reader) -> Uncertainty:
    """The intervals of a curve."""
    parameters = []
    for i, row in enumerate(reader.items("parameters")):
        if not isinstance(row, list):
            reader.fail(f"parameters[{i}]", "must be a list")
        items = cast("list[object]", row)
        path = f"{reader.path}parameters[{i}]"
        parameters.append(tuple(_interval(Reader(v, reader.file, f"{path}[{k}].")) for k, v in enumerate(items)))
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
