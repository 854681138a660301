"""What a machine costs: prices learnt from fixtures and runs."""

from __future__ import annotations

import math
import re
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from p4perf import errors
from p4perf.evaluation.load.batches import BatchCost
from p4perf.evaluation.prediction.learning.composition import DRAWN, composing, composing_as_before
from p4perf.evaluation.prediction.learning.constructs import PacketPath, workload_increment
from p4perf.evaluation.prediction.learning.design import PriceRow
from p4perf.evaluation.prediction.learning.primitives import learn_prices
from p4perf.evaluation.prediction.learning.transfer import holds, joined, transferred
from p4perf.evaluation.prediction.library import FOLDER, is_of_this_machine, reference_model
from p4perf.evaluation.prediction.reading.swx_packets import UnknownDecisionError
from p4perf.experiment.bench import check_capability, open_target, open_testbed
from p4perf.experiment.conductor import TimeLimit
from p4perf.experiment.evaluate import BASELINE, COST
from p4perf.experiment.own import FRAME_SIZE_BYTES, own_experiment
from p4perf.experiment.planning import SweepPlan, plan_sweep, point_label, point_workload
from p4perf.experiment.recorder import PartOfWork, Reached
from p4perf.experiment.session import measure_run, new_run, require_usable, resume_run
from p4perf.experiment.sizing import Pace
from p4perf.generators.swx.spec import Pipeline
from p4perf.models.program.costs import BatchCycles, CostModel
from p4perf.models.program.memory import TABLE, MeasuredTable
from p4perf.models.program.primitives import PrimitiveCosts
from p4perf.plugins import load_plugin
from p4perf.programs.component import TrafficPlan, build_workload, component_parameters
from p4perf.programs.exercise import spread
from p4perf.records import counted, duration_text
from p4perf.results import Run, readable_runs, run_folders
from p4perf.results.campaign import RUNS
from p4perf.results.files import temporary_folder
from p4perf.results.manifest import differences
from p4perf.specs import Experiment, load_experiment
from p4perf.specs.points import Point
from p4perf.targets.link import LinkPlan
from p4perf.targets.roles import Connects
from p4perf.testbeds.loadgen.base import Load, Spacing
from p4perf.testbeds.loadgen.native import NativeGenerator
from p4perf.version import __version__

PROGRAMS = "programs"
"""What all measured programs of users are called together."""

COMPOSED = ("composition/programs", "composition/more-programs")

RING = "ring"

FORWARDING = "l2fwd"
"""The baseline over which prices are increments."""


def learn_primitives(runs: Iterable[Run], target: str, baseline: float) -> PrimitiveCosts:
    """The prices of a target, from all of its runs; runs of other targets are passed over.

    Args:
        baseline: cycles per packet of the program to which components are added.

    Raises:
        NoVerdictError: no run of the target says anything of prices.
    """
    rows, remarks = _rows(run for run in runs if run.identity.target == target)
    if not rows:
        raise errors.NoVerdictError(
            f"no run of {target} says what primitives cost",
            hint="measure the catalogue: p4perf run --all --target " + target,
        )
    return composing(learn_prices(rows, target, remarks=remarks), rows, baseline)


def _rows(runs: Iterable[Run]) -> tuple[list[PriceRow], list[str]]:
    """The measured points of runs, and why some of these have none."""
    rows: list[PriceRow] = []
    remarks = []
    for run in runs:
        try:
            rows += read_rows(run)
        except (errors.NoVerdictError, errors.CapabilityError, UnknownDecisionError) as error:
            remarks.append(f"{run.identity.experiment} says nothing of prices: {error}")
    return rows, remarks


MERGED = {"dpdk-c": "parser/select-branches"}
"""Experiments that say nothing of prices: compilers make a table of branches that all do the same."""


