"""Commands that look and change nothing: list, check, schema, status, show."""

from __future__ import annotations

import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from p4perf.cli.app import app
from p4perf.cli.options import PointsOption, SetOption, SpecArgument, load
from p4perf.cli.output import Format, FormatOption, emit, say, say_origin
from p4perf.errors import CapabilityError, UsageError
from p4perf.results import Run, run_folders


class What(StrEnum):
    """What can be listed."""

    EXPERIMENTS = "experiments"
    TARGETS = "targets"
    TESTBEDS = "testbeds"
    COMPONENTS = "components"
    GENERATORS = "generators"
    LOAD_GENERATORS = "load-generators"
    SEARCHES = "searches"
    IMPORTERS = "importers"
    METRICS = "metrics"
    FUNCTIONS = "functions"
    HARDWARE = "hardware"
    OPERATIONS = "operations"
    MODELS = "models"
    RUNS = "runs"


@app.command("list")
def list_(
    what: Annotated[What, typer.Argument(help="What to list.")] = What.EXPERIMENTS,
    folder: Annotated[Path, typer.Option("--in", help="Folder of the runs.")] = Path("runs"),
    components: Annotated[
        bool, typer.Option("--components", help="Of targets or generators: which experiments they can do.")
    ] = False,
    limits: Annotated[
        bool, typer.Option("--limits", help="Of targets or generators: what they lack and up to where they go.")
    ] = False,
    fmt: FormatOption = Format.TABLE,
) -> None:
    """List experiments, runs, metrics, published models, network functions, targets, testbeds and so on."""
    if components or limits:
        _capabilities(what, fmt, whole=components)
        return
    special: dict[What, Callable[[], list[dict[str, Any]]]] = {
        What.EXPERIMENTS: _experiments,
        What.METRICS: _metrics,
        What.FUNCTIONS: _functions,
        What.HARDWARE: _hardware,
        What.OPERATIONS: _operations,
        What.MODELS: _models,
        What.RUNS: lambda: _runs(folder),
    }
    rows = special[what]() if what in special else _plugins(what.value)
    emit(fmt, f"list.{what.value}", rows)


def _capabilities(what: What, fmt: Format, *, whole: bool) -> None:
    from p4perf.experiment.matrix import Column, coverage, limits
    from p4perf.plugins import load_plugin, plugin_names
    from p4perf.specs import list_catalogue

    if what not in (What.TARGETS, What.GENERATORS):
        raise UsageError("--components and --limits are for targets and generators")
    group = f"p4perf.{what.value}"
    plugins = {name: load_plugin(group, name) for name in plugin_names(group)}
    columns = {
        name: Column(p.capabilities, getattr(p, "metrics", None))
        for name, p in plugins.items()
        if hasattr(p, "capabilities")
    }
    if not whole:
        emit(fmt, f"list.{what.value}.limits", limits(columns))
        return
    rows = coverage([e.name for e in list_catalogue()], columns)
    emit(fmt, f"list.{what.value}.components", [{k: str(v) for k, v in row.items()} for row in rows])


def _experiments() -> list[dict[str, Any]]:
    from p4perf.specs import list_catalogue

    return [{"name": e.name, "title": e.title} for e in list_catalogue()]


def _metrics() -> list[dict[str, Any]]:
    from p4perf.specs import METRICS

    return [{"name": name, "unit": m.unit, "description": m.description} for name, m in METRICS.items()]


def _functions() -> list[dict[str, Any]]:
    from p4perf.evaluation.papers.baldi2018 import function_names, load_function

    functions = [load_function(name) for name in function_names()]
    return [{"name": f.name, "title": f.title, "source": f.source} for f in functions]


def _hardware() -> list[dict[str, Any]]:
    from p4perf.evaluation.papers.baldi2018 import hardware_names, load_hardware

    machines = [load_hardware(name) for name in hardware_names()]
    return [{"name": m.name, "title": m.title, "profiles": [p.name for p in m.profiles]} for m in machines]


def _operations() -> list[dict[str, Any]]:
    from p4perf.models.eo import registered_operations

    return [
        {"operation": o.signature, "summary": o.summary, "source": o.source} for o in registered_operations().values()
    ]


def _models() -> list[dict[str, Any]]:
    from p4perf.models.published import published_models, subject_of

    return [
        {
            "subject": subject_of(m),
            "component": m.name,
            "variable": m.x.name,
            "metric": m.y.name,
            "unit": m.y.unit,
            "first": m.domain[0],
            "last": m.domain[1],
            "derived": bool(m.provenance.get("derived")),
        }
        for m in published_models()
    ]


