from importlib.resources import files

import pytest
import yaml
from jsonschema import Draft202012Validator

from p4perf.specs import json_schema, load_experiment
from p4perf.specs.loader import BASE, catalogue_names, read_catalogue
from p4perf.specs.schema import json_schema_text

VALIDATOR = Draft202012Validator(json_schema())


def test_the_shipped_schema_is_the_generated_one():
    assert files("p4perf.specs").joinpath("schemas", "experiment.json").read_text() == json_schema_text()


def test_the_schema_is_a_schema():
    Draft202012Validator.check_schema(json_schema())


@pytest.mark.parametrize("name", catalogue_names())
def test_the_catalogue_is_valid(name):
    VALIDATOR.validate(read_catalogue(name).plain())


@pytest.mark.parametrize("name", [name for name in catalogue_names() if not name.startswith(BASE)])
def test_resolved_specs_are_valid(name):
    VALIDATOR.validate(yaml.safe_load(load_experiment(name).resolved_yaml()))


GOOD = [
    {"name": "a/b", "program": {"component": ["a", "b"], "parameters": {"a": {"x": "$y"}}}},
    {"traffic": {"frame_size": "64 B", "offered_load": {"rate_mpps": "0.5 Mpps"}}},
    {"traffic": {"frame_size": "$size", "offered_load": {"fraction_of_max": [0.1]}}},
    {"sweep": {"a": [1, "x", True], "b": {"log": [1, 10]}, "zip": ["a", "b"], "filter": ["$a < $b"]}},
    {"sweep": {"a": {"linear": [0, 1], "step": 0.1}, "zip": [["a", "b"]], "multiplex": {"v": {"k": 1, "l": [1]}}}},
]

BAD = [
    {"nam": "a"},
    {"name": "../x"},
    {"traffic": {"frame_size": 10}},
    {"traffic": {"frame_sise": 64}},
    {"metrics": {"collect": ["nothing"]}},
    {"sweep": {"a": 5}},
    {"sweep": {"a": {"log": [1, 10], "range": [1, 10]}}},
    {"trials": {"repetitions": 0}},
    {"model": {"max_segments": 7}},
    {"spec_version": 2},
]


@pytest.mark.parametrize("spec", GOOD)
def test_what_editors_accept(spec):
    VALIDATOR.validate(spec)


@pytest.mark.parametrize("spec", BAD)
def test_what_editors_underline(spec):
    assert not VALIDATOR.is_valid(spec)


def test_every_key_is_described():
    def undescribed(part):
        return [key for key, value in part.get("properties", {}).items() if "description" not in value]

    schema = json_schema()
    assert {name: found for name, part in schema["$defs"].items() if (found := undescribed(part))} == {}
