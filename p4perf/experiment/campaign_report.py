"""The report of a campaign: what every component costs on every target, or why that is not known."""

from __future__ import annotations

import csv
import io
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from p4perf.errors import DataError, P4PerfError
from p4perf.evaluation.report import render_page
from p4perf.experiment.campaign import FAILED, MEASURED, REFUSED, Cell, accepted_share, summary
from p4perf.experiment.compare import RunComparison, compare_runs
from p4perf.experiment.comparison_files import write_comparison
from p4perf.experiment.evaluate import COST, flag_counts, swept_variable
from p4perf.models.component import ComponentModel
from p4perf.results import RunDirectory
from p4perf.results.campaign import CampaignDirectory
from p4perf.results.files import strict_json
from p4perf.specs import ExperimentSpec, load_experiment
from p4perf.version import __version__

_COMPARISON = "comparison"
_UNLIMITED_S = 1e9


@dataclass(frozen=True, slots=True)
class Report:
    """The files of a report, the first for people, and the share of the planned points that have accepted trials."""

    files: tuple[Path, ...]
    accepted_share: float


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
        return self.cell.state if self.cell.state != MEASURED else "no accepted point"


def write_report(folder: CampaignDirectory, cells: Sequence[Cell]) -> Report:
    """Write ``report.html``, ``report.json``, ``report.csv`` and, for several targets, the folder ``comparison``.

    Raises:
        DataError: a run of the campaign is damaged.
        StorageError: a file cannot be written.
    """
    content = folder.content()
    targets = [str(t) for t in content["targets"]]
    comparison, plots = _comparison(folder, cells)
    verdicts = _verdicts(comparison)
    results = {(c.experiment, c.target): _result(folder.path, c, verdicts) for c in cells}
    share = accepted_share(cells)
    records = [_record(r) for r in results.values()]
    measured = [c for c in cells if c.state == MEASURED]
    planned_cells = len(content["experiments"]) * len(targets)
    files = [
        folder.write_text(
            "report.html",
            render_page(
                "campaign.html.j2",
                title=f"{len(content['experiments'])} experiments on {', '.join(targets)}",
                machine=_machine(folder.path, measured),
                created=str(content["created"])[:16].replace("T", " "),
                spent_s=float(content["spent_s"]),
                budget_s=None if content["budget_s"] >= _UNLIMITED_S else float(content["budget_s"]),
                accepted=sum(c.accepted for c in cells),
                planned=sum(c.points for c in cells),
                accepted_share=share,
                measured_cells=len(measured),
                refused_cells=sum(c.state == REFUSED for c in cells),
                failed_cells=sum(c.state == FAILED for c in cells),
                missing=planned_cells - len(cells),
                thinned=sum(c.points + len(c.refused_points) < c.full_points for c in measured),
                fewer_repetitions=sum(c.repetitions < c.full_repetitions for c in measured),
                cells=cells,
                targets=targets,
                rows=[_row(name, targets, results, plots) for name in content["experiments"]],
                overview=plots.get("overview"),
                ranks=_ranks(comparison),
                version=__version__,
            ),
        ),
        folder.write_text("report.json", strict_json({"accepted_share": share, "cells": records}, indent=2) + "\n"),
        folder.write_text("report.csv", _csv(records)),
    ]
    return Report(tuple(files), share)


def _comparison(folder: CampaignDirectory, cells: Sequence[Cell]) -> tuple[RunComparison | None, dict[str, str]]:
    """The comparison of all experiments that several targets measured, and its plots by experiment."""
    several = Counter(c.experiment for c in cells if c.state == MEASURED and c.accepted)
    paths = [folder.path / c.run for c in cells if c.state == MEASURED and c.accepted and several[c.experiment] > 1]
    if not paths:
        return None, {}
    try:
        comparison = compare_runs(paths)
    except P4PerfError as error:
        raise DataError(f"the runs of {folder.path} cannot be compared: {error.message}", hint=error.hint) from error
    place = folder.path / _COMPARISON
    _, files = write_comparison(comparison, place, datetime.now().astimezone())
    pictures = [os.path.relpath(path, folder.path) for path in files if path.suffix == ".svg"]
    names = [e.comparison.experiment for e in comparison.experiments]
    plots = dict(zip(names, pictures, strict=False))
    if len(pictures) > len(names):
        plots["overview"] = pictures[-1]
    return comparison, plots


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


