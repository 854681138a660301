"""Files of every point of experiments, written without measuring, and the verdicts of compilers on them."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from typing_extensions import override

from p4perf.errors import CapabilityError, TargetUnavailableError, UsageError
from p4perf.experiment.bench import open_target
from p4perf.experiment.planning import point_workload
from p4perf.generators.base import Generator
from p4perf.plugins import load_plugin, plugin_names
from p4perf.programs.component import TrafficPlan, component_parameters
from p4perf.programs.ir import Workload
from p4perf.programs.reading.p4c import beginning, compiled, end_group
from p4perf.records import Tabular, counted
from p4perf.results.files import filled_folder, storing, temporary_folder, write_atomically
from p4perf.specs import Experiment, list_catalogue, load_experiment
from p4perf.targets.base import NodeFacts
from p4perf.targets.process import standalone_files
from p4perf.targets.roles import Measures

_Place = tuple[str, int, Mapping[str, Any]]
"""Experiment, number and swept values of a point."""

_File = tuple[str, Iterable[str] | bytes, int]
"""Path, content and number of entries."""


@dataclass(frozen=True, slots=True)
class _OfPoint:
    experiment: str
    index: int
    values: Mapping[str, Any]
    generator: str


@dataclass(frozen=True, slots=True)
class Refused(_OfPoint):
    """A point that a generator refuses, or that no program can have (then the generator is empty), with the reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class Written(_OfPoint):
    path: Path
    digest: str = ""
    """Of a P4 program: what is the same in all files that hold it."""


@dataclass(slots=True, repr=False)
class Generated(Tabular):
    """The files that were written, as rows, and the points that generators refuse."""

    written: list[Written] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    left_out: int = 0
    """Entry files with more entries than were asked for."""

    @override
    def __repr__(self) -> str:
        return f"<Generated: {counted(len(self.written), 'file')}, {counted(len(self.refused), 'refused point')}>"

    @override
    def rows_of_table(self) -> list[dict[str, Any]]:
        return [
            {"experiment": w.experiment, "point": w.index, **w.values, "generator": w.generator, "file": str(w.path)}
            for w in self.written
        ]

    def add(self, other: Generated) -> None:
        self.written += other.written
        self.refused += other.refused
        self.left_out += other.left_out

    def programs(self) -> list[list[Written]]:
        """Distinct P4 programs of the generators: all files that hold each, in the order in which they were written."""
        groups: dict[tuple[str, str], list[Written]] = {}
        for written in self.written:
            if written.digest:
                groups.setdefault((written.generator, written.digest), []).append(written)
        return list(groups.values())


class Generation:
    """Writes points with a choice of generators.

    Args:
        max_entries: entry files of larger tables are left out.
        alone: whether it is one experiment: then programs of a target come with what it takes to build and run them
            without p4perf, every file is forced to disk, and a point that no program can have is an error. Else
            folders have the name of the experiment, and such a point is listed as refused.
    """

    def __init__(self, generators: Sequence[str], output: Path, max_entries: int, *, alone: bool) -> None:
        self._generators: dict[str, Generator] = {n: load_plugin("p4perf.generators", n)() for n in generators}
        self._output = output
        self._max_entries = max_entries
        self._alone = alone
        self._folders: set[Path] = set()
        self.outcome = Generated()

    def run(self, experiment: Experiment) -> Generated:
        """Write all points of an experiment."""
        width = len(str(len(experiment.points) - 1))
        for point in experiment.points:
            place = (experiment.spec.name, point.index, dict(point.values))
            try:
                workload, traffic = point_workload(experiment, point)
            except CapabilityError as error:
                if self._alone:
                    raise
                self.outcome.refused.append(Refused(*place, "", error.message))
                continue
            for name, generator in self._generators.items():
                parts = [name, *([] if self._alone else [experiment.spec.name]), f"{point.index:0{width}d}"]
                try:
                    files = self._files(name, generator, workload, traffic)
                except CapabilityError as error:
                    self.outcome.refused.append(Refused(*place, name, error.message))
                else:
                    self._write(place, name, self._output.joinpath(*parts), files)
        return self.outcome

    def _files(self, name: str, generator: Generator, workload: Workload, traffic: TrafficPlan) -> list[_File]:
        files: list[_File] = [(f.path, f.pieces, f.entries) for f in generator.generate(workload, traffic)]
        if self._alone:
            files += [(path, data, 0) for path, data in _standalone(name, workload, traffic)]
        return files

    def _write(self, place: _Place, generator: str, folder: Path, files: list[_File]) -> None:
        described = {"experiment": place[0], "values": place[2], "index": place[1]}
        files.append(("point.json", json.dumps(described, indent=2).encode() + b"\n", 0))
        for path, content, entries in files:
            if entries > self._max_entries:
                self.outcome.left_out += 1
                continue
            digest = ""
            if path.endswith(".p4") and not isinstance(content, bytes):
                content = "".join(content).encode()
                digest = hashlib.sha256(content).hexdigest()
            self._store(folder / path, content)
            self.outcome.written.append(Written(*place, generator, folder / path, digest))

    def _store(self, path: Path, content: Iterable[str] | bytes) -> None:
        pieces = (content,) if isinstance(content, bytes) else (piece.encode() for piece in content)
        if self._alone:
            write_atomically(path, pieces)
            return
        with storing(path):
            if path.parent not in self._folders:
                path.parent.mkdir(parents=True, exist_ok=True)
                self._folders.add(path.parent)
            path.unlink(missing_ok=True)  # a link stays what it is when it is written
            with path.open("xb") as file:
                file.writelines(pieces)


