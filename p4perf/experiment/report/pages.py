"""Pages of comparisons, predictions and claims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from p4perf.errors import P4PerfError
from p4perf.evaluation.plots.style import UNITS
from p4perf.evaluation.prediction.record import PredictDocument
from p4perf.evaluation.report.figures import DrawnSeries, lower_panel, series_figure
from p4perf.experiment import compare
from p4perf.experiment.prediction import current_keys
from p4perf.experiment.report.runs import RunPage, axis_text, measure_text
from p4perf.records import counted, mismatch


@dataclass(frozen=True)
class Compared:
    """One experiment of a comparison, as it stands in ``comparison.json``, with its rows."""

    record: Mapping[str, Any]
    rows: tuple[Mapping[str, Any], ...]

    @property
    def experiment(self) -> str:
        return str(self.record["experiment"])

    @property
    def runs(self) -> list[str]:
        """The names of the run directories."""
        return [Path(str(run["run"])).name for run in self.record["runs"]]


def stored(content: Mapping[str, Any]) -> list[Compared]:
    """The experiments of a comparison; a ValueError says where it is damaged."""
    if wrong := mismatch(compare.ComparisonDocument, content):
        raise ValueError(wrong)
    rows: dict[str, list[Mapping[str, Any]]] = {}
    for row in content["rows"]:
        rows.setdefault(row["experiment"], []).append(row)
    return [Compared(record, tuple(rows.get(record["experiment"], ()))) for record in content["experiments"]]


MOST_COMPARED = 6
"""Most runs of one target and machine that are compared point by point; there is a history of all of them."""


def missing(pages: Sequence[RunPage], known: Sequence[Compared]) -> tuple[list[Compared], list[str]]:
    """Comparisons of experiments with several runs that no stored one holds, and why some cannot be compared."""
    have = {compared.experiment for compared in known}
    groups: dict[tuple[str, tuple[str, ...]], list[RunPage]] = {}
    for page in pages:
        numeric = page.figure is not None and page.figure["scale"] != "category"
        if page.experiment not in have and page.accepted and numeric and len(page.variables) == 1:
            groups.setdefault((page.experiment, page.variables), []).append(page)
    found: list[Compared] = []
    notes = []
    for (name, _), group in groups.items():
        if len(group) > 1:
            try:
                found += stored(compare.comparison_document(compare.compare_runs(_newest(group))).as_dict())
            except P4PerfError as error:
                notes.append(f"{name}: its runs cannot be compared: {error.message}")
    return found, notes


def _newest(group: Sequence[RunPage]) -> list[Path]:
    """The newest run of each target and machine; of a single one the newest few runs."""
    ordered = sorted(group, key=lambda page: (page.created, page.name))
    places = {(page.target, page.place): page for page in ordered}
    chosen = places.values() if len(places) > 1 else ordered[-MOST_COMPARED:]
    return [page.path for page in group if page in chosen]


def comparison_context(compared: Compared, pages: Mapping[str, RunPage], hrefs: Mapping[str, str]) -> dict[str, Any]:
    record = compared.record
    labels = [run["label"] for run in record["runs"]]
    points: dict[float, dict[str, Mapping[str, Any]]] = {}
    for row in compared.rows:
        points.setdefault(row["x"], {})[row["run"]] = row
    names = {run["label"]: name for run, name in zip(record["runs"], compared.runs, strict=True)}
    unit = UNITS.get(record["unit"], record["unit"])
    return {
        "compared": record,
        "measure": measure_text(str(record["metric"]), str(record["unit"])),
        "labels": labels,
        "others": [label for label in labels if label != record["reference"]],
        "points": [{"x": x, "runs": points[x]} for x in sorted(points)],
        "verdicts": [{**pair, "crossings": _crossings(pair["crossings"])} for pair in record["pairs"]],
        "cautions": compare.target_cautions(run["target"] for run in record["runs"]),
        "differences": [compare.KeyDifference.read(difference).text() for difference in record["differences"]],
        "runs": [
            {
                **run,
                "created": str(run["created"])[:16].replace("T", " "),
                "href": hrefs.get(names[run["label"]], ""),
                "formulas": (run["model"] or {}).get("formulas", []),
            }
            for run in record["runs"]
        ],
        "drawn": _figure(compared, names, pages, unit),
    }


def _figure(
    compared: Compared, names: Mapping[str, str], pages: Mapping[str, RunPage], unit: str
) -> dict[str, Any] | None:
    record = compared.record
    scales = [figure["scale"] for name in names.values() if name in pages and (figure := pages[name].figure)]
    series = []
    for run in record["runs"]:
        label = run["label"]
        rows = [row for row in compared.rows if row["run"] == label and row["median"] is not None]
        page, lines = pages.get(names[label]), []
        if page is not None and page.metric == record["metric"] and page.figure is not None:
            lines = page.figure["lines"]
        formulas = (run["model"] or {}).get("formulas", ())
        model = " | ".join(text.removeprefix(f"{record['metric']} = ") for text in formulas)
        series.append(DrawnSeries(label, model, rows, lines))
    if not any(each.points for each in series):
        return None
    labels = {
        "x": record["variable"],
        "y": axis_text(str(record["metric"]), str(unit)),
        "title": f"{record['metric'].replace('_', ' ')} of {compared.experiment} on {', '.join(names)}",
    }
    ratios = [
        (pair["run"], [[p["x"], p["ratio"], p["ratio_low"], p["ratio_high"]] for p in pair["ratios"]])
        for pair in record["pairs"]
    ]
    lower = lower_panel(f"ratio to {record['reference']}", 1, ratios)
    return series_figure(series, lower, labels=labels, scale=scales[0] if scales else "linear")


def _crossings(found: Any) -> str:
    if found is None:
        return "no models to compare"
    return ", ".join(f"{c['x']:.4g}{'' if c['sure'] else ' (unsure)'}" for c in found) or "none"


MOST_BARS = 25
"""Most bars of a cost breakdown in a figure; the rest is one bar."""


@dataclass(frozen=True)
class DocumentPage:
    folder: str
    name: str
    text: str
    what: str
    template: str
    context: Mapping[str, Any]


def damaged(path: Path | str, error: Exception) -> str:
    missing = " is missing" if isinstance(error, KeyError) else ""
    return f"{path} is damaged or of another version of p4perf: {error}{missing}"


def documents(stored: Sequence[tuple[Path, Mapping[str, Any]]], notes: list[str]) -> list[DocumentPage]:
    """The pages of predictions and claims; what cannot be read is noted."""
    found: list[DocumentPage] = []
    for path, content in stored:
        try:
            found += (_predictions if content["kind"] == "predict" else _claims)(path, content)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            notes.append(damaged(path, error))
    return found


# --- predictions


def _predictions(path: Path, content: Mapping[str, Any]) -> list[DocumentPage]:
    found = []
    if content["schema_version"] == 1:
        content = current_keys(content)
    if wrong := mismatch(PredictDocument, content):
        raise ValueError(wrong)
    for each in content["predictions"]:
        values = (f"{k}={v}" for k, v in each["values"].items())
        words = [each["program"], *values, *map(str, each["changes"]), each["model"]["target"]]
        heading = f"{' '.join(words[:-1])} on {words[-1]}"
        what = f"predicted: {each['cycles']['value']:.4g} cycles/packet"
        context = _prediction(each, content["path"], path)
        found.append(DocumentPage("predictions", "--".join(words)[:120], heading, what, "prediction", context))
    return found


def _prediction(each: Mapping[str, Any], chosen: str, path: Path) -> dict[str, Any]:
    paths = {str(found["path"]): found for found in each["paths"]}
    breakdown = _breakdown(paths[chosen])
    return {
        "prediction": each,
        "chosen": chosen,
        "breakdown": breakdown,
        "file": path.name,
        "paths": [{"name": name, **found} for name, found in paths.items()],
        "bars": _bars(breakdown),
    }


def _breakdown(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The lines of a cost breakdown, those of the same construct, part and source added up; the highest cost first.

    What has no price has no cycles, rather than none at all.
    """
    lines: dict[tuple[str, str, str, str], dict[str, Any]] = {}
    for name in ("baseline", "interaction"):
        value = found.get(f"{name}_cycles")
        if value:
            lines[name, "", "", ""] = {"times": 1.0, "cycles": value, "low": value, "high": value, "where": ""}
    for line in found["breakdown"]:
        if line["basis"] == "unknown":
            line = {**line, **dict.fromkeys(("cycles", "low", "high"))}
        key = (str(line["construct"]), str(line["part"]), str(line["basis"]), str(line["source"]))
        known = lines.setdefault(key, {"times": 0.0, "cycles": 0.0, "low": 0.0, "high": 0.0, "where": line["where"]})
        for column in ("times", "cycles", "low", "high"):
            known[column] = _sum(known[column], line[column])
        if line["where"] not in known["where"].split("; "):
            known["where"] += f"; {line['where']}"
    rows = [
        {"construct": construct, "part": part, "basis": basis, "source": source, **values}
        for (construct, part, basis, source), values in lines.items()
    ]
    return sorted(rows, key=lambda row: -(row["cycles"] or 0.0))


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


