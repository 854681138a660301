"""Starting, resuming and looking at runs."""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from p4perf.errors import DataError, TargetUnavailableError, TestbedError, UsageError
from p4perf.experiment.conductor import Conductor, Outcome, TimeLimit
from p4perf.experiment.planning import PlannedPoint, SweepPlan, plan_sweep
from p4perf.experiment.progress import Progress
from p4perf.experiment.record import origin, run_record
from p4perf.plugins import load_plugin
from p4perf.results import RunDirectory
from p4perf.specs import Experiment, load_experiment
from p4perf.targets.base import NodeFacts, Problem, Target
from p4perf.testbeds.base import Testbed
from p4perf.version import __version__

IDENTITY_FACTS = ("cpu_model", "cpu_id", "machine", "cc_version", "dpdk_version")
"""Facts that make two machines the same for a measurement."""

_LIBRARIES = ("numpy", "scipy", "pandas", "pyarrow", "jinja2", "pydantic", "matplotlib")


def open_target(label: str) -> Target:
    """The registered target of that name, with variants behind a colon: ``dpdk-swx:interpreter``, ``dpdk-c:acl+fib``.

    Raises:
        UsageError: there is no such target, or it has no such variant.
    """
    name, _, variants = label.partition(":")
    target: Target = load_plugin("p4perf.targets", name)([v for v in variants.split("+") if v])
    return target


def open_testbed(address: str) -> Testbed:
    """The registered testbed of that name, with its place behind a colon where it needs one: ``ssh:nodes.yaml``.

    Raises:
        UsageError: there is no such testbed or place.
        DataError: what describes the place is damaged.
    """
    name, _, place = address.partition(":")
    testbed: Testbed = load_plugin("p4perf.testbeds", name).at(place)
    return testbed


def require_usable(target: Target, testbed: Testbed) -> NodeFacts:
    """Facts of the node, if target and testbed can be used.

    Raises:
        TestbedError: the testbed cannot be used.
        TargetUnavailableError: the target cannot be used there; the message names what is missing.
    """
    _refuse(testbed.problems(), TestbedError, f"testbed {testbed.label} cannot be used")
    facts = testbed.facts()
    _refuse(target.problems(facts), TargetUnavailableError, f"target {target.label} cannot be used on {testbed.label}")
    return facts


def _refuse(problems: Sequence[Problem], kind: type[TestbedError] | type[TargetUnavailableError], message: str) -> None:
    fatal = [p for p in problems if p.fatal]
    if fatal:
        raise kind(f"{message}: {'; '.join(p.what for p in fatal)}", hint="; ".join(p.hint for p in fatal))


def new_run(experiment: Experiment, target: Target, testbed: Testbed, parent: Path) -> tuple[RunDirectory, SweepPlan]:
    """Plan a run and make its directory; nothing is measured yet.

    Raises:
        TestbedError, TargetUnavailableError: target or testbed cannot be used here.
        SpecError, CapabilityError: no point of the sweep can be measured on that target.
        StorageError: the directory cannot be written.
    """
    facts = require_usable(target, testbed)
    plan = plan_sweep(experiment, target, facts)
    points = plan.points
    now = datetime.now(UTC)
    manifest = {
        "spec_hash": experiment.spec_hash,
        "source": experiment.source,
        "planned_points": [p.key for p in points],
        "points": [{"hash": p.key, "index": p.point.index, "values": dict(p.point.values)} for p in points],
        "refused": [{"values": dict(r.point.values), "reason": r.reason} for r in plan.refused],
        "place": dict(testbed.record),
        "node": dict(facts.values),
        "hugepages": target.use_hugepages(plan.memory_bytes, facts),
        "working_set": _working_set(target, points[0]),
        "build": {
            "commands": [list(command) for command in points[0].plan.build.commands],
            "context": dict(points[0].plan.build.context),
        },
        "trials": experiment.spec.trials.model_dump(mode="json"),
        "versions": {
            "p4perf": __version__,
            "python": platform.python_version(),
            **{name: version(name) for name in _LIBRARIES},
        },
        "command": sys.argv[1:],
    }
    run = RunDirectory.create(
        parent,
        experiment_name=experiment.spec.name,
        target=target.label,
        testbed=testbed.label,
        resolved_spec=experiment.resolved_yaml(),
        manifest=manifest,
        now=now,
    )
    replay = experiment.spec.traffic.replay
    if replay is not None and experiment.capture is not None:
        # The spec of the run finds it there when the run is resumed.
        run.write_bytes(replay.pcap, experiment.capture.raw)
    return run, plan


def _working_set(target: Target, planned: PlannedPoint) -> dict[str, float] | None:
    figures = target.bytes_per_entry(planned.plan.workload)
    return None if figures is None else {"fixed_bytes": figures[0], "bytes_per_entry": figures[1]}


def resume_run(
    path: Path, progress: Progress | None = None, *, limit: TimeLimit | None = None
) -> tuple[RunDirectory, Outcome]:
    """Go on with a run where it stopped; a complete run is left as it is.

    Args:
        path: the run directory.
        progress: is told what happens.
        limit: until when trials are begun.

    Raises:
        UsageError: the run was imported.
        DataError: it is no run directory, or this machine would measure something else than the run began with.
        TestbedError, TargetUnavailableError, StorageError: as for a new run.
    """
    run = RunDirectory.open(path)
    manifest = run_record(run)
    if said := origin(manifest):
        raise UsageError(f"{run.path} is {said}: there is nothing to go on with", hint="p4perf fit derives its model")
    experiment = load_experiment(str(run.path / "spec.yaml"))
    address = manifest.get("place", {}).get("address", manifest["testbed"])
    target, testbed = open_target(manifest["target"]), open_testbed(address)
    facts = require_usable(target, testbed)
    began = NodeFacts(manifest["node"])
    changed = [f for f in IDENTITY_FACTS if began.text(f) != facts.text(f)]
    if changed:
        differences = "; ".join(f"{f} was {began.text(f)!r}, is {facts.text(f)!r}" for f in changed)
        raise DataError(f"{run.path} was begun on another machine or with other tools: {differences}")
    plan = plan_sweep(experiment, target, facts)
    points = plan.points
    if [p.key for p in points] != manifest["planned_points"]:
        raise DataError(
            f"{run.path} was begun with another version of p4perf ({manifest['versions'].get('p4perf', 'unknown')}): "
            "its points are not the ones that would be measured now",
            hint="start a new run",
        )
    if manifest["hugepages"] and not target.use_hugepages(plan.memory_bytes, facts):
        raise TargetUnavailableError(
            f"{run.path} was begun on hugepages, and there are not enough of them now",
            hint="p4perf doctor --fix reserves some (root)",
        )
    return run, Conductor(experiment, points, target, testbed, run, progress, limit=limit).measure()
