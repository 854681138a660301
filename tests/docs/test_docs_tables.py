"""What the tables of the pages say is what the code does."""

import dataclasses
import importlib
import inspect
import re
import types
import typing
from collections.abc import Callable
from enum import EnumMeta
from pathlib import Path

import pytest
import yaml
from docs_pages import DOCS, PAGES, bare, blocks, tables
from pydantic import BaseModel
from support.command import p4perf

import p4perf as package
from p4perf.errors import ExitCode
from p4perf.evaluation.fitting.derivation import FitOptions, Loss, Profile
from p4perf.evaluation.fitting.error_metrics import registered_metrics
from p4perf.evaluation.fitting.split_finders import SplitProblem
from p4perf.evaluation.papers.baldi2018 import function_names, load_function, load_hardware
from p4perf.experiment.ledger import MOVED
from p4perf.models import FunctionTemplate
from p4perf.models.eo import estimate, registered_operations
from p4perf.models.templates import SCHOLZ2021_RANKS, standard_templates
from p4perf.plugins import GROUPS, load_plugin, plugin_names
from p4perf.results.table import NO_ACCEPTED, STARTS_DISAGREE
from p4perf.specs.grids import LogValues, RangeValues
from p4perf.specs.units import UNITS
from p4perf.targets import process, roles, windows
from p4perf.targets.base import Target
from p4perf.testbeds.nodes import NodeSpec, PosNodeSpec, SiteFile, read_node, read_site
from p4perf.testbeds.pos import testbed as pos_failures
from p4perf.testbeds.ssh import connection

SOURCE = Path(package.__file__).parent
HARNESS = SOURCE / "targets" / "harness"


def page_tables(name, *head):
    return [t for t in tables(DOCS / name) if t.head[: len(head)] == head]


# --- constants


def said_number(text):
    """``2500 ms`` -> 2500000 (durations in us), ``15 %`` -> 0.15, ``100,000`` -> 100000, ``0.05 s`` -> 0.05."""
    number, _, unit = text.replace(",", "").partition(" ")
    return float(number) * {"%": 0.01, "ms": 1000}.get(unit, 1)


def real_number(name):
    if name.startswith("harness:"):
        name = name.removeprefix("harness:")
        text = "\n".join(f.read_text() for f in sorted(HARNESS.rglob("*.[ch]")))
        found = re.findall(rf"(?:#define {name}|\.{name} =) ([0-9.]+)", text)
        assert len(set(found)) == 1, f"{name}: {found}"
        return float(found[0]) * (1000 if name.lower().endswith("_ms") else 1)
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute) * (1000 if attribute.endswith("_MS") else 1)


CONSTANTS = [
    pytest.param(bare(row[-1]), row[1], id=bare(row[-1]))
    for page in PAGES
    for table in tables(page)
    if table.head[-1] == "in the code"
    for row in table.rows
    if row[-1]
]


@pytest.mark.parametrize(("name", "said"), CONSTANTS)
def test_constants(name, said):
    assert said_number(said) == pytest.approx(real_number(name))


# --- specs


def leaves(model, prefix=""):
    """Dotted key -> default of every key of a spec; required keys have the default ``...``."""
    found = {}
    for name, field in model.model_fields.items():
        kinds = typing.get_args(field.annotation) if isinstance(field.annotation, types.UnionType) else ()
        inner = [k for k in (field.annotation, *kinds) if isinstance(k, type) and issubclass(k, BaseModel)]
        if inner:
            found |= leaves(inner[0], f"{prefix}{name}.")
        else:
            default = ... if field.is_required() else field.get_default(call_default_factory=True)
            found[prefix + name] = list(default) if isinstance(default, tuple) else default
    return found


def test_defaults_of_value_rules():
    assert LogValues.model_fields["points_per_decade"].default == 9
    assert RangeValues.model_fields["step"].default == 1


def test_units_are_understood():
    (table,) = page_tables("specs.md", "dimension", "units")
    for dimension, units in table.rows:
        for unit in re.findall(r"`([^`]+)`", units):
            assert UNITS[bare(unit)].dimension == dimension


# --- nodes


def test_keys_of_node_files():
    (table,) = page_tables("machines.md", "key of a node")
    texts = {bare(row[0]): bare(row[1]) for row in table.rows}
    said = {key: ... if t == "required" else None if t == "-" else yaml.safe_load(t) for key, t in texts.items()}
    assert said == leaves(NodeSpec)


def test_node_files_of_the_page(tmp_path):
    (text,) = [block.text for block in blocks(DOCS / "machines.md") if block.file == "nodes.yaml"]
    (tmp_path / "nodes.yaml").write_text(text)
    (tmp_path / "known_hosts").touch()
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "lab").touch()
    assert read_node(tmp_path / "nodes.yaml", None).name == "dut"
    assert read_node(tmp_path / "nodes.yaml", "generator").spec.roles == ("loadgen",)


