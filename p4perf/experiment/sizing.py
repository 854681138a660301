"""The cells of a campaign: one experiment on one target, and what became of it.

How much of an experiment there is time for: what it costs on every target, and what is left out of it.
"""

from __future__ import annotations

import contextlib
import math
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from p4perf.errors import CapabilityError, DataError, Location, P4PerfError
from p4perf.experiment.planning import SweepPlan, plan_sweep
from p4perf.experiment.recorder import SweepOutcome
from p4perf.records import counted
from p4perf.specs import Experiment
from p4perf.targets.base import NodeFacts, Target, TrialOptions
from p4perf.targets.roles import measuring
from p4perf.testbeds.base import Testbed

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
    full_repetitions: int = 0
    trials: int = 0
    wall_s: float = 0.0
    complete: bool = True

    @property
    def thinned(self) -> bool:
        """Whether points were left out for lack of time."""
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
        parts.append(f"thinned to {cell.points + len(cell.refused_points)} of {cell.full_points}")
    if cell.repetitions < cell.full_repetitions:
        parts.append(f"{cell.repetitions} of {cell.full_repetitions} repetitions")
    if cell.refused_points:
        parts.append(f"{counted(len(cell.refused_points), 'point')} refused")
    if cell.failed_points:
        parts.append(f"{counted(len(cell.failed_points), 'point')} failed")
    parts.append(f"{cell.wall_s:.0f} s")
    if not cell.complete:
        parts.append("not complete")
    return ", ".join(parts)


def accepted_share(cells: Sequence[Cell]) -> float:
    """Share of the planned points that have accepted trials, over all cells that were begun."""
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

MIN_POINTS = 4
"""Fewer values of a swept variable than this say little; repetitions are left out before that."""

STEP = 0.8
"""A sweep is thinned to this share of its values, and again, until it fits."""

EXTRA_STARTS = 1.25
"""Trials that are started over those that are asked for: rejected ones and those that disagree."""


SHORTEST_TRIAL_S = 0.2

CACHED_BUILD_S = 0.5
"""A first build that takes less than this was built before, which the next ones need not be."""


@dataclass(slots=True)
class Pace:
    """Durations on a target, in seconds: learnt while a campaign runs."""

    build_s: float = 1.5
    trial_s: float = 1.0
    rest_s: float = 1.0

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

    def cost_s(self, plan: SweepPlan, repetitions: int, share: float = 1.0) -> float:
        """What a run of that plan will take, with a share of its points."""
        builds, points = max(1.0, share * plan.builds), max(1.0, share * len(plan.points))
        round_s = points * (self.trial_s + plan.load_s) + share * plan.setup_s
        return self.rest_s + builds * self.build_s + EXTRA_STARTS * repetitions * round_s


@dataclass(slots=True)
class Device:
    """A target of a campaign; ``problem`` is why it cannot be used here, if it cannot (there are no facts then)."""

    target: Target
    facts: NodeFacts | None = None
    problem: str = ""
    pace: Pace = field(default_factory=Pace)

    @property
    def label(self) -> str:
        return self.target.label


@dataclass(frozen=True, slots=True)
class CellRefusal:
    """Why there is nothing to measure: the state of the cell, and the reason."""

    state: str
    reason: str


@dataclass(frozen=True, slots=True)
class Sized:
    """An experiment with as many points and repetitions as there is time for, planned for every target by label."""

    experiment: Experiment
    plans: Mapping[str, SweepPlan]
    refusals: Mapping[str, CellRefusal]
    full_points: int
    full_repetitions: int

    @property
    def repetitions(self) -> int:
        return self.experiment.spec.trials.repetitions


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


def fit_into(share_s: float, load: Callable[[int | None, int | None], Experiment], devices: Sequence[Device]) -> Sized:
    """Thin an experiment until it fits into a time: first its points, evenly, then its repetitions.

    It is never thinned below :data:`MIN_POINTS` values of a variable and one repetition, whether that fits or not. All
    targets get the same points.

    Args:
        load: the experiment with at most this number of values of each variable and of repetitions (None: all).
    """
    whole = load(None, None)
    full_points, full = len(whole.points), whole.spec.trials.repetitions
    plans, refusals = plan_everywhere(whole, devices)
    chosen = whole
    for values, repetitions in _sizes(full_points, full):
        if values < full_points or repetitions < full:
            chosen = load(values, repetitions)
        share = len(chosen.points) / full_points
        if sum(d.pace.cost_s(plans[d.label], repetitions, share) for d in devices if d.label in plans) <= share_s:
            break
    if chosen is not whole:
        plans, refusals = plan_everywhere(chosen, devices)
    return Sized(chosen, plans, refusals, full_points, full)


def _sizes(values: int, repetitions: int) -> Iterator[tuple[int, int]]:
    yield values, repetitions
    while values > MIN_POINTS:
        values = max(MIN_POINTS, math.floor(STEP * values))
        yield values, repetitions
    for fewer in range(repetitions - 1, 0, -1):
        yield values, fewer


def try_out(experiment: Experiment, device: Device, testbed: Testbed) -> None:
    """One build and one trial of an experiment's first point: what they take on that target."""
    if device.facts is None:
        return
    # Whatever goes wrong here goes wrong again when it is measured, and is reported then.
    with contextlib.suppress(Exception), tempfile.TemporaryDirectory(prefix="p4perf-") as folder:
        plan = plan_sweep(experiment, device.target, device.facts).points[0].plan
        begun = time.monotonic()
        if plan.build.commands:
            testbed.build(plan.build)
        built = time.monotonic()
        testbed.run(measuring(device.target).trial(plan, TrialOptions(), device.facts), Path(folder))
        device.pace.trial_s = time.monotonic() - built
        device.pace.build_s = max(built - begun, CACHED_BUILD_S)
