"""The report of a campaign: what every component costs on every target, or why that is not known."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from p4perf.errors import DataError, P4PerfError
from p4perf.evaluation.report import render_page
from p4perf.experiment.compare import RunComparison, compare_runs
from p4perf.experiment.comparison_files import write_comparison
from p4perf.experiment.evaluate import COST, metric_ends
from p4perf.experiment.outputs import json_text
from p4perf.experiment.sizing import FAILED, MEASURED, OPEN, REFUSED, UNAVAILABLE, Cell, accepted_share, summary
from p4perf.records import Record, doc
from p4perf.results import Run
from p4perf.results.campaign import CampaignDirectory
from p4perf.results.files import csv_text
from p4perf.specs import ExperimentSpec, load_experiment
from p4perf.specs.sweep import variable_names
from p4perf.version import __version__

_COMPARISON = "comparison"


@dataclass(frozen=True, slots=True)
class Report:
    """The files of a report, the first for people, and the share of the planned points that have accepted trials.

    ``note`` is what the reader should know, such as why there is no comparison; empty if nothing.
    """

    files: tuple[Path, ...]
    accepted_share: float
    note: str = ""


@dataclass(frozen=True, slots=True)
class CellResult:
    """What one experiment came to on one target.

    ``first`` and ``last`` are medians of the cost over the baseline (cycles/packet) at the first and last measured
    point; ``slope`` is their difference over that of the swept variable. None where there is no such number.
    """

    cell: Cell
    first: float | None = None
    last: float | None = None
    slope: float | None = None
    model: tuple[str, ...] = ()
    flags: str = ""
    verdict: str = ""

    @property
    def short(self) -> str:
        """The state in a word or two."""
        if self.cell.state != MEASURED:
            return self.cell.state
        return "measured" if self.cell.accepted else "no accepted point"

    @property
    def summary(self) -> str:
        return summary(self.cell)


class CellRecord(Record):
    """What became of one experiment on one target."""

    experiment: str = doc("name of the experiment", of="cell.experiment")
    target: str = doc("target", of="cell.target")
    state: str = doc("as in [campaign](#campaign)", of="cell.state")
    reason: str = doc("why it is not measured", of="cell.reason")
    points: int = doc("points that were planned", of="cell.points")
    full_points: int = doc("points of the whole sweep, refused ones too", of="cell.full_points")
    accepted: int = doc("points with accepted trials", of="cell.accepted")
    refused_points: tuple[str, ...] = doc(
        "points beyond a limit of the target, with the reason", of="cell.refused_points"
    )
    failed_points: tuple[str, ...] = doc("points that failed, with the reason", of="cell.failed_points")
    repetitions: int = doc("accepted trials that each point was to have", of="cell.repetitions")
    trials: int = doc("trials on disk", of="cell.trials")
    wall_s: float = doc("time that it took", "s", of="cell.wall_s")
    first_cost_cycles_per_packet: float | None = doc(
        "median of the cost over the baseline at the first accepted point", "cycles/packet", of="first"
    )
    last_cost_cycles_per_packet: float | None = doc("at the last one", "cycles/packet", of="last")
    slope_cycles_per_packet: float | None = doc(
        "their difference over that of the variable; null if several or words are swept", "cycles/packet", of="slope"
    )
    model: tuple[str, ...] = doc("functions of the segments, for people")
    verdict: str = doc("`reference`, or the verdict of the comparison with the reference")
    flags: str = doc("flags of the accepted trials, with their numbers")
    run: str = doc("path of its run directory in this folder", of="cell.run")


class ReportFile(Record):
    """The content of ``report.json``."""

    accepted_share: float = doc("planned points that have accepted trials", "ratio")
    cells: tuple[CellRecord, ...] = doc("")


def write_report(folder: CampaignDirectory, cells: Sequence[Cell]) -> Report:
    """Write ``report.html``, ``report.json``, ``report.csv`` and, for several targets, the folder ``comparison``."""
    content = folder.content()
    overrides = [(str(key), str(value)) for key, value in content["overrides"]]
    targets = [str(t) for t in content["targets"]]
    comparison, plots, note = _comparison(folder, cells)
    verdicts = _verdicts(comparison)
    results = {(c.experiment, c.target): _result(folder.path, c, verdicts) for c in cells}
    share = accepted_share(cells)
    numbers = ReportFile(accepted_share=share, cells=tuple(CellRecord.read(r) for r in results.values()))
    measured = [c for c in cells if c.state == MEASURED]
    states = Counter(c.state for c in cells)
    files = [
        folder.write_text(
            "report.html",
            render_page(
                "campaign.html.j2",
                title=f"{len(content['experiments'])} experiments on {', '.join(targets)}",
                machine=_machine(folder.path, measured),
                created=content["created"][:16].replace("T", " "),
                spent_s=float(content["spent_s"]),
                budget_s=content["budget_s"],
                accepted=sum(c.accepted for c in cells),
                planned=sum(c.points for c in cells),
                accepted_share=share,
                pairs=len(cells),
                states={state: states[state] for state in (MEASURED, REFUSED, UNAVAILABLE, FAILED, OPEN)},
                thinned=sum(c.thinned for c in measured),
                fewer_repetitions=sum(c.repetitions < c.full_repetitions for c in measured),
                note=note,
                targets=targets,
                rows=[
                    _row(load_experiment(source, overrides=overrides).spec, targets, results, plots)
                    for source in content["sources"]
                ],
                overview=plots.get("overview"),
                ranks=comparison.ranks if comparison else (),
                version=__version__,
            ),
        ),
        folder.write_text("report.json", json_text(numbers)),
        folder.write_text("report.csv", csv_text([_flat(cell.as_dict()) for cell in numbers.cells])),
    ]
    return Report(tuple(files), share, note)


def _comparison(folder: CampaignDirectory, cells: Sequence[Cell]) -> tuple[RunComparison | None, dict[str, str], str]:
    """The comparison of all experiments that several targets measured, its plots by experiment, and why there is none.

    Sweeps of several variables and of none have no curves to compare.
    """
    found = {c: Run.open(folder.path / c.run) for c in cells if c.state == MEASURED and c.accepted}
    found = {c: run for c, run in found.items() if run.variable}
    several = Counter(c.experiment for c in found)
    paths = [run.path for c, run in found.items() if several[c.experiment] > 1]
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


def _verdicts(comparison: RunComparison | None) -> dict[tuple[str, str], str]:
    found: dict[tuple[str, str], str] = {}
    for experiment in comparison.experiments if comparison else ():
        numbers = experiment.comparison
        found[(numbers.experiment, numbers.reference)] = "reference"
        for pair in numbers.pairs:
            verdict = pair.verdict
            ratio = f" ({verdict.ratio.value:.3g} times)" if verdict.ratio else ""
            found[(numbers.experiment, pair.run)] = f"{verdict.outcome.value}{ratio}"
    return found


def _result(folder: Path, cell: Cell, verdicts: dict[tuple[str, str], str]) -> CellResult:
    if cell.state != MEASURED:
        return CellResult(cell)
    run = Run.open(folder / cell.run)
    first, last, slope = metric_ends(run.table, COST, [run.variable or "point_index"], numeric=run.variable is not None)
    try:
        formulas = run.model.formulas()
    except DataError:
        formulas = ()
    flags = ", ".join(f"{flag} ({n})" for flag, n in run.flag_counts.items())
    return CellResult(cell, first, last, slope, formulas, flags, verdicts.get((cell.experiment, cell.target), ""))


def _machine(folder: Path, measured: Sequence[Cell]) -> str:
    if not measured:
        return "Nothing was measured"
    manifest = Run.open(folder / measured[0].run).manifest
    pages = "hugepages" if manifest.hugepages else "4 KiB pages"
    facts = (("DPDK", manifest.node.text("dpdk_version")), ("Linux", manifest.node.text("kernel")))
    versions = [f"{name} {version}" for name, version in facts if version]
    return ", ".join([manifest.node.text("cpu_model", "unknown processor"), *versions, pages])


def _row(
    spec: ExperimentSpec, targets: Sequence[str], results: dict[tuple[str, str], CellResult], plots: dict[str, str]
) -> dict[str, Any]:
    return {
        "spec": spec,
        "variable": spec.variable or ", ".join(variable_names(spec.sweep)),
        "results": [results[spec.name, target] for target in targets],
        "plot": plots.get(spec.name),
    }


def _flat(record: dict[str, Any]) -> dict[str, Any]:
    return {key: "; ".join(value) if isinstance(value, list) else value for key, value in record.items()}
