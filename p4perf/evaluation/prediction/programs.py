"""Which programs are predicted: the points of an experiment, or a program that somebody wrote, with changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from p4perf.errors import DataError, Location, SpecError, UsageError
from p4perf.evaluation.prediction.changes import Change, changed, parse_change
from p4perf.evaluation.prediction.reading import ReadOptions, read_program, read_shares, shares_of_trace
from p4perf.evaluation.prediction.reading.own import component_graph
from p4perf.models.program import ProgramGraph
from p4perf.models.program.paths import shares
from p4perf.programs.component import component_parameters
from p4perf.specs import Experiment, Point, load_experiment
from p4perf.specs.loader import catalogue_names
from p4perf.specs.messages import nearest

SPEC_SUFFIXES = (".yaml", ".yml")
UNIFORM = "uniform"


@dataclass(frozen=True)
class Wanted:
    """What a user asks for, besides models and conditions.

    Args:
        program: name of the catalogue, or path.
        probabilities: a file of shares, or ``uniform``.
        points: most values of each swept variable.
    """

    program: str
    sets: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    entries: Mapping[str, int] = field(default_factory=dict)
    probabilities: str | None = None
    trace: Path | None = None
    points: int | None = None
    read: ReadOptions = field(default_factory=ReadOptions)

    @property
    def is_experiment(self) -> bool:
        name = self.program
        return name in catalogue_names() or (Path(name).suffix in SPEC_SUFFIXES)


@dataclass(frozen=True)
class ProgramSubject:
    """One program.

    Args:
        experiment: the experiment that it is a point of, with its changes.
    """

    graph: ProgramGraph
    changes: tuple[str, ...] = ()
    values: Mapping[str, object] = field(default_factory=dict)
    experiment: Experiment | None = None
    point: Point | None = None
    file: Path | None = None


@dataclass(frozen=True)
class Pair:
    """A program, and what it was before the changes, if that can be compared."""

    subject: ProgramSubject
    before: ProgramSubject | None = None


def open_subjects(wanted: Wanted) -> tuple[Pair, ...]:
    """All programs, each with what it was before its changes.

    Raises:
        UsageError: there is no such program, or options do not go together.
        SpecError: a spec, or a change of one, is wrong.
        DataError: a file cannot be read as what it should be.
    """
    if wanted.is_experiment:
        return _experiment(wanted)
    path = Path(wanted.program)
    if not path.exists() and not path.suffix:
        raise SpecError(
            f"there is no experiment {wanted.program} in the catalogue, and no such file",
            hint=nearest(wanted.program, catalogue_names(), "the catalogue has"),
        )
    if wanted.points is not None:
        raise UsageError("--points is for experiments")
    graph = _weighted(_read(path, wanted), path, wanted)
    plain = ProgramSubject(graph, file=path)
    changes = (*map(parse_change, wanted.sets), *map(Change, wanted.without))
    if not changes:
        return (Pair(plain),)
    return (Pair(replace(plain, graph=changed(graph, changes), changes=_words(changes)), plain),)


def _words(changes: Sequence[Change]) -> tuple[str, ...]:
    return tuple(str(change) for change in changes)


def _read(path: Path, wanted: Wanted) -> ProgramGraph:
    graph = read_program(path, replace(wanted.read, entries={**wanted.read.entries, **wanted.entries}))
    if not any(node.constructs for node in graph.nodes.values()):
        raise DataError("is empty: there is nothing in it that costs anything", location=Location(str(path)))
    return graph


def _weighted(graph: ProgramGraph, path: Path, wanted: Wanted) -> ProgramGraph:
    if wanted.trace is not None:
        if wanted.probabilities is not None:
            raise UsageError("--probabilities and --trace both state branch probabilities", hint="give one of them")
        found, remarks = shares_of_trace(path, wanted.trace, wanted.read)
        weighted = found.apply(graph)
        return replace(weighted, remarks=(*weighted.remarks, *remarks))
    if wanted.probabilities == UNIFORM:
        return uniform(graph)
    if wanted.probabilities is not None:
        return read_shares(Path(wanted.probabilities), graph).apply(graph)
    return graph


def uniform(graph: ProgramGraph) -> ProgramGraph:
    """The program with equal shares at all edges whose branch probabilities are unknown."""
    nodes = {
        name: replace(
            node, edges=tuple(replace(e, probability=p) for e, p in zip(node.edges, shares(node), strict=True))
        )
        if node.edges
        else node
        for name, node in graph.nodes.items()
    }
    return replace(graph, nodes=nodes)


def _experiment(wanted: Wanted) -> tuple[Pair, ...]:
    """The points of an experiment; beside each, the point with the same values in the unchanged experiment."""
    for given, option in ((wanted.probabilities, "--probabilities"), (wanted.trace, "--trace")):
        if given is not None and given != UNIFORM:
            raise UsageError(f"{option} is for programs that branch", hint="what packets of an experiment do is known")
    if wanted.entries:
        raise UsageError("--entries is for programs of your own", hint="--set changes the parameters of an experiment")
    overrides = []
    for text in wanted.sets:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"--set {text}: expected key=value", hint="for example --set entries=1000")
        overrides.append((key.strip(), value.strip()))
    experiment = load_experiment(
        wanted.program, overrides=overrides, points=wanted.points, parameters_of=component_parameters
    )
    plain = (
        load_experiment(wanted.program, points=wanted.points, parameters_of=component_parameters)
        if overrides
        else experiment
    )
    known = {tuple(point.values.items()): point for point in plain.points}
    without = tuple(Change(name) for name in wanted.without)
    pairs = []
    for point in experiment.points:
        subject = _subject(experiment, point)
        old = known.get(tuple(point.values.items()))
        before = None if old is None else _subject(plain, old)
        if before is not None and before.graph == subject.graph:
            before = None
        if without:
            before = before or subject
            subject = replace(subject, graph=changed(subject.graph, without))
        if before is not None:
            subject = replace(subject, changes=(*wanted.sets, *_words(without)))
        pairs.append(Pair(subject, before))
    return tuple(pairs)


def _subject(experiment: Experiment, point: Point) -> ProgramSubject:
    return ProgramSubject(
        component_graph(experiment, point), values=dict(point.values), experiment=experiment, point=point
    )
