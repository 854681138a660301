"""Many experiments on several targets within a time budget: planned, measured one after another, resumable.

The budget is spread evenly over the experiments that are left, so what one does not need goes to the others. All
targets of an experiment are measured one right after the other at the same points, and points are left out, evenly,
until the experiment fits into its share; then repetitions are left out. What a trial and a build take on a target is
learnt from the runs before.
"""

from __future__ import annotations

import contextlib
import math
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from p4perf.errors import CapabilityError, DataError, P4PerfError
from p4perf.experiment.conductor import Conductor, Outcome
from p4perf.experiment.planning import SweepPlan, plan_sweep
from p4perf.experiment.progress import Progress
from p4perf.experiment.session import new_run, open_target, open_testbed, require_usable, resume_run
from p4perf.results import RunDirectory
from p4perf.results.campaign import CampaignDirectory
from p4perf.specs import Experiment, load_experiment
from p4perf.targets.base import NodeFacts, Target, TrialOptions

MIN_POINTS = 4
"""Fewer points of a sweep than this say little; repetitions are left out before that."""

RESERVE_SHARE = 0.06
"""Share of the budget that is kept for the report."""

EXTRA_STARTS_SHARE = 1.25
"""Trials that are started over those that are asked for: rejected ones and those that disagree."""

OVERTIME = 1.4
"""A run is stopped when it has taken so many times its share."""

MEASURED, REFUSED, FAILED = "measured", "refused", "failed"


class CampaignProgress(Protocol):
    """Listener of a campaign."""

    def cell(self, number: int, total: int, cell: Cell | None, text: str) -> None:
        """Cell ``number`` (from 1) of ``total`` begins (None) or has ended."""

    def run(self) -> Progress:
        """The listener of the next run."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One experiment on one target, and what became of it.

    ``state`` is ``measured``, ``refused`` (the target cannot do it; ``reason`` says why) or ``failed``. ``points`` were
    planned, of ``full_points`` of the whole sweep; ``accepted`` have accepted trials.
    """

    experiment: str
    target: str
    state: str
    reason: str = ""
    run: str = ""
    points: int = 0
    full_points: int = 0
    refused_points: tuple[str, ...] = ()
    failed_points: tuple[str, ...] = ()
    accepted: int = 0
    repetitions: int = 0
    full_repetitions: int = 0
    trials: int = 0
    wall_s: float = 0.0
    complete: bool = True


@dataclass(slots=True)
class Pace:
    """What things take on a target, in seconds: learnt as the campaign goes on."""

    build_s: float = 1.5
    trial_s: float = 1.0
    rest_s: float = 1.0

    def learn(self, outcome: Outcome, builds: int) -> None:
        """Take in a finished run; what is recent counts half."""
        if outcome.trials:
            self.trial_s = (self.trial_s + outcome.measured_s / outcome.trials) / 2
        if builds:
            self.build_s = (self.build_s + outcome.built_s / builds) / 2
        self.rest_s = (self.rest_s + max(0.0, outcome.wall_s - outcome.measured_s - outcome.built_s)) / 2

    def cost_s(self, plan: SweepPlan, repetitions: int) -> float:
        """What a run of that plan will take."""
        builds = len({p.plan.build.key for p in plan.points})
        trials = EXTRA_STARTS_SHARE * repetitions * len(plan.points)
        return self.rest_s + builds * self.build_s + trials * self.trial_s


@dataclass(slots=True)
class _Device:
    """A target of the campaign, as far as it can be used."""

    label: str
    target: Target
    facts: NodeFacts | None = None
    problem: str = ""
    pace: Pace = field(default_factory=Pace)


@dataclass(frozen=True, slots=True)
class _Sized:
    """An experiment, thinned to what there is time for."""

    experiment: Experiment
    plans: Mapping[str, SweepPlan]
    refusals: Mapping[str, str]
    full_points: int
    full_repetitions: int


