"""The command that generates programs and load-generator scripts, verifies them, and measures nothing."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from p4perf.cli.app import Format, FormatOption, PointsOption, SetOption, app, emit, load, say
from p4perf.errors import CapabilityError, ExitCode, TargetUnavailableError, UsageError
from p4perf.records import Document, Record, Scalar, counted, doc, spread
from p4perf.results.files import storing, write_atomically, write_text_atomically

if TYPE_CHECKING:
    from p4perf.generators.base import Generator
    from p4perf.programs.component import TrafficPlan
    from p4perf.programs.ir import Workload
    from p4perf.specs import Experiment


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


@dataclass(slots=True)
class Generated:
    written: list[Written] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    left_out: int = 0
    """Entry files with more entries than were asked for."""

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
        from p4perf.plugins import load_plugin

        self._generators: dict[str, Generator] = {n: load_plugin("p4perf.generators", n)() for n in generators}
        self._output = output
        self._max_entries = max_entries
        self._alone = alone
        self._folders: set[Path] = set()
        self.outcome = Generated()

    def run(self, experiment: Experiment) -> None:
        """Write all points of an experiment."""
        from p4perf.experiment import point_workload

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
            with path.open("wb") as file:
                file.writelines(pieces)


def carry_out(
    experiment: str, points: int | None, generators: Sequence[str], output: Path, max_entries: int
) -> Generated:
    """Write an experiment of the catalogue, in a process of its own."""
    from p4perf.programs.component import component_parameters
    from p4perf.specs import load_experiment

    generation = Generation(generators, output, max_entries, alone=False)
    loaded = load_experiment(experiment, points=points, parameters_of=component_parameters)
    generation.run(loaded)
    return generation.outcome


def _standalone(name: str, workload: Workload, traffic: TrafficPlan) -> Iterator[tuple[str, bytes]]:
    """What it takes to build and run without p4perf, if there is a target of the generator's name."""
    from p4perf.experiment import open_target
    from p4perf.plugins import plugin_names
    from p4perf.targets.base import NodeFacts
    from p4perf.targets.process import standalone_files
    from p4perf.targets.roles import Measures

    if name not in plugin_names("p4perf.targets"):
        return
    target = open_target(name)
    if target.standalone and isinstance(target, Measures):
        yield from standalone_files(target, target.plan(workload, traffic, NodeFacts({}))).items()


TIMEOUT_S = 600
"""Longest time that a compiler gets for one program."""

MAX_MEMORY_BYTES = 4 << 30
"""Most memory that a compiler gets."""

MESSAGE_LINES = 8

_LIMITED = 'ulimit -v "$0" 2>/dev/null; exec "$@" 2>&1'
"""A shell command that runs another one with that many KiB of memory."""


Commands = Mapping[str, tuple[tuple[str, ...], ...]]
"""Compilers of P4 by generator, as commands."""


def find_tools(generators: Sequence[str]) -> tuple[Commands, dict[str, tuple[str, ...]]]:
    """The compilers of P4 dialects on the path, and the names of those that are not there, by generator."""
    from p4perf.plugins import load_plugin

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


def verify(outcome: Generated, tools: Commands, finished: Callable[[float], None]) -> Iterator[_GenerateVerifyRow]:
    """Compile every distinct program with every tool that takes it, in the order in which they were written.

    ``finished`` gets the share that is done, from 0 to 1.
    """
    jobs = [
        (files[0], len(files), command) for files in outcome.programs() for command in tools.get(files[0].generator, ())
    ]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for done, verdict in enumerate(pool.map(lambda job: _compile(*job), jobs), start=1):
            finished(done / len(jobs))
            yield verdict


