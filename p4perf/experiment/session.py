"""Starting, resuming and looking at runs."""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from p4perf.errors import DataError, TargetUnavailableError, TestbedError, UsageError
from p4perf.experiment import bench
from p4perf.experiment.batch import BatchConductor, refuse_what_needs_answers
from p4perf.experiment.cluster import ClusterConductor
from p4perf.experiment.conductor import Conductor, TimeLimit
from p4perf.experiment.crew import Crew
from p4perf.experiment.operator import refuse_strange_code
from p4perf.experiment.planning import PlannedPoint, SweepPlan, plan_sweep
from p4perf.experiment.recorder import Progress, Silent, SweepOutcome
from p4perf.results import Run, RunDirectory
from p4perf.specs import Experiment
from p4perf.targets.base import NodeFacts, Target
from p4perf.targets.roles import uses_hugepages
from p4perf.testbeds.base import Testbed
from p4perf.testbeds.batch.base import BatchTestbed
from p4perf.version import __version__

_LIBRARIES = ("numpy", "scipy", "pandas", "pyarrow", "jinja2", "pydantic", "matplotlib")

Planner = Callable[[Experiment, Target, NodeFacts], SweepPlan]


def require_usable(target: Target, testbed: Testbed) -> NodeFacts:
    """Facts of the node, if target and testbed can be used. A node that is not known yet is not asked.

    Raises:
        TestbedError: the testbed cannot be used.
        TargetUnavailableError: the target cannot be used there; the message names what is missing.
    """
    bench.refuse_fatal(testbed.problems(), TestbedError, f"testbed {testbed.label} cannot be used")
    facts = testbed.facts()
    if testbed.provisional:
        return facts
    message = f"target {target.label} cannot be used on {testbed.label}"
    bench.refuse_fatal(target.problems(facts), TargetUnavailableError, message)
    return facts


def new_run(
    experiment: Experiment,
    target: Target,
    testbed: Testbed,
    parent: Path,
    *,
    notes: Mapping[str, Any] | None = None,
    planned: Planner = plan_sweep,
) -> tuple[RunDirectory, SweepPlan]:
    """Plan a run and make its directory; nothing is measured yet.

    Args:
        notes: further keys of the manifest.
        planned: plans the points.

    Raises:
        SpecError, CapabilityError: no point of the sweep can be measured on that target.
    """
    if isinstance(testbed, BatchTestbed):
        refuse_what_needs_answers(experiment, target, testbed)
        testbed.require_free()
    facts = require_usable(target, testbed)
    plan = planned(experiment, target, facts)
    refuse_strange_code(point.plan.build for point in plan.points)
    versions = {"p4perf": __version__, "python": platform.python_version()}
    manifest = {
        "spec_hash": experiment.spec_hash,
        "source": experiment.source,
        **bench.plan_record(plan, target, facts),
        "place": bench.place_of(testbed),
        "hugepages": uses_hugepages(target, plan.memory_bytes, facts),
        **({"provisional": True} if testbed.provisional else {}),
        "trials": experiment.spec.trials.model_dump(mode="json"),
        "versions": versions | {name: version(name) for name in _LIBRARIES},
        "commit": _commit(),
        "command": sys.argv[1:],
        **(notes or {}),
    }
    run = RunDirectory.create(
        parent,
        experiment_name=experiment.spec.name,
        target=target.label,
        testbed=testbed.label,
        resolved_spec=experiment.resolved_yaml(),
        manifest=manifest,
        now=datetime.now(UTC),
    )
    replay = experiment.spec.traffic.replay
    if replay is not None and experiment.capture is not None:
        # The spec of the run finds it there when the run is resumed.
        run.write_bytes(replay.pcap, experiment.capture.raw)
    return run, plan