class Campaign:
    """Measures what a campaign folder asks for."""

    def __init__(self, folder: CampaignDirectory, progress: CampaignProgress) -> None:
        self._folder = folder
        self._progress = progress
        content = folder.content()
        self._experiments: list[str] = [str(name) for name in content["experiments"]]
        self._overrides = tuple((str(k), str(v)) for k, v in content.get("overrides", []))
        self._points: int | None = content.get("points")
        self._testbed = open_testbed(content["testbed"])
        self._budget_s = float(content["budget_s"])
        self._spent_s = float(content.get("spent_s", 0.0))
        self._cells = [cell_of(entry, folder.path) for entry in content["cells"]]
        self._devices = [_Device(label, open_target(label)) for label in content["targets"]]

    def measure(self, conclude: Callable[[RunDirectory], object]) -> tuple[Cell, ...]:
        """Measure what is not measured yet, as long as the budget lasts; ``conclude`` is called for every run.

        A campaign that was complete is left as it is. One whose budget was used up gets it once more.

        Returns:
            All cells, in the order in which they were measured.
        """
        with self._folder.lock():
            begun = time.monotonic()
            if self._spent_s >= self._budget_s * (1 - RESERVE_SHARE):
                self._spent_s = 0.0
            deadline = begun + (self._budget_s - self._spent_s) * (1 - RESERVE_SHARE)
            self._probe()
            done = {(c.experiment, c.target) for c in self._cells if c.complete}
            waiting = [e for e in self._experiments if any((e, d.label) not in done for d in self._devices)]
            if waiting:
                self._pilot(waiting[0])
            for number, name in enumerate(waiting):
                share_s = max(0.0, deadline - time.monotonic()) / (len(waiting) - number)
                self._experiment(name, share_s, begun, conclude)
            return tuple(self._cells)

    def _probe(self) -> None:
        for device in self._devices:
            try:
                device.facts = require_usable(device.target, self._testbed)
            except P4PerfError as error:
                device.problem = error.message

    def _pilot(self, name: str) -> None:
        """One build and one trial of an experiment's first point on every target: what they take there."""
        first = load_experiment(name, overrides=self._overrides, points=1)
        for device in self._devices:
            if device.facts is None:
                continue
            with contextlib.suppress(P4PerfError), tempfile.TemporaryDirectory(prefix="p4perf-") as folder:
                plan = plan_sweep(first, device.target, device.facts).points[0].plan
                begun = time.monotonic()
                self._testbed.build(plan.build)
                built = time.monotonic()
                self._testbed.run(device.target.trial(plan, TrialOptions(), device.facts), Path(folder))
                device.pace.trial_s = time.monotonic() - built
                device.pace.build_s = max(built - begun, 0.5)

    def _experiment(self, name: str, share_s: float, begun: float, conclude: Callable[[RunDirectory], object]) -> None:
        sized = self._sized(name, share_s)
        deadline = time.monotonic() + OVERTIME * share_s
        for device in self._devices:
            earlier = next((c for c in self._cells if (c.experiment, c.target) == (name, device.label)), None)
            if earlier is not None and earlier.complete:
                continue
            self._progress.cell(len(self._cells) + (earlier is None), self._total, None, f"{name} on {device.label}")
            cell = self._cell(sized, name, device, earlier, deadline, conclude)
            self._cells = [c for c in self._cells if c is not earlier] + [cell]
            spent_s = self._spent_s + time.monotonic() - begun
            self._folder.update({"cells": [entry_of(c) for c in self._cells], "spent_s": round(spent_s, 3)})
            self._progress.cell(len(self._cells), self._total, cell, summary(cell))

    @property
    def _total(self) -> int:
        return len(self._experiments) * len(self._devices)

    def _cell(
        self,
        sized: _Sized,
        name: str,
        device: _Device,
        earlier: Cell | None,
        deadline: float,
        conclude: Callable[[RunDirectory], object],
    ) -> Cell:
        base = Cell(name, device.label, REFUSED, full_points=sized.full_points, full_repetitions=sized.full_repetitions)
        if device.label in sized.refusals:
            return replace(base, reason=sized.refusals[device.label])
        plan, repetitions = sized.plans[device.label], sized.experiment.spec.trials.repetitions
        target = device.target
        run: RunDirectory | None = None
        try:
            if earlier is not None and earlier.run:
                run, outcome = resume_run(self._folder.path / earlier.run, self._progress.run(), deadline_s=deadline)
            else:
                run, plan = new_run(sized.experiment, target, self._testbed, self._folder.runs)
                conductor = Conductor(
                    sized.experiment, plan.points, target, self._testbed, run, self._progress.run(), deadline_s=deadline
                )
                outcome = conductor.measure()
            device.pace.learn(outcome, len({p.plan.build.key for p in plan.points}))
            conclude(run)
        except P4PerfError as error:
            where = str(run.path.relative_to(self._folder.path)) if run is not None else ""
            return replace(base, state=FAILED, reason=error.message, run=where, points=len(plan.points))
        return replace(
            base,
            state=MEASURED,
            run=str(run.path.relative_to(self._folder.path)),
            points=outcome.points,
            refused_points=tuple(f"{r.label}: {r.reason}" for r in plan.refused),
            failed_points=tuple(f"{label}: {reason}" for label, reason in outcome.failed),
            accepted=outcome.complete,
            repetitions=repetitions,
            trials=outcome.trials + (earlier.trials if earlier else 0),
            wall_s=round(outcome.wall_s + (earlier.wall_s if earlier else 0.0), 3),
            complete=run.state().complete,
        )

    def _sized(self, name: str, share_s: float) -> _Sized:
        """The experiment with as many points and repetitions as its share of the time allows."""
        whole = load_experiment(name, overrides=self._overrides, points=self._points)
        full = whole.spec.trials.repetitions
        plans, refusals = self._plans(whole)
        wanted = max(1, len(whole.points))
        sizes = [(wanted, full)]
        while sizes[-1][0] > MIN_POINTS:
            sizes.append((max(MIN_POINTS, math.floor(sizes[-1][0] * 0.8)), full))
        sizes += [(sizes[-1][0], repetitions) for repetitions in range(full - 1, 0, -1)]
        experiment = whole
        for points, repetitions in sizes:
            if points < len(experiment.points) or repetitions < full:
                experiment = self._thinned(name, points, repetitions)
                plans, refusals = self._plans(experiment)
            cost_s = sum(d.pace.cost_s(plans[d.label], repetitions) for d in self._devices if d.label in plans)
            if cost_s <= share_s:
                break
        return _Sized(experiment, plans, refusals, len(whole.points), full)

    def _thinned(self, name: str, points: int, repetitions: int) -> Experiment:
        overrides = (*self._overrides, ("trials.repetitions", str(repetitions)))
        return load_experiment(name, overrides=overrides, points=min(points, self._points or points))

    def _plans(self, experiment: Experiment) -> tuple[dict[str, SweepPlan], dict[str, str]]:
        plans, refusals = {}, {}
        for device in self._devices:
            if device.facts is None:
                refusals[device.label] = device.problem
                continue
            try:
                plans[device.label] = plan_sweep(experiment, device.target, device.facts)
            except CapabilityError as error:
                refusals[device.label] = error.message
            except P4PerfError as error:
                refusals[device.label] = f"{error.key}: {error.message}" if error.key else error.message
        return plans, refusals


