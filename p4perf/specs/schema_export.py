"""The JSON Schema of a spec file, for editors: made from the pydantic models."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from p4perf.specs.schema import ExperimentSpec

SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema"

PARTIAL = ("ExperimentSpec", "ProgramSpec", "SourceSpec")
"""Parts of which a file may leave out keys that it inherits; the loader says what is missing in the end."""


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a spec file."""
    schema = ExperimentSpec.model_json_schema()
    for name, part in {"ExperimentSpec": schema, **schema.get("$defs", {})}.items():
        if name in PARTIAL:
            part.pop("required", None)
    return {"$schema": SCHEMA_DIALECT, **schema, "title": "p4perf experiment"}


def json_schema_text() -> str:
    """The schema as the text of the file that ships with p4perf."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def shipped_schema_text() -> str:
    """The text of the schema file that ships with p4perf; a test holds it equal to :func:`json_schema_text`."""
    return files("p4perf.specs").joinpath("schemas", "experiment.json").read_text(encoding="utf-8")
