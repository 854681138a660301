"""Many experiments on several targets within a time budget: planned, measured one by one, resumable, and reported.

Within a budget every run chooses its points (:mod:`p4perf.experiment.adaptive`). First come the ends of all sweeps, the
shortest first and all targets one right after the other, so that each has a model early; then the cells are continued
that are known least, until the time is over. Without a budget every cell is measured to its end.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from p4perf.errors import BuildError, DataError, MeasurementError, NoVerdictError, P4PerfError, SpecError, UsageError
from p4perf.experiment import sizing
from p4perf.experiment.adaptive import LONG_FILL_S
from p4perf.experiment.bench import Shared, open_target, open_testbed, refuse_batches, trial_of
from p4perf.experiment.campaign_report import write_report
from p4perf.experiment.conductor import TimeLimit
from p4perf.experiment.crew import Crew
from p4perf.experiment.evaluate import evaluate_run
from p4perf.experiment.recorder import PartOfWork, Reached, SweepOutcome
from p4perf.experiment.session import measure_run, new_run, require_usable, resume_run
from p4perf.experiment.sizing import FAILED, MEASURED, OPEN, Cell, Device, Pace, PlannedCells, all_cells, recorded_cells
from p4perf.programs.component import component_parameters
from p4perf.results import Run, RunDirectory
from p4perf.results.campaign import CampaignDirectory
from p4perf.specs import Experiment, load_experiment
from p4perf.specs.loader import catalogue_names

RESERVE_SHARE = 0.06
"""Share of the budget that is kept for the report."""

OVERTIME = 1.5
"""Longest time for the ends of a sweep, as a multiple of what they should take, or of their share of the time if that
is more: what one takes, the others lack."""

SPARE = 0.25
"""Share of the time that the ends of all sweeps should leave, which those of one may take."""

ENDS = 2
"""Points that every sweep has first."""

SLICE_S = 12.0
"""Shortest time for which a cell is continued, in seconds."""

LEAST_S = 1.0
"""With less time than this nothing is continued, in seconds."""

BETTER = 0.7
"""A cell is continued until its error is this share of the largest of the others."""

UNKNOWN = 100.0
"""What counts as the error of a cell that has none yet."""

IN_VAIN = 100
"""Turns that a cell loses which came to no trial in its own."""

LOAD_WEIGHT = 10.0
"""Time of a point with a load generator, as a multiple of that of another."""

SHORT_SEARCH = (("load.trials_per_load", "3"), ("load.trial_ms", "100"), ("load.width", "0.03"))
"""A throughput search within a budget: fewer and shorter trials of each load, and bounds that are further apart."""

SHORTER_SEARCH = (("load.trials_per_load", "3"), ("load.trial_ms", "50"), ("load.width", "0.05"))
"""The same with less than :data:`LITTLE_S` for each run."""

LITTLE_S = 3.0
"""Little time for each experiment on each target, in seconds."""


def new_campaign(
    sources: Sequence[str],
    targets: Sequence[str],
    testbed: str,
    output: Path,
    *,
    overrides: Sequence[tuple[str, str]] = (),
    points: int | None = None,
    budget_s: float | None = None,
    accuracy: float | None = None,
    cluster: bool = False,
) -> CampaignDirectory:
    """Make the folder of a campaign; nothing is measured yet.

    Args:
        sources: names of the catalogue, or paths of specs.
        testbed: its address; it is opened here, unless the workers of a cluster open testbeds of their own.

    Raises:
        UsageError: two experiments have the same name, or the testbed works in batches.
        SpecError: a spec is wrong.
    """
    if not sources or not targets or (budget_s is not None and not budget_s > 0):
        raise UsageError("a campaign takes an experiment, a target and some time, one at least of each")
    place = None if cluster else open_testbed(testbed)
    if place is not None:
        refuse_batches(place, "a campaign decides between trials: run its experiments one after another")
    catalogue = set(catalogue_names())
    names: dict[str, str] = {}
    for source in sources:
        found = load_experiment(source, overrides=overrides, points=points, parameters_of=component_parameters)
        name = found.spec.name
        if name in names:
            raise UsageError(f"{names[name]} and {source} are both called {name}", hint="give them different names")
        names[name] = source if source in catalogue else str(Path(source).absolute())
    request = {
        "experiments": list(names),
        "sources": list(names.values()),
        "targets": list(dict.fromkeys(open_target(label).label for label in targets)),
        "testbed": place.record["address"] if place is not None else testbed,
        "budget_s": budget_s,
        "accuracy": accuracy,
        "overrides": [list(pair) for pair in overrides],
        "points": points,
    }
    title = "catalogue" if len(names) > 1 else next(iter(names))
    return CampaignDirectory.create(output, title, request, datetime.now().astimezone())


def measure_campaign(
    folder: CampaignDirectory,
    told: Callable[[str], object],
    crew: Callable[[str], Crew] | None = None,
    reached: Reached = lambda what, left_s: None,
) -> tuple[tuple[Cell, ...], list[Path], str]:
    """Measure what a campaign still needs, and report: its cells, and what :func:`write_report` returns."""
    cells = Campaign(folder, told, crew, reached).measure()
    return cells, *write_report(folder, cells)


class Campaign:
    """Measures what a campaign folder asks for; ``told`` gets a line for every cell that has ended."""

    def __init__(
        self,
        folder: CampaignDirectory,
        told: Callable[[str], object],
        crew: Callable[[str], Crew] | None = None,
        reached: Reached = lambda what, left_s: None,
    ) -> None:
        self._folder, self._told, self._reached = folder, told, reached
        self._pace, self._rest = Pace(), list[str]()
        content = folder.content()
        names, sources = (map(str, content[key]) for key in ("experiments", "sources"))
        self._sources = dict(zip(names, sources, strict=True))
        self._overrides = [(str(key), str(value)) for key, value in content["overrides"]]
        self._points: int | None = content["points"]
        self._budget = content["budget_s"] is not None
        little = self._budget and content["budget_s"] < LITTLE_S * len(self._sources) * len(content["targets"])
        self._search = (SHORTER_SEARCH if little else SHORT_SEARCH) if self._budget else ()
        accuracy = content.get("accuracy")
        chooses = self._budget or accuracy is not None
        self._notes = {"design": {"accuracy": accuracy or 0.0}} if chooses else {}
        self._crew = None if crew is None else crew(str(content["testbed"]))
        self._testbed = self._crew or open_testbed(content["testbed"])
        self._devices = [Device(open_target(str(label))) for label in content["targets"]]
        self._cells: dict[tuple[str, str], Cell] = {}
        self._plans: dict[str, PlannedCells] = {}

    def measure(self) -> tuple[Cell, ...]:
        """Measure what is not measured yet, as long as the budget lasts, and derive the models.

        A campaign that is complete is left as it is. One that used its budget up gets it once more.

        Raises:
            StorageError: another process works on this campaign, or it cannot be written.
            DataError: ``campaign.json`` is damaged.
            SpecError: a spec has gone or changed for the worse since the campaign began.
        """
        with self._folder.lock():
            content = self._folder.content()
            self._cells = recorded_cells(self._folder)
            waiting = [e for e in self._sources if any(self._waits(e, d) for d in self._devices)]
            if waiting:
                self._spent_s = float(content["spent_s"])
                budget_s = math.inf if content["budget_s"] is None else float(content["budget_s"])
                self._left_s = math.inf if content["left_s"] is None else float(content["left_s"])
                self._begun = time.monotonic()
                try:
                    self._measure(sorted(waiting, key=self._trials), budget_s)
                    self._save()
                    self._left_s = budget_s
                finally:
                    self._save()
            return all_cells(self._folder)

    def _measure(self, waiting: Sequence[str], budget_s: float) -> None:
        """Measure the ends of every sweep, without a budget all of it; then what is known least."""
        self._deadline_s = self._begun + (self._left_s - RESERVE_SHARE * budget_s if self._budget else math.inf)
        for device in self._devices:
            try:
                device.facts = require_usable(device.target, self._testbed)
            except P4PerfError as error:
                device.problem = f"{error.message} ({error.hint})" if error.hint else error.message
        # Everything is planned before anything is measured: what a target cannot do takes no share of the time.
        todo: list[tuple[str, Device]] = []
        for name in waiting:
            self._plans[name] = self._planned(name)
            for device in self._devices:
                if not self._waits(name, device):
                    continue
                if device.label in self._plans[name].refusals:
                    self._cell(name, device, TimeLimit())
                elif not (self._budget and self._has_ends(name, device)):
                    todo.append((name, device))
        ends_s = {(name, device.label): self._ends_s(name, device) for name, device in todo}
        if self._budget:
            longest_s = {name: max(s for (other, _), s in ends_s.items() if other == name) for name, _ in ends_s}
            todo.sort(key=lambda cell: longest_s[cell[0]])
        self._rest = [name for name, _ in todo]
        self._reach("campaign", self._rest_s())
        for name, device in todo:
            self._rest.pop(0)
            now, left_s = time.monotonic(), sum(ends_s.values())
            own_s = ends_s.pop((name, device.label))
            share_s = max(0.0, self._deadline_s - now) * own_s / left_s
            spare_s = self._deadline_s - now - left_s
            until_s = min(self._deadline_s, now + max(OVERTIME * max(own_s, share_s), SPARE * spare_s))
            self._cell(name, device, TimeLimit(until_s, ends=self._budget))
        if self._budget:
            self._refine()

    def _reach(self, what: str, left_s: float) -> None:
        """Say how far everything is: within a budget that is over when its time is, else when all is measured."""
        budget_s = self._deadline_s - time.monotonic()
        self._reached(what, max(0.0, budget_s) if math.isfinite(budget_s) else left_s)

    def _rest_s(self) -> float:
        """What the runs take that are not begun."""
        sweeps = {name: self._load(name) for name in dict.fromkeys(self._rest)} if math.isinf(self._deadline_s) else {}
        costs = {
            name: self._pace.sweep_s(len(e.points), e.spec.trials.repetitions, len(e.points))
            * (LOAD_WEIGHT if e.spec.asks_load else 1.0)
            for name, e in sweeps.items()
        }
        return sum(costs.get(name, 0.0) for name in self._rest)

    def _refine(self) -> None:
        """Spend what is left of the budget on sweeps without ends and those with the largest errors, all in turn."""
        devices = {d.label: d for d in self._devices if d.facts is not None}

        def open_cells() -> list[tuple[str, str]]:
            found = [key for key, c in self._cells.items() if c.run and not c.complete and c.target in devices]
            return [key for key in found if self._cells[key].state in (MEASURED, OPEN)]

        def error(key: tuple[str, str]) -> float:
            known = self._cells[key].error
            return UNKNOWN if known is None else known

        def urgency(key: tuple[str, str]) -> tuple[bool, float, float]:
            cell = self._cells[key]  # of those that are known as little, the cheapest one comes first
            without_ends = cell.accepted < min(ENDS, cell.points) and cell.turns < IN_VAIN
            return without_ends, error(key) / (1 + cell.turns), -cell.wall_s

        while (waiting := open_cells()) and (left_s := self._deadline_s - time.monotonic()) >= LEAST_S:
            key = max(waiting, key=urgency)
            until_s = time.monotonic() + min(left_s, max(SLICE_S, left_s / (4 * len(waiting))))
            others = max((error(other) for other in waiting if other != key), default=0.0)
            limit = TimeLimit(until_s, BETTER * others, ends=urgency(key)[0])
            self._cells[key] = replace(self._cells[key], turns=self._cells[key].turns + 1)
            self._cell(key[0], devices[key[1]], limit)

    def _cell(self, name: str, device: Device, limit: TimeLimit) -> None:
        planned = self._plans[name]
        earlier = self._cells.get((name, device.label))
        refusal = planned.refusals.get(device.label)
        late = time.monotonic() >= self._deadline_s
        if earlier is not None and earlier.run and (refusal is not None or late):
            return  # its run stays as it is, for another time
        spec = planned.experiment.spec
        cell = Cell(name, device.label, OPEN, full_points=planned.full_points, repetitions=spec.trials.repetitions)
        if refusal is not None:
            here = refusal.state != sizing.UNAVAILABLE
            cell = replace(cell, state=refusal.state, reason=refusal.reason, complete=here, repetitions=0)
        elif late:
            return
        else:
            cell = self._run(cell, earlier, planned, device, limit)
            if earlier is not None and earlier.turns:
                cell = replace(cell, turns=earlier.turns + IN_VAIN * (cell.trials == earlier.trials))
        self._record(cell)
        number, total = len(self._cells), len(self._sources) * len(self._devices)
        where = f"[{number:{len(str(total))}d}/{total}] {cell.experiment} on {cell.target}"
        self._told(f"{where}: {sizing.summary(cell)}")

    def _run(self, cell: Cell, earlier: Cell | None, planned: PlannedCells, device: Device, limit: TimeLimit) -> Cell:
        """Measure a cell, or continue it. It is on record before its first trial, so that a kill loses nothing."""
        begun, heard = time.monotonic(), PartOfWork(f"{cell.experiment} on {cell.target}", self._reach, self._rest_s())
        plan = planned.plans[device.label]
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
                crew = self._crew
                same_crew = None if crew is None else lambda address: crew
                path = self._folder.run(earlier.run)
                shared = self._shared(cell)
                run, outcome = resume_run(
                    path, heard, limit=limit, crew=same_crew, planned=lambda *_: plan, shared=shared
                )
            else:
                experiment, target, place, runs = planned.experiment, device.target, self._testbed, self._folder.runs
                run, _ = new_run(experiment, target, place, runs, notes=self._notes, planned=lambda *_: plan)
                cell = replace(cell, run=str(run.path.relative_to(self._folder.path)))
                self._record(cell)
                shared = self._shared(cell)
                outcome = measure_run(experiment, plan.points, target, place, run, heard, limit=limit, shared=shared)
            if run.state().trials:
                # A run that allows no model keeps its numbers; the report compares those of several targets.
                with suppress(NoVerdictError, SpecError):
                    evaluate_run(Run(run), plots=len(self._devices) == 1)
        except (BuildError, MeasurementError, NoVerdictError) as error:
            return replace(cell, state=FAILED, reason=error.message, complete=True)
        except P4PerfError as error:
            return replace(cell, state=FAILED, reason=error.message)
        except Exception as error:  # a defect that one run meets does not take the others along
            return replace(cell, state=FAILED, reason=sizing.defect(error))
        wall_s = time.monotonic() - begun
        self._pace.learn(outcome, plan.builds, wall_s, load_s=plan.load_s, setup_s=plan.setup_s)
        return _measured(cell, outcome, wall_s, run) if run.state().trials else cell

    def _shared(self, cell: Cell) -> Shared:
        """Finds trials of points that other experiments have, too: those of runs with the same options."""

        def options(run: RunDirectory) -> tuple[Any, Any]:
            manifest = run.manifest()
            return manifest.get("trials"), manifest.get("hugepages")

        own, found = options(RunDirectory.open(self._folder.run(cell.run))), []
        for other in self._cells.values():
            if other.run and other.run != cell.run and other.target == cell.target:
                with suppress(DataError):  # a run that has gone shares nothing
                    run = RunDirectory.open(self._folder.run(other.run))
                    found += [run] if options(run) == own else []
        return partial(trial_of, found)

    def _waits(self, name: str, device: Device) -> bool:
        cell = self._cells.get((name, device.label))
        return cell is None or not cell.complete

    def _has_ends(self, name: str, device: Device) -> bool:
        """Whether a cell had its turn for the ends."""
        cell = self._cells.get((name, device.label))
        return cell is not None and cell.state == MEASURED and cell.trials > 0

    def _trials(self, name: str) -> int:
        experiment = self._load(name)
        return len(experiment.points) * experiment.spec.trials.repetitions

    def _ends_s(self, name: str, device: Device) -> float:
        """What the ends of a sweep should take."""
        experiment, plan = self._plans[name].experiment, self._plans[name].plans[device.label]
        ends = (*plan.points[:1], *plan.points[1:][-1:])
        trials = len(ends) * (LOAD_WEIGHT if experiment.spec.asks_load else 1.0)
        fill_s = sum(min(p.plan.setup_s, LONG_FILL_S) for p in ends)
        return self._pace.cell_s(min(plan.builds, len(ends)), trials) + fill_s

    def _planned(self, name: str) -> PlannedCells:
        """The experiment, or as it was begun before: all targets choose from the same points."""
        begun = next((c for c in self._cells.values() if c.experiment == name and c.run), None)
        waiting = [d for d in self._devices if self._waits(name, d)]
        whole = self._load(name)
        experiment = whole
        if begun is not None:
            experiment = replace(Run.open(self._folder.run(begun.run)).experiment, source=whole.source)
        plans, refusals = sizing.plan_everywhere(experiment, waiting)
        return PlannedCells(experiment, plans, refusals, len(whole.points))

    def _load(self, name: str) -> Experiment:
        """The experiment; within a budget, throughput is searched with fewer and shorter trials of each load."""
        overrides, source = list(self._overrides), self._sources[name]

        def load(overrides: Sequence[tuple[str, str]]) -> Experiment:
            return load_experiment(source, overrides=overrides, points=self._points, parameters_of=component_parameters)

        found = load(overrides)
        if self._search and found.spec.asks_load:
            found = load([*self._search, *overrides])
        return found

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
        error=None if outcome.judgement is None or math.isinf(outcome.judgement.error) else outcome.judgement.error,
    )