def test_keys_of_site_files():
    for head, model in (("key of a pos node", PosNodeSpec), ("key of a site", SiteFile)):
        (table,) = page_tables("machines.md", head)
        texts = {bare(row[0]): bare(row[1]) for row in table.rows}
        said = {key: ... if t == "required" else None if t == "-" else yaml.safe_load(t) for key, t in texts.items()}
        assert said == leaves(model)


def test_site_files_of_the_page(tmp_path):
    (text,) = [block.text for block in blocks(DOCS / "machines.md") if block.file == "site.yaml"]
    (tmp_path / "site.yaml").write_text(text)
    assert read_site(tmp_path / "site.yaml", None).name == "cesis"


def test_failures_of_pos():
    (table,) = page_tables("machines.md", "what happens", "message")
    said = {text for row in table.rows for text in re.findall(r"(?:allocating|up): ([a-z ]+)`", row[1])}
    assert said >= {"it is allocated already", "it is not booted"}
    assert said <= {what for what, _ in pos_failures._KNOWN.values()}


def test_failures_of_nodes():
    """Every message of the table that is not put together is one of the code."""
    (table,) = page_tables("machines.md", "what happens", "exit code")
    said = {text for row in table.rows for text in re.findall(r"connecting: ([a-z ]+)`", row[2])}
    assert said <= {what for what, _ in connection._KNOWN.values()}
    assert len(said) >= 5


# --- commands


def test_exit_codes():
    (table,) = page_tables("commands.md", "code", "name")
    assert isinstance(ExitCode, EnumMeta)
    assert {(int(code), name) for code, name, _ in table.rows} == {(int(c), c.name) for c in ExitCode}


def test_environment_variables():
    (table,) = page_tables("commands.md", "variable")
    said = {bare(row[0]) for row in table.rows}
    text = "\n".join(f.read_text() for f in SOURCE.rglob("*") if f.suffix in (".py", ".sh", ".j2"))
    read = set(re.findall(r"environ(?:\.get\(|\[)\"(\w+)\"", text)) | set(re.findall(r"\$\{([A-Z_]+):-", text))
    # pkg-config and rich read the two that are not in our text.
    assert said == read | {"PKG_CONFIG_PATH", "NO_COLOR"}


# --- measuring, models, generated, extending


def test_flags():
    (table,) = page_tables("measuring.md", "flag")
    text = inspect.getsource(windows.WindowStatistics.failures) + inspect.getsource(process.environment_flags)
    real = set(re.findall(r'^ +"(\w+)": ', text, re.MULTILINE)) | {NO_ACCEPTED, MOVED, STARTS_DISAGREE}
    assert {bare(row[0]) for row in table.rows} == real


def test_templates():
    (table,) = page_tables("methods.md", "template")
    said = [(bare(name), tuple(bare(names).split()), *map(rank, ranks)) for name, _, names, *ranks in table.rows]
    real = standard_templates()
    assert said == [(t.name, t.parameter_names, float(t.rank), SCHOLZ2021_RANKS.get(t.name)) for t in real]


def rank(cell):
    return None if cell == "-" else float(cell)


def test_error_metrics():
    (table,) = page_tables("methods.md", "error metric")
    said = {(bare(name), title, unit == "ratio") for name, title, _, unit, _ in table.rows}
    assert said == {(m.name, m.title, m.relative) for m in registered_metrics()}


def test_losses_and_profiles():
    (losses,) = page_tables("methods.md", "loss")
    assert [bare(row[0]) for row in losses.rows] == list(typing.get_args(Loss))
    (profiles,) = [t for t in page_tables("methods.md", "") if t.headings[-1] == "The two profiles"]
    assert [bare(cell.split()[0]) for cell in profiles.head[1:]] == list(typing.get_args(Profile))


def test_split_finders():
    finders, options = page_tables("methods.md", "split finder")
    assert sorted(bare(row[0]) for row in finders.rows) == plugin_names("p4perf.split_finders")
    said = {(bare(finder), bare(option)): bare(default) for finder, option, default, _ in options.rows}
    kinds = {name: load_plugin("p4perf.split_finders", name) for name in plugin_names("p4perf.split_finders")}
    assert said == {(n, f.name): str(f.default) for n, kind in kinds.items() for f in dataclasses.fields(kind)}


def test_arguments_of_function_templates():
    (table,) = page_tables("extending.md", "argument of `FunctionTemplate`")
    missing = dataclasses.MISSING
    real = dataclasses.fields(FunctionTemplate)
    fields = {f.name: "required" if f.default is missing else repr(f.default) for f in real}
    assert {bare(row[0]): bare(row[1]) for row in table.rows} == fields


def test_fields_of_split_problems():
    (table,) = page_tables("extending.md", "field of `SplitProblem`")
    said = [name for row in table.rows for name in bare(row[0]).split(", ")]
    assert said == [f.name for f in dataclasses.fields(SplitProblem)]


def test_options_of_p4perf_fit():
    (table,) = page_tables("fitting.md", "option", "default")
    said = {bare(row[0]): bare(row[1]) for row in table.rows}
    assert said == {f.name: repr(f.default) for f in dataclasses.fields(FitOptions)}