def _plugins(group: str) -> list[dict[str, Any]]:
    from p4perf.plugins import load_plugin, plugin_names
    from p4perf.targets.roles import Connects

    rows = []
    entry_points = f"p4perf.{group.replace('-', '_')}"
    for name in plugin_names(entry_points):
        plugin = load_plugin(entry_points, name)
        row: dict[str, Any] = {"name": name, "summary": plugin.summary}
        if group == "targets":
            row["metrics"] = list(plugin.metrics)
            row["links"] = list(plugin.links) if issubclass(plugin, Connects) else []
            row["variants"] = list(plugin.variants)
        if group == "components":
            row["parameters"] = list(plugin.Parameters.model_fields)
        rows.append(row)
    return rows


def _runs(folder: Path) -> list[dict[str, Any]]:
    from p4perf.errors import DataError

    rows = []
    for path in run_folders(folder):
        try:
            rows.append(_run_row(Run.open(path)))
        except DataError as error:
            say(f"note: {error}")
    return rows


def _run_row(run: Run) -> dict[str, Any]:
    identity, state = run.identity, run.directory.state()
    return {
        "run": str(run.path),
        "experiment": identity.experiment,
        "target": identity.target,
        "testbed": identity.testbed,
        "created": identity.created,
        "points": len(state.planned),
        "finished": len(state.finished),
        "trials": state.trials,
        "complete": state.complete,
        "imported": None if identity.imported is None else identity.imported.importer,
    }


@app.command()
def check(
    spec: SpecArgument,
    target: Annotated[str | None, typer.Option("--target", help="Check that this target can measure it here.")] = None,
    testbed: Annotated[str, typer.Option("--testbed", help="Where the target runs.")] = "local",
    sets: SetOption = None,
    points: PointsOption = None,
    fmt: FormatOption = Format.TABLE,
) -> None:
    """Check a spec; with --target, also that every point is within the limits of the target."""
    from p4perf.experiment import open_target, open_testbed, plan_sweep, point_workload, require_usable
    from p4perf.specs import describe_variants

    experiment = load(spec, sets, points)
    if target is None:
        for point in experiment.points:
            point_workload(experiment, point)
    else:
        chosen, place = open_target(target), open_testbed(testbed)
        plan = plan_sweep(experiment, chosen, require_usable(chosen, place))
        if plan.refused:
            first = plan.refused[0]
            more = f" (and {len(plan.refused) - 1} more points)" if len(plan.refused) > 1 else ""
            raise CapabilityError(f"{experiment.spec.name} at {first.label}: {first.reason}{more}")
    row = {
        "experiment": experiment.spec.name,
        "points": len(experiment.points),
        "trials": len(experiment.points) * experiment.spec.trials.repetitions,
        "spec_hash": experiment.spec_hash,
    }
    emit(fmt, "check", [row])
    for line in describe_variants(experiment.spec):
        say(line)


@app.command()
def schema() -> None:
    """Print the JSON Schema of experiment specs, for editors."""
    from p4perf.specs import json_schema_text

    sys.stdout.write(json_schema_text())


@app.command()
def status(
    run: Annotated[Path, typer.Argument(help="A run directory, or the folder of a campaign.")],
    fmt: FormatOption = Format.TABLE,
) -> None:
    """Tell how far a run or a campaign has come."""
    from p4perf.cli.measure import show_campaign
    from p4perf.results.campaign import CampaignDirectory

    if CampaignDirectory.is_one(run):
        show_campaign(run, fmt)
        return
    opened = Run.open(run)
    row = _run_row(opened)
    say_origin(opened.identity)
    emit(fmt, "status", [row])
    if fmt is Format.TABLE and not row["complete"]:
        say(f"p4perf resume {run} continues it")


@app.command()
def show(
    run: Annotated[Path, typer.Argument(help="A run directory.")],
    metric: Annotated[str | None, typer.Option("--metric", help="Metric to show; default: the modelled one.")] = None,
    fmt: FormatOption = Format.TABLE,
) -> None:
    """Show the measured points of a run: median over the starts, 95 % interval, accepted starts, flags."""
    from p4perf.experiment.evaluate import point_rows

    opened = Run.open(run)
    rows, chosen, unit = point_rows(opened, metric)
    say_origin(opened.identity)
    emit(fmt, "show", rows, title=f"{chosen} [{unit}]", metric=chosen, unit=unit, run=str(opened.path))