def read_rows(run: Run) -> list[PriceRow]:
    """The measured points of a run from which prices are learnt, in the order of its sweep.

    Raises:
        NoVerdictError: there are none; the message is the reason.
    """
    manifest = run.manifest
    if manifest.imported is not None:
        raise errors.NoVerdictError("it was imported")
    experiment = run.experiment
    if experiment.spec.program.baseline != FORWARDING:
        raise errors.NoVerdictError(f"its baseline is {experiment.spec.program.baseline}")
    if MERGED.get(manifest.target) == experiment.spec.name:
        raise errors.NoVerdictError("compilers make a table of its branches, which all do the same")
    if experiment.spec.device.cpu_frequency is not None:
        raise errors.NoVerdictError("it changes the frequency of the core")
    table = run.table[run.table["accepted"].astype(bool)]
    costs = {str(key): rows["value"].to_numpy() for key, rows in table[table["metric"] == COST].groupby("point")}
    bases = table[table["metric"] == BASELINE]
    baselines = {str(key): float(rows["value"].median()) for key, rows in bases.groupby("point")}
    if not costs:
        raise errors.NoVerdictError(f"no accepted trial gave {COST}")
    keys = {_values(point.values): point.key for point in manifest.points}
    found = []
    for point in experiment.points:
        key = keys.get(_values(point.values), "")
        if key not in costs:
            continue
        workload, traffic = point_workload(experiment, point)
        own = workload.source is not None
        if traffic.distribution not in ("uniform", "sequential") or workload.program.virtual_io is not None:
            continue
        found.append(
            PriceRow(
                PROGRAMS if own else experiment.spec.name,
                point_label(point) if point.values else experiment.spec.name,
                workload_increment(manifest.target, workload, traffic),
                cycles=float(np.median(costs[key])),
                starts=tuple(float(v) for v in costs[key]),
                baseline=baselines.get(key, 0.0),
                whole=own or experiment.spec.name in COMPOSED,
                components=() if own else _components(manifest.target, point, traffic),
                source="" if workload.source is None else workload.source.text,
            )
        )
    if not found:
        raise errors.NoVerdictError("its packets or its programs are of another kind")
    return found


def _components(target: str, point: Point, traffic: TrafficPlan) -> tuple[tuple[str, PacketPath], ...]:
    """The components of a point, and what a packet meets in each alone."""
    found = []
    for name, parameters in point.components:
        alone = build_workload([(name, parameters)], frame_size_bytes=point.frame_size_bytes)
        alone = replace(alone, frames=spread(alone.program, alone.packets, *traffic.flows))
        found.append((name, workload_increment(target, alone, traffic)))
    return tuple(found)


def _values(values: object) -> str:
    return repr(sorted(dict(values).items()))  # type: ignore[call-overload]


FORWARD = "program/forward"
"""The baseline as a program that was read: its packets are copied whole, which costs more than to write their keys."""

FUNCTIONS = "composition/functions"
"""Network functions in P4, read as programs of users are."""

LARGE = "composition/large-functions"
"""The same with large tables."""

FIXTURES = (
    *(FORWARD, FUNCTIONS, "composition/constructs", COMPOSED[0]),
    *("composition/components", DRAWN, "composition/context", COMPOSED[1], LARGE),
)
"""Experiments that a cost model is made of, in the order in which they are measured."""

QUICK, SHORT = 4, 3
"""How many of these are measured if time is short: programs that people wrote, single constructs that they have none
of, and composed programs; and how many if there is less than that."""

READ = (FORWARD, FUNCTIONS, LARGE)
"""Those with programs that were read: some targets take none, and their frames have another size."""

FULL_S = 820.0
"""For all fixtures, where starts are repeated because they disagree; learning from them takes another minute."""

LEAST_S = 20.0
"""With less time, hardly a program is measured."""

QUICK_ACCURACY, QUICK_STARTS, QUICK_S = 0.02, 4, 150.0
"""Relative error to which each program is measured then, about how many starts it takes, and seconds for all of them.

Where these are too few, single programs are less accurate; all have a start before any has its second.
"""

SET_UP_S = 15.0
"""Least time of a set: the first one of a machine builds the baseline, and finds out when samples are undisturbed."""

MEMORY = "memory_bytes"
CLOCK = "core_frequency"
"""Metric that says how fast the core was; its median is a fact of the machine, with its unit."""

