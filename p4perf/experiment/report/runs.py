"""Everything that a page states about a run, read once; nothing is fitted again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from p4perf.errors import DataError, P4PerfError
from p4perf.evaluation.fitting.error_metrics import error_text
from p4perf.evaluation.fitting.many import end_with
from p4perf.evaluation.fitting.tables import model_rows
from p4perf.evaluation.fitting.working_set import CacheMark, explain, run_marks
from p4perf.evaluation.plots.style import UNITS
from p4perf.evaluation.report.figures import highlighted, run_figure
from p4perf.experiment.evaluate import COST, machine_text, metric_ends, plain, point_rows
from p4perf.experiment.planning import point_workload
from p4perf.models.component import ComponentModel
from p4perf.plugins import load_plugin
from p4perf.results import Manifest, Run
from p4perf.specs import Experiment
from p4perf.specs.sweep import variable_names

if TYPE_CHECKING:
    import pandas as pd


MOST_CHARACTERS = 12_000
"""Longer texts are cut at the end of a line: the whole text is in the run directory."""
MOST_GENERATED = 6_000
"""The same of texts that are made for the page."""
_DIALECT, _LOAD = "v1model", "moongen"
_SUFFIXES = (".p4", ".lua", ".spec", ".bpf.c")
_PROGRAMS = ("program.c", "program.h")


@dataclass(frozen=True)
class Listing:
    title: str
    note: str
    html: Markup


def run_listings(run: Run) -> tuple[Listing, ...]:
    """The spec, and the generated program of one point: the second, in which the component is there already."""
    found = [_listing("Spec as resolved", run.directory.spec_file.name, run.directory.spec(), "")]
    points = [p for p in run.manifest.points if p.key]
    if points:
        point = points[min(1, len(points) - 1)]
        at = ", ".join(f"{k}={v}" for k, v in point.values.items()) or "the only point"
        files = list(run.directory.point_texts(point.key, lambda name: name.endswith(_SUFFIXES) or name in _PROGRAMS))
        names = {name.rpartition(".")[2] for name, _ in files}
        if "p4" not in names:
            title = f"The same as P4 ({_DIALECT}) at {at}"
            found += _generated(run.experiment, point.index, _DIALECT, ".p4", title)
        if "lua" not in names:
            title = f"Its load for MoonGen (Lua) at {at}"
            found += _generated(run.experiment, point.index, _LOAD, ".lua", title)
        found += [_listing(f"{name} at {at}", name, text, "as it was built") for name, text in files]
    return tuple(found)


def _generated(experiment: Experiment, index: int | None, generator: str, suffix: str, title: str) -> list[Listing]:
    """What a generator makes of the point, the first file of that kind; nothing if the program cannot be written so."""
    point = next((p for p in experiment.points if p.index == index), None)
    if point is None:
        return []
    try:
        workload, traffic = point_workload(experiment, point)
        files = load_plugin("p4perf.generators", generator)().generate(workload, traffic)
        name, text = next((f.path, "".join(f.pieces)) for f in files if f.path.endswith(suffix))
    except (P4PerfError, StopIteration):
        return []
    short = _cut(text, MOST_GENERATED)
    return [Listing(title, "what p4perf generate writes" + ", cut" * (short != text), highlighted(short, name))]


def _listing(title: str, name: str, text: str, note: str) -> Listing:
    short = _cut(text, MOST_CHARACTERS)
    if short != text:
        note = f"{note}; " * bool(note) + "cut, the whole text is in the run directory"
    return Listing(title, note, highlighted(short, name))


def _cut(text: str, most: int) -> str:
    """Whole lines of a text, as many as the characters allow; the text itself if it is short enough."""
    if len(text) <= most:
        return text
    return text[: text.rfind("\n", 0, most) + 1] or text[:most]


MOST_TRIALS = 4000
"""Repetitions of larger runs are not drawn one by one."""
_NODE_FACTS = 60


@dataclass(frozen=True)
class SweepEnds:
    """The medians at the first and the last point of a sweep, the slope between them, and what they are of."""

    first: float | None
    last: float | None
    slope: float | None
    of: str


@dataclass(frozen=True)
class RunPage:
    """A run, ready for its page: plain values only.

    Args:
        commit: that of the folder in which the run was begun, with a ``+`` if it had changes; empty if there is none.
        ends: of the metric of the spec and of the cost over the baseline, as far as they were measured.
        reason: why there are no numbers; empty if there are some.
    """

    path: Path
    name: str
    experiment: str
    title: str
    description: str
    target: str
    testbed: str
    machine: str
    cpu: str
    created: str
    commit: str
    version: str
    planned: int
    variables: tuple[str, ...] = ()
    metric: str = ""
    unit: str = ""
    accepted: int = 0
    trials: int = 0
    rejected: int = 0
    points: tuple[Mapping[str, Any], ...] = ()
    others: tuple[Mapping[str, Any], ...] = ()
    model: Mapping[str, Any] | None = None
    model_line: str = ""
    explanations: tuple[str, ...] = ()
    flags: Mapping[str, int] = field(default_factory=dict)
    figure: Mapping[str, Any] | None = None
    ends: Mapping[str, SweepEnds] = field(default_factory=dict)
    refused: tuple[Mapping[str, str], ...] = ()
    environment: tuple[Mapping[str, Any], ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    listings: tuple[Listing, ...] = ()
    imported: str = ""
    reason: str = ""

    @property
    def date(self) -> str:
        return self.created[:10]

    @property
    def place(self) -> tuple[str, str]:
        """Testbed and processor: runs of an experiment and a target in one place are a history."""
        return self.testbed, self.cpu

    @property
    def measure(self) -> str:
        return measure_text(self.metric, self.unit)

    @property
    def own(self) -> SweepEnds | None:
        """The ends of the metric of the spec, which the model is of, too."""
        return self.ends.get(self.metric)


def read_run(path: Path) -> RunPage:
    """Read a run directory once.

    Raises:
        DataError: the run is damaged. A run without measurements is not: its page says so.
        SpecError: its spec cannot be read by this p4perf.
    """
    run = Run.open(path)
    manifest, spec = run.manifest, run.spec
    known: dict[str, Any] = {
        "path": run.path,
        "name": run.name,
        "experiment": spec.name,
        "title": spec.title or spec.name,
        "description": spec.description or "",
        "target": manifest.target,
        "testbed": manifest.testbed,
        "machine": machine_text(manifest),
        "cpu": manifest.node.text("cpu_model"),
        "created": manifest.created[:16].replace("T", " "),
        "commit": manifest.commit,
        "version": manifest.versions.get("p4perf", ""),
        "planned": len(manifest.planned_points),
        "variables": tuple(variable_names(spec.sweep)),
        "refused": tuple(
            {"values": ", ".join(f"{k}={v}" for k, v in r.values.items()), "reason": r.reason} for r in manifest.refused
        ),
        "environment": manifest.environment,
        "facts": _facts(manifest),
        "listings": run_listings(run),
        "imported": manifest.origin or "",
    }
    try:
        known |= _numbers(run)
    except P4PerfError as error:
        known["reason"] = str(error.message)
    return RunPage(**known)


def _numbers(run: Run) -> dict[str, Any]:
    spec, table = run.spec, run.table
    if table.empty:
        raise DataError("no trial ran to its end")
    variables = run.columns
    rows, metric, unit = point_rows(run)
    variable = run.variable if len(variables) == 1 else None
    points = [{**row, "x": _abscissa(row, variables), "at": _place(row, variables)} for row in rows]
    model = _model(run, metric, variable)
    marks = run_marks(run) if variable else ()
    starts = table.drop_duplicates(["point", "attempt"])
    labels = {
        "x": ", ".join(variables) if variables != ["point_index"] else "point",
        "y": axis_text(metric, unit),
        "title": f"{metric.replace('_', ' ')} of {spec.name} on {run.manifest.target}",
    }
    scale = spec.model.x_scale if spec.model is not None else "linear"
    trials = _trials(table, metric, variables)
    return {
        "variables": tuple(variables),
        "metric": metric,
        "unit": UNITS.get(unit, unit),
        "accepted": sum(1 for p in points if p["n"]),
        "trials": len(starts),
        "rejected": len(starts) - len(table[table["accepted"].astype(bool)].drop_duplicates(["point", "attempt"])),
        "points": tuple(points),
        "others": tuple(_others(table, metric, variables)),
        **(_model_values(model, marks) if model else {}),
        "flags": run.flag_counts,
        "figure": run_figure(points, trials, model, marks, labels=labels, x_scale=scale),
        "ends": {name: _ends(table, name, variables) for name in {metric: 0, COST: 0} if name in set(table["metric"])},
    }


def _abscissa(row: Mapping[str, Any], variables: Sequence[str]) -> Any:
    if len(variables) == 1:
        value = row[variables[0]]
        return value if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
    return _place(row, variables)


def _place(row: Mapping[str, Any], variables: Sequence[str]) -> str:
    return ", ".join(str(row[name]) for name in variables)


def _trials(table: pd.DataFrame, metric: str, variables: Sequence[str]) -> list[tuple[Any, ...]]:
    rows = table[table["metric"] == metric]
    if len(rows) > MOST_TRIALS:
        return []
    found = []
    for row in rows.to_dict("records"):
        cells = {str(k): plain(v) for k, v in row.items()}
        value = cells["value"]
        if isinstance(value, int | float) and value == value:
            flags = str(cells.get("flags") or "")
            found.append(
                (_abscissa(cells, variables), value, int(cells["repetition"]), int(bool(cells["accepted"])), flags)
            )
    return found


def _others(table: pd.DataFrame, metric: str, variables: Sequence[str]) -> list[dict[str, Any]]:
    """First and last median of every further metric."""
    rows = table[table["accepted"].astype(bool) & (table["metric"] != metric)]
    if rows.empty:
        return []
    medians = rows.groupby(["metric", "unit", *variables], sort=True)["value"].median().reset_index()
    found = []
    for (name, unit), group in medians.groupby(["metric", "unit"], sort=True):
        values = group["value"].tolist()
        low, high = min(values), max(values)
        unit = UNITS.get(str(unit), str(unit))
        found.append({"metric": name, "unit": unit, "first": values[0], "last": values[-1], "low": low, "high": high})
    return found


def _ends(table: pd.DataFrame, metric: str, variables: Sequence[str]) -> SweepEnds:
    unit = str(next(iter(table.loc[table["metric"] == metric, "unit"]), ""))
    return SweepEnds(*metric_ends(table, metric, variables), measure_text(metric, unit))


_BASES = {COST: "above the baseline", "cycles_per_packet": "in total"}


def measure_text(metric: str, unit: str) -> str:
    """What a number is: its unit, and for cycles whether the baseline is in it; else with the name of the metric."""
    shown = UNITS.get(unit, unit)
    return f"{shown} {_BASES[metric]}" if metric in _BASES else axis_text(metric, unit)


def _model(run: Run, metric: str, variable: str | None) -> ComponentModel | None:
    """The stored model of a metric over a variable; None if it is missing, damaged or another one."""
    try:
        model = run.model
    except DataError:
        return None
    return model if (model.x.name, model.y.name) == (variable, metric) else None


def _model_values(model: ComponentModel, marks: Sequence[CacheMark]) -> dict[str, Any]:
    prefix, error = f"{model.y.name} = ", error_text(model.error, model.fitting.error)
    segments = [
        {**row.as_dict(), "formula": row.formula.removeprefix(prefix), "error": error_text(model.error, row.error)}
        for row in model_rows(model)
    ]
    return {
        "model": {"error": error, "segments": segments},
        "model_line": f"{' | '.join(f.removeprefix(prefix) for f in model.formulas(3))} ({error})",
        "explanations": tuple(e.text(model.x.name) for e in explain(model.fitting.breakpoint_x, marks) if marks),
    }


def _facts(manifest: Manifest) -> tuple[tuple[str, str], ...]:
    facts = [(str(key), str(value)) for key, value in manifest.node.values.items()][:_NODE_FACTS]
    facts.append(("hugepages used", manifest.machine["hugepages"]))
    facts += [(f"version of {key}", value) for key, value in manifest.versions.items()]
    facts.append(("hash of the spec", manifest.spec_hash or ""))
    facts += [] if manifest.command is None else [("command", " ".join(manifest.command))]
    return tuple(facts)


def axis_text(metric: str, unit: str) -> str:
    """Metric and unit on an axis; without the unit where the name says it."""
    name, shown = metric.replace("_", " "), UNITS.get(unit, unit)
    return name if not shown or name.endswith(shown.replace("/", " per ")) else f"{name} [{shown}]"


WORTH_PROCESSES = 24
"""Fewer runs than this are read sooner than a process starts."""


def read_runs(
    paths: Sequence[Path], processes: int | None, progress: Callable[[float], object]
) -> tuple[list[RunPage], list[str]]:
    """All runs that can be read, in the given order, and why the others cannot."""
    wanted = processes or len(os.sched_getaffinity(0))
    pages, notes = [], []
    for done, found in enumerate(_read(paths, min(wanted, len(paths) // WORTH_PROCESSES + 1)), 1):
        if isinstance(found, RunPage):
            pages.append(found)
        else:
            notes.append(found)
        progress(0.9 * done / len(paths))
    return pages, notes


def _read(paths: Iterable[Path], processes: int) -> Iterator[RunPage | str]:
    if processes == 1:
        yield from map(_one, paths)
        return
    context = get_context("forkserver")
    watched, held = context.Pipe(duplex=False)
    with watched, held, ProcessPoolExecutor(processes, context, end_with, (watched,)) as pool:
        yield from pool.map(_one, paths, chunksize=4)


def _one(path: Path) -> RunPage | str:
    try:
        return read_run(path)
    except P4PerfError as error:
        return f"{path.name}: {error}"
