"""Testbed manual: a machine that p4perf cannot reach. The user copies a folder there, runs it, and brings it back."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from typing_extensions import override

from p4perf.errors import DataError, Location, TestbedError, UsageError
from p4perf.results.files import json_text, parse_object, read_text, write_text_atomically
from p4perf.targets.base import NodeFacts, Problem
from p4perf.testbeds.batch.base import BatchJob, BatchResults, BatchTestbed, JobOutcome, Note
from p4perf.testbeds.batch.folder import text_files, write_folder
from p4perf.testbeds.batch.outcomes import Missing, probed_facts, read_trial, text_of
from p4perf.testbeds.local import LocalTestbed, facts_of
from p4perf.testbeds.pos.experiment import experiment_files, is_tree, node_facts, read_trials

MARK = "p4perf.json"
"""File by which an experiment folder is known; it says which batch it belongs to."""

FACTS = "facts.txt"
"""What ``probe.sh`` printed: of the machine for which is planned, and in ``results`` of the one that measured."""

RESULTS = "results"

HERE_ONLY = re.compile(
    "memory_.*|hugepage.*|cpus|cpus_allowed|measuring_cpu|isolated_cpus|cpu_.*_khz|load_average|.*_ticks|governor|"
    "turbo_off|smt|autogroup|link"
)
"""Facts of this machine that say nothing of another one which has the same tools."""


class ManualTestbed(BatchTestbed):
    name = "manual"
    summary = "a folder that somebody runs on another machine, without p4perf there: manual:FOLDER"

    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute()

    @classmethod
    @override
    def at(cls, place: str) -> Self:
        if not place:
            raise UsageError("testbed manual needs a folder", hint="write manual:FOLDER")
        return cls(Path(place))

    @property
    @override
    def provisional(self) -> bool:
        return not (self._folder / FACTS).is_file()

    @property
    @override
    def record(self) -> Mapping[str, str]:
        return {"address": f"{self.name}:{self._folder}", "folder": str(self._folder)}

    @override
    def problems(self) -> tuple[Problem, ...]:
        try:
            if not self._folder.exists() or is_ours(self._folder):
                return ()
            if self._folder.is_dir() and {path.name for path in self._folder.iterdir()} <= {FACTS}:
                return ()
        except OSError as error:
            return (Problem(f"{self._folder} cannot be read: {error.strerror}", "choose another folder"),)
        return (
            Problem(f"{self._folder} has something else in it", f"choose a folder that is new or has only {FACTS}"),
        )

    @override
    def require_free(self) -> None:
        if is_ours(self._folder):
            raise self._taken()

    @override
    def require_begun(self) -> None:
        if not is_ours(self._folder):
            hint = "bring it back to its place, or start a new run"
            raise TestbedError(f"there is no experiment folder {self._folder}", hint=hint)

    def _taken(self) -> TestbedError:
        run = batch_of(self._folder).parent.parent
        return TestbedError(
            f"{self._folder} belongs to another run: {run}",
            hint=f"choose another folder, or continue that run: p4perf resume {run}",
        )

    @override
    def facts(self) -> NodeFacts:
        path = self._folder / FACTS
        if text_of(path) is not None:
            return probed_facts(path)
        here = LocalTestbed().facts()
        return NodeFacts({key: value for key, value in here.values.items() if not HERE_ONLY.fullmatch(key)})

    @override
    def write_batch(self, jobs: Sequence[BatchJob], folder: Path, title: str) -> None:
        if is_ours(self._folder) and batch_of(self._folder).parent != folder.parent:
            raise self._taken()
        mark = {"schema_version": 1, "batch": str(folder)}
        texts: dict[str, tuple[str, Mapping[str, Any]]] = {
            "run.sh": ("run.sh.j2", {"title": title}),
            "README.md": ("manual-README.md.j2", {"title": title, "trials": len(jobs), "folder": str(self._folder)}),
        }
        files = experiment_files(jobs, title) | text_files(texts)
        write_folder(self._folder, files)
        write_text_atomically(self._folder / MARK, json_text(mark))

    @override
    def run_batch(self, names: Sequence[str], folder: Path, note: Note) -> BatchResults:
        self.require_begun()
        results = self._folder / RESULTS
        outcomes: dict[str, JobOutcome] = {}
        missing: dict[str, str] = {}
        for name in names:
            try:
                outcomes[name] = read_trial(name, self.label, {path.name: path for path in (results / name).glob("*")})
            except Missing as error:
                missing[name] = str(error)
        before, after = (text_of(results / file) for file in (FACTS, "facts-after.txt"))
        for tree in (results, *sorted(results.iterdir())) if results.is_dir() else ():
            if tree.is_dir() and not tree.is_symlink() and is_tree(tree):  # somebody put results of pos there
                found, _ = read_trials(tree, names)
                outcomes, before = found | outcomes, before or node_facts(tree)
        missing = {name: why for name, why in missing.items() if name not in outcomes}
        waiting = f"run {self._folder / 'run.sh'} on the machine that is to be measured" if missing else ""
        return BatchResults(
            outcomes,
            missing,
            facts=None if before is None else facts_of(before),
            facts_after=None if after is None else facts_of(after),
            waiting=waiting,
            place=str(results),
        )


def is_ours(folder: Path) -> bool:
    return (folder / MARK).is_file()


def batch_of(folder: Path) -> Path:
    """The batch that an experiment folder belongs to."""
    path = folder / MARK
    batch = parse_object(read_text(path), path).get("batch")
    if not isinstance(batch, str) or not batch.startswith("/"):
        raise DataError("names no batch", location=Location(str(path)), key="batch")
    return Path(batch)