_TOLD = (
    *("cpu_model", "cpu_id", "cache_l1_bytes", "cache_l2_bytes", "cache_l3_bytes"),
    *("dpdk_version", "cc_version", "kernel"),
)
"""Facts of a machine that a cost model names."""


def measure_fixtures(
    target: str,
    testbed: str,
    parent: Path,
    *,
    limit_s: float = math.inf,
    resume: bool = False,
    overrides: Sequence[tuple[str, str]] = (),
    told: Callable[[str], object],
    reached: Reached = lambda what, left_s: None,
) -> list[Run]:
    """Measure fixtures, each in a run directory of its own.

    With a limit, the first ones, to :data:`QUICK_ACCURACY` or as far as that allows; else all, within :data:`FULL_S`.
    """
    quick = limit_s < math.inf
    limit_s = limit_s if quick else FULL_S
    ends_s = time.monotonic() + limit_s
    many = len(FIXTURES) if not quick else QUICK if limit_s >= QUICK_S else SHORT
    device, place, pace = open_target(target), open_testbed(testbed), Pace()
    facts = require_usable(device, place)
    todo: dict[str, tuple[Experiment, SweepPlan]] = {}
    for name in FIXTURES[:many]:
        if name in READ and todo and FORWARD not in todo:  # who takes not even that takes none
            continue
        experiment = _fixture(name, overrides)
        try:
            todo[name] = experiment, plan_sweep(experiment, device, facts)
        except errors.CapabilityError:
            if name not in READ:
                raise

    def left_s(waiting: Sequence[str]) -> float:
        planned = [(plan, experiment.spec.trials.repetitions) for experiment, plan in map(todo.__getitem__, waiting)]
        return sum(pace.cost_s(plan, min(starts, QUICK_STARTS) if quick else starts) for plan, starts in planned)

    programs = counted(sum(len(plan.points) for _, plan in todo.values()), "program")
    whole_s = min(left_s([*todo]), limit_s)
    told(f"{programs} in {counted(len(todo), 'run')} on {target} ({place.label}): about {duration_text(whole_s)}")
    due_s = time.monotonic() + whole_s

    def heard(what: str, rest_s: float) -> None:
        """Say what is left of the announced time: how many starts an accuracy takes is known late."""
        planned_s = due_s - time.monotonic()
        reached(what, planned_s if quick and planned_s > 0 else rest_s)

    runs, since = [], ""
    notes = {"design": {"accuracy": QUICK_ACCURACY}} if quick else None
    for number, (name, (experiment, plan)) in enumerate(todo.items(), 1):
        rest_s, started = left_s([*todo][number:]), time.monotonic()
        listener = PartOfWork(name, heard, rest_s, told)
        own_s = left_s([name])
        open_s = ends_s - started
        limit = TimeLimit(started + max(open_s * own_s / (own_s + rest_s), min(open_s, SET_UP_S)))
        begun = _begun(parent, experiment, device.label, place.label, quick=quick, since=since) if resume else None
        if begun is not None:
            since, path = since or begun[0], begun[1]
            told(f"{name}: continuing {path}")
            run, _ = resume_run(path, listener, limit=limit)
        else:
            if resume and number == 1:
                told(f"note: no session in {parent} to continue: a new one begins")
                resume = False
            run, _ = new_run(experiment, device, place, parent, notes=notes, planned=lambda *_, plan=plan: plan)
            told(f"{name}: {counted(len(plan.points), 'program')}, run directory {run.path}")
            outcome = measure_run(experiment, plan.points, device, place, run, listener, limit=limit)
            pace.learn(outcome, plan.builds, time.monotonic() - started, load_s=plan.load_s, setup_s=plan.setup_s)
        if time.monotonic() >= limit.until_s:
            wanted = f"all programs were known to {QUICK_ACCURACY:.0%}" if quick else "all starts were made"
            told(f"note: {name}: its time was over before {wanted}")
        runs.append(Run(run))
    return runs


