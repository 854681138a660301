"""Targets and testbeds, opened by name or as a run recorded them, and the trials and simulations on them."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from p4perf import errors
from p4perf.experiment.gates import known_before
from p4perf.experiment.load import LoadMeasurement, LoadPlan
from p4perf.experiment.planning import PlannedPoint, SweepPlan, plan_sweep, point_workload
from p4perf.plugins import load_plugin
from p4perf.results import Manifest, RunDirectory
from p4perf.results.manifest import differences
from p4perf.specs import Experiment, Point
from p4perf.targets.base import BuildPlan, NodeFacts, Problem, Target, TrialOptions
from p4perf.targets.roles import Measures, Simulates, SizesMemory, calibration_of, measuring, serving, uses_hugepages
from p4perf.targets.windows import GateRatios
from p4perf.testbeds.base import Testbed
from p4perf.testbeds.batch.base import BatchTestbed
from p4perf.testbeds.health import environment_checks
from p4perf.testbeds.loadgen.base import LoadGenerator
from p4perf.testbeds.local import LocalTestbed


def open_target(label: str) -> Target:
    """The registered target of that name, with variants behind a colon: ``dpdk-swx:interpreter``, ``dpdk-c:acl+fib``.

    Raises:
        UsageError: there is no such target, or it has no such variant.
    """
    name, _, variants = label.partition(":")
    target: Target = load_plugin("p4perf.targets", name)([v for v in variants.split("+") if v])
    return target


def check_capability(experiment: Experiment, point: Point, label: str) -> None:
    """Refuse a point that a target cannot do. Of unknown targets nothing is known.

    Raises:
        CapabilityError: it cannot; the message names the limit.
    """
    try:
        target = open_target(label)
    except errors.UsageError:
        return
    workload, traffic = point_workload(experiment, point)
    target.capabilities.check(workload.program, workload.packets, traffic)


def open_testbed(address: str) -> Testbed:
    """The registered testbed of that name, with its place behind a colon where it needs one: ``ssh:nodes.yaml``.

    Raises:
        UsageError: there is no such testbed or place.
        DataError: what describes the place is damaged.
    """
    name, _, place = address.partition(":")
    testbed: Testbed = load_plugin("p4perf.testbeds", name).at(place)
    return testbed


def refuse_fatal(problems: Sequence[Problem], kind: type[errors.P4PerfError], message: str) -> None:
    """Raise the fatal problems of a testbed or target, if there are any."""
    if fatal := [p for p in problems if p.fatal]:
        hints = dict.fromkeys(p.hint for p in fatal if p.hint)
        raise kind(f"{message}: {'; '.join(p.what for p in fatal)}", hint="; ".join(hints))


def refuse_batches(testbed: Testbed, why: str) -> None:
    """Refuse a testbed that does not answer between trials; ``why`` says what needs that."""
    if isinstance(testbed, BatchTestbed):
        raise errors.UsageError(f"testbed {testbed.label} works in batches, and {why}", hint="use local or ssh")


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
        raise errors.DataError(f"{run.path} was begun on another machine or with other tools: {said}", hint=hint)


def adopt(
    run: RunDirectory, experiment: Experiment, target: Target, points: Sequence[PlannedPoint], found: NodeFacts
) -> tuple[PlannedPoint, ...]:
    """Plan a run without recorded trials again for the machine that measured it, and note that machine.

    What is checked is that the programs are the same: that the files and the commands of every build, and which points
    there are, do not depend on in what the machines differ. Which compiler and processor it was is a part of a point's
    hash, so points get other ones.
    """
    hint = "put facts.txt of its results into a new, otherwise empty folder, and start a new run with that folder"
    try:
        plan = plan_sweep(experiment, target, found)
    except errors.CapabilityError as error:
        raise errors.DataError(
            f"on the machine that measured it, no point is possible: {error.message}", hint=hint
        ) from error
    planned = {p.point.index: p.plan.build for p in points}
    for point in plan.points:
        before = planned.get(point.point.index)
        if before is not None and _program(before) != _program(point.plan.build):
            raise errors.DataError(
                f"{run.path} was planned for another machine: on the one that measured, "
                f"{point.label} is another program",
                hint=hint,
            )
    profile = dict(run.record().node.values)
    run.update_manifest({**plan_record(plan, target, found), "provisional": False, "planned_for": profile})
    return plan.points


def _program(build: BuildPlan) -> tuple[Any, ...]:
    """What a build makes, whatever the compiler: its files and commands, and those of its parts."""
    parts = {name: _program(part) for name, part in build.parts.items()}
    return dict(build.files), build.commands, build.product, parts


@dataclass(frozen=True, slots=True)
class TrialOrder:
    """One trial that shall be run.

    Args:
        repetition: accepted trials of the point before it.
        attempt: its number among all trials of the point.
        found: the record of a search for the same throughput in this repetition, which is not made again.
    """

    planned: PlannedPoint
    repetition: int
    attempt: int
    options: TrialOptions
    found: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class TrialDone:
    entry: dict[str, Any]
    duration_s: float = 0.0
    error: errors.MeasurementError | errors.BuildError | None = None


Shared = Callable[[TrialOrder], TrialDone | None]
"""Finds a trial that was made already, instead of making it again; None if there is none."""

SHARED = "shared"
"""Key of a journal's line that is a copy: the run in which the trial was made."""


