"""From run directories to prices of primitives: of every measured program it is known what its packets meet."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from p4perf.errors import NoVerdictError
from p4perf.evaluation.prediction.constructs import PacketWay, increment
from p4perf.evaluation.prediction.design import PriceRow
from p4perf.evaluation.prediction.primitives import learn_prices
from p4perf.evaluation.prediction.swx_constructs import swx_increment
from p4perf.experiment.evaluate import BASELINE, COST
from p4perf.experiment.planning import point_workload
from p4perf.experiment.record import imported_by, run_record
from p4perf.generators.base import TrafficPlan
from p4perf.generators.program import Program, Workload
from p4perf.models.program.primitives import PrimitiveCosts
from p4perf.results import RunDirectory
from p4perf.specs import ExperimentSpec, Point, load_experiment

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