@dataclass(frozen=True)
class BreakdownBar:
    """A bar of a cost breakdown; ``share``, and the ends of its interval, in % of what the longest one reaches."""

    name: str
    cycles: float
    low: float | None
    high: float | None
    source: str
    share: float
    ends: tuple[float, float] | None


def _bars(breakdown: Sequence[Mapping[str, Any]]) -> list[BreakdownBar]:
    totals: dict[str, list[Any]] = {}
    for row in breakdown:
        name = f"{row['construct']} ({row['part']})" if row["part"] else row["construct"]
        known = totals.setdefault(name, [name, 0.0, 0.0, 0.0, row["source"]])
        for at, column in enumerate(("cycles", "low", "high"), 1):
            known[at] = _sum(known[at], row[column])
    bars = [bar for bar in totals.values() if bar[1] is not None]
    bars.sort(key=lambda bar: -bar[1])
    rest = sum(bar[1] for bar in bars[MOST_BARS:])
    bars = [*bars[:MOST_BARS], *([[f"{len(bars) - MOST_BARS} others", rest, None, None, ""]] if rest else [])]
    whole = max((value for bar in bars for value in bar[1:4] if value is not None), default=0.0) or 1.0
    return [_bar(bar, 100 / whole) for bar in bars]


def _bar(bar: Sequence[Any], scale: float) -> BreakdownBar:
    name, cycles, low, high, source = bar
    ends = None
    if low is not None and high is not None and low < high:
        ends = (round(scale * max(low, 0.0), 2), round(scale * (high - max(low, 0.0)), 2))
    return BreakdownBar(name, cycles, low, high, source, round(scale * max(cycles, 0.0), 2), ends)


