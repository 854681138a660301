"""Learning the cost model of a machine: the fixtures of the catalogue are measured, and their runs are read."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from p4perf.errors import DataError, Location, NoVerdictError, UsageError
from p4perf.evaluation.prediction.learning import MeasuredProgram, learn, measured_programs
from p4perf.evaluation.prediction.learning.constructs import PacketWay, increment
from p4perf.evaluation.prediction.learning.design import PriceRow
from p4perf.evaluation.prediction.learning.primitives import learn_prices
from p4perf.evaluation.prediction.learning.swx_constructs import swx_increment
from p4perf.experiment.evaluate import BASELINE, COST
from p4perf.experiment.planning import point_workload
from p4perf.experiment.progress import Progress
from p4perf.experiment.record import differences, imported_by, open_target, open_testbed, run_record
from p4perf.experiment.session import measure_run, new_run, resume_run
from p4perf.models.program.costs import CostModel
from p4perf.models.program.interactions import FormName
from p4perf.models.program.primitives import PrimitiveCosts
from p4perf.programs.component import TrafficPlan
from p4perf.programs.ir import Program, Workload
from p4perf.results import RunDirectory
from p4perf.specs import Experiment, ExperimentSpec, Point, load_experiment
from p4perf.targets.base import NodeFacts
from p4perf.version import __version__

FORWARDING = "l2fwd"
"""The baseline over which prices are increments."""


SWX = "dpdk-swx"
"""Programs for it are read instruction by instruction, so its prices are those of instructions."""


@dataclass(frozen=True, slots=True)
class RunRows:
    """What a run says of prices: its points, or why it says nothing."""

    rows: tuple[PriceRow, ...]
    reason: str = ""


def learn_primitives(runs: Iterable[RunDirectory], target: str) -> PrimitiveCosts:
    """The prices of a target, from all of its runs; runs of other targets are passed over.

    Args:
        runs: run directories, of which the same experiment may have several.
        target: its name, with variants: ``dpdk-swx:interpreter``.

    Raises:
        DataError: a run is damaged.
        NoVerdictError: no run of the target says anything of prices.
    """
    rows: list[PriceRow] = []
    remarks = []
    for run in runs:
        manifest = run.manifest()
        if manifest.get("target") != target:
            continue
        found = read_rows(run)
        rows += found.rows
        if found.reason:
            remarks.append(f"{manifest['experiment']} says nothing of prices: {found.reason}")
    if not rows:
        raise NoVerdictError(
            f"no run of {target} says what primitives cost",
            hint="measure the catalogue: p4perf run --all --target " + target,
        )
    return learn_prices(rows, target, remarks=remarks)


def read_rows(run: RunDirectory) -> RunRows:
    """The measured points of one run, in the order of its sweep.

    Raises:
        DataError: the run is damaged.
    """
    manifest = run_record(run)
    if imported_by(manifest) is not None:
        return RunRows((), "it was imported")
    experiment = load_experiment(str(run.path / "spec.yaml"))
    if reason := _unsuited(experiment.spec):
        return RunRows((), reason)
    table = run.read_measurements()
    table = table[table["accepted"].astype(bool)]
    costs = {str(key): rows["value"].to_numpy() for key, rows in table[table["metric"] == COST].groupby("point")}
    bases = table[table["metric"] == BASELINE]
    baselines = {str(key): float(rows["value"].median()) for key, rows in bases.groupby("point")}
    if not costs:
        return RunRows((), f"no accepted trial gave {COST}")
    keys = {_values(point["values"]): str(point["hash"]) for point in manifest["points"]}
    found = []
    for point in experiment.points:
        key = keys.get(_values(point.values), "")
        if key not in costs:
            continue
        workload, traffic = point_workload(experiment, point)
        if traffic.distribution not in ("uniform", "sequential") or not _of_the_language(workload.program):
            continue
        way = _way(str(manifest.get("target")), workload, traffic)
        found.append(
            PriceRow(
                experiment.spec.name,
                _label(point),
                way.met,
                cycles=float(np.median(costs[key])),
                starts=tuple(float(v) for v in costs[key]),
                baseline=baselines.get(key, 0.0),
                mispredicted=way.mispredicted,
            )
        )
    return RunRows(tuple(found), "" if found else "its packets or its programs are of another kind")


def _way(target: str, workload: Workload, traffic: TrafficPlan) -> PacketWay:
    """What an average packet meets beyond the baseline, in the constructs in which programs for a target are read."""
    if target.partition(":")[0] != SWX:
        return increment(workload, traffic)
    code = "interpreted" if "interpreter" in target.split(":")[1:] else "compiled"
    way = swx_increment(workload, traffic)
    return replace(way, met=tuple((w, n) for w, n in way.met if w.kind != "overlap" or w.size("code") == code))


def _unsuited(spec: ExperimentSpec) -> str:
    """Why the points of a spec do not say what primitives cost; empty if they do."""
    if spec.program.baseline != FORWARDING:
        return f"its baseline is {spec.program.baseline}"
    if spec.device.cpu_frequency is not None:
        return "it changes the frequency of the core"
    return ""


def _of_the_language(program: Program) -> bool:
    """Whether a program has nothing that no construct describes, such as queues of a host."""
    return program.virtual_io is None


def _values(values: object) -> str:
    return repr(sorted(dict(values).items()))  # type: ignore[call-overload]


def _label(point: Point) -> str:
    return ", ".join(f"{k}={v}" for k, v in point.values.items()) or "single point"


FIXTURES = ("composition/components", "composition/programs", "composition/context")
"""Experiments of the catalogue that a cost model is made of, in the order in which they are measured."""

CLOCK = "core_frequency"
"""Metric that says how fast the core was; its median is a fact of the machine, with its unit."""

_TOLD = ("cpu_model", "cache_l1_bytes", "cache_l2_bytes", "cache_l3_bytes", "dpdk_version", "cc_version", "kernel")
"""Facts of a machine that a cost model names."""


def measure_fixtures(
    target: str,
    testbed: str,
    parent: Path,
    names: Sequence[str] = FIXTURES,
    *,
    resume: bool = False,
    overrides: Sequence[tuple[str, str]] = (),
    progress: Progress | None = None,
    told: Callable[[str], object] = lambda line: None,
) -> list[RunDirectory]:
    """Measure the fixtures, each in a run directory of its own.

    Args:
        target: the device, with variants.
        testbed: where it runs.
        parent: folder that gets the run directories.
        names: which fixtures.
        resume: go on with the newest runs of the same fixtures that are in that folder.
        overrides: key and value of every ``--set`` for all fixtures.
        progress: is told what happens in a run.
        told: takes lines about the runs.

    Raises:
        P4PerfError: as for single runs.
    """
    runs = []
    device, place = open_target(target), open_testbed(testbed)
    for name in names:
        experiment = load_experiment(name, overrides=overrides)
        begun = _begun(parent, experiment, device.label, place.label) if resume else None
        if begun is not None:
            told(f"{name} on {target}: going on with {begun}")
            runs.append(resume_run(begun, progress)[0])
            continue
        run, plan = new_run(experiment, device, place, parent)
        told(f"{name} on {target} ({place.label}): {len(plan.points)} programs, run directory {run.path}")
        measure_run(experiment, plan.points, device, place, run, progress)
        runs.append(run)
    return runs


def _begun(parent: Path, experiment: Experiment, target: str, testbed: str) -> Path | None:
    """The newest run of an experiment in a folder, as it would be measured now; None if there is none."""
    found: list[tuple[str, Path]] = []
    for path in sorted(parent.iterdir()) if parent.is_dir() else ():
        if not (path / "manifest.json").is_file():
            continue
        try:
            manifest = RunDirectory.open(path).manifest()
        except DataError:
            continue
        said = (manifest.get("spec_hash"), manifest.get("target"), manifest.get("testbed"))
        if said == (experiment.spec_hash, target, testbed):
            found.append((str(manifest.get("created", "")), path))
    return max(found)[1] if found else None


def learn_from_runs(runs: Sequence[RunDirectory], *, form: FormName | None = None) -> CostModel:
    """The cost model that follows from runs of one target on one machine.

    Args:
        runs: of components alone and of composed programs; the experiments ``composition/*`` are made for it.
        form: what components cost beside one another; None: the one with the smallest errors.

    Raises:
        UsageError: there are no runs, or they are of several targets or machines.
        DataError: a run is damaged, or the runs say too little.
    """
    if not runs:
        raise UsageError("a cost model is made of runs", hint="name run directories, or --target to measure")
    manifests = [run_record(run) for run in runs]
    _same_place(runs, manifests)
    programs: list[MeasuredProgram] = []
    clocks: list[float] = []
    for run in runs:
        experiment = load_experiment(str(run.path / "spec.yaml"))
        table = run.read_measurements()
        programs += measured_programs(table, experiment.points, experiment.spec.name)
        clocks += [float(v) for v in table.loc[(table["metric"] == CLOCK) & table["accepted"].astype(bool), "value"]]
    facts = NodeFacts(manifests[0]["node"])
    machine = {key: facts.text(key) for key in _TOLD if facts.text(key)}
    if clocks:
        machine[CLOCK] = f"{statistics.median(clocks):.4f} GHz"
    provenance: dict[str, Any] = {
        "runs": [run.path.name for run in runs],
        "testbed": manifests[0].get("testbed"),
        "hugepages": [manifest.get("hugepages") for manifest in manifests],
        "p4perf": __version__,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    return learn(
        programs,
        target=str(manifests[0]["target"]),
        cache_bytes=facts.cache_bytes,
        machine=machine,
        provenance=provenance,
        form=form,
    )


def with_primitives(model: CostModel, folder: Path) -> CostModel:
    """The model with prices of primitives, learnt from runs of the catalogue on the same target and machine.

    Args:
        model: a cost model.
        folder: with run directories, or a campaign; runs of other targets are passed over.

    Raises:
        DataError: a run is damaged, or of another machine.
        NoVerdictError: there is no run of the target that says anything of prices.
    """
    found = []
    for path in sorted((*folder.glob("*/manifest.json"), *folder.glob("runs/*/manifest.json"))):
        run = RunDirectory.open(path.parent)
        manifest = run_record(run)
        if manifest["target"] != model.target or imported_by(manifest) is not None:
            continue
        cpu = NodeFacts(manifest["node"]).text("cpu_model")
        if cpu != model.machine.get("cpu_model", ""):
            raise DataError(
                f"is of another machine than the model: {cpu or 'unknown'}, not {model.machine.get('cpu_model')}",
                location=Location(str(path)),
                hint="a cost model is of one machine",
            )
        found.append(run)
    prices = learn_primitives(found, model.target)
    provenance = {**model.provenance, "catalogue": [run.path.name for run in found]}
    return replace(model, primitives=prices.record(), provenance=provenance)


def _same_place(runs: Sequence[RunDirectory], manifests: Sequence[dict[str, Any]]) -> None:
    """Refuse runs that do not belong together, and those whose programs nobody knows."""
    first = manifests[0]
    for run, manifest in zip(runs, manifests, strict=True):
        if imported_by(manifest) is not None:
            raise UsageError(f"{run.path} was imported: what its programs were is not known")
        if manifest["target"] != first["target"]:
            raise UsageError(
                f"{run.path} is of target {manifest['target']}, {runs[0].path} of {first['target']}",
                hint="a cost model is of one target",
            )
        if said := differences(NodeFacts(first["node"]), NodeFacts(manifest["node"])):
            raise DataError(
                f"is of another machine than {runs[0].path}: {said}",
                location=Location(str(run.path / "manifest.json")),
                hint="a cost model is of one machine",
            )
