"""Cost models as JSON text: numbers in full precision, keys in a fixed order, damage reported by file and key."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from p4perf.errors import UsageError
from p4perf.models.component import Reader
from p4perf.models.program.costs import Calibration, CheckedProgram, CostModel, TableCache
from p4perf.models.program.curves import ComponentCosts, CostPoint
from p4perf.models.program.graph import Size
from p4perf.models.program.interactions import COEFFICIENTS, Form, FormName

SCHEMA = "p4perf/cost-model"
SCHEMA_VERSION = 1


def cost_model_json(model: CostModel) -> str:
    """A model as JSON text; :func:`read_cost_model` reads exactly the same model back.

    Raises:
        UsageError: a number of it is not finite.
    """
    record: dict[str, Any] = {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "target": model.target,
        "frame_bytes": model.frame_bytes,
        "machine": dict(model.machine),
        "provenance": dict(model.provenance),
        "baseline": {
            "cycles": model.baseline,
            "error": model.baseline_error,
            **({} if model.baseline_code_bytes is None else {"code_bytes": model.baseline_code_bytes}),
        },
        "components": [
            {
                "name": costs.name,
                "defaults": dict(costs.defaults),
                "points": [{k: v for k, v in asdict(point).items() if v is not None} for point in costs.points],
            }
            for costs in model.components.values()
        ],
        "composition": {
            "form": model.form.name,
            "coefficients": list(model.form.coefficients),
            "density": model.form.density,
            "spacings": list(model.form.spacings),
            "excess": list(model.form.excess),
        },
        "cache": asdict(model.cache) if model.cache else None,
        "calibration": asdict(model.calibration) if model.calibration else None,
        "checked": [
            {
                "components": [{name: dict(parameters)} for name, parameters in each.components],
                "measured": each.measured,
                "predicted": each.predicted,
            }
            for each in model.checked
        ],
        "primitives": None if model.primitives is None else dict(model.primitives),
        "translated": None if model.translated is None else dict(model.translated),
    }
    try:
        return json.dumps(record, indent=1, allow_nan=False, ensure_ascii=False) + "\n"
    except ValueError as exc:
        raise UsageError(f"the cost model of {model.target} cannot be stored: a number in it is not finite") from exc


_SIZES = ("memory_bytes", "code_bytes")
"""Of a point where they were measured."""


def read_cost_model(text: str, *, file: str = "<cost model>") -> CostModel:
    """Read a cost model.

    Raises:
        DataError: the text is no cost model of a known version; names the file and the key.
    """
    root = Reader.of_text(text, file)
    if root.raw("schema") != SCHEMA:
        root.fail("schema", f"must be {SCHEMA!r}: this is no cost model", "p4perf learn makes one")
    if root.raw("schema_version") != SCHEMA_VERSION:
        version = root.raw("schema_version")
        root.fail("schema_version", f"must be {SCHEMA_VERSION}, not {version!r}", "upgrade p4perf to read newer models")
    baseline = root.child("baseline")
    components = [_component(child) for child in root.children("components")]
    calibration: Calibration | None = root.value("calibration", root.raw("calibration"), Calibration | None)
    if calibration is not None:
        _positive(root.child("calibration"), "cycles")
    return CostModel(
        target=root.string("target"),
        baseline=_positive(baseline, "cycles"),
        baseline_error=baseline.number("error"),
        baseline_code_bytes=baseline.number("code_bytes") if "code_bytes" in baseline.data else None,
        components={each.name: each for each in components},
        form=_form(root.child("composition")),
        cache=None if root.raw("cache") is None else _cache(root.child("cache")),
        calibration=calibration,
        checked=tuple(_checked(child) for child in root.children("checked")),
        frame_bytes=root.integer("frame_bytes"),
        machine={key: root.child("machine").string(key) for key in root.child("machine").data},
        provenance=root.child("provenance").data,
        primitives=None if root.raw("primitives") is None else root.child("primitives").data,
        translated=None if root.data.get("translated") is None else root.child("translated").data,
    )


def _positive(reader: Reader, key: str) -> float:
    value = reader.number(key)
    if value <= 0:
        reader.fail(key, f"must be above 0, not {value}")
    return value


def _parameters(reader: Reader) -> dict[str, Size]:
    found: dict[str, Size] = {}
    for key, value in reader.data.items():
        if not isinstance(value, str | bool):
            number = reader.number(key)
            found[key] = value if isinstance(value, int) else number
        else:
            found[key] = value
    return found


def _component(reader: Reader) -> ComponentCosts:
    points = tuple(
        point.read(CostPoint, *_SIZES, parameters=_parameters(point.child("parameters")))
        for point in reader.children("points")
    )
    if not points:
        reader.fail("points", "must not be empty")
    for n, point in enumerate(points):
        if set(point.parameters) != set(points[0].parameters):
            reader.fail(f"points[{n}].parameters", "must name the same parameters as the first point")
    return ComponentCosts(reader.string("name"), _parameters(reader.child("defaults")), points)


def _form(reader: Reader) -> Form:
    form = reader.read(Form, name=reader.value("form", reader.raw("form"), FormName))
    if len(form.coefficients) not in (0, COEFFICIENTS):
        reader.fail("coefficients", f"must be {COEFFICIENTS} numbers or none, not {len(form.coefficients)}")
    if len(form.spacings) != len(form.excess):
        reader.fail("excess", "must be as long as spacings")
    _positive(reader, "density")
    return form


def _cache(reader: Reader) -> TableCache:
    for key in ("size_bytes", "inside", "beyond", "near_bytes"):
        _positive(reader, key)
    return reader.read(TableCache, "layout")


def _checked(reader: Reader) -> CheckedProgram:
    components = []
    for n, child in enumerate(reader.children("components")):
        if len(child.data) != 1:
            reader.fail(f"components[{n}]", "must be one component with its parameters")
        name = next(iter(child.data))
        components.append((name, _parameters(child.child(name))))
    return CheckedProgram(tuple(components), _positive(reader, "measured"), reader.number("predicted"))
