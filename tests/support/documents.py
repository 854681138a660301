"""The JSON that commands print, checked against the schemas that p4perf gives out."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import jsonschema

from p4perf.cli.inspect import documents
from p4perf.records import json_schema


def check_document(text: str) -> None:
    """Raise a ValidationError for a document that its schema does not describe to the last key."""
    found = json.loads(text)
    _validator(found["kind"]).validate(found)


@cache
def _validator(kind: str) -> Any:
    return jsonschema.Draft202012Validator(_strict(json_schema(documents()[kind])))


def _strict(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema that refuses keys which it does not name."""
    if "properties" in schema:
        nested = {name: _strict(each) for name, each in schema["properties"].items()}
        return {"additionalProperties": False} | schema | {"properties": nested}
    return schema | {"items": _strict(schema["items"])} if "items" in schema else schema
