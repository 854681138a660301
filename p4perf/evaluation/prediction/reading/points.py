"""Points of p4perf's own specs: which one is meant, as components, and as a program."""

from __future__ import annotations

from collections.abc import Mapping

from p4perf.errors import SpecError
from p4perf.evaluation.prediction.reading.names import SENT
from p4perf.models.program.graph import Edge, Node, ProgramGraph, construct
from p4perf.programs import ir
from p4perf.programs.component import build_workload, component_parameters
from p4perf.specs import Experiment, Point, load_experiment


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
    for n, (name, parameters) in enumerate(point.components):
        what = construct("component", f"component {keys[n]}", **{"name": name, **parameters})
        to = keys[n + 1] if n + 1 < len(keys) else SENT
        nodes[keys[n]] = Node(keys[n], "block", (what,), (Edge("", to),), f"component {keys[n]}")
    nodes[SENT] = Node(SENT, "end")
    start = keys[0] if keys else SENT
    return ProgramGraph(experiment.spec.name, nodes, start, "p4perf", (), point.frame_size_bytes)


def point_program(experiment: Experiment, point: Point) -> ir.Program:
    baseline = experiment.spec.program.baseline
    return build_workload(point.components, frame_size_bytes=point.frame_size_bytes, baseline=baseline).program
