"""Records: values, JSON, schema and documentation come from one declaration."""

import math
import runpy
from dataclasses import dataclass, field
from pathlib import Path

import jsonschema
import pytest

from p4perf.records import Interval, Record, Scalar, doc, interval, json_schema, mismatch, spread


class Inner(Record):
    name: str = doc("name of it", of="label()")


class Outer(Record):
    """All kinds of keys."""

    path: str = doc("a path")
    cost: Interval | None = interval("cost", "cycles", of="inside.cost")
    values: dict[str, Scalar] = spread("variable", "value of a swept variable")
    items: tuple[Inner, ...] = doc("")
    one: Inner | None = doc("the first; null without any")
    rate: float | None = doc("rate", "Mpps")
    note: str = doc("a note", optional=True)


@dataclass
class Source:
    @dataclass
    class Item:
        text: str

        def label(self):
            return self.text

    @dataclass
    class Inside:
        cost: object

    inside: object = None
    path: Path = Path("a/b")
    values: dict = field(default_factory=lambda: {"entries": 10})
    items: list = field(default_factory=lambda: [Source.Item("x")])
    one: object = None
    rate: float = math.inf


def test_a_record_reads_an_object_and_keeps_the_order():
    found = Outer.read(Source(inside=Source.Inside(Interval(value=1.5, low=None, high=2.0)))).as_dict()
    assert list(found) == ["path", "cost", "cost_low", "cost_high", "entries", "items", "one", "rate"]
    assert (found["path"], found["items"], found["rate"]) == ("a/b", [{"name": "x"}], None)
    assert (found["cost"], found["cost_low"], found["cost_high"]) == (1.5, None, 2.0)


def test_nothing_beyond_none_is_none():
    found = Outer.read(Source())
    assert found.cost is None
    assert found.as_dict()["cost_low"] is None


def test_given_values_come_first_and_optional_ones_may_be_absent():
    assert Outer.read(Source(), note="n", one=Source.Item("y")).as_dict()["one"] == {"name": "y"}
    assert "note" not in Outer.read(Source()).as_dict()


@pytest.mark.parametrize("values", [{}, {"name": "a", "nmae": "b"}])
def test_keys_are_checked(values):
    with pytest.raises(TypeError, match=r"name|nmae"):
        Inner(**values)


def test_a_record_is_immutable_and_a_missing_attribute_is_an_error():
    with pytest.raises(AttributeError, match="immutable"):
        Inner(name="a").name = "b"
    with pytest.raises(AttributeError):
        Inner.read(Source())


def test_the_schema_accepts_the_value_and_refuses_others():
    schema = json_schema(Outer)
    jsonschema.Draft202012Validator.check_schema(schema)
    value = Outer.read(Source()).as_dict()
    jsonschema.validate(value, schema)
    assert schema["properties"]["cost"] == {"description": "cost", "unit": "cycles", "type": ["number", "null"]}
    assert "note" not in schema["required"]
    for wrong in ({"path": 3}, {"rate": "fast"}, {"items": [{}]}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(value | wrong, schema)


def test_a_value_that_was_read_is_compared_with_its_declaration():
    value = Outer.read(Source(one=Source.Item("y"))).as_dict()
    assert mismatch(Outer, value) == ""
    assert mismatch(Outer, {"rate": None, "other": 3}) == "", "a key may be of another version"
    for wrong, found in {
        "path": (3, "path is not string"),
        "cost_low": ("x", "cost_low is not number or null"),
        "items": ([{"name": "a"}, []], "items[1] is not object"),
        "one": ({"name": None}, "one.name is not string"),
        "rate": (10**400, "rate is not number or null"),
        "note": (True, "note is not string"),
    }.items():
        given, text = found
        assert mismatch(Outer, value | {wrong: given}) == text
    assert mismatch(Outer, []) == "it is not object"


def test_the_documentation_has_every_key_with_its_place():
    reference = runpy.run_path(str(Path(__file__).parents[1] / "tools" / "reference.py"))
    rows = {row.key: (row.type, row.unit, row.meaning) for row in reference["key_table"](Outer)}
    assert rows["cost_high"] == ("number or null", "cycles", "upper end")
    assert rows["<variable>"] == ("scalar", "", "value of a swept variable")
    assert rows["items[].name"] == ("string", "", "name of it")
    assert rows["one"] == ("mapping or null", "", "the first; null without any")
    assert rows["note"][0] == "string, optional"
