"""The same experiment on the same target and machine, again and again: how its cost changed, and what the gate says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from p4perf.errors import P4PerfError
from p4perf.evaluation.comparison.drift import ASSUMED
from p4perf.evaluation.comparison.ratios import ComparisonOutcome
from p4perf.evaluation.report.figures import DrawnSeries, lower_panel, series_figure
from p4perf.experiment.gate import GateRow, gate_runs
from p4perf.experiment.report.runs import RunPage, axis_text

MOST_RUNS = 40
"""Most runs of a history, the newest."""
RATIO = "ratio to the previous run"


@dataclass(frozen=True)
class JudgedRun:
    """A run, and how it compares with the one before it: the row of the gate, or why there is none."""

    page: RunPage
    row: GateRow | None
    reason: str

    @property
    def verdict(self) -> str:
        return "" if self.row is None else self.row.verdict


@dataclass(frozen=True)
class RunHistory:
    """Runs of an experiment on a target and a machine, the oldest first."""

    experiment: str
    target: str
    runs: tuple[JudgedRun, ...]

    @property
    def newest(self) -> JudgedRun:
        return self.runs[-1]


def histories(pages: Sequence[RunPage]) -> list[RunHistory]:
    """What was measured several times, over the same variables in the same place, in the order of the pages."""
    groups: dict[tuple[str, str, tuple[str, ...]], list[RunPage]] = {}
    for page in pages:
        if page.accepted:
            groups.setdefault((page.experiment, page.target, (*page.place, *page.variables)), []).append(page)
    return [
        RunHistory(experiment, target, tuple(_judged(sorted(group, key=lambda p: (p.created, p.name))[-MOST_RUNS:])))
        for (experiment, target, _), group in groups.items()
        if len(group) > 1
    ]


def _judged(pages: Sequence[RunPage]) -> list[JudgedRun]:
    found = [JudgedRun(pages[0], None, "the first run")]
    for before, page in pairwise(pages):
        try:
            (row,) = gate_runs([before.path], [page.path], drift=ASSUMED).rows
            found.append(JudgedRun(page, row, row.reason))
        except P4PerfError as error:
            found.append(JudgedRun(page, None, error.message))
    return found


def history_context(history: RunHistory, hrefs: Mapping[str, str]) -> dict[str, Any]:
    """What the page of a history shows, but for its figure."""
    rows = [
        {
            "page": each.page,
            "href": hrefs.get(each.page.name, ""),
            "verdict": each.verdict,
            "bad": each.row is not None and each.row.regression,
            "unsure": each.verdict == ComparisonOutcome.NO_VERDICT,
            "ratio": None if each.row is None else each.row.ratio,
            "reason": each.reason,
        }
        for each in history.runs
    ]
    return {"history": history, "rows": rows, "drift_percent": 100 * ASSUMED}


def history_figure(history: RunHistory) -> dict[str, Any] | None:
    """The metric at the first and at the last point that all runs have, run by run; below, the ratios of the gate."""
    names = _names([each.page for each in history.runs])
    known = [{p["at"]: p for p in each.page.points if p["n"]} for each in history.runs]
    shared = [at for at in known[0] if all(at in points for points in known)]
    page = history.newest.page
    if not shared or any(each.page.metric != page.metric for each in history.runs):
        return None
    series = []
    for at in dict.fromkeys((shared[0], shared[-1])):
        points = [{**found[at], "x": name} for name, found in zip(names, known, strict=True)]
        line = {"x": names, "y": [p["median"] for p in points], "low": None, "high": None}
        name = f"at {', '.join(page.variables)} = {at}" if page.variables != ("point_index",) else "the only point"
        series.append(DrawnSeries(name, "", points, (line,)))
    ratios = [
        [name, row.ratio.value, row.ratio.low, row.ratio.high]
        for name, each in zip(names, history.runs, strict=True)
        if (row := each.row) is not None and row.ratio is not None
    ]
    if ratios:
        series.append(DrawnSeries(RATIO, "", ()))
    labels = {
        "x": "run",
        "y": axis_text(page.metric, page.unit),
        "title": f"{page.metric.replace('_', ' ')} of {history.experiment} on {history.target}, run by run",
    }
    return series_figure(series, lower_panel("ratio", 1, [(RATIO, ratios)]), labels=labels, scale="category")


def _names(pages: Sequence[RunPage]) -> list[str]:
    """A short name of each run: its day and commit, or its time where there is none; numbered if that is not enough."""
    names = [f"{page.date} {page.commit[:7] or page.created[11:]}" for page in pages]
    return [f"{name} #{names[: n + 1].count(name)}" if names.count(name) > 1 else name for n, name in enumerate(names)]