# --- claims


def _claims(path: Path, content: Mapping[str, Any]) -> list[DocumentPage]:
    claims = list(content["claims"].values())
    titles = {paper["paper"]: paper for paper in content.get("papers", ())}
    groups: dict[str, list[Mapping[str, Any]]] = {}
    verdicts = Counter(" ".join(filter(None, (claim.get("evidence"), claim["verdict"]))) for claim in claims)
    for claim in claims:
        groups.setdefault(str(claim["paper"]), []).append(_claim(claim))
    unexpected = sum(not claim["as_expected"] for claim in claims)
    context = {
        "papers": [{"key": key, **titles.get(key, {}), "claims": groups[key]} for key in sorted(groups)],
        "verdicts": sorted(verdicts.items()),
        "reproduced": verdicts["independent reproduced"] + verdicts["independent shape reproduced"],
        "unexpected": unexpected,
        "created": str(content["created"])[:16].replace("T", " "),
    }
    text = f"{counted(len(claims), 'claim')} of {counted(len(groups), 'paper')}, checked again"
    return [
        DocumentPage("claims", path.parent.name or "claims", text, f"{unexpected} not as expected", "claims", context)
    ]


def _claim(claim: Mapping[str, Any]) -> dict[str, Any]:
    keys = ("claim", "source", "text", "kind", "command", "paper_value", "our_value", "verdict", "expected", "reason")
    return {
        **{key: str(claim[key] or "") for key in keys},
        "inference": str(claim.get("inference") or ""),
        "evidence": str(claim.get("evidence") or ""),
        "as_expected": bool(claim["as_expected"]),
        "run": str(claim["run"] or ""),
    }
