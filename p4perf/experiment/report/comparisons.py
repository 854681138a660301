"""Pages of experiments that several runs measured: from stored comparisons, or compared for the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from p4perf.errors import P4PerfError
from p4perf.evaluation.plots.style import UNITS
from p4perf.experiment.compare import compare_runs
from p4perf.experiment.comparison_files import file_record
from p4perf.experiment.report.runs import RunPage, axis_text


@dataclass(frozen=True)
class Compared:
    """One experiment of a comparison, as it stands in ``comparison.json``, with its rows."""

    record: Mapping[str, Any]
    rows: tuple[Mapping[str, Any], ...]

    @property
    def experiment(self) -> str:
        """Name of the experiment."""
        return str(self.record["experiment"])


def stored(content: Mapping[str, Any]) -> list[Compared]:
    """The experiments of a ``comparison.json``.

    Raises:
        KeyError: it is damaged.
    """
    rows: dict[str, list[Mapping[str, Any]]] = {}
    for row in content["rows"]:
        rows.setdefault(row["experiment"], []).append(row)
    return [Compared(record, tuple(rows.get(record["experiment"], ()))) for record in content["experiments"]]


def missing(pages: Sequence[RunPage], known: Sequence[Compared]) -> tuple[list[Compared], list[str]]:
    """Comparisons of experiments with several runs that no stored one holds, and why some cannot be compared."""
    have = {compared.experiment for compared in known}
    groups: dict[str, list[Path]] = {}
    for page in pages:
        numeric = page.figure is not None and page.figure["scale"] != "category"
        if page.experiment not in have and page.accepted and numeric and len(page.variables) == 1:
            groups.setdefault(page.experiment, []).append(page.path)
    found: list[Compared] = []
    notes = []
    for name, paths in groups.items():
        if len(paths) > 1:
            try:
                found += stored(file_record(compare_runs(paths)))
            except P4PerfError as error:
                notes.append(f"{name}: its runs cannot be compared: {error.message}")
    return found, notes


def comparison_context(compared: Compared, pages: Mapping[str, RunPage], hrefs: Mapping[str, str]) -> dict[str, Any]:
    """What the template of a comparison needs.

    Args:
        compared: the experiment.
        pages: runs of the site by the name of their folder.
        hrefs: their pages, by the same.
    """
    record = compared.record
    labels = [run["label"] for run in record["runs"]]
    points: dict[float, dict[str, Mapping[str, Any]]] = {}
    for row in compared.rows:
        points.setdefault(float(row["x"]), {})[row["run"]] = row
    names = {run["label"]: Path(run["run"]).name for run in record["runs"]}
    unit = UNITS.get(record["unit"], record["unit"])
    return {
        "compared": {**record, "unit": unit},
        "labels": labels,
        "others": [label for label in labels if label != record["reference"]],
        "points": [{"x": x, "runs": points[x]} for x in sorted(points)],
        "verdicts": [{**pair, "crossings": _crossings(pair["crossings"])} for pair in record["pairs"]],
        "differences": [
            f"{d['key']} is {', '.join(f'{value} ({label})' for label, value in d['values'].items())}"
            for d in record["differences"]
        ],
        "runs": [
            {
                **run,
                "created": str(run["created"])[:10],
                "href": hrefs.get(names[run["label"]], ""),
                "formulas": (run["model"] or {}).get("formulas", []),
            }
            for run in record["runs"]
        ],
        "figure": _figure(compared, names, pages, unit),
    }


def _figure(
    compared: Compared, names: Mapping[str, str], pages: Mapping[str, RunPage], unit: str
) -> dict[str, Any] | None:
    record = compared.record
    scales = [figure["scale"] for name in names.values() if name in pages and (figure := pages[name].figure)]
    series = []
    for label, name in names.items():
        rows = [row for row in compared.rows if row["run"] == label and row["median"] is not None]
        page = pages.get(name)
        same = page is not None and page.metric == record["metric"] and page.figure is not None
        series.append(
            {
                "label": label,
                "points": [[row[key] for key in ("x", "median", "low", "high", "n")] for row in rows],
                "parts": page.figure["parts"] if same and page is not None and page.figure is not None else [],
            }
        )
    if not any(run["points"] for run in series):
        return None
    return {
        "kind": "comparison",
        "x": record["variable"],
        "y": axis_text(str(record["metric"]), str(unit)),
        "scale": scales[0] if scales else "linear",
        "series": series,
        "ratios": [
            {
                "run": pair["run"],
                "reference": pair["reference"],
                "points": [[p["x"], p["ratio"], p["ratio_low"], p["ratio_high"]] for p in pair["ratios"]],
            }
            for pair in record["pairs"]
        ],
    }


def _crossings(found: Any) -> str:
    if found is None:
        return "no models to compare"
    return ", ".join(f"{c['x']:.4g}{'' if c['sure'] else ' (unsure)'}" for c in found) or "none"
