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
from p4perf.evaluation.prediction.learning.constructs import PacketPath, increment, swx_increment
from p4perf.evaluation.prediction.learning.design import PriceRow
from p4perf.evaluation.prediction.learning.primitives import learn_prices
from p4perf.experiment.evaluate import BASELINE, COST
from p4perf.experiment.planning import point_label, point_workload
from p4perf.experiment.record import open_target, open_testbed
from p4perf.experiment.recorder import Progress
from p4perf.experiment.session import measure_run, new_run, resume_run
from p4perf.models.program.costs import CostModel
from p4perf.models.program.interactions import FormName
from p4perf.models.program.primitives import PrimitiveCosts
from p4perf.programs.component import TrafficPlan, component_parameters
from p4perf.programs.ir import Workload
from p4perf.results import Run, readable_runs, run_folders
from p4perf.results.campaign import RUNS
from p4perf.results.manifest import differences
from p4perf.specs import Experiment, load_experiment
from p4perf.version import __version__

FORWARDING = "l2fwd"
"""The baseline over which prices are increments."""


SWX = "dpdk-swx"
"""Programs for it are read instruction by instruction, so its prices are those of instructions."""


@dataclass(frozen=True, slots=True)
class RunRows:
    """The points of a run from which prices are learnt, or why it has none."""

    rows: tuple[PriceRow, ...]
    reason: str = ""


def learn_primitives(runs: Iterable[Run], target: str) -> PrimitiveCosts:
    """The prices of a target, from all of its runs; runs of other targets are passed over.

    Raises:
        NoVerdictError: no run of the target says anything of prices.
    """
    rows: list[PriceRow] = []
    remarks = []
    for run in runs:
        if run.identity.target != target:
            continue
        found = read_rows(run)
        rows += found.rows
        if found.reason:
            remarks.append(f"{run.identity.experiment} says nothing of prices: {found.reason}")
    if not rows:
        raise NoVerdictError(
            f"no run of {target} says what primitives cost",
            hint="measure the catalogue: p4perf run --all --target " + target,
        )
    return learn_prices(rows, target, remarks=remarks)


def read_rows(run: Run) -> RunRows:
    """The measured points of one run, in the order of its sweep."""
    manifest = run.manifest
    if manifest.imported is not None:
        return RunRows((), "it was imported")
    experiment = run.experiment
    if experiment.spec.program.baseline != FORWARDING:
        return RunRows((), f"its baseline is {experiment.spec.program.baseline}")
    if experiment.spec.device.cpu_frequency is not None:
        return RunRows((), "it changes the frequency of the core")
    table = run.table[run.table["accepted"].astype(bool)]
    costs = {str(key): rows["value"].to_numpy() for key, rows in table[table["metric"] == COST].groupby("point")}
    bases = table[table["metric"] == BASELINE]
    baselines = {str(key): float(rows["value"].median()) for key, rows in bases.groupby("point")}
    if not costs:
        return RunRows((), f"no accepted trial gave {COST}")
    keys = {_values(point.values): point.key for point in manifest.points}
    found = []
    for point in experiment.points:
        key = keys.get(_values(point.values), "")
        if key not in costs:
            continue
        workload, traffic = point_workload(experiment, point)
        if traffic.distribution not in ("uniform", "sequential") or workload.program.virtual_io is not None:
            continue
        path = _path(manifest.target, workload, traffic)
        found.append(
            PriceRow(
                experiment.spec.name,
                point_label(point),
                path.met,
                cycles=float(np.median(costs[key])),
                starts=tuple(float(v) for v in costs[key]),
                baseline=baselines.get(key, 0.0),
                mispredicted=path.mispredicted,
            )
        )
    return RunRows(tuple(found), "" if found else "its packets or its programs are of another kind")


def _path(target: str, workload: Workload, traffic: TrafficPlan) -> PacketPath:
    """What an average packet meets beyond the baseline, in the constructs in which programs for a target are read."""
    if target.partition(":")[0] != SWX:
        return increment(workload, traffic)
    code = "interpreted" if "interpreter" in target.split(":")[1:] else "compiled"
    path = swx_increment(workload, traffic)
    return replace(path, met=tuple((w, n) for w, n in path.met if w.kind != "overlap" or w.size("code") == code))


