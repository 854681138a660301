"""The report of a campaign: what every component costs on every target, or why that is not known."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from p4perf.errors import DataError, P4PerfError
from p4perf.evaluation.report import render_page
from p4perf.experiment.compare import RunComparison, compare_runs
from p4perf.experiment.comparison_files import write_comparison
from p4perf.experiment.evaluate import COST, metric_ends
from p4perf.experiment.sizing import FAILED, MEASURED, OPEN, REFUSED, UNAVAILABLE, Cell, accepted_share, summary
from p4perf.records import Record, doc
from p4perf.results import Run
from p4perf.results.campaign import CampaignDirectory
from p4perf.results.files import csv_text, json_text
from p4perf.specs import load_experiment
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


class CellRecord(Record):
    """What became of one experiment on one target."""

    experiment: str = doc("name of the experiment")
    target: str = doc("target")
    state: str = doc("as in [campaign](#campaign)")
    reason: str = doc("why it is not measured")
    points: int = doc("points that were planned")
    full_points: int = doc("points of the whole sweep, refused ones too")
    accepted: int = doc("points with accepted trials")
    refused_points: tuple[str, ...] = doc("points beyond a limit of the target, with the reason")
    failed_points: tuple[str, ...] = doc("points that failed, with the reason")
    repetitions: int = doc("accepted trials that each point was to have")
    trials: int = doc("trials on disk")
    wall_s: float = doc("time that it took", "s")
    first_cost_cycles_per_packet: float | None = doc(
        "median of the cost over the baseline at the first accepted point", "cycles/packet"
    )
    last_cost_cycles_per_packet: float | None = doc("at the last one", "cycles/packet")
    slope_cycles_per_packet: float | None = doc(
        "their difference over that of the variable; null if several or words are swept", "cycles/packet"
    )
    model: tuple[str, ...] = doc("functions of the segments, for people")
    verdict: str = doc("`reference`, or the verdict of the comparison with the reference")
    flags: str = doc("flags of the accepted trials, with their numbers")
    run: str = doc("path of its run directory in this folder")


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
    by_place = {(c.experiment, c.target): c for c in cells}
    records = {place: _record(folder.path, cell, verdicts.get(place, "")) for place, cell in by_place.items()}
    share = accepted_share(cells)
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
                    {
                        "spec": spec,
                        "variable": spec.variable or ", ".join(variable_names(spec.sweep)),
                        "cells": [records[spec.name, target] for target in targets],
                        "plot": plots.get(spec.name),
                    }
                    for spec in specs
                ],
                summaries={place: summary(cell) for place, cell in by_place.items()},
                overview=plots.get("overview"),
                ranks=comparison.ranks if comparison else (),
                version=__version__,
            ),
        ),
        folder.write_text("report.json", json_text(numbers.as_dict())),
        folder.write_text("report.csv", csv_text(flat)),
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


def _record(folder: Path, cell: Cell, verdict: str) -> CellRecord:
    formulas: tuple[str, ...] = ()
    flags = ""
    ends: tuple[float | None, float | None, float | None] = (None, None, None)
    if cell.state == MEASURED:
        run = Run.open(folder / cell.run)
        ends = metric_ends(run.table, COST, [run.variable or "point_index"], numeric=run.variable is not None)
        with suppress(DataError):
            formulas = run.model.formulas()
        flags = ", ".join(f"{flag} ({n})" for flag, n in run.flag_counts.items())
    return CellRecord.read(
        cell,
        first_cost_cycles_per_packet=ends[0],
        last_cost_cycles_per_packet=ends[1],
        slope_cycles_per_packet=ends[2],
        model=formulas,
        verdict=verdict,
        flags=flags,
    )


def _machine(folder: Path, measured: Sequence[Cell]) -> str:
    if not measured:
        return "Nothing was measured"
    manifest = Run.open(folder / measured[0].run).manifest
    pages = "hugepages" if manifest.hugepages else "4 KiB pages"
    facts = (("DPDK", manifest.node.text("dpdk_version")), ("Linux", manifest.node.text("kernel")))
    versions = [f"{name} {version}" for name, version in facts if version]
    return ", ".join([manifest.node.text("cpu_model", "unknown processor"), *versions, pages])
