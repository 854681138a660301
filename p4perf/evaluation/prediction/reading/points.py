"""Points of p4perf's own specs: which one is meant, as components, and as a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from p4perf.errors import SpecError
from p4perf.evaluation.prediction.reading.locality import tables_like
from p4perf.evaluation.prediction.reading.names import SENT
from p4perf.models.program.graph import Construct, Edge, Node, ProgramGraph, Size, construct
from p4perf.programs import ir
from p4perf.programs.component import TrafficPlan, build_workload, component_parameters
from p4perf.programs.exercise import spread
from p4perf.programs.packets import FCS_BYTES, headers_size_bytes
from p4perf.specs import Experiment, Point, load_experiment

FLOWS, EXPONENT = "flows", "zipf_s"
"""Sizes of a component of a point whose packets do not look up all entries equally often."""

SMALLEST_FRAME_BYTES, LARGEST_FRAME_BYTES = 64, 1518
"""Of Ethernet, with the FCS."""


def load_point(source: str, wanted: Mapping[str, str] | None) -> tuple[Experiment, Point]:
    """A spec, and the point with these values (as texts) of its swept variables; without any its only point."""
    experiment = load_experiment(source, parameters_of=component_parameters)
    points = experiment.points
    if wanted:
        for name in wanted:
            if points and name not in points[0].values:
                known = ", ".join(points[0].values) or "none"
                raise SpecError(f"{name} is not a swept variable", hint=f"swept variables: {known}")
        points = tuple(p for p in points if all(str(p.values[n]) == value for n, value in wanted.items()))
    if len(points) != 1:
        first = experiment.points[0]
        example = ", ".join(f"{n}={v}" for n, v in first.values.items())
        raise SpecError(
            f"{source} has {len(points)} such points" if wanted else f"{source} has {len(points)} points",
            hint=f"choose one, such as {example}",
        )
    return experiment, points[0]


def component_graph(experiment: Experiment, point: Point) -> ProgramGraph:
    """One node for each component of a point, in their order."""
    nodes: dict[str, Node] = {}
    names = [name for name, _ in point.components]
    keys = [name if names.count(name) == 1 else f"{name}@{n}" for n, name in enumerate(names)]
    flows = point.traffic.flows
    packets: dict[str, Size] = {}
    if flows.distribution in ("zipf", "single"):
        packets[FLOWS] = str(flows.distribution)
    if flows.distribution == "zipf":
        packets[EXPONENT] = 1.0 if flows.zipf_s is None else float(flows.zipf_s)
    for n, (name, parameters) in enumerate(point.components):
        sizes = {"name": name, **parameters, **(packets if "entries" in parameters else {})}
        what = construct("component", f"component {keys[n]}", **sizes)
        to = keys[n + 1] if n + 1 < len(keys) else SENT
        nodes[keys[n]] = Node(keys[n], "block", (what,), (Edge("", to),), f"component {keys[n]}")
    nodes[SENT] = Node(SENT, "end")
    start = keys[0] if keys else SENT
    return ProgramGraph(experiment.spec.name, nodes, start, "p4perf", (), point.frame_size_bytes)


def parameters_of(what: Construct) -> tuple[str, dict[str, Size]]:
    """Name and parameters of a component."""
    sizes = {name: size for name, size in what.sizes if name not in (FLOWS, EXPONENT)}
    return str(sizes.pop("name")), sizes


def traffic_of(components: Sequence[Construct]) -> TrafficPlan:
    """The packets of some components of a point, in frames of any size."""
    sizes = [(name, size) for what in components for name, size in what.sizes]
    flows = dict(sizes)
    return TrafficPlan(
        LARGEST_FRAME_BYTES,
        distribution=str(flows.get(FLOWS, "uniform")),
        zipf_s=float(flows.get(EXPONENT, 1.0)),
        hit_ratio=min((float(size) for name, size in sizes if name == "hit_ratio"), default=1.0),
    )


def tables_for(what: Construct) -> tuple[tuple[Construct, float], ...]:
    """Components whose entries are looked up equally often, as which one costs, with the share of packets of each."""
    name, sizes = parameters_of(what)
    if FLOWS not in dict(what.sizes) or ("distribution" in sizes and sizes["distribution"] != "uniform"):
        return ()
    like = tables_like(str(sizes.get("match_kind", "exact")), float(sizes["entries"]), traffic_of([what]))
    return tuple(
        (construct("component", what.where, name=name, **sizes | {"entries": int(entries)}), share)
        for entries, share in like.items()
    )


def components_workload(components: Sequence[Construct]) -> tuple[ir.Workload, TrafficPlan]:
    """The program of some components with its packets, as it is measured in the smallest frames.

    Raises:
        P4PerfError: no such program exists.
    """
    parts = [parameters_of(what) for what in components]
    traffic = traffic_of(components)
    workload = build_workload(parts, frame_size_bytes=traffic.frame_size_bytes)
    size = max(SMALLEST_FRAME_BYTES, headers_size_bytes(workload.program, workload.packets) + FCS_BYTES)
    packets = replace(workload.packets, frame_size_bytes=size)
    frames = spread(workload.program, packets, *traffic.flows)
    return replace(workload, packets=packets, frames=frames), replace(traffic, frame_size_bytes=size)


def point_program(experiment: Experiment, point: Point) -> ir.Program:
    baseline = experiment.spec.program.baseline
    return build_workload(point.components, frame_size_bytes=point.frame_size_bytes, baseline=baseline).program
