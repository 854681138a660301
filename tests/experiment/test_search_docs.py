"""What docs/load.md says of searches, goals and flags is what the code does."""

import dataclasses
import re
from pathlib import Path

from p4perf.experiment.search import End, Flag, Goal, LoadTrial
from p4perf.experiment.search.bisection import Bisection, Overload
from p4perf.experiment.search.mlrsearch import MLRSearch

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "load.md").read_text()


def rows(head):
    """Cells of the table whose first cell is this, without backticks."""
    table = PAGE[PAGE.index(f"| {head} |") :].partition("\n\n")[0]
    return [[cell.strip().replace("`", "") for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def test_fields_of_trials():
    assert [row[0] for row in rows("field of `LoadTrial`")] == [f.name for f in dataclasses.fields(LoadTrial)]


def test_fields_of_goals():
    fields = {
        f.name: "required" if f.default is dataclasses.MISSING else str(f.default) for f in dataclasses.fields(Goal)
    }
    assert {row[0]: row[1] for row in rows("field of `Goal`")} == fields


def test_options_of_searches():
    said = {(search, option): default for search, option, default, _ in rows("search")[:3]}
    kinds = (MLRSearch, Bisection, Overload)
    assert said == {(kind.name, f.name): str(f.default) for kind in kinds for f in dataclasses.fields(kind)}
    assert all(re.search(rf"^- `{kind.name}` ", PAGE, re.MULTILINE) for kind in kinds)


def test_flags_and_ends():
    assert {row[0] for row in rows("flag")} >= {flag.value for flag in Flag}
    assert all(f"`{end}`" in PAGE for end in End)
