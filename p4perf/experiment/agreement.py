"""Whether results of a machine that p4perf did not see are those of what was planned."""

from __future__ import annotations

from collections.abc import Sequence

from p4perf.errors import CapabilityError, DataError
from p4perf.experiment.planning import PlannedPoint, plan_sweep
from p4perf.experiment.record import plan_record
from p4perf.results import RunDirectory
from p4perf.specs import Experiment
from p4perf.targets.base import BuildPlan, NodeFacts, Target

IDENTITY_FACTS = ("cpu_model", "cpu_id", "machine", "cc_version", "dpdk_version")
"""Facts that make two machines the same for a measurement."""


def differences(began: NodeFacts, found: NodeFacts) -> str:
    """In which of :data:`IDENTITY_FACTS` two machines differ, in words; empty if they are the same."""
    changed = [f for f in IDENTITY_FACTS if began.text(f) != found.text(f)]
    return "; ".join(f"{f} was {began.text(f)!r}, is {found.text(f)!r}" for f in changed)


def same_machine(run: RunDirectory, found: NodeFacts) -> None:
    """Check that a node is the one that a run was begun for.

    Raises:
        DataError: it is not.
    """
    manifest = run.manifest()
    if said := differences(NodeFacts(manifest["node"]), found):
        cluster = f"the devices of the run are {', '.join(manifest['places'])}" if manifest.get("places") else None
        hint = cluster and f"{cluster}: p4perf resume {run.path} --scheduler ADDRESS"
        raise DataError(f"{run.path} was begun on another machine or with other tools: {said}", hint=hint)


def adopt(
    run: RunDirectory, experiment: Experiment, target: Target, points: Sequence[PlannedPoint], found: NodeFacts
) -> tuple[PlannedPoint, ...]:
    """Plan a run again for the machine that measured it, and note that machine; nothing is on record of it yet.

    What is checked is that the programs are the same: that the files and the commands of every build, and which points
    there are, do not depend on in what the machines differ. Which compiler and processor it was is a part of a point's
    hash, so points get other ones.

    Returns:
        The points, for that machine.

    Raises:
        DataError: for that machine, other programs would have been planned.
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
    profile = run.manifest()["node"]
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