def summary(cell: Cell) -> str:
    """What became of a cell, in one line."""
    if cell.state != MEASURED:
        return f"{cell.state}: {cell.reason}"
    thinned = f" of {cell.full_points}" if cell.points < cell.full_points else ""
    text = f"{cell.accepted} of {cell.points} points accepted{thinned and f' ({cell.points}{thinned} planned)'}"
    if cell.repetitions < cell.full_repetitions:
        text += f", {cell.repetitions} of {cell.full_repetitions} repetitions"
    if cell.refused_points:
        text += f", {len(cell.refused_points)} points refused"
    if cell.failed_points:
        text += f", {len(cell.failed_points)} points failed"
    return f"{text}, {cell.wall_s:.0f} s" + ("" if cell.complete else ", not complete")


def entry_of(cell: Cell) -> dict[str, Any]:
    """A cell as it stands in ``campaign.json``."""
    return asdict(cell)


def cell_of(entry: object, where: Path) -> Cell:
    """A cell from ``campaign.json``.

    Raises:
        DataError: the entry is damaged.
    """
    try:
        values: dict[str, Any] = dict(entry)  # type: ignore[call-overload]
        for key in ("refused_points", "failed_points"):
            values[key] = tuple(str(text) for text in values.get(key, ()))
        return Cell(**values)
    except (TypeError, ValueError) as error:
        raise DataError(f"{where}/campaign.json has a damaged cell: {error}", key="cells") from error


def accepted_share(cells: Sequence[Cell]) -> float:
    """Share of the planned points that have accepted trials, over all cells that were measured or failed."""
    planned = sum(c.points for c in cells)
    return sum(c.accepted for c in cells) / planned if planned else 0.0
