"""Two runs measured in turns: starts of a baseline and of a new side in pairs, one right after the other.

What the machine does over minutes is the same for both starts of a pair, so the ratio of a pair does not have it
(:func:`p4perf.evaluation.comparison.shifts.paired_shifts`). At each point the side that begins changes from pair to
pair: AB, BA, AB, BA.

Both sides are ordinary runs, and both name their pair in the manifest. Starts with the same number of the attempt are a
pair; where one of them is not accepted, or was not measured because the run was interrupted, another pair is measured.
"""

from __future__ import annotations

import json
import random
import re
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from typing_extensions import override

from p4perf.errors import CapabilityError, DataError, TargetUnavailableError, UsageError
from p4perf.experiment.bench import open_target, refuse_batches
from p4perf.experiment.conductor import Conductor
from p4perf.experiment.own import own_experiment
from p4perf.experiment.planning import PlannedPoint, SweepPlan, plan_sweep
from p4perf.experiment.recorder import Progress, Silent, SweepOutcome
from p4perf.experiment.session import Planner, new_run, reopened, require_usable
from p4perf.programs.component import component_parameters
from p4perf.results import Run, RunDirectory, run_folders
from p4perf.results.files import temporary_folder, write_text_atomically
from p4perf.specs import Experiment, Point, load_experiment
from p4perf.targets.base import BuildPlan, NodeFacts, Target, point_key
from p4perf.testbeds.base import Testbed
from p4perf.testbeds.local import LocalTestbed, state_folder

INTERLEAVED = "interleaved"
"""Key of the manifest of a run that was measured in turns with another one."""

BASELINE_SIDE, NEW_SIDE = "baseline", "new"


@dataclass(frozen=True)
class GatedSide:
    """What is measured on one side.

    Args:
        environment: variables of the environment of its builds and starts, such as ``CC``.
        tree: folder with another version of p4perf, which generates its programs.
    """

    experiment: Experiment
    target: Target
    environment: Mapping[str, str] = field(default_factory=dict)
    tree: Path | None = None

    def planned(self, place: Testbed) -> SweepPlan:
        tree = None if self.tree is None else str(self.tree.absolute())
        return planner(tree)(self.experiment, self.target, require_usable(self.target, place))

    def conductor(self, testbed: Testbed, parent: Path, pair: str, side: str, progress: Progress) -> Conductor:
        """A new run that is ready to be measured."""
        place = placed(testbed, self.environment)
        tree = None if self.tree is None else str(self.tree.absolute())
        what = {"environment": dict(self.environment), "tree": tree}
        if self.environment or tree:
            _asked_file(pair).parent.mkdir(parents=True, exist_ok=True)
            write_text_atomically(_asked_file(pair), json.dumps(what))
        notes = {INTERLEAVED: {"pair": pair, "side": side, **what}}
        run, plan = new_run(self.experiment, self.target, place, parent, notes=notes, planned=planner(tree))
        return Conductor(self.experiment, plan.points, self.target, place, run, progress)


def pair_of(manifest: Mapping[str, Any]) -> tuple[str, str]:
    """The pair of a run and its side; empty where it was measured alone."""
    known = manifest.get(INTERLEAVED)
    return (str(known.get("pair", "")), str(known.get("side", ""))) if isinstance(known, dict) else ("", "")


def new_pair(
    baseline: GatedSide, new: GatedSide, testbed: Testbed, parent: Path, progress: Progress | None = None
) -> tuple[Conductor, Conductor]:
    """Plan both runs and make their directories, both or none; nothing is measured yet.

    Raises:
        UsageError: the testbed works in batches, or the sides have no point in common.
        Others as for a new run.
    """
    refuse_batches(testbed, "an interleaved gate alternates between trials")
    points = [{_values(point) for point in side.experiment.points} for side in (baseline, new)]
    if points[0].isdisjoint(points[1]):
        raise UsageError(
            f"{baseline.experiment.spec.name} and {new.experiment.spec.name} have no point in common",
            hint="both sides must sweep the same variables over the same values",
        )
    for side in (baseline, new):
        side.planned(placed(testbed, side.environment))
    pair = secrets.token_hex(8)
    return (
        baseline.conductor(testbed, parent, pair, BASELINE_SIDE, Silent()),
        new.conductor(testbed, parent, pair, NEW_SIDE, _Both(progress or Silent())),
    )