def _ranks(comparison: RunComparison | None) -> list[dict[str, Any]]:
    rows = []
    for rank in comparison.ranks if comparison else ():
        found, rho = rank.correlation, rank.correlation.spearman
        rows.append(
            {
                "a": rank.a,
                "b": rank.b,
                "definition": rank.definition,
                "n": found.components,
                "verdict": found.verdict,
                "rho": rho and rho.value,
                "low": rho and rho.low,
                "high": rho and rho.high,
            }
        )
    return rows


def _result(folder: Path, cell: Cell, verdicts: dict[tuple[str, str], str]) -> CellResult:
    if cell.state != MEASURED:
        return CellResult(cell)
    run = RunDirectory.open(folder / cell.run)
    spec = load_experiment(str(run.path / "spec.yaml")).spec
    first, last, slope = _ends(run, spec)
    flags = ", ".join(f"{flag} ({n})" for flag, n in flag_counts(run).items())
    return CellResult(cell, first, last, slope, _formulas(run), flags, verdicts.get((cell.experiment, cell.target), ""))


def _ends(run: RunDirectory, spec: ExperimentSpec) -> tuple[float | None, float | None, float | None]:
    variable = swept_variable(spec)
    table = run.read_measurements()
    rows = table[(table["metric"] == COST) & table["accepted"]]
    if rows.empty:
        return None, None, None
    if variable is None or variable not in rows:
        middle = float(rows["value"].median())
        return middle, middle, None
    medians = rows.groupby(variable)["value"].median().sort_index()
    first, last = float(medians.iloc[0]), float(medians.iloc[-1])
    try:
        width = float(medians.index[-1]) - float(medians.index[0])
    except (TypeError, ValueError):
        width = 0.0
    return first, last, (last - first) / width if width else None


def _formulas(run: RunDirectory) -> tuple[str, ...]:
    try:
        return ComponentModel.from_json(run.read_model()).formulas()
    except DataError:
        return ()


def _machine(folder: Path, measured: Sequence[Cell]) -> str:
    if not measured:
        return "Nothing was measured"
    manifest = RunDirectory.open(folder / measured[0].run).manifest()
    node = manifest.get("node", {})
    pages = "hugepages" if manifest.get("hugepages") else "4 KiB pages"
    versions = [f"{name} {node[key]}" for name, key in (("DPDK", "dpdk_version"), ("Linux", "kernel")) if node.get(key)]
    return ", ".join([str(node.get("cpu_model", "unknown processor")), *versions, pages])


def _row(
    name: str, targets: Sequence[str], results: dict[tuple[str, str], CellResult], plots: dict[str, str]
) -> dict[str, Any]:
    spec = load_experiment(name).spec
    variable = swept_variable(spec) or ""
    absent = Cell(spec.name, "", FAILED, "not reached within the budget")
    cells = []
    for target in targets:
        result = results.get((name, target)) or CellResult(absent)
        cell = result.cell
        cells.append(
            {
                "target": target,
                "state": cell.state,
                "first": result.first,
                "last": result.last,
                "slope": result.slope,
                "accepted": cell.accepted,
                "points": cell.points,
                "short": result.short,
                "what": summary(cell),
                "refused_points": cell.refused_points,
                "failed_points": cell.failed_points,
                "model": result.model,
                "verdict": result.verdict,
                "flags": result.flags,
                "run": cell.run,
            }
        )
    metric = spec.model.y if spec.model is not None else spec.metrics.collect[0]
    return {
        "experiment": spec.name,
        "anchor": spec.name.replace("/", "-"),
        "title": spec.title,
        "metric": metric,
        "variable": variable,
        "cells": cells,
        "plot": plots.get(spec.name),
    }


def _record(result: CellResult) -> dict[str, Any]:
    cell = result.cell
    return {
        "experiment": cell.experiment,
        "target": cell.target,
        "state": cell.state,
        "reason": cell.reason,
        "points": cell.points,
        "full_points": cell.full_points,
        "accepted": cell.accepted,
        "refused_points": list(cell.refused_points),
        "failed_points": list(cell.failed_points),
        "repetitions": cell.repetitions,
        "trials": cell.trials,
        "wall_s": cell.wall_s,
        "first_cost_cycles_per_packet": result.first,
        "last_cost_cycles_per_packet": result.last,
        "slope_cycles_per_packet": result.slope,
        "model": list(result.model),
        "verdict": result.verdict,
        "flags": result.flags,
        "run": cell.run,
    }


def _csv(records: Sequence[dict[str, Any]]) -> str:
    out = io.StringIO()
    if records:
        writer = csv.DictWriter(out, list(records[0]), lineterminator="\n")
        writer.writeheader()
        for record in records:
            writer.writerow({k: "; ".join(v) if isinstance(v, list) else v for k, v in record.items()})
    return out.getvalue()