def _values(values: object) -> str:
    return repr(sorted(dict(values).items()))  # type: ignore[call-overload]


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
) -> list[Run]:
    """Measure the fixtures, each in a run directory of its own."""
    runs = []
    device, place = open_target(target), open_testbed(testbed)
    for name in names:
        experiment = load_experiment(name, overrides=overrides, parameters_of=component_parameters)
        begun = _begun(parent, experiment, device.label, place.label) if resume else None
        if begun is not None:
            told(f"{name} on {target}: continuing {begun}")
            runs.append(Run(resume_run(begun, progress)[0]))
            continue
        run, plan = new_run(experiment, device, place, parent)
        told(f"{name} on {target} ({place.label}): {len(plan.points)} programs, run directory {run.path}")
        measure_run(experiment, plan.points, device, place, run, progress)
        runs.append(Run(run))
    return runs


def _begun(parent: Path, experiment: Experiment, target: str, testbed: str) -> Path | None:
    """The newest run of an experiment in a folder, as it would be measured now; None if there is none."""
    wanted = (experiment.spec_hash, target, testbed)
    known = ((run.identity, run.path) for run in readable_runs(parent))
    found = [(i.created, path) for i, path in known if (i.spec_hash, i.target, i.testbed) == wanted]
    return max(found)[1] if found else None


def learn_from_runs(runs: Sequence[Run], *, form: FormName | None = None) -> CostModel:
    """The cost model that follows from runs of one target on one machine.

    Args:
        runs: of components alone and of composed programs; the experiments ``composition/*`` are made for it.
        form: interaction between components; None: the one with the smallest errors.

    Raises:
        UsageError: there are no runs, or they are of several targets or machines.
        DataError: a run is damaged, or the runs say too little.
    """
    if not runs:
        raise UsageError("a cost model is made of runs", hint="name run directories, or --target to measure")
    _same_place(runs)
    programs: list[MeasuredProgram] = []
    clocks: list[float] = []
    for run in runs:
        table = run.table
        programs += measured_programs(table, run.experiment.points, run.spec.name)
        clocks += [float(v) for v in table.loc[(table["metric"] == CLOCK) & table["accepted"].astype(bool), "value"]]
    first, facts = runs[0].manifest, runs[0].node
    machine = {key: facts.text(key) for key in _TOLD if facts.text(key)}
    if clocks:
        machine[CLOCK] = f"{statistics.median(clocks):.4f} GHz"
    provenance: dict[str, Any] = {
        "runs": [run.name for run in runs],
        "testbed": first.testbed,
        "hugepages": [run.manifest.hugepages for run in runs],
        "p4perf": __version__,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    return learn(
        programs, target=first.target, cache_bytes=facts.cache_bytes, machine=machine, provenance=provenance, form=form
    )


def with_primitives(model: CostModel, folder: Path) -> CostModel:
    """The model with prices of primitives, learnt from runs of the catalogue on the same target and machine.

    Raises:
        DataError: a run is damaged, or of another machine.
        NoVerdictError: there is no run of the target that says anything of prices.
    """
    found = []
    for path in sorted((*run_folders(folder), *run_folders(folder / RUNS))):
        run = Run.open(path)
        if run.manifest.target != model.target or run.manifest.imported is not None:
            continue
        cpu = run.node.text("cpu_model")
        if cpu != model.machine.get("cpu_model", ""):
            raise DataError(
                f"is of another machine than the model: {cpu or 'unknown'}, not {model.machine.get('cpu_model')}",
                location=Location(str(run.directory.manifest_file)),
                hint="a cost model is of one machine",
            )
        found.append(run)
    prices = learn_primitives(found, model.target)
    provenance = {**model.provenance, "catalogue": [run.name for run in found]}
    return replace(model, primitives=prices.record(), provenance=provenance)


def _same_place(runs: Sequence[Run]) -> None:
    """Refuse runs that do not belong together, and those whose programs are unknown."""
    first = runs[0].manifest
    for run in runs:
        if run.manifest.imported is not None:
            raise UsageError(f"{run.path} was imported: what its programs were is not known")
        if run.manifest.target != first.target:
            raise UsageError(
                f"{run.path} is of target {run.manifest.target}, {runs[0].path} of {first.target}",
                hint="a cost model is of one target",
            )
        if said := differences(first.node, run.node):
            raise DataError(
                f"is of another machine than {runs[0].path}: {said}",
                location=Location(str(run.directory.manifest_file)),
                hint="a cost model is of one machine",
            )
