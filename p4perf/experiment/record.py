"""Targets and testbeds as a run recorded them or users name them, checked before they are relied on."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from p4perf.errors import CapabilityError, DataError, TargetUnavailableError, TestbedError
from p4perf.experiment.planning import PlannedPoint, SweepPlan, plan_sweep
from p4perf.plugins import load_plugin
from p4perf.results import Manifest, RunDirectory
from p4perf.results.manifest import differences
from p4perf.specs import Experiment
from p4perf.targets.base import BuildPlan, NodeFacts, Problem, Target
from p4perf.targets.roles import SizesMemory
from p4perf.testbeds.base import Testbed
from p4perf.testbeds.health import environment_checks
from p4perf.testbeds.local import LocalTestbed


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


def refuse_fatal(
    problems: Sequence[Problem], kind: type[TestbedError] | type[TargetUnavailableError], message: str
) -> None:
    """Raise the fatal problems of a testbed or target, if there are any."""
    if fatal := [p for p in problems if p.fatal]:
        raise kind(f"{message}: {'; '.join(p.what for p in fatal)}", hint="; ".join(p.hint for p in fatal))


Place = Mapping[str, Any]
"""What a manifest notes of a place: ``address``, ``host``, and ``node`` where a node file names it."""

OWN = "name"
"""Key of the place of a run: what the cluster calls the device on which it was begun."""


def place_of(testbed: Testbed) -> dict[str, Any]:
    """What a run notes of the testbed on which it is begun."""
    host = {"host": socket.gethostname()} if isinstance(testbed, LocalTestbed) else {}
    return {**host, **testbed.record}


def same_place(one: Place, other: Place) -> bool:
    """Whether two places are the same testbed on the same machine. Node files may lie in different folders."""
    if not one.get("host") or one.get("host") != other.get("host"):
        return False
    kinds = [str(place.get("address", "")).partition(":")[0] for place in (one, other)]
    return kinds[0] == kinds[1] and one.get("node") == other.get("node")


def only_same(places: Mapping[str, Place], wanted: Place) -> str | None:
    """The name of the only place that is the same as ``wanted``; None if there is none or several."""
    names = [name for name, place in places.items() if same_place(place, wanted)]
    return names[0] if len(names) == 1 else None


def tag_of(manifest: Manifest, testbed: Testbed) -> str | None:
    """How trials on a testbed name it: the name that a cluster gave it, None if it is the run's own or unknown."""
    here = place_of(testbed)
    return None if same_place(manifest.place, here) else only_same(manifest.places, here)


def plan_record(plan: SweepPlan, target: Target, facts: NodeFacts) -> dict[str, Any]:
    """What a manifest notes of the points, and of the machine that they were planned for."""
    points, build = plan.points, plan.points[0].plan.build
    sizes = target.bytes_per_entry(points[0].plan.workload) if isinstance(target, SizesMemory) else None
    return {
        "planned_points": [p.key for p in points],
        "points": [{"hash": p.key, "index": p.point.index, "values": dict(p.point.values)} for p in points],
        "refused": [{"values": dict(r.point.values), "reason": r.reason} for r in plan.refused],
        "node": dict(facts.values),
        "environment": [asdict(check) for check in environment_checks(facts)],
        "working_set": None if sizes is None else {"fixed_bytes": sizes[0], "bytes_per_entry": sizes[1]},
        "build": {"commands": [list(command) for command in build.commands], "context": dict(build.context)},
    }


def same_machine(run: RunDirectory, found: NodeFacts) -> None:
    """Check that a node is the one that a run was begun for."""
    manifest = run.record()
    if said := differences(manifest.node, found):
        cluster = f"the devices of the run are {', '.join(manifest.places)}" if manifest.places else None
        hint = cluster and f"{cluster}: p4perf resume {run.path} --scheduler ADDRESS"
        raise DataError(f"{run.path} was begun on another machine or with other tools: {said}", hint=hint)


def adopt(
    run: RunDirectory, experiment: Experiment, target: Target, points: Sequence[PlannedPoint], found: NodeFacts
) -> tuple[PlannedPoint, ...]:
    """Plan a run without recorded trials again for the machine that measured it, and note that machine.

    What is checked is that the programs are the same: that the files and the commands of every build, and which points
    there are, do not depend on in what the machines differ. Which compiler and processor it was is a part of a point's
    hash, so points get other ones.
    """
    hint = "put facts.txt of its results into a new folder, beside nothing else, and start a new run with that folder"
    try:
        plan = plan_sweep(experiment, target, found)
    except CapabilityError as error:
        raise DataError(f"on the machine that measured it, no point is possible: {error.message}", hint=hint) from error
    planned = {p.point.index: p.plan.build for p in points}
    for point in plan.points:
        before = planned.get(point.point.index)
        if before is not None and not _same_program(before, point.plan.build):
            raise DataError(
                f"{run.path} was planned for another machine: on the one that measured, "
                f"{point.label} is another program",
                hint=hint,
            )
    profile = dict(run.record().node.values)
    run.update_manifest({**plan_record(plan, target, found), "provisional": False, "planned_for": profile})
    return plan.points


def _same_program(one: BuildPlan, other: BuildPlan) -> bool:
    """Whether two builds have the same files and commands; compilers may differ."""
    return (
        dict(one.files) == dict(other.files)
        and one.commands == other.commands
        and one.product == other.product
        and one.parts.keys() == other.parts.keys()
        and all(_same_program(part, other.parts[name]) for name, part in one.parts.items())
    )
