"""Learning the cost model of a machine: the fixtures of the catalogue are measured, and their runs are read."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from p4perf.errors import DataError, Location, UsageError
from p4perf.evaluation.prediction import MeasuredProgram, learn, measured_programs
from p4perf.experiment.agreement import differences
from p4perf.experiment.opening import open_target, open_testbed
from p4perf.experiment.primitives import learn_primitives
from p4perf.experiment.progress import Progress
from p4perf.experiment.record import imported_by, run_record
from p4perf.experiment.session import measure_run, new_run, resume_run
from p4perf.models.program.context import FormName
from p4perf.models.program.costs import CostModel
from p4perf.results import RunDirectory
from p4perf.specs import Experiment, load_experiment
from p4perf.targets.base import NodeFacts
from p4perf.version import __version__

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