def _commit() -> str:
    """The Git commit of the working directory, with a ``+`` if tracked files have changed; empty if it has none."""
    words = ("git", "--no-optional-locks", "describe", "--always", "--exclude=*", "--abbrev=12", "--dirty=+")
    try:
        found = subprocess.run(words, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return found.stdout.strip()


def measure_anew(
    experiment: Experiment,
    target: Target,
    testbed: Testbed,
    parent: Path,
    progress: Progress | None = None,
    *,
    accuracy: float | None = None,
) -> tuple[RunDirectory, SweepPlan, SweepOutcome]:
    """Measure an experiment in a new run directory; with an ``accuracy`` only the points that it takes.

    Raises: as :func:`new_run`, and what measuring does.
    """
    notes = None if accuracy is None else {"design": {"accuracy": accuracy}}
    run, plan = new_run(experiment, target, testbed, parent, notes=notes)
    (progress or Silent()).begun(run, plan)
    return run, plan, measure_run(experiment, plan.points, target, testbed, run, progress)


def measure_run(
    experiment: Experiment,
    points: Sequence[PlannedPoint],
    target: Target,
    testbed: Testbed,
    run: RunDirectory,
    progress: Progress | None = None,
    *,
    limit: TimeLimit | None = None,
    shared: bench.Shared = lambda order: None,
) -> SweepOutcome:
    """Measure the planned points of a run with the conductor that suits its testbed."""
    if isinstance(testbed, BatchTestbed):
        return BatchConductor(experiment, points, target, testbed, run, progress).measure()
    conductor = ClusterConductor if isinstance(testbed, Crew) else Conductor
    return conductor(experiment, points, target, testbed, run, progress, limit=limit, shared=shared).measure()


def resume_run(
    path: Path,
    progress: Progress | None = None,
    *,
    limit: TimeLimit | None = None,
    crew: Callable[[str], Crew] | None = None,
    planned: Planner = plan_sweep,
    shared: bench.Shared = lambda order: None,
    all_points: bool = False,
) -> tuple[RunDirectory, SweepOutcome]:
    """Continue a run where it stopped; a complete run is left as it is.

    Args:
        all_points: complete the sweep of a run that chose its points.
        crew: opens the devices of a cluster for the address of a testbed; it is closed by its owner.
        planned: plans the points.
        shared: finds trials that were made already.

    Raises:
        UsageError: the run was imported.
        DataError: it is no run directory, or this machine would measure something else than the run began with.
        TestbedError, TargetUnavailableError, StorageError: as for a new run.
    """
    if all_points:
        directory = Run.open(path).directory
        with directory.lock():
            directory.update_manifest({"design": None})
    experiment, plan, target, testbed, run = reopened(path, crew, planned=planned)
    return run, measure_run(experiment, plan.points, target, testbed, run, progress, limit=limit, shared=shared)


def reopened(
    path: Path,
    crew: Callable[[str], Crew] | None = None,
    *,
    placed: Callable[[Testbed], Testbed] = lambda testbed: testbed,
    planned: Planner = plan_sweep,
) -> tuple[Experiment, SweepPlan, Target, Testbed, RunDirectory]:
    """What a run is measured with, if nothing changed since it began.

    Args:
        crew: as for :func:`resume_run`.
        placed: what is measured on, given the testbed that the run names.
        planned: plans the points.

    Raises: as :func:`resume_run`.
    """
    run = Run.open(path)
    manifest = run.manifest
    if manifest.origin:
        what = f"{run.path} is {manifest.origin}: there is nothing to resume"
        raise UsageError(what, hint="p4perf fit derives its model")
    experiment = run.experiment
    address = manifest.place.get("address", manifest.testbed)
    target = bench.open_target(manifest.target)
    testbed = placed(bench.open_testbed(address)) if crew is None else crew(address)
    if isinstance(testbed, BatchTestbed):
        # Nothing is asked of a node for this; the results say whether it still is the same.
        bench.refuse_fatal(testbed.problems(), TestbedError, f"testbed {testbed.label} cannot be used")
        testbed.require_begun()
        facts = manifest.node
    else:
        facts = require_usable(target, testbed)
        bench.same_machine(run.directory, facts)
    plan = planned(experiment, target, facts)
    refuse_strange_code(point.plan.build for point in plan.points)
    if tuple(p.key for p in plan.points) != manifest.planned_points:
        raise DataError(
            f"{run.path} was begun with another version of p4perf ({manifest.versions.get('p4perf', 'unknown')}): "
            "its points are not the ones that would be measured now",
            hint="start a new run",
        )
    if manifest.hugepages and not uses_hugepages(target, plan.memory_bytes, facts):
        raise TargetUnavailableError(
            f"{run.path} was begun on hugepages, and there are not enough of them now",
            hint="p4perf doctor --fix reserves some (root)",
        )
    return experiment, plan, target, testbed, run.directory
