"""Cost models: what they say of constructs, and how they are stored."""

import json
import math
from dataclasses import replace

import pytest
from support.cost_models import small_model

from p4perf.errors import DataError, UsageError
from p4perf.models.program.costs import CostModel
from p4perf.models.program.costs_storage import cost_model_json, read_cost_model
from p4perf.models.program.graph import construct
from p4perf.models.program.memory import MeasuredTable

MODEL = CostModel("dpdk-c", 20.0, machine={"cpu_model": "a"}, provenance={"runs": ["x"], "n": 1.5})
FULL = replace(
    MODEL,
    tables=(MeasuredTable({"entries": 10, "match_kind": "exact"}, 1234.5),),
    frame_bytes=1024,
    primitives={"version": 1, "prices": [1.5]},
)


def test_without_prices_nothing_is_known():
    met = [(construct("hash", algorithm="crc32", bytes=4), 2.0)]
    breakdown = MODEL.breakdown(met)
    assert (breakdown.cycles.value, breakdown.charges[0].basis) == (20.0, "unknown")


@pytest.mark.parametrize("model", [MODEL, FULL, small_model()])
def test_models_load_back_exactly(model):
    text = cost_model_json(model)
    assert read_cost_model(text) == model
    assert cost_model_json(read_cost_model(text)) == text


@pytest.mark.parametrize(
    ("path", "value", "key"),
    [
        (("schema",), "p4perf/component-model", "schema"),
        (("schema_version",), 1, "schema_version"),
        (("baseline",), -1, "baseline"),
        (("tables", 0, "memory_bytes"), "x", "tables[0].memory_bytes"),
        (("tables", 0, "parameters"), [], "tables[0].parameters"),
        (("frame_bytes",), 1.5, "frame_bytes"),
        (("primitives",), None, "primitives"),
    ],
)
def test_damage_is_named(path, value, key):
    record = json.loads(cost_model_json(FULL))
    inner = record
    for part in path[:-1]:
        inner = inner[part]
    inner[path[-1]] = value
    with pytest.raises(DataError) as failure:
        read_cost_model(json.dumps(record), file="m.json")
    assert failure.value.location.file == "m.json"
    assert failure.value.key == key


def test_what_is_no_json_is_said():
    with pytest.raises(DataError, match="not JSON"):
        read_cost_model("{", file="m.json")


def test_infinity_is_not_stored():
    with pytest.raises(UsageError, match="not finite"):
        cost_model_json(replace(MODEL, baseline=math.inf))