def reopened_pair(path: Path, progress: Progress | None = None) -> tuple[Conductor, Conductor]:
    """Both runs of an interrupted pair, found beside the one that is given.

    Raises:
        DataError: the other one is not there, or a side has an environment or a tree that nobody asked for here.
        Others as for resuming a run.
    """
    pair, _ = pair_of(RunDirectory.open(path).manifest())
    found: dict[str, Conductor] = {}
    for folder in run_folders(path.absolute().parent):
        manifest = RunDirectory.open(folder).manifest()
        other, side = pair_of(manifest)
        if other != pair:
            continue
        known = manifest[INTERLEAVED]
        environment = known.get("environment") or {}
        if (environment or known.get("tree")) and not _was_asked(pair, known):
            raise DataError(
                f"{folder} was begun elsewhere, and its environment or tree may run anything",
                hint="measure both sides anew with p4perf gate --interleaved",
            )
        experiment, plan, target, testbed, run = reopened(
            folder,
            placed=lambda place, environment=environment: placed(place, environment),  # type: ignore[misc]
            planned=planner(known.get("tree")),
        )
        heard = _Both(progress or Silent()) if side == NEW_SIDE else Silent()
        found[side] = Conductor(experiment, plan.points, target, testbed, run, heard)
    if set(found) != {BASELINE_SIDE, NEW_SIDE}:
        raise DataError(
            f"{path} was measured in turns with another run, which is not beside it",
            hint="put both runs into one folder",
        )
    return found[BASELINE_SIDE], found[NEW_SIDE]


def _asked_file(pair: str) -> Path:
    return state_folder() / "gate-sides" / f"{pair}.json"


