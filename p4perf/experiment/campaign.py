"""Many experiments on several targets within a time budget: planned, measured one after another, resumable.

The time that is left is spread over the experiments that are left by the square root of their trials, small ones
first, so that what they do not need goes to the large ones. All targets of an experiment are measured one right after
the other at the same points; what there is no time for is left out (:mod:`p4perf.experiment.sizing`). What a trial and
a build take on a target is learnt from the runs before.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Protocol

from p4perf.errors import BuildError, MeasurementError, NoVerdictError, P4PerfError
from p4perf.experiment import sizing
from p4perf.experiment.conductor import TimeLimit
from p4perf.experiment.crew import Crew
from p4perf.experiment.record import open_target, open_testbed
from p4perf.experiment.recorder import Progress, SweepOutcome
from p4perf.experiment.session import measure_run, new_run, require_usable, resume_run
from p4perf.experiment.sizing import FAILED, MEASURED, OPEN, Cell, Device, Sized
from p4perf.programs.component import component_parameters
from p4perf.results import Run, RunDirectory
from p4perf.results.campaign import CampaignDirectory
from p4perf.specs import Experiment, load_experiment

RESERVE_SHARE = 0.06
"""Share of the budget that is kept for the report."""

OVERTIME = 1.4
"""A run that has taken this multiple of its share gets no further trials but the first of each point."""

SHORT_SEARCH = 3
"""Trials of each load of a throughput search in an experiment that was made smaller."""

GUARANTEE = 0.5
"""Part of the shares of later experiments that no run before them takes."""

NOT_REACHED = "not reached"

Conclude = Callable[[Run], object]
"""What is done with a run that has been measured, such as deriving its model."""


class CampaignProgress(Protocol):
    def cell(self, number: int, total: int, cell: Cell, text: str) -> None:
        """Cell ``number`` (from 1) of ``total`` has ended."""

    def run(self) -> Progress:
        """The listener of the next run."""


class Campaign:
    """Measures what a campaign folder asks for."""

    def __init__(
        self, folder: CampaignDirectory, progress: CampaignProgress, crew: Callable[[str], Crew] | None = None
    ) -> None:
        self._folder = folder
        self._progress = progress
        content = folder.content()
        names, sources = (map(str, content[key]) for key in ("experiments", "sources"))
        self._sources = dict(zip(names, sources, strict=True))
        self._overrides = [(str(key), str(value)) for key, value in content["overrides"]]
        self._points: int | None = content["points"]
        self._crew = None if crew is None else crew(str(content["testbed"]))
        self._testbed = self._crew or open_testbed(content["testbed"])
        self._devices = [Device(open_target(str(label))) for label in content["targets"]]
        self._cells: dict[tuple[str, str], Cell] = {}

    def measure(self, conclude: Conclude) -> tuple[Cell, ...]:
        """Measure what is not measured yet, as long as the budget lasts; ``conclude`` is called for every run.

        A campaign that is complete is left as it is. One that used its budget up gets it once more.

        Raises:
            StorageError: another process works on this campaign, or it cannot be written.
            DataError: ``campaign.json`` is damaged.
            SpecError: a spec has gone or changed for the worse since the campaign began.
        """
        with self._folder.lock():
            content = self._folder.content()
            self._cells = _recorded(self._folder)
            waiting = [e for e in self._sources if any(self._waits(e, d) for d in self._devices)]
            if waiting:
                self._spent_s = float(content["spent_s"])
                self._left_s = math.inf if content["left_s"] is None else float(content["left_s"])
                self._begun = time.monotonic()
                try:
                    self._measure(sorted(waiting, key=self._trials), conclude)
                    self._save()
                    self._left_s = math.inf if content["budget_s"] is None else float(content["budget_s"])
                finally:
                    self._save()
            return all_cells(self._folder)

    def _measure(self, waiting: Sequence[str], conclude: Conclude) -> None:
        self._deadline_s = self._begun + self._left_s * (1 - RESERVE_SHARE)
        for device in self._devices:
            try:
                device.facts = require_usable(device.target, self._testbed)
            except P4PerfError as error:
                device.problem = f"{error.message} ({error.hint})" if error.hint else error.message
            else:
                sizing.try_out(self._load(waiting[0], points=1), device, self._testbed)
        weights = [math.sqrt(self._trials(name)) for name in waiting]
        for number, name in enumerate(waiting):
            share = weights[number] / sum(weights[number:])
            left_s = max(0.0, self._deadline_s - time.monotonic())
            soft_s = min(self._deadline_s, time.monotonic() + OVERTIME * share * left_s)
            # Whatever this one takes, those that come later get a part of their shares.
            kept_s = 0.0 if math.isinf(left_s) else (1 - share) * GUARANTEE * left_s
            limit = TimeLimit(soft_s, max(soft_s, self._deadline_s - kept_s))
            self._experiment(name, self._sized(name, share * left_s), limit, conclude)

    def _experiment(self, name: str, sized: Sized, limit: TimeLimit, conclude: Conclude) -> None:
        waiting = [d for d in self._devices if self._waits(name, d)]
        plans = sized.plans
        costs_s = {d.label: d.pace.cost_s(plans[d.label], sized.repetitions) for d in waiting if d.label in plans}
        for device in waiting:
            earlier = self._cells.get((name, device.label))
            cell = Cell(name, device.label, OPEN, full_points=sized.full_points)
            cell = replace(cell, repetitions=sized.repetitions, full_repetitions=sized.full_repetitions)
            refusal = sized.refusals.get(device.label)
            now = time.monotonic()
            if earlier is not None and earlier.run and (refusal is not None or now >= self._deadline_s):
                continue  # its run stays as it is, for another time
            if refusal is not None:
                here = refusal.state != sizing.UNAVAILABLE
                cell = replace(cell, state=refusal.state, reason=refusal.reason, complete=here, repetitions=0)
            elif now >= self._deadline_s:
                continue
            else:
                total_s = sum(costs_s.values())
                part = costs_s.pop(device.label) / total_s
                own = TimeLimit(now + part * (limit.soft_s - now), now + part * (limit.hard_s - now))
                cell = self._run(cell, earlier, sized, device, own, conclude)
            self._record(cell)
            number, total = len(self._cells), len(self._sources) * len(self._devices)
            self._progress.cell(number, total, cell, sizing.summary(cell))

    def _run(
        self, cell: Cell, earlier: Cell | None, sized: Sized, device: Device, limit: TimeLimit, conclude: Conclude
    ) -> Cell:
        """Measure a cell, or continue it. It is on record before its first trial, so that a kill loses nothing."""
        begun = time.monotonic()
        plan = sized.plans[device.label]
        cell = replace(
            cell,
            points=len(plan.points),
            refused_points=tuple(f"{r.label}: {r.reason}" for r in plan.refused),
            reason="stopped before its end",
            complete=False,
        )
        try:
            if earlier is not None and earlier.run:
                cell = replace(cell, run=earlier.run, wall_s=earlier.wall_s)
                path, progress, crew = self._folder.path / earlier.run, self._progress.run(), self._crew
                same_crew = None if crew is None else lambda address: crew
                run, outcome = resume_run(path, progress, limit=limit, crew=same_crew)
            else:
                run, plan = new_run(sized.experiment, device.target, self._testbed, self._folder.runs)
                cell = replace(cell, run=str(run.path.relative_to(self._folder.path)))
                self._record(cell)
                outcome = measure_run(
                    sized.experiment, plan.points, device.target, self._testbed, run, self._progress.run(), limit=limit
                )
            if run.state().trials:
                conclude(Run(run))
        except (BuildError, MeasurementError, NoVerdictError) as error:
            return replace(cell, state=FAILED, reason=error.message, complete=True)
        except P4PerfError as error:
            return replace(cell, state=FAILED, reason=error.message)
        except Exception as error:  # a defect that one run meets does not take the others along
            return replace(cell, state=FAILED, reason=sizing.defect(error))
        wall_s = time.monotonic() - begun
        builds = 0 if earlier is not None and earlier.run else plan.builds
        rounds = outcome.trials / max(1, len(plan.points))
        at_once = max(1, len(self._crew.devices)) if self._crew is not None else 1
        alone = replace(outcome, measured_s=outcome.measured_s / at_once)
        device.pace.learn(alone, builds, wall_s, load_s=plan.load_s, setup_s=rounds * plan.setup_s)
        return _measured(cell, outcome, wall_s, run) if run.state().trials else cell

    def _waits(self, name: str, device: Device) -> bool:
        cell = self._cells.get((name, device.label))
        return cell is None or not cell.complete

    def _trials(self, name: str) -> int:
        experiment = self._load(name)
        return len(experiment.points) * experiment.spec.trials.repetitions

    def _sized(self, name: str, share_s: float) -> Sized:
        """The experiment for its share of the time, or as it was begun before: all targets get the same points."""
        begun = next((c for c in self._cells.values() if c.experiment == name and c.run), None)
        waiting = [d for d in self._devices if self._waits(name, d)]
        if begun is None:
            return sizing.fit_into(share_s, lambda points, repetitions: self._load(name, points, repetitions), waiting)
        whole = self._load(name)
        experiment = replace(Run.open(self._folder.path / begun.run).experiment, source=whole.source)
        plans, refusals = sizing.plan_everywhere(experiment, waiting)
        return Sized(experiment, plans, refusals, len(whole.points), whole.spec.trials.repetitions)

    def _load(self, name: str, points: int | None = None, repetitions: int | None = None) -> Experiment:
        """The experiment, or a smaller one, which searches throughput with fewer trials of each load as well."""
        overrides = list(self._overrides)
        if repetitions is not None:
            overrides.append(("trials.repetitions", str(repetitions)))
            if self._load(name).spec.asks_load:
                overrides.insert(0, ("load.trials_per_load", str(SHORT_SEARCH)))
        most = min((n for n in (points, self._points) if n is not None), default=None)
        source = self._sources[name]
        return load_experiment(source, overrides=overrides, points=most, parameters_of=component_parameters)

    def _record(self, cell: Cell) -> None:
        self._cells[cell.experiment, cell.target] = cell
        self._save()

    def _save(self) -> None:
        now = time.monotonic()
        self._spent_s += now - self._begun
        self._left_s = max(0.0, self._left_s - (now - self._begun))
        self._begun = now
        self._folder.update(
            {
                "cells": [asdict(c) for c in self._cells.values()],
                "spent_s": round(self._spent_s, 3),
                "left_s": None if math.isinf(self._left_s) else round(self._left_s, 3),
            }
        )


def all_cells(folder: CampaignDirectory) -> tuple[Cell, ...]:
    """A cell for every experiment and target of a campaign, in the order in which they were asked for."""
    content, recorded = folder.content(), _recorded(folder)
    keys = [(str(e), str(t)) for e in content["experiments"] for t in content["targets"]]
    return tuple(recorded.get(key) or Cell(*key, OPEN, NOT_REACHED, complete=False) for key in keys)


def _recorded(folder: CampaignDirectory) -> dict[tuple[str, str], Cell]:
    cells = [sizing.cell_of(entry, folder.file) for entry in folder.content()["cells"]]
    return {(c.experiment, c.target): c for c in cells}


def _measured(cell: Cell, outcome: SweepOutcome, wall_s: float, run: RunDirectory) -> Cell:
    state = run.state()
    # A reader of the report finds the run beside it, wherever the campaign was moved.
    failed = tuple(f"{label}: {reason}".replace(f"{run.path}/", "") for label, reason in outcome.failed)
    return replace(
        cell,
        state=MEASURED,
        reason="",
        points=outcome.points,
        failed_points=failed,
        accepted=outcome.complete,
        trials=state.trials,
        wall_s=round(cell.wall_s + wall_s, 3),
        complete=state.complete,
    )
