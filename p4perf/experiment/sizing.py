"""The cells of a campaign: one experiment on one target, and what became of it.

What an experiment costs on a target.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from p4perf.errors import CapabilityError, DataError, Location, P4PerfError
from p4perf.experiment.planning import SweepPlan, plan_sweep
from p4perf.experiment.recorder import SweepOutcome
from p4perf.records import counted
from p4perf.results.campaign import CampaignDirectory
from p4perf.specs import Experiment
from p4perf.targets.base import NodeFacts, Target

MEASURED, REFUSED, UNAVAILABLE, FAILED, OPEN = "measured", "refused", "unavailable", "failed", "open"


@dataclass(frozen=True, slots=True)
class Cell:
    """One experiment on one target.

    ``state`` is ``measured``, ``refused`` (the target cannot do it), ``unavailable`` (the target cannot be used here),
    ``failed``, or ``open`` (not reached, or stopped before its end); ``reason`` says why it is not measured.
    ``points`` were planned, of ``full_points`` of the whole sweep; ``accepted`` have accepted trials. What is not
    ``complete`` is taken up again by a resume.
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
    trials: int = 0
    wall_s: float = 0.0
    complete: bool = True
    error: float | None = None
    """Largest relative error by now, at 90 %, if the run chooses its points and knows it."""
    turns: int = 0
    """How often it was continued within a budget."""

    @property
    def thinned(self) -> bool:
        """Whether points were left out, because others tell more."""
        return self.state == MEASURED and self.points + len(self.refused_points) < self.full_points

    @property
    def good(self) -> bool:
        """Whether every point that the target can do is measured."""
        if self.state == MEASURED:
            return self.accepted == self.points
        return self.state == REFUSED


def summary(cell: Cell) -> str:
    """What became of a cell, in one line."""
    if cell.state != MEASURED:
        return f"{cell.state}: {cell.reason}" if cell.reason else cell.state
    parts = [f"{cell.accepted} of {cell.points} points accepted"]
    if cell.thinned:
        parts.append(f"chosen from {cell.full_points - len(cell.refused_points)}")
    if cell.error is not None:
        parts.append(f"error at most {100 * cell.error:.1f} %")
    if cell.refused_points:
        parts.append(f"{counted(len(cell.refused_points), 'point')} refused")
    if cell.failed_points:
        parts.append(f"{counted(len(cell.failed_points), 'point')} failed")
    parts.append(f"{cell.wall_s:.0f} s")
    if not cell.complete:
        parts.append("not complete")
    return ", ".join(parts)


def accepted_share(cells: Sequence[Cell]) -> float:
    """Share of the share of planned points with accepted trials, over all cells that were begun."""
    planned = sum(c.points for c in cells)
    return sum(c.accepted for c in cells) / planned if planned else 0.0


def cell_of(entry: object, file: Path) -> Cell:
    """A cell from ``campaign.json``."""
    try:
        return _CELL.validate_python(entry)
    except ValidationError as error:
        key = ".".join(map(str, ("cells", *error.errors()[0]["loc"])))
        raise DataError("is missing or not what it should be", location=Location(str(file)), key=key) from error


_CELL = TypeAdapter(Cell)

NOT_REACHED = "not reached"


def all_cells(folder: CampaignDirectory) -> tuple[Cell, ...]:
    """A cell for every experiment and target of a campaign, in the order in which they were asked for."""
    content, recorded = folder.content(), recorded_cells(folder)
    keys = [(str(e), str(t)) for e in content["experiments"] for t in content["targets"]]
    return tuple(recorded.get(key) or Cell(*key, OPEN, NOT_REACHED, complete=False) for key in keys)


def recorded_cells(folder: CampaignDirectory) -> dict[tuple[str, str], Cell]:
    cells = [cell_of(entry, folder.file) for entry in folder.content()["cells"]]
    return {(c.experiment, c.target): c for c in cells}


EXTRA_STARTS = 1.25
"""Trials that are started over those that are asked for: rejected ones and those that disagree."""


SHORTEST_TRIAL_S = 0.2


@dataclass(slots=True)
class Pace:
    """Durations on a target, in seconds: those of a machine of two cores, until this one has shown its own."""

    build_s: float = 0.8
    trial_s: float = 0.35
    rest_s: float = 1.5

    def learn(
        self, outcome: SweepOutcome, builds: int, wall_s: float, *, load_s: float = 0, setup_s: float = 0
    ) -> None:
        """Learn from a run that took ``wall_s`` with its model; the most recent run has half of the weight.

        Of runs with a load generator, which is expected to take ``load_s`` for a trial, nothing is learnt of trials.
        ``setup_s`` is what filling tables was expected to take in all of its trials.
        """
        if outcome.trials and not load_s:
            trial_s = max(SHORTEST_TRIAL_S, (outcome.measured_s - setup_s) / outcome.trials)
            self.trial_s = (self.trial_s + trial_s) / 2
        if builds:
            self.build_s = (self.build_s + outcome.built_s / builds) / 2
        self.rest_s = (self.rest_s + max(0.0, wall_s - outcome.measured_s - outcome.built_s)) / 2

    def cost_s(self, plan: SweepPlan, repetitions: int) -> float:
        """What a run of that plan will take."""
        more_s = EXTRA_STARTS * repetitions * (len(plan.points) * plan.load_s + plan.setup_s)
        return self.sweep_s(len(plan.points), repetitions, plan.builds) + more_s

    def sweep_s(self, points: int, repetitions: int, builds: int) -> float:
        """What a run of so large a sweep will take."""
        return self.cell_s(max(1, builds), EXTRA_STARTS * repetitions * max(1, points))

    def cell_s(self, builds: int, trials: float) -> float:
        """What its builds and trials take, with all that a run takes beside them."""
        return self.rest_s + builds * self.build_s + trials * self.trial_s


@dataclass(slots=True)
class Device:
    """A target of a campaign; ``problem`` is why it cannot be used here, if it cannot (there are no facts then)."""

    target: Target
    facts: NodeFacts | None = None
    problem: str = ""

    @property
    def label(self) -> str:
        return self.target.label


@dataclass(frozen=True, slots=True)
class CellRefusal:
    """Why there is nothing to measure: the state of the cell, and the reason."""

    state: str
    reason: str


@dataclass(frozen=True, slots=True)
class PlannedCells:
    """An experiment planned for every target by label, and the number of its points, refused ones too."""

    experiment: Experiment
    plans: Mapping[str, SweepPlan]
    refusals: Mapping[str, CellRefusal]
    full_points: int


def plan_everywhere(
    experiment: Experiment, devices: Sequence[Device]
) -> tuple[dict[str, SweepPlan], dict[str, CellRefusal]]:
    """The plans of an experiment, by the label of the target, and why others have none."""
    plans: dict[str, SweepPlan] = {}
    refusals: dict[str, CellRefusal] = {}
    for device in devices:
        if device.facts is None:
            refusals[device.label] = CellRefusal(UNAVAILABLE, device.problem)
            continue
        try:
            plans[device.label] = plan_sweep(experiment, device.target, device.facts)
        except CapabilityError as error:
            refusals[device.label] = CellRefusal(REFUSED, error.message)
        except P4PerfError as error:
            refusals[device.label] = CellRefusal(
                REFUSED, f"{error.key}: {error.message}" if error.key else error.message
            )
        except Exception as error:  # one experiment that meets a defect does not take the others along
            refusals[device.label] = CellRefusal(FAILED, defect(error))
    return plans, refusals


def defect(error: Exception) -> str:
    """The reason of a cell that met a defect of p4perf."""
    return f"this is a defect of p4perf: {type(error).__name__}: {error}"