def _compile(written: Written, copies: int, command: tuple[str, ...]) -> _GenerateVerifyRow:
    row = partial(_GenerateVerifyRow.read, written, programs=copies, tool=command[0])
    with tempfile.TemporaryDirectory(prefix="p4perf-") as folder:
        source = Path(folder) / written.path.name
        shutil.copyfile(written.path, source)
        words = [word.format(source=source.name, output=source.stem) for word in command]
        limited = ("sh", "-c", _LIMITED, str(MAX_MEMORY_BYTES >> 10), *words)
        try:  # in this process group, so that an interrupt ends the compilers as well
            result = subprocess.run(
                limited,
                cwd=folder,
                timeout=TIMEOUT_S,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                text=True,
                errors="replace",
                check=False,
            )
        except subprocess.TimeoutExpired:
            return row(verdict="timeout", message=f"not done after {TIMEOUT_S} s")
    code = result.returncode
    lines = [line for line in result.stdout.splitlines() if line.strip()][:MESSAGE_LINES]
    message = "\n".join(lines) or (f"ended by signal {-code}" if code < 0 else "")
    verdict = "ok" if code == 0 else "refused" if code > 0 else "crashed"
    return row(verdict=verdict, message=message or None)


MAX_ENTRIES = 1_000_000
"""Largest table whose entry files are written, unless something else is asked for."""

REFUSED_FILE = "refused.json"


