"""The page of components is what the code says of itself."""

import typing
from functools import cache

import pytest
from docs_pages import DOCS, tables

from p4perf.plugins import load_plugin, plugin_names
from p4perf.programs.capabilities import constructs
from p4perf.programs.component import build_workload
from p4perf.specs import load_experiment
from p4perf.specs.loader import list_catalogue

PAGE = DOCS / "components.md"
NAMES = [name for name in plugin_names("p4perf.components") if name != "fake"]
UNITS = {"_bits": "bit", "_bytes": "B"}


def parameters_of(name):
    return load_plugin("p4perf.components", name).Parameters.model_fields


def bounds(field):
    if field.annotation is bool:
        return "`false`, `true`"
    if field.annotation is str:
        return "text"
    if literals := typing.get_args(field.annotation):
        return ", ".join(f"`{value}`" for value in literals)
    limits = {key: getattr(m, key) for m in field.metadata for key in ("ge", "le", "multiple_of") if hasattr(m, key)}
    text = f"{limits['ge']} to {limits['le']}"
    return text + (f", multiple of {limits['multiple_of']}" if "multiple_of" in limits else "")


def row(name, parameter, field):
    unit = next((unit for ending, unit in UNITS.items() if parameter.endswith(ending)), "")
    default = str(field.default).lower() if isinstance(field.default, bool) else str(field.default)
    default = "required" if field.is_required() else f"`{default}`"
    return (f"`{name}`", f"`{parameter}`", unit, default, bounds(field), field.description)


@cache
def components_by_experiment():
    """The components of each experiment of the catalogue but those of programs of several."""
    names = [e.name for e in list_catalogue() if not e.name.startswith("composition/")]
    return {name: {n for n, _ in load_experiment(name).points[0].components} for name in sorted(names)}


def experiments(name):
    return ", ".join(f"`{e}`" for e, used in components_by_experiment().items() if name in used)


def table(first, second):
    (found,) = [t for t in tables(PAGE) if t.head[:2] == (first, second)]
    return found


def test_the_components():
    real = {(f"`{n}`", load_plugin("p4perf.components", n).summary, experiments(n)) for n in NAMES}
    assert {(r[0], r[1], r[3]) for r in table("component", "what it adds").rows} == real


def test_the_parameters():
    real = {row(n, p, f) for n in NAMES for p, f in parameters_of(n).items()}
    assert set(table("component", "parameter").rows) == real


SMALL = {
    "parser_branches": {"branches": 2},
    "hash": {"size_bytes": 8},
    "checksum": {"size_bytes": 8},
    "recirculate": {"times": 1},
    "resubmit": {"times": 1},
    "operator": {"operator": "htons"},
}


@pytest.mark.parametrize("name", NAMES)
def test_the_constructs(name):
    """One instance of each component with its defaults uses what its row says, nothing else."""
    required = {p: 1 for p, f in parameters_of(name).items() if f.is_required()}
    program = build_workload([(name, SMALL.get(name, required))], frame_size_bytes=512).program
    said = {r[0]: r[2] for r in table("component", "what it adds").rows}
    assert said[f"`{name}`"] == ", ".join(constructs(program))