def test_generated_files(tmp_path):
    done = p4perf("generate", "mat/exact-entries", "--set", "entries=[1000, 2000]", "-o", tmp_path)
    assert done.code == 0, done.err
    (table,) = page_tables("generated.md", "generator", "file")
    assert {bare(row[0]) for row in table.rows} == {"all", *plugin_names("p4perf.generators")}
    for generator in plugin_names("p4perf.generators"):
        lines = [bare(files) for name, files, _ in table.rows if bare(name) in (generator, "all")]
        patterns = [pattern for line in lines for pattern in line.split(", ")]
        # Some refuse the larger table, some have a file for it only.
        folders = list((tmp_path / generator).iterdir())
        real = {path.name for folder in folders for path in folder.iterdir()}
        assert real == {path.name for pattern in patterns for folder in folders for path in folder.glob(pattern)}
        assert all(any(list(folder.glob(pattern)) for folder in folders) for pattern in patterns)


def test_files_that_scripts_write(tmp_path):
    assert p4perf("generate", "baseline/l2fwd", "--points", "1", "-g", "moongen", "-o", tmp_path).code == 0
    text = "\n".join(f.read_text() for f in tmp_path.rglob("*.lua"))
    (table,) = page_tables("generated.md", "file that a script writes")
    for files, option, _ in table.rows:
        assert bare(option) in text
        assert all(f'"{name}"' in text for name in bare(files).split(", "))


def test_entry_point_groups():
    (table,) = page_tables("extending.md", "entry point group")
    assert {bare(row[0]) for row in table.rows} == set(GROUPS)


def parameters_of(method: Callable[..., object]) -> list[str]:
    """Names of the parameters after ``self``, with their stars."""
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    parameters = list(inspect.signature(method).parameters.values())[1:]
    return [stars.get(p.kind, "") + p.name for p in parameters]


def test_contracts_name_what_is_there():
    (groups,) = page_tables("extending.md", "entry point group")
    kinds = {}
    for _, _, contract in groups.rows:
        module, _, name = bare(contract.split()[-1]).rpartition(".")
        kinds[name] = getattr(importlib.import_module(module), name)
    for table in page_tables("extending.md", "member"):
        kind = kinds[table.headings[-1].removesuffix("s").title().replace(" ", "")]
        known = {*dir(kind), *kind.__annotations__}
        said = set()
        for row in table.rows:
            for member in bare(row[0]).split("), ") if "(" in row[0] else bare(row[0]).split(", "):
                name, _, arguments = member.partition("(")
                said.add(name)
                assert name in known, f"{kind.__name__}.{name}"
                if "(" in member:
                    wanted = [a.strip() for a in arguments.rstrip(")").split(",") if a.strip()]
                    assert wanted == parameters_of(getattr(kind, name)), member
        if dataclasses.is_dataclass(kind):
            assert {field.name for field in dataclasses.fields(kind)} == said
        assert getattr(kind, "__abstractmethods__", frozenset()) <= said


def test_roles_name_what_is_there():
    (table,) = page_tables("extending.md", "role", "member")
    said = {}
    for role, member, _ in table.rows:
        current = bare(role) if role else list(said)[-1]
        kind = getattr(roles, current)
        name, _, arguments = bare(member).partition("(")
        said.setdefault(current, set()).add(name)
        if arguments:
            wanted = [a.strip() for a in arguments.rstrip(")").split(",") if a.strip()]
            assert wanted == parameters_of(getattr(kind, name)), member
        else:
            assert name in kind.__annotations__, member
    for name, members in said.items():
        kind = getattr(roles, name)
        inherited = frozenset().union(*(base.__abstractmethods__ for base in kind.__bases__))
        assert kind.__abstractmethods__ - inherited <= members
    kinds = {name for name, kind in vars(roles).items() if isinstance(kind, type) and issubclass(kind, Target)}
    assert set(said) == kinds - {"Target"}


# --- elementary operations


def test_elementary_operations_and_functions():
    (table,) = page_tables("estimates.md", "operation", "what it does")
    own = {o.signature: (o.summary, o.source) for o in registered_operations().values()}
    assert {bare(row[0]): row[1:] for row in table.rows} == own
    (functions,) = page_tables("estimates.md", "name", "what it is")
    assert sorted(bare(row[0]) for row in functions.rows) == list(function_names())


def test_numbers_of_the_paper():
    """The comparison on the page is what the machine of the paper gives, and what the functions say is printed."""
    (table,) = page_tables("estimates.md", "function", "`formula`")
    for name, *cells in table.rows:
        function = load_function(bare(name))
        formula, paper = (estimate([function], load_hardware("xeon-e5-2690v2", p)) for p in ("formula", "paper"))
        printed = function.printed
        assert cells == [
            *(f"{e.breakdown.cycles.value:.0f} + {e.breakdown.dram_accesses:.0f}" for e in (formula, paper)),
            f"{printed.cycles:.0f} + {printed.dram_accesses:.0f}",
            *(f"{paper.mpps_per_core:.2f}", f"{printed.mpps:g}", f"{paper.gbps:.2f}", f"{printed.gbps:g}"),
        ]
