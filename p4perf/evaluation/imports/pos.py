"""Result folders of the testbed orchestrator pos.

Each node has a folder. What belongs to a run of the loop has ``_run<number>`` in its name, before the last suffix, and
the values of that run's loop variables are in files ``*.loop``, JSON or, of old versions, a dictionary as Python prints
it. The order of runs means nothing; only these files do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from p4perf.errors import DataError, UsageError
from p4perf.evaluation.imports.base import Importer, LeftOut, Reading, Trial, Value
from p4perf.evaluation.imports.files import read_plain_text
from p4perf.evaluation.imports.moongen import counter_values, is_histogram, latency_values, one_counter
from p4perf.evaluation.imports.options import Fact, ImportOptions
from p4perf.evaluation.imports.pos_tree import RunFile, Tree, python_bytes, scan_tree
from p4perf.generators.moongen_counters import Counter, is_counter_csv, is_counter_log, parse_counters

_FRACTION = re.compile(r"(?:^|-)([01]?\.[0-9]+|1)(?=-|$)")
_OUTPUT = (".stdout", ".stderr")
_LATENCY = ("histogram", "latency")


@dataclass(frozen=True, slots=True)
class _Part:
    """What one file of a run gives."""

    values: tuple[Value, ...]
    left_out: tuple[LeftOut, ...] = ()
    flags: tuple[str, ...] = ()


class PosImporter(Importer):
    """A result folder of pos, with files of MoonGen in it."""

    name: ClassVar[str] = "pos"
    summary: ClassVar[str] = "pos: result folder with loop files and files of MoonGen"

    def recognises(self, path: Path) -> bool:
        """Whether a folder has folders of nodes with loop files."""
        return path.is_dir() and next(path.glob("*/*.loop"), None) is not None

    def read(self, path: Path, options: ImportOptions) -> Reading:
        """A trial for each repetition of each run that ended well.

        Raises:
            DataError: a file is damaged, runs contradict each other, or this is no result folder.
            UsageError: a file has several devices, or the name of a run does not fit.
        """
        tree = scan_tree(path)
        reader = _Reader(tree, options)
        trials = list(reader.trials())
        return Reading(tuple(trials), tuple(reader.left_out), tuple(reader.used), testbed="pos")


class _Reader:
    """Reads the runs of a tree one after another."""

    def __init__(self, tree: Tree, options: ImportOptions) -> None:
        self._tree, self._options = tree, options
        self._asked = {named.source for named in options.metrics if named.source}
        self.left_out: list[LeftOut] = list(tree.left_out)
        self.used: dict[Path, None] = {}

    def trials(self) -> Iterator[Trial]:
        for _, run in sorted(self._tree.runs.items()):
            if run.failure is not None:
                self.left_out.append(run.failure)
                continue
            self.used |= dict.fromkeys(run.evidence)
            yield from self._trials_of(run.facts, self._by_repetition(run.files))

    def _by_repetition(self, files: tuple[RunFile, ...]) -> Mapping[int | None, list[RunFile]]:
        groups: dict[int | None, list[RunFile]] = {}
        for file in files:
            groups.setdefault(file.repetition, []).append(file)
        return groups

    def _trials_of(self, facts: Mapping[str, Fact], groups: Mapping[int | None, list[RunFile]]) -> Iterator[Trial]:
        for _, files in sorted(groups.items(), key=lambda item: -1 if item[0] is None else item[0]):
            values: list[Value] = []
            flags: set[str] = set()
            for file in files:
                part = self._guarded(file, files)
                values += part.values
                self.left_out += part.left_out
                flags |= set(part.flags)
                if part.values:
                    self.used[file.path] = None
            if values:
                yield Trial(dict(facts), tuple(values), values[0].place, None, tuple(sorted(flags)))

    def _guarded(self, file: RunFile, others: list[RunFile]) -> _Part:
        try:
            return self._part(file, others)
        except DataError as error:
            if not self._options.skip_damaged:
                error.hint = error.hint or "--skip-damaged leaves damaged files out"
                raise
            return _Part((), (LeftOut(str(error.location or file.path), f"is damaged: {error.message}"),))

    def _part(self, file: RunFile, others: list[RunFile]) -> _Part:
        asked = bool(self._asked & {file.stem, file.stem + file.suffix})
        name = file.stem + file.suffix if file.stem + file.suffix in self._asked else file.stem
        if file.suffix in _OUTPUT and not asked:
            return _Part((), (LeftOut(str(file.path), "is what a command printed; --metric METRIC=NAME takes it"),))
        if file.launched and not asked:
            return _Part(())
        text = read_plain_text(file.path)
        text = python_bytes(text, file.path) if file.launched else text
        fraction = _fraction(file.stem)
        if is_histogram(text) or (not text.strip() and any(word in file.stem for word in _LATENCY)):
            values, left = latency_values(file.path, name, fraction)
            return _Part(tuple(values), tuple(left))
        if not (is_counter_csv(text) or is_counter_log(text) or (not text.strip() and ".csv" in file.suffix)):
            return _Part((), (LeftOut(str(file.path), "is of a kind that is not read"),))
        counters = parse_counters(text, str(file.path))
        if counters and {counter.direction for counter in counters} == {"TX"}:
            self.used[file.path] = None
            return _Part(())
        sent = self._sent(file, others)
        metric = "receive_rate" if "max" in file.stem.split("-") else "packet_rate"
        found = counter_values(
            counters, file.path, self._options.device, name=name, metric=metric, fraction=fraction, sent=sent
        )
        return _Part(tuple(found[0]), tuple(found[1]), found[2])

    def _sent(self, file: RunFile, others: list[RunFile]) -> tuple[Counter, Path] | None:
        """The counter of sent packets in the file that belongs to one of received packets."""
        words = file.stem.split("-")
        if "rx" not in words:
            return None
        wanted = "-".join("tx" if word == "rx" else word for word in words)
        for other in others:
            if (other.node, other.stem, other.suffix) == (file.node, wanted, file.suffix):
                counters = parse_counters(read_plain_text(other.path), str(other.path))
                found = one_counter(counters, "TX", other.path, self._options.device)
                return None if found is None else (found, other.path)
        return None


def _fraction(stem: str) -> float | None:
    """The share of the maximum in a name such as ``histogram-0.1``.

    Raises:
        UsageError: it is none.
    """
    match = _FRACTION.search(stem)
    if match is None:
        return None
    number = float(match[1])
    if not 0 < number <= 1:
        raise UsageError(f"{stem}: {number:g} is no share of the maximum")
    return number