def learning_limit(target: str) -> str:
    """Why the fixtures cannot be measured on a target; empty if they can."""
    for name in (name for name in FIXTURES if name not in READ):
        experiment = _fixture(name, ())
        for point in experiment.points:
            try:
                check_capability(experiment, point, target)
            except errors.CapabilityError as error:
                return f"in {name}, {re.split(r': | [(]', error.message)[0]}"  # without the reason of the limit
    return ""


def _fixture(name: str, overrides: Sequence[tuple[str, str]]) -> Experiment:
    if name != FORWARD:
        return load_experiment(name, overrides=overrides, parameters_of=component_parameters)
    workload = build_workload([(FORWARDING, {})], frame_size_bytes=FRAME_SIZE_BYTES)
    with temporary_folder() as folder:
        file = folder / "forward.spec"
        file.write_text(Pipeline(workload.program, "program", FRAME_SIZE_BYTES).specification())
        return replace(own_experiment(file, repetitions=5), source=FORWARD)


BATCH_FRAME_BYTES = 128
BATCH_LOAD = 0.3
BATCH_SECONDS = 0.4


def measure_batches(target: str, testbed: str) -> BatchCost | None:
    """What batches of the program that only forwards cost behind a ring; None where there is no such link here."""
    device, place = open_target(target), open_testbed(testbed)
    generator = NativeGenerator()
    if not isinstance(device, Connects) or RING not in device.links:
        return None
    facts = require_usable(device, place)
    if generator.problems(facts):
        return None
    workload = build_workload([(FORWARDING, {})], frame_size_bytes=BATCH_FRAME_BYTES)
    plan = device.plan(workload, TrafficPlan(BATCH_FRAME_BYTES), facts)
    place.build(plan.build)
    hugepages = bool(facts.number("hugepages_free"))
    with temporary_folder() as folder:
        link = LinkPlan(RING, hugepages=hugepages)
        with generator.open(device, plan, link, place, facts, folder) as session:
            full = [session.offer(Load(None, BATCH_SECONDS)) for _ in range(2)][-1]
            poisson = Load(BATCH_LOAD * full.receive_rate_pps, BATCH_SECONDS, Spacing("poisson"))
            few = session.offer(poisson)
    return BatchCost.of([few.raw, full.raw])


def _begun(
    parent: Path, experiment: Experiment, target: str, testbed: str, *, quick: bool, since: str
) -> tuple[str, Path] | None:
    """When the newest run of an experiment in a folder began, as it would be measured now, and its path.

    None if there is none, or it began before the session that is continued.
    """
    wanted = (experiment.spec_hash, target, testbed)
    known = ((run.identity, run.path) for run in readable_runs(parent) if quick or not run.manifest.design)
    found = [(i.created, path) for i, path in known if (i.spec_hash, i.target, i.testbed) == wanted]
    return max(found) if found and max(found)[0] >= since else None


