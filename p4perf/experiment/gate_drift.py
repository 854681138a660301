"""What a gate takes for the drift between runs: what several runs show, here or on record, or what is assumed.

The record of this machine is kept in ``gate-history.json`` of p4perf's state: an entry for each gate that had several
runs of the same programs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from p4perf.errors import DataError, Location, StorageError
from p4perf.evaluation.comparison.drift import (
    ASSUMED,
    CHANCE,
    LEAST_FREEDOM,
    Drift,
    drift_of,
    pooled,
    with_assumed_drift,
    with_drift,
)
from p4perf.evaluation.comparison.shifts import PointShifts
from p4perf.models.templates import FloatArray
from p4perf.records import Document, Record, doc
from p4perf.results.files import exclusive, json_text, parse_object, read_text, storing, write_text_atomically
from p4perf.testbeds.local import state_folder

RUNS, HISTORY, ASSUMPTION, GIVEN, PAIRS = "runs", "history", "assumed", "given", "pairs"
KEPT = 200
"""Entries of the history that are kept, the newest."""


class HistoryEntry(Record):
    """How far several runs of the same programs were apart."""

    at: str = doc("time of the gate, in UTC")
    machine: str = doc("host, testbed and processor")
    metric: str = doc("metric")
    relative: bool = doc("whether in units of the baseline program")
    components: int = doc("components that had several runs")
    runs: tuple[str, ...] = doc("the runs, with the times at which they were made")
    shared: float = doc("standard deviation between runs, of the part that all components share", "ratio")
    freedom: float = doc("its degrees of freedom")
    own: float = doc("the same, of the part of a single component", "ratio")
    own_freedom: float = doc("its degrees of freedom")


class GateHistory(Document, kind="gate.history"):
    """`p4perf gate --history`: how much runs on this machine differed, one row for each gate with several runs."""

    file: str = doc("path of the file")
    rows: tuple[HistoryEntry, ...] = doc("")


class GateDrift(Record):
    """What a gate takes for the drift between runs of a metric."""

    metric: str = doc("metric")
    basis: str = doc(
        "`pairs` (alternating starts: no drift), `runs` (several runs), `history` (earlier gates, too), `given` "
        "(`--drift`) or `assumed`"
    )
    shared: float = doc("standard deviation between runs, of the part that all components share", "ratio")
    freedom: float | None = doc("its degrees of freedom; null where it is not estimated")
    own: float = doc("the same, of the part of a single component", "ratio")
    own_freedom: float | None = doc("its degrees of freedom; null where it is not estimated")

    def text(self) -> str:
        """One sentence, for people."""
        if self.basis == PAIRS:
            return f"{self.metric}: starts in pairs, no drift between runs"
        if self.freedom is None:
            how = "as given" if self.basis == GIVEN else "not measured: three baseline runs or --interleaved do that"
            return f"{self.metric}: assumes that runs differ by {100 * self.own:.2g} % (standard deviation), {how}"
        known = "their runs and earlier gates" if self.basis == HISTORY else "their runs"
        if not self.own_freedom:
            shown = f"standard deviation from {known}; {self.freedom:.0f} degrees of freedom"
            return f"{self.metric}: runs differ by {100 * self.shared:.2g} % ({shown})"
        return (
            f"{self.metric}: runs differ by {100 * self.shared:.2g} % together and by {100 * self.own:.2g} % each "
            f"(standard deviations from {known}; {self.freedom:.0f} and {self.own_freedom:.0f} degrees of freedom)"
        )


@dataclass(frozen=True)
class RunGroup:
    """Several runs of a component on one side: their names, and levels in the order of time."""

    names: tuple[str, ...] = ()
    levels: FloatArray = field(default_factory=lambda: np.empty(0))


@dataclass(frozen=True)
class ComparedRuns:
    """The runs of a component on both sides; ``paired`` if their starts are pairs."""

    metric: str
    machine: str
    baseline: RunGroup
    new: RunGroup
    baseline_runs: int = 1
    new_runs: int = 1
    paired: bool = False


def with_drifts(
    compared: Sequence[tuple[PointShifts, ComparedRuns]], *, given: float | None, relative: bool, told: list[str]
) -> tuple[list[PointShifts], tuple[GateDrift, ...]]:
    """Shifts that drift explains as far as it is known, and what is taken for it, of each metric.

    What several runs show is put on record; ``told`` gets a warning if that cannot be written.
    """
    shifts = [each for each, _ in compared]
    drifts = [_assumed(metric, PAIRS, 0.0) for metric in dict.fromkeys(c.metric for _, c in compared if c.paired)]
    metrics = list(dict.fromkeys(c.metric for _, c in compared if not c.paired))
    for metric in metrics:
        places = [n for n, (_, c) in enumerate(compared) if c.metric == metric and not c.paired]
        drift, basis = _shown([compared[n][1] for n in places], relative, told)
        if given is None and drift.freedom >= LEAST_FREEDOM:
            drifts.append(GateDrift.read(drift, metric=metric, basis=basis))
            for n in places:
                c = compared[n][1]
                chance = CHANCE / len(metrics)
                shifts[n] = with_drift(shifts[n], drift, c.new_runs, c.baseline_runs, c.baseline.levels, chance)
            continue
        # Two runs alone say too little to be the measure, but what they show may not be ignored.
        deviation = given if given is not None else max(ASSUMED, drift.total)
        drifts.append(_assumed(metric, ASSUMPTION if given is None else GIVEN, deviation))
        for n in places:
            c = compared[n][1]
            shifts[n] = with_assumed_drift(shifts[n], deviation, c.new_runs, c.baseline_runs)
    return shifts, tuple(drifts)


def _assumed(metric: str, basis: str, own: float) -> GateDrift:
    return GateDrift(metric=metric, basis=basis, shared=0, freedom=None, own=own, own_freedom=None)


def _shown(compared: Sequence[ComparedRuns], relative: bool, told: list[str]) -> tuple[Drift, str]:
    """The drift that runs of one metric show, with earlier gates on the same machine, and whether there are some."""
    shown = _entry(compared, relative)
    history = _history_beside(shown, compared, relative, told)
    new = drift_of([c.new.levels for c in compared])
    found = [d for d in (_drift(shown), new, *map(_drift, history)) if d is not None]
    return pooled(found), HISTORY if history else RUNS


def _entry(compared: Sequence[ComparedRuns], relative: bool) -> HistoryEntry | None:
    """What the runs of the baseline show of the drift; None without two runs of any component."""
    groups = [c.baseline for c in compared if len(c.baseline.levels) > 1]
    drift = drift_of([group.levels for group in groups])
    if drift is None:
        return None
    return HistoryEntry.read(
        drift,
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=compared[0].machine,
        metric=compared[0].metric,
        relative=relative,
        components=len(groups),
        runs=tuple(sorted({name for group in groups for name in group.names})),
    )


def _drift(entry: HistoryEntry | None) -> Drift | None:
    return None if entry is None else Drift(entry.shared, entry.freedom, entry.own, entry.own_freedom)


def _history_beside(
    shown: HistoryEntry | None, compared: Sequence[ComparedRuns], relative: bool, told: list[str]
) -> list[HistoryEntry]:
    """What earlier gates on the same machine showed by other runs; puts what is shown now on record."""
    machine, metric = compared[0].machine, compared[0].metric
    if any(c.machine != machine for c in compared):
        return []
    known = read_history()
    if shown is not None:
        known = tuple(entry for entry in known if not _overlap(entry, shown))
        try:
            _keep(shown)
        except StorageError as error:
            told.append(f"the history of gates is not kept: {error.message}")
    return [e for e in known if (e.machine, e.metric, e.relative) == (machine, metric, relative)]


def _overlap(one: HistoryEntry, other: HistoryEntry) -> bool:
    same = (one.metric, one.relative) == (other.metric, other.relative)
    return same and not set(one.runs).isdisjoint(other.runs)


def history_file() -> Path:
    return state_folder() / "gate-history.json"


def read_history() -> tuple[HistoryEntry, ...]:
    """All entries, the oldest first.

    Raises:
        DataError: the file is damaged.
    """
    path = history_file()
    if not path.exists():
        return ()
    try:
        return tuple(_read(row) for row in parse_object(read_text(path), path)["rows"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError("is damaged", location=Location(str(path)), hint="remove it: gates fill it again") from error


def _read(row: dict[str, Any]) -> HistoryEntry:
    numbers = {key: float(row[key]) for key in ("shared", "freedom", "own", "own_freedom")}
    if not all(math.isfinite(value) and value >= 0 for value in numbers.values()):
        raise ValueError("a deviation is none")
    return HistoryEntry(**{**row, **numbers, "runs": tuple(map(str, row["runs"]))})


def _keep(shown: HistoryEntry) -> None:
    """Add an entry, in the place of those that have a run in common with it."""
    path = history_file()
    with storing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    with exclusive(path.with_name(f"{path.name}.lock"), str(path)):
        kept = [entry for entry in read_history() if not _overlap(entry, shown)]
        document = GateHistory(file=str(path), rows=tuple([*kept, shown][-KEPT:]))
        write_text_atomically(path, json_text(document.as_dict()))


def history() -> GateHistory:
    return GateHistory(file=str(history_file()), rows=read_history())


def short_history(found: GateHistory) -> list[dict[str, Any]]:
    """Rows for people: the number of the runs in place of their names, deviations in percent."""
    return [
        {
            "at": row.at,
            "machine": row.machine,
            "metric": f"{row.metric}, relative" if row.relative else row.metric,
            "components": row.components,
            "runs": len(row.runs),
            "together": f"{100 * row.shared:.2g} %",
            "each": f"{100 * row.own:.2g} %" if row.own_freedom else "",
        }
        for row in found.rows
    ]
