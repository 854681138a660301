"""The page of operators says what the code has."""

import json

from docs_pages import DOCS, bare, tables

from p4perf.programs.operators import OPERATORS
from p4perf.specs import METRICS
from p4perf.specs.loader import list_catalogue

PAGE = DOCS / "operators.md"


def table(*head):
    (found,) = [t for t in tables(PAGE) if t.head[: len(head)] == head]
    return [tuple(map(bare, row)) for row in found.rows]


def test_the_operators():
    assert [name for name, *_ in table("operator", "what it does")] == list(OPERATORS)


def test_the_experiments():
    named = {name for name, _ in table("experiment", "what it is")}
    assert named == {e.name for e in list_catalogue() if e.name.startswith("operator/")}


def test_the_metrics():
    named = {name for row in table("in the table of a run") for name in row[0].split(", ")}
    assert named <= set(METRICS), json.dumps(sorted(named - set(METRICS)))