def learn(
    paths: Sequence[Path],
    target: str | None,
    testbed: str,
    parent: Path,
    *,
    resume: bool = False,
    catalogue: Path | None = None,
    limit_s: float = math.inf,
    overrides: Sequence[tuple[str, str]] = (),
    told: Callable[[str], object] = lambda text: None,
    reached: Reached = lambda what, left_s: None,
) -> CostModel:
    """The cost model of runs, or of a target whose fixtures are measured first.

    Args:
        limit_s: time for measuring; if there is one, the rest comes from the model that ships.

    Raises:
        UsageError: options that do not go together, or no such target.
        TargetUnavailableError: no model ships from which the rest of a quick one could come.
        Others as :func:`learn_from_runs`.
    """
    if bool(paths) == bool(target):
        hint = "p4perf learn --quick --target dpdk-c -o models/dpdk-c.json measures them for dpdk-c"
        raise errors.UsageError("name either run directories, or --target to measure fixtures", hint=hint)
    if paths and (resume or overrides):
        raise errors.UsageError("--resume and --set are for --target: the runs are measured already")
    quick = limit_s < math.inf
    if quick and catalogue is not None:
        message = "--quick or --budget, and --catalogue, both say where prices come from"
        raise errors.UsageError(message, hint="give one of them")
    if quick and paths:
        message = "--quick and --budget are for --target: the runs are measured already"
        raise errors.UsageError(message, hint="leave them out")
    if limit_s < LEAST_S:
        hint = f"give {LEAST_S:g}s or more; with {QUICK_S:g}s or more, composed programs are measured, too"
        raise errors.UsageError(f"--budget: {limit_s:g} s are too few to measure programs", hint=hint)
    runs = [Run.open(path) for path in paths]
    chosen = target or runs[0].manifest.target
    if target is not None:
        open_target(target)
    reference = reference_model(chosen)
    if quick and reference is None:
        raise errors.TargetUnavailableError(
            f"no cost model for target {chosen} ships, whose prices could be moved to this machine",
            hint="p4perf list models names those that do",
        )
    batches = None
    if not runs:
        if reference is not None and is_of_this_machine(reference):
            told(
                f"note: a model of {chosen} for this processor ships; what is measured is added to it if it holds "
                f"here, and the model that comes out takes its place in the folder {FOLDER}"
            )
        runs = measure_fixtures(
            chosen, testbed, parent, limit_s=limit_s, resume=resume, overrides=overrides, told=told, reached=reached
        )
        try:
            batches = measure_batches(chosen, testbed)
        except errors.P4PerfError as error:  # what was measured before counts without it
            told(f"note: the cost of batches behind a ring is unknown: {error.message}")
    return learn_from_runs(runs, reference=reference, catalogue=catalogue, batches=batches)


