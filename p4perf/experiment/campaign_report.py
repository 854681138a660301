"""What the runs of a campaign measured: a record for each experiment on each target, and the report of them all."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from p4perf.errors import DataError, P4PerfError, UsageError
from p4perf.evaluation.report import render_page
from p4perf.experiment import sizing
from p4perf.experiment.compare import RunComparison, compare_runs, target_cautions, write_comparison
from p4perf.experiment.evaluate import COST, machine_text, metric_ends, point_rows
from p4perf.experiment.report.runs import measure_text
from p4perf.experiment.sizing import FAILED, MEASURED, OPEN, REFUSED, UNAVAILABLE, Cell, all_cells
from p4perf.records import Interval, Record, counted, doc, interval
from p4perf.results import Run
from p4perf.results.campaign import CampaignDirectory
from p4perf.results.files import csv_text, json_text, parse_object, read_text
from p4perf.specs import load_experiment
from p4perf.specs.sweep import variable_names
from p4perf.version import __version__

_COMPARISON = "comparison"


class CellRecord(Record):
    """What became of one experiment on one target."""

    experiment: str = doc("name of the experiment")
    target: str = doc("target with its variants")
    state: str = doc(
        "`measured`, `refused`, `unavailable`, `failed` or `open`, see [campaigns](campaigns.md#the-budget)"
    )
    what: str = doc("outcome, for people")
    reason: str = doc("why it is not measured")
    points: int = doc("points that were planned")
    full_points: int = doc("points of the whole sweep, refused ones too")
    accepted: int = doc("points with accepted trials")
    refused_points: tuple[str, ...] = doc("points beyond a limit of the target, with the reason")
    failed_points: tuple[str, ...] = doc("points that failed, with the reason")
    repetitions: int = doc("accepted trials requested for each point")
    trials: int = doc("trials on disk")
    wall_s: float = doc("time that it took, including its model", "s")
    error: float | None = doc("largest relative error so far, with 90 % confidence; null if unknown", "ratio")
    metric: str = doc("metric of `first` and `last`: the modelled one")
    unit: str = doc("its unit")
    first_at: str = doc("first accepted point, such as `entries=1`")
    first: Interval | None = interval("median of the metric there; null without an accepted point", "of the metric")
    last_at: str = doc("last accepted point")
    last: Interval | None = interval("median there", "of the metric")
    first_cost_cycles_per_packet: float | None = doc(
        "median of the cost over the baseline at the first accepted point", "cycles/packet"
    )
    last_cost_cycles_per_packet: float | None = doc("at the last one", "cycles/packet")
    slope_cycles_per_packet: float | None = doc(
        "difference of the two over that of the variable; null if several variables, or words, are swept",
        "cycles/packet",
    )
    model: tuple[str, ...] = doc("functions of the segments, for people")
    verdict: str = doc("`reference`, or the verdict of the comparison with it; empty if there is none")
    ratio: Interval | None = interval("geometric mean of the ratios to the reference", "ratio")
    flags: str = doc("flags of the accepted trials, with their numbers")
    run: str = doc("path of its run directory; empty without one")


class ReportFile(Record):
    """The content of ``report.json``."""

    accepted_share: float = doc("share of planned points with accepted trials", "ratio")
    cells: tuple[CellRecord, ...] = doc("")


def write_report(folder: CampaignDirectory, cells: Sequence[Cell]) -> tuple[list[Path], str]:
    """Write ``report.html``, ``report.json``, ``report.csv`` and, for several targets, the folder ``comparison``.

    Returns:
        The files, the first for people, and why there is no comparison; empty if there is one or none was due.
    """
    content = folder.content()
    overrides = [(str(key), str(value)) for key, value in content["overrides"]]
    targets = [str(t) for t in content["targets"]]
    comparison, plots, note = _comparison(folder, cells)
    records = {(r.experiment, r.target): r for r in cell_records(folder, cells)}
    share = sizing.accepted_share(cells)
    numbers = ReportFile(accepted_share=share, cells=tuple(records.values()))
    flat = [{k: "; ".join(v) if isinstance(v, list) else v for k, v in r.as_dict().items()} for r in numbers.cells]
    specs = [load_experiment(source, overrides=overrides).spec for source in content["sources"]]
    measured = [c for c in cells if c.state == MEASURED]
    states = Counter(c.state for c in cells)
    files = [
        folder.write_text(
            "report.html",
            render_page(
                "campaign.html.j2",
                title=f"{counted(len(content['experiments']), 'experiment')} on {', '.join(targets)}",
                machine=_machine(folder, measured),
                created=content["created"][:16].replace("T", " "),
                spent_s=float(content["spent_s"]),
                budget_s=content["budget_s"],
                accepted=sum(c.accepted for c in cells),
                planned=sum(c.points for c in cells),
                accepted_share=share,
                pairs=len(cells),
                states={state: states[state] for state in (MEASURED, REFUSED, UNAVAILABLE, FAILED, OPEN)},
                thinned=sum(c.thinned for c in measured),
                note=note,
                cautions=target_cautions(targets) if len(targets) > 1 else (),
                targets=targets,
                rows=[
                    {
                        "spec": spec,
                        "variable": spec.variable or ", ".join(variable_names(spec.sweep)),
                        **_overview([records[spec.name, target] for target in targets]),
                        "plot": plots.get(spec.name),
                    }
                    for spec in specs
                ],
                overview=plots.get("overview"),
                ranks=comparison.ranks if comparison else (),
                version=__version__,
            ),
        ),
        folder.write_text("report.json", json_text(numbers.as_dict())),
        folder.write_text("report.csv", csv_text(flat)),
    ]
    return files, note


def _overview(cells: Sequence[CellRecord]) -> dict[str, Any]:
    """The cells of an experiment, with first and last value and slope of each, all of the same base, and their unit."""
    measured = [cell for cell in cells if cell.first is not None]
    costs = [tuple(getattr(cell, name) for name in _COSTS) for cell in cells]
    if all(cell.first_cost_cycles_per_packet is not None for cell in measured):
        return {"cells": cells, "ends": costs, "unit": measure_text(COST, "cycles/packet") if measured else ""}
    ends = [(c.first and c.first.value, c.last and c.last.value, None) for c in cells]
    units = dict.fromkeys(measure_text(cell.metric, cell.unit) for cell in measured)
    return {"cells": cells, "ends": ends, "unit": "; ".join(units)}


def _comparison(folder: CampaignDirectory, cells: Sequence[Cell]) -> tuple[RunComparison | None, dict[str, str], str]:
    """The comparison of all experiments that several targets measured, its plots by experiment, and why there is none.

    Sweeps of several variables and of none have no curves to compare.
    """
    paths = _shared(run for run in _measured_runs(folder, cells) if run.variable)
    if not paths:
        return None, {}, ""
    try:
        comparison = compare_runs(paths)
    except P4PerfError as error:
        return None, {}, f"the runs cannot be compared: {error.message}"
    _, files = write_comparison(comparison, folder.path / _COMPARISON, datetime.now().astimezone())
    pictures = [os.path.relpath(path, folder.path) for path in files if path.suffix == ".svg"]
    names = [e.comparison.experiment for e in comparison.experiments]
    plots = dict(zip(names, pictures, strict=False))
    return comparison, plots | ({"overview": pictures[-1]} if len(pictures) > len(names) else {}), ""


def _measured_runs(folder: CampaignDirectory, cells: Sequence[Cell]) -> list[Run]:
    return [Run.open(folder.run(c.run)) for c in cells if c.state == MEASURED and c.accepted]


def _shared(runs: Iterable[Run]) -> list[Path]:
    """The runs of experiments that have several."""
    found = list(runs)
    several = Counter(run.spec.name for run in found)
    return [run.path for run in found if several[run.spec.name] > 1]


def compared_runs(paths: Sequence[Path], where: Mapping[str, str] | None = None) -> list[Path]:
    """Runs to compare, instead of a campaign its runs of experiments that can be compared with others.

    Args:
        where: of campaigns, only runs that sweep these variables.

    Raises:
        UsageError: there are no two runs of an experiment in the campaigns.
    """
    campaigns = [path for path in paths if CampaignDirectory.is_one(path)]
    if not campaigns:
        return list(paths)
    found: list[Run] = []
    for path in paths:
        if path in campaigns:
            folder = CampaignDirectory.open(path)
            inside = _measured_runs(folder, all_cells(folder))
            if where:
                found += [run for run in inside if {*where} <= {*run.swept}]
            else:
                found += [run for run in inside if run.variable or not run.spec.sweep.variables]
        else:
            found.append(Run.open(path))
    if not (shared := _shared(found)):
        what = f"no experiment of {', '.join(map(str, campaigns))} was measured twice over one variable"
        raise UsageError(what, hint=f"p4perf show {campaigns[0]} lists its runs")
    return shared


def cell_records(folder: CampaignDirectory, cells: Sequence[Cell]) -> tuple[CellRecord, ...]:
    """What the runs of a campaign measured, with the verdicts of its comparison of the same points."""
    verdicts = _verdicts(folder.path / _COMPARISON / "comparison.json")
    return tuple(
        _record(folder, cell, verdicts.get((cell.experiment, cell.target, cell.accepted), {})) for cell in cells
    )


def _verdicts(file: Path) -> dict[tuple[str, str, int], dict[str, Any]]:
    """Verdicts and ratios by experiment, target and number of points; none without a comparison that can be read."""
    found: dict[tuple[str, str, int], dict[str, Any]] = {}
    with suppress(DataError, KeyError, TypeError):
        for experiment in parse_object(read_text(file), file)["experiments"]:
            pairs = {pair["run"]: pair for pair in experiment["pairs"]}
            for run in experiment["runs"]:
                pair = pairs.get(run["label"], {"verdict": "reference", "ratio": None})
                ends = {end: pair.get(f"ratio_{end}") for end in ("low", "high")}
                ratio = None if pair["ratio"] is None else Interval(value=pair["ratio"], **ends)
                key = experiment["experiment"], run["label"], run["accepted_points"]
                found[key] = {"verdict": pair["verdict"], "ratio": ratio}
    return found


def _record(folder: CampaignDirectory, cell: Cell, verdict: Mapping[str, Any]) -> CellRecord:
    found: dict[str, Any] = dict.fromkeys(("metric", "unit", "first_at", "last_at", "verdict", "flags"), "")
    found |= dict.fromkeys(("first", "last", "ratio", *_COSTS)) | {"model": (), "what": sizing.summary(cell)}
    if cell.state == MEASURED:
        try:
            found |= {**_values(Run.open(folder.run(cell.run))), **verdict}
        except P4PerfError as error:
            found["what"] += f"; {error.message}"
    return CellRecord.read(cell, **found)


_COSTS = ("first_cost_cycles_per_packet", "last_cost_cycles_per_packet", "slope_cycles_per_packet")


def _values(run: Run) -> dict[str, Any]:
    """What a run measured, by keys of a cell."""
    ends = metric_ends(run.table, COST, [run.variable or "point_index"], numeric=run.variable is not None)
    found: dict[str, Any] = dict(zip(_COSTS, ends, strict=True))
    with suppress(DataError):
        found["model"] = run.model.formulas()
    found["flags"] = ", ".join(f"{flag} ({n})" for flag, n in run.flag_counts.items())
    if run.table.empty:
        return found
    rows, found["metric"], found["unit"] = point_rows(run)
    accepted = [row for row in rows if row["n"]]
    for end, row in zip(("first", "last"), accepted[:1] + accepted[-1:], strict=False):
        found[end] = Interval(value=row["median"], low=row["low"], high=row["high"])
        found[f"{end}_at"] = ", ".join(f"{name}={row[name]}" for name in run.columns if name != "point_index")
    return found


def _machine(folder: CampaignDirectory, measured: Sequence[Cell]) -> str:
    if not measured:
        return "Nothing was measured"
    manifest = Run.open(folder.run(measured[0].run)).manifest
    machine, kernel = machine_text(manifest), manifest.node.text("kernel")
    return f"{machine}, Linux {kernel}" if kernel else machine
