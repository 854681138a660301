"""Which files a result folder of pos has, and what its runs are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from p4perf.errors import DataError, Location
from p4perf.evaluation.imports.base import LeftOut
from p4perf.evaluation.imports.files import files_below, read_plain_text, without_colours
from p4perf.evaluation.imports.options import Fact, fact, tidy_number
from p4perf.posfiles import FINISHED, LAUNCHED, RUN, loop_values, printed

_OF_LAUNCH = (".loop", ".status", ".file")


@dataclass(frozen=True, slots=True)
class RunFile:
    """A file that belongs to a run.

    Args:
        path: the file.
        node: name of the node.
        stem: its name without the number of the run, the time of its launch and the suffix.
        suffix: with its dot, or empty.
        repetition: what follows the suffix (``.csv_2``), None if nothing does.
        launched: whether a launched command wrote it; its outputs are bytes as Python prints them.
    """

    path: Path
    node: str
    stem: str
    suffix: str
    repetition: int | None
    launched: bool


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the loop.

    Args:
        facts: the loop variables.
        files: what may hold results.
        evidence: the loop files.
        failure: why it has no results, None if it may have some.
    """

    facts: Mapping[str, Fact]
    files: tuple[RunFile, ...]
    evidence: tuple[Path, ...]
    failure: LeftOut | None


@dataclass(frozen=True, slots=True)
class Tree:
    """All runs by number, and what belongs to none."""

    runs: Mapping[int, Run]
    left_out: tuple[LeftOut, ...]


@dataclass(slots=True)
class _Found:
    loops: list[Path] = field(default_factory=list)
    statuses: list[Path] = field(default_factory=list)
    files: list[RunFile] = field(default_factory=list)


def scan_tree(root: Path) -> Tree:
    """The runs of a result folder.

    Raises:
        DataError: it is none, has no loop, is damaged, or has links that lead out of it.
    """
    found: dict[int, _Found] = {}
    left_out = []
    for path in files_below(root):
        relative = path.relative_to(root)
        match = RUN.fullmatch(relative.name)
        if relative.parts[0] == "config" or len(relative.parts) < 2:
            continue
        if match is None or len(relative.parts) > 2:
            left_out.append(LeftOut(str(path), "belongs to no run of the loop"))
            continue
        _sort(path, relative.parts[0], match, found.setdefault(int(match["number"]), _Found()))
    if not any(run.loops for run in found.values()):
        inside = sorted(str(p.parent.parent) for p in root.glob("*/*/*.loop"))
        hint = f"there is one: {inside[0]}" if inside else None
        raise DataError("is no result folder of pos: no node has loop files", location=Location(str(root)), hint=hint)
    return Tree({number: _run(root, number, run) for number, run in found.items()}, tuple(left_out))


def _sort(path: Path, node: str, match: re.Match[str], run: _Found) -> None:
    suffix = match["suffix"] or ""
    launch = LAUNCHED.fullmatch(match["stem"])
    if suffix == ".loop":
        run.loops.append(path)
    elif suffix == ".status":
        run.statuses.append(path)
    elif suffix not in _OF_LAUNCH and (suffix or launch):
        repetition = None if match["repetition"] is None else int(match["repetition"])
        stem = launch["name"] if launch else match["stem"]
        run.files.append(RunFile(path, node, stem, suffix, repetition, launch is not None))


def _run(root: Path, number: int, run: _Found) -> Run:
    failure: LeftOut | None = None
    if not run.loops:
        failure = LeftOut(f"{root}, run {number}", "has no loop file: its variables are not known")
        return Run({}, (), (), failure)
    facts = parse_loop(run.loops[0])
    for other in run.loops[1:]:
        if parse_loop(other) != facts:
            raise DataError(f"has other values than {run.loops[0].name} of the same run", location=Location(str(other)))
    statuses = {path.with_suffix(""): path for path in run.statuses}
    for loop in run.loops:
        status = statuses.get(loop.with_suffix(""))
        said = "" if status is None else read_plain_text(status).strip()
        if said != FINISHED:
            what = f"ended as {said!r:.40}" if said else "has no status: it did not end"
            failure = LeftOut(str(status or loop), f"a command of that run {what}")
    return Run(facts, tuple(run.files), tuple(run.loops), failure)


def parse_loop(path: Path) -> dict[str, Fact]:
    """The variables of a loop file: JSON, or a dictionary as Python prints it.

    Raises:
        DataError: it is damaged, or a value is neither a number nor a word.
    """
    where = Location(str(path))
    try:
        value = loop_values(read_plain_text(path))
    except ValueError as error:
        raise DataError(str(error), location=Location(str(path), 1)) from error
    facts: dict[str, Fact] = {}
    for key, item in value.items():
        if isinstance(item, bool) or not isinstance(item, int | float | str):
            raise DataError(f"{item!r:.60} is neither a number nor a word", location=where, key=key)
        if isinstance(item, float) and item - item != 0:
            raise DataError(f"{item} is not a finite number", location=where, key=key)
        facts[key] = fact(item) if isinstance(item, str) else tidy_number(item)
    return facts


def python_bytes(text: str, path: Path) -> str:
    """What a launched command printed: pos keeps it as Python prints bytes, ``b'...'``.

    Raises:
        DataError: it begins so, but is damaged.
    """
    try:
        return without_colours(printed(text))
    except ValueError as error:
        raise DataError(str(error), location=Location(str(path))) from error
