"""From an experiment and a target to the points that will be measured; what is impossible is refused here."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from typing_extensions import override

from p4perf.errors import CapabilityError, P4PerfError, SpecError
from p4perf.experiment.load import SEARCHED, LoadPlan, load_plan, without_load
from p4perf.experiment.search import open_search
from p4perf.plugins import plugin_names
from p4perf.programs.capabilities import Capabilities
from p4perf.programs.component import TrafficPlan, build_workload, component_parameters
from p4perf.programs.exercise import spread
from p4perf.programs.ir import Workload
from p4perf.programs.packets import check_frame_size, with_contents
from p4perf.specs import Experiment, Point, load_experiment
from p4perf.specs.metrics import LOAD_METRICS, METRICS
from p4perf.specs.schema import IMPORTED
from p4perf.specs.sections import BurstSpec, FractionLoad, RateLoad
from p4perf.targets.base import NodeFacts, PointPlan, Target
from p4perf.targets.link import check_stamp_room
from p4perf.targets.roles import Connects, Serves, connected, is_served, links_of


@dataclass(frozen=True, slots=True)
class PlannedPoint:
    """A sweep point with all that its target needs to measure it.

    ``load`` is what a load generator does; None where none is needed. ``saturated`` says whether the target is measured
    as its own packet source, too. ``search_key`` is the same for points for which the same throughput is searched.
    """

    point: Point
    plan: PointPlan
    load: LoadPlan | None = None
    saturated: bool = True
    search_key: str = ""

    @property
    def key(self) -> str:
        """The hash that names the point in the run directory."""
        return self.plan.key

    @property
    def label(self) -> str:
        return point_label(self.point)


@dataclass(frozen=True, slots=True)
class RefusedPoint:
    """A sweep point that is beyond what its target can do, and the reason."""

    point: Point
    reason: str

    @property
    def label(self) -> str:
        return point_label(self.point)


@dataclass(frozen=True, slots=True)
class SweepPlan:
    points: tuple[PlannedPoint, ...]
    refused: tuple[RefusedPoint, ...]

    @property
    def memory_bytes(self) -> int:
        return max((p.plan.memory_bytes for p in self.points), default=0)

    @property
    def setup_s(self) -> float:
        """Time in which the tables of one start of every point are filled, roughly, in seconds."""
        return sum(p.plan.setup_s for p in self.points)

    @property
    def load_s(self) -> float:
        """What the load generator takes for one repetition of a point, roughly, in seconds."""
        return max((p.load.expected_s for p in self.points if p.load is not None), default=0.0)

    @property
    def builds(self) -> int:
        """Programs that have to be built, if none is yet."""
        return len({p.plan.build.key for p in self.points if p.plan.build.commands})


def point_label(point: Point) -> str:
    """The swept values, for people."""
    return ", ".join(f"{k}={v}" for k, v in point.values.items()) or "single point"


def point_workload(experiment: Experiment, point: Point) -> tuple[Workload, TrafficPlan]:
    """Program, baseline, packets and traffic of one point.

    Raises:
        SpecError: a component does not know a parameter, or its value is out of bounds.
        CapabilityError: no such program exists.
    """
    try:
        return _workload(experiment, point)
    except P4PerfError as error:
        raise _at(error, experiment, point) from error


def _workload(experiment: Experiment, point: Point) -> tuple[Workload, TrafficPlan]:
    """What :func:`point_workload` returns; its errors do not name the point."""
    _refuse_imported(experiment)
    baseline = experiment.spec.program.baseline
    workload = build_workload(
        point.components,
        frame_size_bytes=point.frame_size_bytes,
        baseline=baseline,
        captured=experiment.capture.frames if experiment.capture else (),
    )
    contents = with_contents(
        workload.program, workload.packets, point.traffic.fields, bytes.fromhex(point.traffic.payload)
    )
    traffic = traffic_plan(point)
    frames = workload.frames or spread(workload.program, contents, *traffic.flows)
    return replace(workload, packets=contents, frames=frames), traffic


Possible = tuple[Point, Workload, TrafficPlan]


def possible_points(experiment: Experiment, *, frames: bool = True) -> tuple[list[Possible], list[RefusedPoint]]:
    """The points with their programs, checked as far as that is possible without a target, and those that have none.

    Args:
        frames: check that headers fit into the smallest frame; targets do so themselves.

    Raises:
        SpecError: a component does not know a parameter, or its value is out of bounds.
        CapabilityError: no such program exists, or its headers do not fit into the frame; of all points, or the spec
            does not say to skip such points.
    """
    found: list[Possible] = []
    refused: list[RefusedPoint] = []
    for point in experiment.points:
        try:
            workload, traffic = _workload(experiment, point)
            if frames:
                smallest = min((size for size, _ in point.traffic.mix or ()), default=point.frame_size_bytes)
                check_frame_size(workload.program, replace(workload.packets, frame_size_bytes=smallest))
        except CapabilityError as error:
            last = point is experiment.points[-1] and not found
            if last or not experiment.spec.sweep.skip_impossible:
                if point.values and not error.hint:
                    error.hint = "p4perf run --skip-impossible leaves such points out"
                raise _at(error, experiment, point) from error
            refused.append(RefusedPoint(point, error.message))
        except P4PerfError as error:
            raise _at(error, experiment, point) from error
        else:
            found.append((point, workload, traffic))
    return found, refused


def traffic_plan(point: Point) -> TrafficPlan:
    traffic = point.traffic
    load = traffic.offered_load
    ratios = [float(p["hit_ratio"]) for _, p in point.components if "hit_ratio" in p]
    zipf = traffic.flows.zipf_s
    burst = traffic.burst or BurstSpec()
    return TrafficPlan(
        frame_size_bytes=point.frame_size_bytes,
        pattern=str(traffic.pattern),
        distribution=str(traffic.flows.distribution),
        zipf_s=1.0 if zipf is None else float(zipf),
        hit_ratio=min(ratios, default=1.0),
        offered_load_mpps=float(load.rate_mpps) if isinstance(load, RateLoad) else None,
        latency_at=tuple(
            float(f) for f in (load.fraction_of_max if isinstance(load, FractionLoad) else traffic.latency_at)
        ),
        burst_length=int(burst.length),
        burst_spacing_ns=burst.spacing_ns,
        burst_gap_us=None if burst.gap_us is None else float(burst.gap_us),
    )


def plan_sweep(experiment: Experiment, target: Target, facts: NodeFacts) -> SweepPlan:
    """Plan every point of the sweep for a target, before anything runs.

    A point that is beyond a limit of the target is refused, and the others are planned.

    Raises:
        SpecError: the spec asks for a metric that the target does not give, or two points are the same measurement.
        CapabilityError: every point is beyond a limit of the target; the message is that of the first.
    """
    _refuse_imported(experiment)
    served = is_served(target, facts)
    loaded = served or (bool(links_of(target)) and experiment.spec.asks_load)
    generator = facts.text("load_generator", "native")
    _check_metrics(experiment, target, served=served)
    _check_effects(experiment, target, loadable=served or bool(links_of(target)))
    if loaded:
        _check_load(experiment, generator)
    own, links = facts.text("link"), links_of(target)
    links = (own, *links) if own in links else links  # that of the testbed first, if the target knows it
    planned: dict[str, PlannedPoint] = {}
    first: CapabilityError | None = None
    possible, refused = possible_points(experiment, frames=False)
    for point, workload, traffic in possible:
        load = None
        if loaded:
            capture = experiment.capture
            load = load_plan(experiment.spec, point, links, capture, generator=generator, served=served)
            traffic = without_load(traffic)
        try:
            target.check_program(workload, traffic, facts)
            plan = _at_frequency(target.plan(workload, traffic, facts), point.cpu_frequency_ghz, facts)
            search_key = "" if load is None else f"{plan.key} {load.of_search!r}"
            if load is not None:
                plan = _with_load(plan, load, target, facts)
        except CapabilityError as error:
            first = first or error
            refused.append(RefusedPoint(point, error.message))
            continue
        except P4PerfError as error:
            raise _at(error, experiment, point) from error
        saturated = not served and (load is None or _is_saturated(experiment, target))
        new = PlannedPoint(point, plan, load, saturated, search_key)
        if plan.key in planned:
            raise SpecError(
                f"{planned[plan.key].label} and {new.label} are the same program and traffic on {target.label}",
                hint="take one of them out of the sweep",
            )
        planned[plan.key] = new
    if first is not None and not planned:
        raise _at(first, experiment, possible[0][0]) from first
    return SweepPlan(tuple(planned.values()), tuple(refused))


def _with_load(plan: PointPlan, load: LoadPlan, target: Target, facts: NodeFacts) -> PointPlan:
    """The plan of a point with a load generator, which is another point than one without or with another load."""
    if not load.served:
        check_stamp_room(plan.workload, load.link)
        _check_burst(load, connected(target))
        connected(target).load(plan, load.link, facts)
    key = hashlib.sha256(f"{plan.key} {load!r}".encode()).hexdigest()[: len(plan.key)]
    return replace(plan, key=key)


def _check_burst(load: LoadPlan, target: Connects) -> None:
    """Refuse to search a throughput with bursts that lose packets at any load."""
    length, most = load.spacing.burst_length, target.queue_packets
    if load.searches and load.spacing.pattern == "burst" and most is not None and length > most:
        raise CapabilityError(
            f"a burst of {length} packets does not fit into the queue of {most} in front of target {target.label}, so "
            "no load is without loss",
            key="traffic.burst.length",
            hint=f"use bursts of at most {most} packets, or a fixed rate (traffic.offered_load: {{rate_mpps: ...}})",
        )


def _is_saturated(experiment: Experiment, target: Target) -> bool:
    """Whether the spec asks for metrics that the target measures as its own packet source."""
    asked = set(experiment.spec.metrics.collect) & set(target.metrics) - set(LOAD_METRICS)
    if experiment.spec.traffic.offered_load != "max" or experiment.capture is not None:
        asked -= {"packet_rate"}
    return bool(asked)


def _at_frequency(plan: PointPlan, frequency_ghz: float | None, facts: NodeFacts) -> PointPlan:
    """The plan of a point at a frequency of the core, which is another point than one at another frequency."""
    if frequency_ghz is None:
        return plan
    bounds_khz = facts.number("cpu_lowest_khz"), facts.number("cpu_highest_khz")
    if bounds_khz[0] is None or bounds_khz[1] is None:
        raise CapabilityError(
            "the frequency of this machine's cores cannot be set: it has no cpufreq driver",
            key="device.cpu_frequency",
            hint="virtual machines have none; on hardware load acpi_cpufreq, intel_pstate or amd_pstate",
        )
    if not bounds_khz[0] <= round(frequency_ghz * 1e6) <= bounds_khz[1]:
        raise CapabilityError(
            f"{frequency_ghz:g} GHz is outside of {bounds_khz[0] / 1e6:g} to {bounds_khz[1] / 1e6:g} GHz, "
            "what the cores of this machine can do",
            key="device.cpu_frequency",
        )
    key = hashlib.sha256(f"{plan.key}@{frequency_ghz!r}GHz".encode()).hexdigest()[: len(plan.key)]
    return replace(plan, key=key)


def _refuse_imported(experiment: Experiment) -> None:
    if experiment.spec.program.component == IMPORTED:
        raise SpecError(
            f"{experiment.spec.name} was imported: what its program was is not known, so it cannot be measured",
            key="program.component",
            hint="p4perf show, fit and compare take its run directory",
        )


def _check_metrics(experiment: Experiment, target: Target, *, served: bool) -> None:
    own = target.served_gives if served and isinstance(target, Serves) else target.metrics
    given = {*own, *(LOAD_METRICS if served or links_of(target) else ())}
    missing = [m for m in experiment.spec.metrics.collect if m not in given]
    if missing:
        known = ", ".join(m for m in METRICS if m in given)
        raise SpecError(
            f"target {target.label} does not give {', '.join(missing)}",
            key="metrics.collect",
            hint=f"it gives {known}; metrics that may be absent go under metrics.optional",
        )


def _check_effects(experiment: Experiment, target: Target, *, loadable: bool) -> None:
    """Refuse what the spec asks for and the target would ignore."""
    if not experiment.spec.trials.interleave_baseline:
        raise SpecError(
            f"target {target.label} always measures the baseline with the program",
            key="trials.interleave_baseline",
            hint="leave it out",
        )
    if experiment.spec.traffic.latency_at and not loadable:
        raise SpecError(f"target {target.label} does not give latency", key="traffic.latency_at", hint="leave it out")


def _check_load(experiment: Experiment, generator: str) -> None:
    """Refuse unknown load generators and searches, and a search that does not find the requested metrics."""
    spec = experiment.spec
    chosen = {"generator": spec.load.generator or generator, "search": spec.load.search}
    for group, key in (("load_generators", "generator"), ("searches", "search")):
        name = chosen[key]
        if name not in plugin_names(f"p4perf.{group}"):
            known = ", ".join(plugin_names(f"p4perf.{group}"))
            raise SpecError(f"there is no {key} {name}", key=f"load.{key}", hint=f"there are {known}")
    missing = [m for m in SEARCHED if m in spec.metrics.collect]
    if missing and open_search(spec.load.search).finds is not None:
        raise SpecError(
            f"the search {spec.load.search} does not find {', '.join(missing)}",
            key="load.search",
            hint="use another search, or ask for receive_rate instead",
        )


def _at(error: P4PerfError, experiment: Experiment, point: Point) -> P4PerfError:
    """The same failure, naming the point and the place in the spec."""
    program = experiment.spec.program
    if error.key and error.component is not None and error.component < len(program.composed):
        error.key = program.parameter_key(error.component, error.key.removeprefix("program.parameters."))
    error.location = error.location or experiment.locate(error.key)
    if point.values:
        error.message = f"{experiment.spec.name} at {point_label(point)}: {error.message}"
    return error


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of an experiment something can do: ``possible`` of ``points``; ``reason`` is why not all of them."""

    points: int
    possible: int
    reason: str = ""

    @override
    def __str__(self) -> str:
        if not self.reason:
            return f"all {self.points}"
        return f"no: {self.reason}" if not self.possible else f"{self.possible} of {self.points}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Column:
    """A target or generator: its capabilities, and the metrics of a target."""

    capabilities: Capabilities
    metrics: tuple[str, ...] | None = None