def _was_asked(pair: str, known: Mapping[str, Any]) -> bool:
    """Whether the environment and the tree of a manifest are those that the user of this machine asked for.

    Run directories come from strangers as well, and both decide what is run.
    """
    if not re.fullmatch("[0-9a-f]{16}", pair):
        return False
    try:
        asked = json.loads(_asked_file(pair).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return bool(asked == {"environment": known.get("environment"), "tree": known.get("tree")})


def placed(testbed: Testbed, environment: Mapping[str, str]) -> Testbed:
    if not environment:
        return testbed
    if not isinstance(testbed, LocalTestbed):
        raise UsageError(f"testbed {testbed.label} takes no environment", hint="measure on the local testbed")
    return testbed.with_environment(environment)


def shared_points(baseline: Conductor, new: Conductor) -> list[tuple[PlannedPoint, PlannedPoint]]:
    """The points of both sides with the same values, in the order of the new one."""
    known = {_values(planned.point): planned for planned in baseline.points}
    every = ((known.get(_values(planned.point)), planned) for planned in new.points)
    return [(old, each) for old, each in every if old is not None]


def _values(point: Point) -> str:
    """The swept values of a point, as text."""
    return repr(sorted(point.values.items()))


PAIRS = 6
"""Pairs of starts of a point of an interleaved gate; without a verdict twice as many."""


def measure_sides(
    spec: str,
    baseline: str | None,
    target: str,
    baseline_target: str | None,
    testbed: Testbed,
    parent: Path,
    *,
    overrides: Sequence[tuple[str, str]] = (),
    baseline_overrides: Sequence[tuple[str, str]] = (),
    baseline_environment: Mapping[str, str] | None = None,
    baseline_tree: Path | None = None,
    points: int | None = None,
    pairs: int = PAIRS,
    progress: Progress | None = None,
    begun: Callable[[Path, Path], object] = lambda baseline, new: None,
) -> tuple[tuple[RunDirectory, SweepOutcome], tuple[RunDirectory, SweepOutcome]]:
    """Measure a spec, or a P4 program as it is, in turns with its baseline: the runs of the baseline and the new side.

    Args:
        baseline: another spec or program; by default the same.
        begun: hears of both run directories before anything is measured.
    """
    of_both = [*overrides, ("trials.repetitions", str(pairs))]
    experiment = other = _experiment(spec, of_both, points, pairs)
    if baseline is not None or baseline_overrides:
        other = _experiment(baseline or spec, [*of_both, *baseline_overrides], points, pairs)
    old = GatedSide(other, open_target(baseline_target or target), baseline_environment or {}, baseline_tree)
    sides = new_pair(old, GatedSide(experiment, open_target(target)), testbed, parent, progress)
    before, after = (side.run for side in sides)
    begun(before.path, after.path)
    outcomes = measure_in_turns(*sides, experiment)
    return (before, outcomes[0]), (after, outcomes[1])


def resume_pair(
    path: Path, progress: Progress | None = None, pairs: int | None = None
) -> tuple[tuple[RunDirectory, SweepOutcome], tuple[RunDirectory, SweepOutcome]]:
    """Measure both runs of a pair on, until each point has that number of pairs: as :func:`measure_sides`."""
    old, new = reopened_pair(path, progress)
    first, second = measure_in_turns(old, new, Run(new.run).experiment, pairs)
    return (old.run, first), (new.run, second)


_PROGRAMS = (".p4", ".json", ".spec")


def _experiment(spec: str, overrides: Sequence[tuple[str, str]], points: int | None, pairs: int) -> Experiment:
    if Path(spec).suffix not in _PROGRAMS:
        return load_experiment(spec, overrides=overrides, points=points, parameters_of=component_parameters)
    if len(overrides) > 1 or points is not None:
        raise UsageError(f"--set and --points change specs, and {spec} is a program", hint="leave them out")
    return own_experiment(Path(spec), repetitions=pairs)


def measure_in_turns(
    baseline: Conductor, new: Conductor, experiment: Experiment, pairs: int | None = None
) -> tuple[SweepOutcome, SweepOutcome]:
    """Measure pairs until each point has a number of them; None: as many as the trials of the experiment ask for."""
    points, trials = shared_points(baseline, new), experiment.spec.trials
    wanted = pairs or trials.repetitions
    with baseline.run.lock(), new.run.lock():
        with baseline.session(), new.session():
            while open_points := list(_open(baseline, new, points, wanted, trials.max_attempts)):
                least = min(attempts for attempts, _ in open_points)
                waiting = [index for attempts, index in open_points if attempts == least]
                index = random.Random(f"{trials.seed}:{least}").choice(waiting)  # noqa: S311
                turns = [(baseline, points[index][0]), (new, points[index][1])]
                for conductor, planned in turns if (least + index) % 2 else reversed(turns):
                    conductor.trial(planned, least)
            for old, each in points:
                baseline.record.finish(old)
                new.record.finish(each)
        return baseline.conclude(), new.conclude()


def _open(
    baseline: Conductor, new: Conductor, points: list[tuple[PlannedPoint, PlannedPoint]], wanted: int, max_attempts: int
) -> Iterator[tuple[int, int]]:
    """Points that need another pair: the number of their next attempt, and their place."""
    for index, planned in enumerate(points):
        sides = list(zip((baseline.record.ledger, new.record.ledger), planned, strict=True))
        pairs = set.intersection(*(ledger.accepted_attempts(p.key) for ledger, p in sides))
        attempts = max(ledger.next_attempt(p.key) for ledger, p in sides)
        failed = any(ledger.status(p.key).failure is not None for ledger, p in sides)
        if len(pairs) < wanted and attempts < wanted * max_attempts and not failed:
            yield attempts, index


@dataclass(frozen=True)
class _Both(Silent):
    """Progress of both sides, as the new one has it: every start of it stands for two."""

    heard: Progress

    @override
    def planned(self, trials: int, finished: int) -> None:
        self.heard.planned(trials, finished)

    @override
    def trial(self, label: str, accepted: bool, remaining: int, remaining_s: float) -> None:
        self.heard.trial(label, accepted, remaining, 2 * remaining_s)

    @override
    def note(self, text: str) -> None:
        self.heard.note(text)


# --- programs that another version of p4perf generates


def planner(tree: str | None) -> Planner:
    """What plans the points of a side: this p4perf, or the one in a folder."""
    if tree is None:
        return plan_sweep

    def planned(experiment: Experiment, target: Target, facts: NodeFacts) -> SweepPlan:
        plan = plan_sweep(experiment, target, facts)
        builds = _builds_of(Path(tree), experiment, target, facts)
        points = []
        for point in plan.points:
            build = builds.get(_values(point.point))
            if build is None:
                raise CapabilityError(f"the p4perf in {tree} does not plan {point.label}")
            key = point_key(point.key, build.key)
            points.append(replace(point, plan=replace(point.plan, build=build, key=key)))
        return replace(plan, points=tuple(points))

    return planned


_PLAN = """\
import dataclasses, json, sys
asked = json.load(sys.stdin)
sys.path.insert(0, asked["tree"])
from p4perf.experiment import open_target, plan_sweep
from p4perf.specs import load_experiment
from p4perf.targets.base import NodeFacts
plan = plan_sweep(load_experiment(asked["spec"]), open_target(asked["target"]), NodeFacts(asked["facts"]))
builds = [[repr(sorted(p.point.values.items())), dataclasses.asdict(p.plan.build)] for p in plan.points]
json.dump(builds, sys.stdout)
"""


def _builds_of(tree: Path, experiment: Experiment, target: Target, facts: NodeFacts) -> dict[str, BuildPlan]:
    """The builds of all points as the p4perf in a folder plans them, with its own interpreter if it has one."""
    if not (tree / "p4perf" / "__init__.py").is_file():
        raise UsageError(f"{tree} holds no p4perf", hint="name the folder of a checkout: the one with p4perf/ in it")
    own = tree / ".venv" / "bin" / "python"
    with temporary_folder() as folder:
        spec = folder / "spec.yaml"
        spec.write_text(experiment.resolved_yaml(), encoding="utf-8")
        asked = {"tree": str(tree), "spec": str(spec), "target": target.label, "facts": dict(facts.values)}
        done = subprocess.run(
            [str(own) if own.exists() else sys.executable, "-c", _PLAN],
            input=json.dumps(asked),
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
        )
    if done.returncode != 0:
        said = (done.stderr.strip() or "no message").splitlines()[-1]
        raise TargetUnavailableError(f"the p4perf in {tree} cannot plan {experiment.spec.name}: {said}")
    return {values: _build(build) for values, build in json.loads(done.stdout)}


def _build(known: Mapping[str, Any]) -> BuildPlan:
    return BuildPlan(
        files=known["files"],
        commands=tuple(tuple(command) for command in known["commands"]),
        product=known["product"],
        context=known["context"],
        parts={name: _build(part) for name, part in known["parts"].items()},
        timeout_s=known["timeout_s"],
    )