def learn_from_runs(
    runs: Sequence[Run],
    *,
    reference: CostModel | None = None,
    catalogue: Path | None = None,
    batches: BatchCost | None = None,
) -> CostModel:
    """The cost model that follows from runs of one target on one machine.

    Args:
        runs: of components alone and of composed programs; the experiments ``composition/*`` are made for it.
        reference: a model of another machine, whose prices are moved to this one by the runs.
        catalogue: folder with runs of the catalogue and of programs; with the others they teach all prices anew.
        batches: what batches cost behind a ring, as of :func:`measure_batches`.

    Raises:
        UsageError: there are no runs, or they are of several targets or machines.
        DataError: a run is damaged, or the runs do not belong together.
        NoVerdictError: the runs say too little.
    """
    if not runs:
        raise errors.UsageError("a cost model is made of runs", hint="name run directories, or --target to measure")
    _same_place(runs)
    written = [run for run in runs if run.identity.experiment not in READ]
    made = [run for run in written if run.identity.experiment in FIXTURES] or written
    frames = sorted({point.frame_size_bytes for run in made for point in run.experiment.points})
    if len(frames) > 1:
        raise errors.DataError(
            f"the programs have frames of {', '.join(map(str, frames))} B",
            hint="compared programs must have frames of one size, as those of composition/* have",
        )
    more = [] if catalogue is None else _runs_below(catalogue, runs[0])
    moved = None if catalogue is not None else reference
    # The packet source draws a key for each table, beside the baseline, too: that is no part of a program.
    baselines, clocks = _accepted(made, BASELINE, without=TABLE) or _accepted(made, BASELINE), _accepted(runs, CLOCK)
    if not baselines:
        raise errors.NoVerdictError("no run has an accepted baseline", hint="measure composition/components")
    target, facts, baseline = runs[0].manifest.target, runs[0].node, statistics.median(baselines)

    kept = False
    if moved is None or not moved.primitives:
        prices = learn_primitives([*runs, *more], target, baseline)
    else:
        rows, _ = _rows(runs)
        known = PrimitiveCosts.from_record(dict(moved.primitives))
        copied = [row.baseline for row in rows if row.experiment == PROGRAMS]
        dearer = max(known.baseline + baseline - moved.baseline, 1.0)
        # Sweeps and drawn components say what others of them cost, not what constructs do in whole programs.
        told = [row for row in rows if row.whole or (row.experiment in FIXTURES and row.experiment != DRAWN)]
        whole_baseline = statistics.median(copied) if copied else dearer
        kept = facts.text("cpu_id") == moved.machine.get("cpu_id") and holds(known, told)
        if kept:
            prices = composing_as_before(joined(known, told, whole_baseline), rows, baseline)
        else:
            prices = composing(transferred(known, told, whole_baseline), rows, baseline, known.composition)
    machine = {key: facts.text(key) for key in _TOLD if facts.text(key)}
    held = None if reference is None else reference.batches
    if clocks:
        machine[CLOCK] = f"{statistics.median(clocks):.4f} GHz"
        if batches is not None:
            times_us = (batches.batch_us, batches.idle_us, batches.empty_us)
            held = BatchCycles(*(us * 1e3 * statistics.median(clocks) for us in times_us))
    provenance: dict[str, Any] = {
        "runs": [run.name for run in runs],
        "testbed": runs[0].manifest.testbed,
        "hugepages": [run.manifest.hugepages for run in runs],
        "p4perf": __version__,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    if more:
        provenance["catalogue"] = [run.name for run in more]
    if moved is not None:
        provenance["joined" if kept else "transferred"] = moved.machine.get("cpu_model", "")
    return CostModel(
        target,
        baseline,
        tuple(table for run in runs for table in _tables(run)),
        frames[0],
        machine,
        provenance,
        batches=held,
        primitives=prices.record(),
    )


def _accepted(runs: Sequence[Run], metric: str, *, without: str = "") -> list[float]:
    """Accepted values of all points, or of those without a component."""
    found: list[float] = []
    for run in runs:
        kept = [p.index for p in run.experiment.points if without not in (name for name, _ in p.components)]
        table = run.table[run.table["accepted"].astype(bool) & run.table["point_index"].isin(kept)]
        found += [float(value) for value in table.loc[table["metric"] == metric, "value"]]
    return found


def _tables(run: Run) -> Iterator[MeasuredTable]:
    """Single tables whose memory was measured."""
    fields = load_plugin("p4perf.components", TABLE).Parameters.model_fields
    defaults = {key: field.default for key, field in fields.items() if not field.is_required()}
    rows = run.table[run.table["accepted"].astype(bool) & (run.table["metric"] == MEMORY)]
    for point in run.experiment.points:
        sizes = rows.loc[rows["point_index"] == point.index, "value"]
        if [name for name, _ in point.components] == [TABLE] and len(sizes):
            yield MeasuredTable({**defaults, **point.components[0][1]}, float(sizes.median()))


def _runs_below(folder: Path, first: Run) -> list[Run]:
    """The runs of the same target on the same machine in a folder of runs, or of campaigns.

    Raises:
        DataError: a run is damaged, or of another machine.
    """
    found = []
    for path in sorted((*run_folders(folder), *run_folders(folder / RUNS))):
        run = Run.open(path)
        if run.manifest.target != first.manifest.target or run.manifest.imported is not None:
            continue
        ours, cpu = first.node.text("cpu_model"), run.node.text("cpu_model")
        if cpu != ours:
            raise errors.DataError(
                f"is of another machine than the model: {cpu or 'unknown'}, not {ours}",
                location=errors.Location(str(run.directory.manifest_file)),
                hint="a cost model is of one machine",
            )
        found.append(run)
    return found


def _same_place(runs: Sequence[Run]) -> None:
    """Refuse runs that do not belong together, and those whose programs are unknown."""
    first = runs[0].manifest
    for run in runs:
        if run.manifest.imported is not None:
            raise errors.UsageError(f"{run.path} was imported: what its programs were is not known")
        if run.manifest.target != first.target:
            raise errors.UsageError(
                f"{run.path} is of target {run.manifest.target}, {runs[0].path} of {first.target}",
                hint="a cost model is of one target",
            )
        if said := differences(first.node, run.node):
            raise errors.DataError(
                f"is of another machine than {runs[0].path}: {said}",
                location=errors.Location(str(run.directory.manifest_file)),
                hint="a cost model is of one machine",
            )