@app.command()
def generate(
    spec: Annotated[str | None, typer.Argument(help="Experiment of the catalogue, or path of a spec file.")] = None,
    target: Annotated[
        list[str] | None,
        typer.Option("--generator", "-g", help="Generator (p4perf list generators); repeatable. Default: all."),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the files.")] = Path("generated"),
    sets: SetOption = None,
    points: PointsOption = None,
    max_entries: Annotated[
        int | None,
        typer.Option(
            "--max-entries",
            min=0,
            help=f"Leave out entry files of larger tables. Default: {MAX_ENTRIES}; with --all none are written.",
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every experiment of the catalogue.")] = False,
    verify: Annotated[bool, typer.Option("--verify", help="Compile the P4 programs with the tools of p4c.")] = False,
    fmt: FormatOption = Format.TABLE,
) -> None:
    """Write programs, table entries and load-generator scripts.

    Each point gets a folder GENERATOR/INDEX below the output folder (with --all: GENERATOR/EXPERIMENT/INDEX). What a
    generator refuses is reported, and does not stop the others.
    """
    from p4perf.plugins import load_plugin, plugin_names

    if everything == (spec is not None):
        raise UsageError("generate takes an experiment or --all", hint="p4perf list shows the experiments")
    names = target or plugin_names("p4perf.generators")
    for name in names:
        load_plugin("p4perf.generators", name)
    tools = find_tools(names) if verify else None
    limit = max_entries if max_entries is not None else 0 if everything else MAX_ENTRIES
    if spec is None:
        if sets:
            raise UsageError("--set changes one spec, and --all generates many", hint="leave one of them out")
        outcome = _all(names, points, output, limit)
    else:
        generation = Generation(names, output, limit, alone=True)
        generation.run(load(spec, sets, points))
        outcome = generation.outcome
    if not outcome.written:
        reasons = list(dict.fromkeys(r.reason for r in outcome.refused))
        raise CapabilityError(reasons[0] if len(reasons) == 1 else f"nothing was generated: {'; '.join(reasons[:5])}")
    if everything:
        text = json.dumps([asdict(r) for r in outcome.refused], indent=1) + "\n"
        write_text_atomically(output / REFUSED_FILE, text)
    if tools is not None:
        _report_verdicts(fmt, outcome, *tools)
    elif everything:
        _report_all(fmt, outcome, names)
    else:
        _report_files(fmt, outcome)


def _all(names: Sequence[str], points: int | None, output: Path, max_entries: int) -> Generated:
    from p4perf.specs.loader import list_catalogue

    write = partial(carry_out, points=points, generators=names, output=output, max_entries=max_entries)
    whole = Generated()
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for outcome in pool.map(write, [entry.name for entry in list_catalogue()]):
            whole.add(outcome)
    return whole


class _GenerateRow(Record):
    point: int = doc("number of the point, from 0", of="index")
    values: dict[str, Scalar] = spread("variable", "value of a swept variable")
    generator: str = doc("generator")
    file: str = doc("path of the file", of="path")


class _RefusedPoint(Record):
    point: int = doc("number of a point that a generator refuses", of="index")
    generator: str = doc("the generator")
    reason: str = doc("why")


class GenerateDocument(Document, kind="generate"):
    """`p4perf generate SPEC`: one row for each file."""

    left_out: int = doc("entry files that `--max-entries` left out")
    refused: tuple[_RefusedPoint, ...] = doc("")
    rows: tuple[_GenerateRow, ...] = doc("", of="written")


def _report_files(fmt: Format, outcome: Generated) -> None:
    emit(fmt, GenerateDocument.read(outcome))
    for (generator, reason), count in Counter((r.generator, r.reason) for r in outcome.refused).items():
        say(f"note: {generator} refuses {counted(count, 'point')}: {reason}")
    if outcome.left_out:
        say(f"note: {counted(outcome.left_out, 'entry file')} of larger tables left out (--max-entries)")


class _GenerateAllRow(Record):
    generator: str = doc("generator")
    experiments: int = doc("experiments with a point that it takes")
    points: int = doc("points that were written")
    refused: int = doc("points that it refuses")
    files: int = doc("files that were written")
    programs: int | None = doc("distinct P4 programs; null for a generator that writes none")
    refused_most: str | None = doc("the experiments with most refused points")


class GenerateAllDocument(Document, kind="generate.all"):
    """`p4perf generate --all`: one row for each generator."""

    left_out: int = doc("entry files that `--max-entries` left out")
    impossible: int = doc("points that no program can have")
    rows: tuple[_GenerateAllRow, ...] = doc("")


def _report_all(fmt: Format, outcome: Generated, names: Sequence[str]) -> None:
    rows = []
    programs = Counter(files[0].generator for files in outcome.programs())
    for name in names:
        files = [w for w in outcome.written if w.generator == name]
        refused = [r for r in outcome.refused if r.generator == name]
        rows.append(
            _GenerateAllRow(
                generator=name,
                experiments=len({w.experiment for w in files}),
                points=len({(w.experiment, w.index) for w in files}),
                refused=len(refused),
                files=len(files),
                programs=programs[name] or None,
                refused_most=", ".join(f"{e} {n}" for e, n in Counter(r.experiment for r in refused).most_common(3))
                or None,
            )
        )
    impossible = sum(not r.generator for r in outcome.refused)
    emit(fmt, GenerateAllDocument(left_out=outcome.left_out, impossible=impossible, rows=tuple(rows)))
    if outcome.refused:
        say(f"note: {REFUSED_FILE} lists {counted(len(outcome.refused), 'refused point')} with reasons")
    if outcome.left_out:
        say(f"note: {counted(outcome.left_out, 'entry file')} left out (--max-entries)")


class _Missing(Record):
    generator: str = doc("a generator")
    tools: tuple[str, ...] = doc("compilers of its programs that are not on the path")


class _GenerateVerifyRow(Record):
    generator: str = doc("generator")
    experiment: str = doc("name of the experiment")
    point: int = doc("number of the first point that has the program", of="index")
    file: str = doc("path of its file", of="path")
    programs: int = doc("files with the same program")
    tool: str = doc("the compiler")
    verdict: str = doc("`ok`, `refused`, `crashed` or `timeout`")
    message: str | None = doc("what the compiler said")


class GenerateVerifyDocument(Document, kind="generate.verify"):
    """`p4perf generate --verify`: one row for each distinct program and tool."""

    missing: tuple[_Missing, ...] = doc("")
    refused: int = doc("points that a generator refuses")
    rows: tuple[_GenerateVerifyRow, ...] = doc("")


def _report_verdicts(fmt: Format, outcome: Generated, tools: Commands, missing: Mapping[str, tuple[str, ...]]) -> None:
    from p4perf.cli.progress import Share

    absent = {name: names for name, names in missing.items() if names}
    for name, names in absent.items():
        left = ", ".join(c[0] for c in tools[name]) or "nothing"
        say(f"note: {name} is not verified by {', '.join(names)}, which is not on the path (but by {left})")
    with Share("compiling") as share:
        rows = tuple(verify(outcome, tools, share))
    lacking = tuple(_Missing(generator=name, tools=names) for name, names in absent.items())
    emit(fmt, GenerateVerifyDocument(missing=lacking, refused=len(outcome.refused), rows=rows))
    failed = sum(row.verdict != "ok" for row in rows)
    say(f"{len(rows) - failed} of {len(rows)} verdicts are ok")
    if failed:
        raise typer.Exit(int(ExitCode.VERDICT_FAILED))