def trial_of(runs: Sequence[RunDirectory], order: TrialOrder) -> TrialDone | None:
    """The trial of the same number that one of these runs has of the same point, as a copy that names the run.

    The runs have to measure with the same options, on the same target and machine.
    """
    for run in runs:
        for entry in run.trials(order.planned.key):
            same = entry["trial"]["attempt"] == order.attempt and not entry.keys() & {"failure", "testbed"}
            if same and "duration_s" in entry:
                head = {"repetition": order.repetition, "attempt": order.attempt}
                return TrialDone({SHARED: run.path.name, **entry, "trial": head}, entry["duration_s"])
    return None


def begin(order: TrialOrder) -> dict[str, Any]:
    """The beginning of the line of a trial that starts now."""
    return {
        "trial": {"repetition": order.repetition, "attempt": order.attempt},
        "started": datetime.now(UTC).isoformat(timespec="milliseconds"),
    }


@dataclass(frozen=True)
class Bench:
    """A device, the place where it is, and what is known of its node."""

    target: Target
    testbed: Testbed
    facts: NodeFacts = field(repr=False)

    def trial(self, order: TrialOrder, folder: Path) -> TrialDone:
        """Run one trial in a folder that is there."""
        planned, entry = order.planned, begin(order)
        begun = time.monotonic()
        try:
            if planned.plan.build.commands:
                self.testbed.build(planned.plan.build)
                entry["build_s"] = round(time.monotonic() - begun, 4)
            begun = time.monotonic()
            if planned.saturated:
                target = measuring(self.target)
                job = target.trial(planned.plan, order.options, self.facts)
                with self._frequency(planned):
                    result = self.testbed.run(job, folder)
                entry["record"] = dict(target.parse(result))
            if planned.load is not None:
                entry["load"] = self._offer(order, planned.load, folder)
        except (errors.MeasurementError, errors.BuildError) as error:
            self._require_hugepages(order)
            return TrialDone(entry, time.monotonic() - begun, error)
        return TrialDone(entry, time.monotonic() - begun)

    def _require_hugepages(self, order: TrialOrder) -> None:
        """Raise a TestbedError if there are no longer enough for a trial of a run that was begun on them."""
        needed = order.planned.plan.memory_bytes
        if order.options.hugepages and not uses_hugepages(self.target, needed, self.testbed.facts()):
            what = "the hugepages that the run was begun on are no longer free"
            raise errors.TestbedError(
                f"{self.testbed.label}: {what}", hint="p4perf doctor says how many are; then resume it"
            )

    def simulate(self, planned: PlannedPoint, options: TrialOptions, folder: Path) -> dict[str, Any] | None:
        """Count by simulation: ``metrics``, or ``failure`` with the reason; None if nothing can be simulated."""
        if not isinstance(self.target, Simulates):
            return None
        jobs = self.target.simulation(planned.plan, options, self.facts)
        if not jobs:
            return None
        try:
            results = [self.testbed.run(job, folder) for job in jobs]
            return {"metrics": [[m.metric, m.value, m.unit] for m in self.target.simulated(results)]}
        except (errors.MeasurementError, errors.BuildError) as error:
            return {"failure": error.message}

    def _offer(self, order: TrialOrder, plan: LoadPlan, folder: Path) -> dict[str, Any]:
        """What a load generator measures in one repetition."""
        options = order.options
        link = replace(plan.link, hugepages=options.hugepages)
        generator: LoadGenerator = load_plugin("p4perf.load_generators", plan.generator)()
        with (
            self._frequency(order.planned),
            generator.open(self.target, order.planned.plan, link, self.testbed, self.facts, folder) as session,
        ):
            record = LoadMeasurement(session, plan, options.seed, options.gate_ratio, order.found).measure()
        return with_served(record, self.target, self.facts) if plan.served else record

    def _frequency(self, planned: PlannedPoint) -> contextlib.AbstractContextManager[None]:
        frequency_ghz = planned.point.cpu_frequency_ghz
        return contextlib.nullcontext() if frequency_ghz is None else self.testbed.at_frequency(frequency_ghz)


def measured_gate_ratios(target: Measures, testbed: Testbed, folder: Path) -> GateRatios:
    """The gate ratios that a calibration of the node prints, and what earlier ones saw; none without calibration."""
    job = calibration_of(target)
    lines = [] if job is None else testbed.run(job, folder).stdout.splitlines()
    found = GateRatios()
    read = (target.undisturbed(json.loads(line)) for line in lines if line.startswith("{"))
    seen = [each for each in read if each is not None]
    for each in (*known_before(seen, testbed, testbed.facts()), *seen):
        found.observe(each)
    return found


def with_served(record: Mapping[str, Any], target: Target, facts: NodeFacts) -> dict[str, Any]:
    """The record of a load, with the metrics of a target that is measured by its load alone."""
    accounts = {"program": record["overload"], "baseline": record["baseline"]}
    counted = {n: {**account, "evidence": account["raw"].get("evidence", {})} for n, account in accounts.items()}
    served = serving(target).served_metrics(counted, facts.values)
    return {**record, "served": [[m.metric, m.value, m.unit] for m in served]}
