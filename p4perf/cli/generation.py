"""Points of experiments as files, generator by generator: what is refused, what is left out, what is written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from p4perf.errors import CapabilityError, P4PerfError

if TYPE_CHECKING:
    from p4perf.generators.base import Generator, TrafficPlan
    from p4perf.generators.program import Workload
    from p4perf.specs import Experiment, Point


@dataclass(frozen=True, slots=True)
class Refused:
    """A point that a generator refuses, or that no program can have (then the generator is empty), with the reason."""

    experiment: str
    index: int
    values: Mapping[str, Any]
    generator: str
    reason: str


@dataclass(frozen=True, slots=True)
class Written:
    """A file of a point that was written."""

    experiment: str
    index: int
    values: Mapping[str, Any]
    generator: str
    path: Path


@dataclass(slots=True)
class Outcome:
    """Everything that became of some points."""

    written: list[Written] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    left_out: int = 0
    """Entry files with more entries than were asked for."""
    texts: dict[tuple[str, str], Written] = field(default_factory=dict)
    """Distinct P4 programs, by generator and digest, with the first file that holds each."""
    copies: dict[tuple[str, str], int] = field(default_factory=dict)
    """How many files hold each of these."""

    def add(self, other: Outcome) -> None:
        """Add what became of other points."""
        self.written += other.written
        self.refused += other.refused
        self.left_out += other.left_out
        for key, written in other.texts.items():
            self.texts.setdefault(key, written)
            self.copies[key] = self.copies.get(key, 0) + other.copies[key]


class Generation:
    """Writes points with a choice of generators.

    Args:
        generators: names of the generators.
        output: folder for all files.
        max_entries: entry files of larger tables are left out.
        standalone: whether programs of a target come with what it takes to build and run them without p4perf; every
            file is then forced to disk.
    """

    def __init__(self, generators: Sequence[str], output: Path, max_entries: int, *, standalone: bool) -> None:
        from p4perf.plugins import load_plugin

        self._generators: dict[str, Generator] = {n: load_plugin("p4perf.generators", n)() for n in generators}
        self._output = output
        self._max_entries = max_entries
        self._standalone = standalone
        self._folders: set[Path] = set()
        self.outcome = Outcome()

    def run(self, experiment: Experiment, *, named: bool, skip_impossible: bool) -> None:
        """Write all points of an experiment.

        Args:
            experiment: the experiment.
            named: whether folders have the name of the experiment.
            skip_impossible: whether a point that no program can have is listed as refused instead of raised.

        Raises:
            CapabilityError: a point cannot be, and ``skip_impossible`` is not set.
            SpecError: a parameter is wrong.
            StorageError: a file cannot be written.
        """
        from p4perf.experiment import point_workload

        width = len(str(len(experiment.points) - 1))
        for point in experiment.points:
            try:
                workload, traffic = point_workload(experiment, point)
            except CapabilityError as error:
                if not skip_impossible:
                    raise
                self._refuse(experiment, point, "", error)
                continue
            for name, generator in self._generators.items():
                parts = [name, *([experiment.spec.name] if named else []), f"{point.index:0{width}d}"]
                try:
                    files = self._files(name, generator, workload, traffic)
                except CapabilityError as error:
                    self._refuse(experiment, point, name, error)
                else:
                    self._write(experiment, point, name, self._output.joinpath(*parts), files)

    def _refuse(self, experiment: Experiment, point: Point, generator: str, error: P4PerfError) -> None:
        place = (experiment.spec.name, point.index, dict(point.values))
        self.outcome.refused.append(Refused(*place, generator, error.message))

    def _files(
        self, name: str, generator: Generator, workload: Workload, traffic: TrafficPlan
    ) -> list[tuple[str, Iterable[str] | bytes, int]]:
        """Path, content and entries of all files of a point."""
        files: list[tuple[str, Iterable[str] | bytes, int]] = [
            (f.path, f.pieces, f.entries) for f in generator.generate(workload, traffic)
        ]
        if self._standalone:
            files += [(path, data, 0) for path, data in _standalone(name, workload, traffic)]
        return files

    def _write(
        self,
        experiment: Experiment,
        point: Point,
        generator: str,
        folder: Path,
        files: list[tuple[str, Iterable[str] | bytes, int]],
    ) -> None:
        place = (experiment.spec.name, point.index, dict(point.values))
        described = {"experiment": place[0], "values": place[2], "index": place[1]}
        files.append(("point.json", json.dumps(described, indent=2).encode() + b"\n", 0))
        for path, content, entries in files:
            if entries > self._max_entries:
                self.outcome.left_out += 1
                continue
            written = Written(*place, generator, folder / path)
            if path.endswith(".p4") and not isinstance(content, bytes):
                content = "".join(content).encode()
                self._remember(written, content)
            self._store(written.path, content)
            self.outcome.written.append(written)

    def _remember(self, written: Written, text: bytes) -> None:
        key = (written.generator, hashlib.sha256(text).hexdigest())
        self.outcome.texts.setdefault(key, written)
        self.outcome.copies[key] = self.outcome.copies.get(key, 0) + 1

    def _store(self, path: Path, content: Iterable[str] | bytes) -> None:
        from p4perf.results.files import storing, write_atomically

        if self._standalone:
            write_atomically(path, _encoded(content))
            return
        with storing(path):
            if path.parent not in self._folders:
                path.parent.mkdir(parents=True, exist_ok=True)
                self._folders.add(path.parent)
            with path.open("wb") as file:
                file.writelines(_encoded(content))


@dataclass(frozen=True, slots=True)
class Order:
    """One experiment of the catalogue that is to be written, by a process of its own."""

    experiment: str
    points: int | None
    generators: tuple[str, ...]
    output: Path
    max_entries: int


def carry_out(order: Order) -> Outcome:
    """Write an experiment of the catalogue.

    Raises:
        P4PerfError: see :meth:`Generation.run`.
    """
    from p4perf.specs import load_experiment

    generation = Generation(order.generators, order.output, order.max_entries, standalone=False)
    experiment = load_experiment(order.experiment, overrides=[], points=order.points)
    generation.run(experiment, named=True, skip_impossible=True)
    return generation.outcome


def _encoded(content: Iterable[str] | bytes) -> Iterator[bytes]:
    if isinstance(content, bytes):
        yield content
    else:
        yield from (piece.encode() for piece in content)


def _standalone(name: str, workload: Workload, traffic: TrafficPlan) -> Iterator[tuple[str, bytes]]:
    """What it takes to build and run without p4perf, if there is a target of the generator's name."""
    from p4perf.experiment import open_target
    from p4perf.plugins import plugin_names
    from p4perf.targets.base import NodeFacts
    from p4perf.targets.standalone import standalone_files

    if name in plugin_names("p4perf.targets"):
        target = open_target(name)
        if not target.standalone:
            return
        yield from standalone_files(target, target.plan(workload, traffic, NodeFacts({}))).items()