def coverage(experiments: Sequence[str], columns: Mapping[str, Column]) -> list[dict[str, Any]]:
    """One row an experiment: its name under ``experiment``, and a :class:`Coverage` for every column.

    This is what the tables of capabilities say; what else may be in the way (memory, tools) only a machine knows.
    """
    rows = []
    for name in experiments:
        experiment = load_experiment(name, parameters_of=component_parameters)
        possible = dict.fromkeys(columns, 0)
        wanted = experiment.spec.metrics.collect
        absent = {c: [m for m in wanted if m not in column.metrics] for c, column in columns.items() if column.metrics}
        reasons = {c: f"{c} does not give {', '.join(names)}" for c, names in absent.items() if names}
        able = {c: column.capabilities for c, column in columns.items() if c not in reasons}
        for point in experiment.points:
            try:
                workload, traffic = point_workload(experiment, point)
            except CapabilityError as error:
                for column in columns:
                    reasons.setdefault(column, error.message)
                continue
            for column, capabilities in able.items():
                reason = capabilities.refusal(workload.program, workload.packets, traffic)
                if reason is None:
                    possible[column] += 1
                else:
                    reasons.setdefault(column, reason)
        cells = {c: Coverage(len(experiment.points), possible[c], reasons.get(c, "")) for c in columns}
        rows.append({"experiment": experiment.spec.name, **cells})
    return rows


def limits(columns: Mapping[str, Column]) -> list[dict[str, Any]]:
    """Every missing construct and every limit of every column, with its source."""
    rows = []
    for name, column in columns.items():
        known = column.capabilities
        found: list[tuple[str, int, str]] = [(construct, 0, reason) for construct, reason in known.missing.items()]
        found += [(f"not: {construct}", 0, reason) for construct, reason in known.requires.items()]
        found += [(quantity, limit.most, limit.source) for quantity, limit in known.limits.items()]
        rows += [{"of": name, "what": what, "most": most, "source": source} for what, most, source in found]
    return rows
