"""Cost models as JSON text: numbers in full precision, keys in a fixed order, damage reported by file and key."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from p4perf.errors import UsageError
from p4perf.models.component import Reader
from p4perf.models.program.costs import BatchCycles, CostModel
from p4perf.models.program.graph import Size
from p4perf.models.program.memory import MeasuredTable

SCHEMA = "p4perf/cost-model"
SCHEMA_VERSION = 2


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
        "baseline": model.baseline,
        "batches": None if model.batches is None else asdict(model.batches),
        "tables": [asdict(table) for table in model.tables],
        "primitives": dict(model.primitives),
    }
    try:
        return json.dumps(record, indent=1, allow_nan=False, ensure_ascii=False) + "\n"
    except ValueError as exc:
        raise UsageError(f"the cost model of {model.target} cannot be stored: a number in it is not finite") from exc


def read_cost_model(text: str, *, file: str = "<cost model>") -> CostModel:
    """Read a cost model.

    Raises:
        DataError: the text is no cost model of a known version; names the file and the key.
    """
    root = Reader.of_text(text, file)
    if root.raw("schema") != SCHEMA:
        root.fail("schema", f"must be {SCHEMA!r}: this is not a cost model", "p4perf learn makes one")
    if root.raw("schema_version") != SCHEMA_VERSION:
        version = root.raw("schema_version")
        root.fail("schema_version", f"must be {SCHEMA_VERSION}, not {version!r}", "p4perf learn makes a new model")
    return CostModel(
        target=root.string("target"),
        baseline=_positive(root, "baseline"),
        tables=tuple(
            child.read(MeasuredTable, parameters=_parameters(child.child("parameters")))
            for child in root.children("tables")
        ),
        batches=None if root.data.get("batches") is None else root.child("batches").read(BatchCycles),
        frame_bytes=root.integer("frame_bytes"),
        machine={key: root.child("machine").string(key) for key in root.child("machine").data},
        provenance=root.child("provenance").data,
        primitives=root.child("primitives").data,
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
