"""What a gate compares: runs, campaigns and models, read and put together by experiment and target."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median_low
from typing import Any

import pandas as pd

from p4perf.errors import DataError, P4PerfError, UsageError
from p4perf.evaluation.comparison.drift import run_levels
from p4perf.experiment.compare import require_distinct
from p4perf.experiment.evaluate import BASELINE, plain
from p4perf.experiment.gate_drift import RunGroup
from p4perf.experiment.interleaved import pair_of
from p4perf.experiment.sizing import MEASURED, REFUSED, cell_of
from p4perf.models.component import ComponentModel
from p4perf.results import Run, read_model
from p4perf.results.campaign import CampaignDirectory
from p4perf.results.files import real
from p4perf.results.manifest import NodeFacts, machine_facts
from p4perf.results.table import FIXED_COLUMNS, STARTS_DISAGREE, Samples, rows_of_metric, unit_of

FAR = 5
"""The new runs are far from the baseline if more than that many times its own span, ten minutes or more, is between."""

Key = tuple[str, str]
"""Experiment and target: a component."""

PointKey = tuple[Any, ...]
"""Values of the swept variables, in the order of the variables."""


@dataclass(frozen=True)
class Starts:
    """Accepted starts of every point, with the numbers of their attempts where they are of one run.

    ``disagreeing`` are points whose starts disagree, see :data:`~p4perf.results.table.STARTS_DISAGREE`.
    """

    variables: tuple[str, ...]
    points: Mapping[PointKey, tuple[float, ...]]
    unit: str
    attempts: Mapping[PointKey, tuple[int, ...]] = field(default_factory=dict)
    disagreeing: frozenset[PointKey] = frozenset()

    @property
    def typical(self) -> int:
        """Median of the number of starts of a point."""
        return int(median_low([len(values) for values in self.points.values()] or [0]))

    def samples(self, keys: Sequence[PointKey]) -> Samples:
        """The starts of some points over their numbers: several variables have no other order."""
        return Samples(
            tuple(float(n) for n in range(len(keys))),
            tuple(self.points[key] for key in keys),
            disagreeing=tuple(float(n) for n, key in enumerate(keys) if key in self.disagreeing),
        )


@dataclass(frozen=True)
class GateSide:
    """A component as one side has it: all of its runs together."""

    key: Key
    runs: tuple[Run, ...] = ()
    model: ComponentModel | None = None
    reason: str = ""

    def headline(self) -> str:
        """The metric that is compared by default."""
        return self.model.y.name if self.model is not None else self.runs[0].headline

    def machine(self) -> dict[str, str]:
        """What is known of the machine of the first run, or of the model; nothing if that does not say."""
        if self.model is None:
            return self.runs[0].manifest.machine
        known = self.model.provenance
        node, versions, hugepages = known.get("node"), known.get("versions"), known.get("hugepages")
        if not isinstance(node, dict) or not isinstance(versions, dict):
            return {}
        testbed = str(known.get("testbed", "unknown"))
        return machine_facts(NodeFacts(node), versions, testbed, hugepages if isinstance(hugepages, bool) else None)

    def starts_of_runs(self, metric: str, *, relative: bool = False) -> tuple[Starts, ...]:
        """The starts of each run, in the order in which the runs were made."""
        runs = sorted(self.runs, key=lambda run: run.manifest.created)
        every = tuple(_starts(run.table, metric, relative=relative) for run in runs)
        if len({s.variables for s in every}) > 1:
            swept = " and ".join(", ".join(s.variables) or "nothing" for s in every)
            raise UsageError(f"the runs of {' on '.join(self.key)} sweep different variables: {swept}")
        return every

    @property
    def pair(self) -> str:
        """What the run has in common with the one that it was measured in turns with; empty for all others."""
        return pair_of(self.runs[0].directory.manifest())[0] if len(self.runs) == 1 else ""

    def baseline(self) -> tuple[float, ...]:
        """Cycles of the baseline program in all accepted starts; empty where it was not measured."""
        found: list[float] = []
        for run in self.runs:
            rows = run.table[(run.table["metric"] == BASELINE) & run.table["accepted"].astype(bool)]
            found += [float(v) for v in rows["value"] if math.isfinite(v) and v > 0]
        return tuple(found)


def together(every: Sequence[Starts]) -> Starts:
    """The starts of several runs as one."""
    if len(every) == 1:
        return every[0]
    points: dict[PointKey, tuple[float, ...]] = {}
    for starts in every:
        for key, values in starts.points.items():
            points[key] = points.get(key, ()) + values
    disagreeing = frozenset(key for starts in every for key in starts.disagreeing)
    return Starts(every[0].variables, points, every[0].unit, disagreeing=disagreeing)


def pairs_of(old: Starts, new: Starts, key: PointKey) -> list[tuple[float, float]]:
    """Values of the pairs of a point in which both starts were accepted."""
    before = dict(zip(old.attempts[key], old.points[key], strict=True))
    found = zip(new.attempts[key], new.points[key], strict=True)
    return [(before[attempt], value) for attempt, value in found if attempt in before]


def run_group(side: GateSide, every: Sequence[Starts]) -> RunGroup:
    """What several runs of a side show of the drift between them."""
    shared = set.intersection(*(set(starts.points) for starts in every)) if len(every) > 1 else set()
    if not shared:
        return RunGroup()
    levels = run_levels([starts.samples(sorted(shared, key=str)) for starts in every])
    return RunGroup(tuple(f"{run.name} of {run.manifest.created}" for run in side.runs), levels)


def place_of_run(run: Run) -> str:
    """The machine of a run, as far as drift may depend on it."""
    known = run.manifest
    return ", ".join((str(known.place.get("host", "unknown host")), known.testbed, known.node.text("cpu_model")))


def runs_are_far(old: GateSide, new: GateSide) -> bool:
    """Whether the new runs were made much later than several baseline runs lie apart."""
    before = [datetime.fromisoformat(run.manifest.created) for run in old.runs]
    after = [datetime.fromisoformat(run.manifest.created) for run in new.runs]
    if len(before) < 2:
        return False
    return min(after) - max(before) > FAR * max(max(before) - min(before), timedelta(minutes=10))


def with_partners(old: Mapping[Key, GateSide], new: Mapping[Key, GateSide]) -> dict[Key, GateSide]:
    """Sides of a baseline, those that were measured in turns with a new run under the name of that run."""
    partners = {side.pair: key for key, side in new.items() if side.pair}
    return {partners.get(side.pair, key): side for key, side in old.items()}


def require_other(baseline: Sequence[Path], old: Mapping[Key, GateSide], new: Mapping[Key, GateSide]) -> None:
    """Refuse a run, or a campaign with it, that is compared with itself or with its own model."""
    models = {real(path).parent for path in baseline if path.is_file()}
    known = models | {real(run.path) for side in old.values() for run in side.runs}
    for run in (run for side in new.values() for run in side.runs):
        if real(run.path) in known:
            message = f"{run.path} is its own baseline: compared with itself, nothing is ever slower"
            raise UsageError(message, hint="measure again, and compare the new run with the earlier one")


def read_sides(paths: Sequence[Path]) -> tuple[dict[Key, GateSide], bool]:
    """What is in runs, campaigns and model files, by experiment and target.

    Several runs of the same component become one with the starts of all of them.

    Returns:
        The components, and whether a campaign is among the paths.
    """
    if not paths:
        raise UsageError("nothing to compare is given")
    require_distinct(paths)
    found: dict[Key, GateSide] = {}
    campaign = False
    for path in paths:
        campaign = campaign or CampaignDirectory.is_one(path)
        if path.is_file():
            model = read_model(path)
            parts: Iterable[GateSide] = [GateSide((model.name, model.target), model=model)]
        else:
            parts = _campaign(path) if CampaignDirectory.is_one(path) else [_run(path)]
        for part in parts:
            found[part.key] = _joined(found[part.key], part) if part.key in found else part
    return found, campaign


def _run(path: Path) -> GateSide:
    run = Run.open(path)
    some = not run.table.empty and bool(run.table["accepted"].astype(bool).any())
    reason = "" if some else f"{path.name} has no accepted trial"
    return GateSide((run.spec.name, run.manifest.target), (run,), reason=reason)


def _campaign(path: Path) -> Iterable[GateSide]:
    """The cells of a campaign; those that the target cannot do at all are left out."""
    folder = CampaignDirectory.open(path)
    for entry in folder.content()["cells"]:
        cell = cell_of(entry, folder.file)
        if cell.state == REFUSED:
            continue
        where = folder.run(cell.run) if cell.run else folder.path
        if cell.state != MEASURED or not cell.run:
            reason = f"{cell.state} in {path.name}" + (f": {cell.reason}" if cell.reason else "")
            yield GateSide((cell.experiment, cell.target), reason=reason)
            continue
        try:
            yield _run(where)
        except P4PerfError as error:
            yield GateSide((cell.experiment, cell.target), reason=error.message)


def _joined(one: GateSide, other: GateSide) -> GateSide:
    if one.model is not None or other.model is not None:
        message = f"{' on '.join(one.key)} is given as a model and as runs"
        raise UsageError(message, hint="give either the model or runs")
    if one.reason or other.reason:
        return other if one.reason else one
    return GateSide(one.key, one.runs + other.runs)


def side_origin(side: GateSide) -> list[str]:
    """Sentences about runs that p4perf did not measure."""
    return [f"{run.name} is {run.manifest.origin}" for run in side.runs if run.manifest.origin]


def _starts(table: pd.DataFrame, metric: str, *, relative: bool) -> Starts:
    variables = tuple(sorted(str(c) for c in table.columns if c not in FIXED_COLUMNS))
    rows = rows_of_metric(table, metric, variables)
    unit = unit_of(rows)
    accepted = rows[rows["accepted"].astype(bool)]
    if relative:
        identity = ["point", "repetition", "attempt", *(["testbed"] if "testbed" in table.columns else [])]
        base = table[(table["metric"] == BASELINE) & table["accepted"].astype(bool)]
        if base.empty:
            raise DataError("the baseline program was not measured beside it", hint="trials.interleave_baseline")
        columns = base[[*identity, "value"]].rename(columns={"value": "baseline"})
        accepted = accepted.merge(columns, on=identity, how="inner")
        accepted = accepted.assign(value=accepted["value"] / accepted["baseline"])
        unit = ""
    points: dict[PointKey, list[float]] = {}
    attempts: dict[PointKey, list[int]] = {}
    disagreeing: set[PointKey] = set()
    columns = accepted[[*variables, "flags", "attempt", "value"]]
    for *values, flags, attempt, value in columns.itertuples(index=False, name=None):
        key = tuple(map(plain, values))
        if STARTS_DISAGREE in str(flags).split(","):
            disagreeing.add(key)
        points.setdefault(key, []).append(float(value))
        attempts.setdefault(key, []).append(int(attempt))
    numbers = {key: tuple(found) for key, found in attempts.items()}
    return Starts(
        variables, {key: tuple(values) for key, values in points.items()}, unit, numbers, frozenset(disagreeing)
    )