def carry_out(
    experiment: str, points: int | None, generators: Sequence[str], output: Path, max_entries: int
) -> Generated:
    """Write an experiment of the catalogue, in a process of its own."""
    generation = Generation(generators, output, max_entries, alone=False)
    loaded = load_experiment(experiment, points=points, parameters_of=component_parameters)
    return generation.run(loaded)


def _standalone(name: str, workload: Workload, traffic: TrafficPlan) -> Iterator[tuple[str, bytes]]:
    """What it takes to build and run without p4perf, if there is a target of the generator's name."""
    if name not in plugin_names("p4perf.targets"):
        return
    target = open_target(name)
    if target.standalone and isinstance(target, Measures):
        yield from standalone_files(target, target.plan(workload, traffic, NodeFacts({}))).items()


def generate_into(output: Path, fill: Callable[[Path], Generated]) -> Generated:
    """What ``fill`` writes into a folder: all of it, or nothing where the folder was not there before.

    Raises:
        CapabilityError: it is nothing.
        StorageError: it cannot be written.
    """
    found: list[tuple[Path, Generated]] = []

    def write(folder: Path) -> None:
        outcome = fill(folder)
        if not outcome.written:
            reasons = list(dict.fromkeys(r.reason for r in outcome.refused))
            several = f"nothing was generated: {'; '.join(reasons[:5])}"
            raise CapabilityError(reasons[0] if len(reasons) == 1 else several)
        found.append((folder, outcome))

    place = filled_folder(output, write)
    ((folder, outcome),) = found
    place = output if place == output.absolute() else place
    outcome.written[:] = [replace(w, path=place / w.path.relative_to(folder)) for w in outcome.written]
    return outcome


def generate_all(names: Sequence[str], points: int | None, output: Path, max_entries: int) -> Generated:
    """Write every experiment of the catalogue, on all processors."""
    write = partial(carry_out, points=points, generators=names, output=output, max_entries=max_entries)
    whole = Generated()
    from p4perf.evaluation.fitting.many import end_with

    context = get_context("forkserver")
    watched, held = context.Pipe(duplex=False)
    with watched, held, ProcessPoolExecutor(os.cpu_count(), context, end_with, (watched,)) as pool:
        for outcome in pool.map(write, [entry.name for entry in list_catalogue()]):
            whole.add(outcome)
    return whole


TIMEOUT_S = 600
"""Longest time that a compiler gets for one program."""

MESSAGE_LINES = 8


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a compiler says of a program, of which there are several copies."""

    written: Written
    programs: int
    tool: str
    verdict: str
    message: str | None


Commands = Mapping[str, tuple[tuple[str, ...], ...]]
"""Compilers of P4 by generator, as commands."""


def find_tools(generators: Sequence[str]) -> tuple[Commands, dict[str, tuple[str, ...]]]:
    """The compilers of P4 dialects on the path, and the names of those that are not there, by generator."""
    found, missing = {}, {}
    for name in generators:
        commands: tuple[tuple[str, ...], ...] = getattr(load_plugin("p4perf.generators", name), "compilers", ())
        if commands:
            found[name] = tuple(c for c in commands if shutil.which(c[0]))
            missing[name] = tuple(c[0] for c in commands if not shutil.which(c[0]))
    if not found:
        raise UsageError("--verify compiles P4 programs, and no generator of P4 was chosen")
    if not any(found.values()):
        names = ", ".join(dict.fromkeys(tool for tools in missing.values() for tool in tools))
        raise TargetUnavailableError(
            f"no compiler of P4 is here to verify with: {names} are not on the path", hint="install p4c, or set PATH"
        )
    return found, missing


def verify(outcome: Generated, tools: Commands, finished: Callable[[float], None]) -> Iterator[Verdict]:
    """Compile every distinct program with every tool that takes it, in the order in which they were written.

    ``finished`` gets the share that is done, from 0 to 1.
    """
    jobs = [
        (files[0], len(files), command) for files in outcome.programs() for command in tools.get(files[0].generator, ())
    ]
    running: set[int] = set()
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        try:
            for done, verdict in enumerate(pool.map(lambda job: _compile(running, *job), jobs), start=1):
                finished(done / len(jobs))
                yield verdict
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for group in tuple(running):
                end_group(group)
            raise


def _compile(running: set[int], written: Written, copies: int, command: tuple[str, ...]) -> Verdict:
    row = partial(Verdict, written, programs=copies, tool=command[0])
    with temporary_folder() as folder, tempfile.TemporaryFile() as said:
        source = folder / written.path.name
        shutil.copyfile(written.path, source)
        words = [word.format(source=source.name, output=source.stem) for word in command]
        try:
            code = compiled(words, folder, said, TIMEOUT_S, running)
        except subprocess.TimeoutExpired:
            return row(verdict="timeout", message=f"not done after {TIMEOUT_S} s")
        text = beginning(said)
    lines = [line for line in text.splitlines() if line.strip()][:MESSAGE_LINES]
    message = "\n".join(lines) or (f"ended by signal {-code}" if code < 0 else "")
    verdict = "ok" if code == 0 else "refused" if code > 0 else "crashed"
    return row(verdict=verdict, message=message or None)
