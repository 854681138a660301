"""Files of MoonGen, alone or in result folders of the testbed orchestrator pos.

Files are counters, as CSV or as printed lines, and histograms of latencies. In a result folder each node has a folder;
what belongs to a run of the loop has ``_run<number>`` in its name (:mod:`p4perf.formats.pos`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from typing_extensions import override

from p4perf.errors import DataError, Location, MeasurementError, UsageError
from p4perf.evaluation.imports import base
from p4perf.evaluation.load.histogram import LatencyHistogram, read_moongen_histogram
from p4perf.formats.moongen import DeviceCounter, is_counter_csv, is_counter_log, parse_counters, without_colours
from p4perf.formats.pos import FINISHED, LAUNCHED, RUN, loop_values, printed
from p4perf.specs.metrics import PERCENTILES, at_load

Found = tuple[list[base.ImportedValue], list[base.LeftOut], tuple[str, ...]]
"""Values, what is left out, and flags."""

UNFINISHED = "unfinished"
_HISTOGRAM = re.compile(r"[0-9.eE+]{1,40},[0-9.eE+]{1,40}")


class MoonGenImporter(base.Importer):
    """A file of MoonGen. Exit codes play no part: MoonGen ends with 0 though a task of it died."""

    name: ClassVar[str] = "moongen"
    summary: ClassVar[str] = "MoonGen: CSV or printed lines of counters, histogram of latencies"

    @override
    def recognises(self, path: Path) -> bool:
        head = base.head_of(path)
        return is_counter_csv(head) or is_histogram(head) or is_counter_log(head)

    @override
    def read(self, path: Path, options: base.ImportOptions) -> base.Reading:
        facts, repetition, _ = options.facts_of(path.name)
        text = base.read_plain_text(path)
        if is_histogram(text):
            values, left_out, flags = latency_values(path, path.stem)
        else:
            counters = parse_counters(text, str(path))
            if text.strip() and not counters:
                raise base.Place(path).error("is not a file of MoonGen: it has neither counters nor a histogram")
            values, left_out, flags = counter_values(counters, path, options.device, name="rate")
        trial = base.ImportedTrial(facts, tuple(values), base.Place(path), repetition, flags)
        return base.Reading((trial,) if values else (), tuple(left_out), (path,))


def is_histogram(text: str) -> bool:
    """Whether a text begins as a histogram of MoonGen: lines ``latency,count``, no header."""
    return bool(_HISTOGRAM.fullmatch(text.split("\n", 1)[0]))


def counter_values(
    counters: Sequence[DeviceCounter],
    path: Path,
    device: str = "",
    *,
    name: str,
    metric: str = "packet_rate",
    fraction: float | None = None,
    sent: DeviceCounter | None = None,
) -> Found:
    """Rate and loss of the counters of a file.

    With a fraction, the share of the maximum that was offered, the metrics are those at that load.
    """
    if not counters:
        return [], [base.LeftOut(str(path), "is empty: MoonGen ended before its first row")], ()
    received = one_counter(counters, "RX", path, device)
    sending = sent or one_counter(counters, "TX", path, device)
    if received is None:
        return [], [base.LeftOut(str(path), "has no counter of received packets")], ()
    values: list[base.ImportedValue] = []
    left_out: list[base.LeftOut] = []
    place = base.Place(path, received.line)
    if received.rate_mpps is None:
        left_out.append(base.LeftOut(str(place), "there are too few rows for a mean without the first second"))
    else:
        why = "" if fraction is None else "is a rate at a share of the maximum, for which there is no metric"
        values.append(base.ImportedValue(name, received.rate_mpps, "Mpps", place, "" if why else metric, why))
    if sending is not None:
        loss = "loss_ratio" if fraction is None else at_load("loss_ratio", fraction)
        ratio, why = loss_ratio(sending, received)
        if ratio is None:
            left_out.append(base.LeftOut(str(place), why))
        else:
            values.append(base.ImportedValue("loss_ratio", ratio, "lost/sent", place, loss))
    return values, left_out, () if received.finished else (UNFINISHED,)


def loss_ratio(sent: DeviceCounter, received: DeviceCounter) -> tuple[float | None, str]:
    """Lost packets over sent packets; else None and why."""
    if not (sent.finished and received.finished) or sent.packets is None or received.packets is None:
        return None, "the loss is not known: a counter was not finished"
    if not sent.packets:
        return None, "the loss is not known: nothing was sent"
    if received.packets > sent.packets:
        return None, "the loss is not known: more packets came back than were sent"
    return 1 - received.packets / sent.packets, ""


def one_counter(
    counters: Sequence[DeviceCounter], direction: str, path: Path, device: str = ""
) -> DeviceCounter | None:
    of_direction = [counter for counter in counters if counter.direction == direction]
    named = [counter for counter in of_direction if counter.device == device]
    if len(named or of_direction) > 1:
        names = ", ".join(repr(counter.device) for counter in of_direction)
        hint = f"--device {of_direction[0].device!r}"
        raise UsageError(f"{path} has several {direction} counters: {names}", hint=hint)
    return next(iter(named or of_direction), None)


def latency_values(path: Path, name: str, fraction: float | None = None) -> Found:
    base.check_file(path)
    try:
        histogram = read_moongen_histogram(path)
    except MeasurementError as error:
        return [], [base.LeftOut(str(path), error.message)], ()
    return histogram_values(histogram, base.Place(path), name, fraction)


def histogram_values(histogram: LatencyHistogram, place: base.Place, name: str, fraction: float | None = None) -> Found:
    """Statistics and percentiles of a histogram of latencies [us]; percentiles only where the samples support them."""
    percentiles = histogram.percentiles()
    numbers = {key: found for key, p in PERCENTILES.items() if (found := percentiles[p]) is not None}
    numbers |= {"min": histogram.min_us, "mean": histogram.mean_us, "max": histogram.max_us}
    numbers["stddev"] = histogram.stddev_us
    metrics = {key: f"latency_{key}" for key in numbers}
    if fraction is not None:
        metrics = {key: at_load(metric, fraction) for key, metric in metrics.items()}
    values = [base.ImportedValue(name, number, "us", place, metrics[key]) for key, number in numbers.items()]
    rare = ", ".join(f"p{p:g}" for p in PERCENTILES.values() if percentiles[p] is None)
    return values, [base.LeftOut(str(place), f"too few samples lie beyond {rare}")] if rare else [], ()


_OF_LAUNCH = (".loop", ".status", ".file")


@dataclass(frozen=True, slots=True)
class RunFile:
    """A file that belongs to a run; its stem is without the number of the run and the time of its launch.

    ``repetition`` is what follows the suffix (``.csv_2``). What a launched command wrote is bytes as Python prints
    them.
    """

    path: Path
    node: str
    stem: str
    suffix: str
    repetition: int | None
    launched: bool


@dataclass(slots=True)
class LoopRun:
    """What belongs to one run of the loop: its loop files, their statuses, and what was written."""

    loops: list[Path] = field(default_factory=list)
    statuses: list[Path] = field(default_factory=list)
    files: list[RunFile] = field(default_factory=list)

    def facts(self) -> dict[str, base.Fact]:
        """The variables of the run, which all of its loop files have."""
        found = parse_loop(self.loops[0])
        for other in self.loops[1:]:
            if parse_loop(other) != found:
                message = f"has other values than {self.loops[0].name} of the same run"
                raise DataError(message, location=Location(str(other)))
        return found

    def failure(self) -> base.LeftOut | None:
        """Why the run has no results; None if it may have some."""
        failure = None
        statuses = {path.with_suffix(""): path for path in self.statuses}
        for loop in self.loops:
            status = statuses.get(loop.with_suffix(""))
            said = "" if status is None else base.read_plain_text(status).strip()
            if said != FINISHED:
                what = f"ended as {said!r:.40}" if said else "has no status: it did not end"
                failure = base.LeftOut(str(status or loop), f"a command of that run {what}")
        return failure


def scan_tree(root: Path) -> tuple[dict[int, LoopRun], list[base.LeftOut]]:
    """All runs by number, and what belongs to none."""
    runs: dict[int, LoopRun] = {}
    left_out = []
    for path in base.files_below(root):
        relative = path.relative_to(root)
        match = RUN.fullmatch(relative.name)
        if relative.parts[0] == "config" or len(relative.parts) < 2:
            continue
        if match is None or len(relative.parts) > 2:
            left_out.append(base.LeftOut(str(path), "belongs to no run of the loop"))
            continue
        run, suffix = runs.setdefault(int(match["number"]), LoopRun()), match["suffix"] or ""
        launch = LAUNCHED.fullmatch(match["stem"])
        if suffix == ".loop":
            run.loops.append(path)
        elif suffix == ".status":
            run.statuses.append(path)
        elif suffix not in _OF_LAUNCH and (suffix or launch):
            repetition = None if match["repetition"] is None else int(match["repetition"])
            stem = launch["name"] if launch else match["stem"]
            run.files.append(RunFile(path, relative.parts[0], stem, suffix, repetition, launch is not None))
    if not any(run.loops for run in runs.values()):
        inside = sorted(str(p.parent.parent) for p in root.glob("*/*/*.loop"))
        hint = f"there is one: {inside[0]}" if inside else None
        message = "is not a result folder of pos: no node has loop files"
        raise DataError(message, location=Location(str(root)), hint=hint)
    return runs, left_out


def parse_loop(path: Path) -> dict[str, base.Fact]:
    """The variables of a loop file: JSON, or a dictionary as Python prints it."""
    where = Location(str(path))
    try:
        value = loop_values(base.read_plain_text(path))
    except ValueError as error:
        raise DataError(str(error), location=Location(str(path), 1)) from error
    facts: dict[str, base.Fact] = {}
    for key, item in value.items():
        if isinstance(item, bool) or not isinstance(item, int | float | str):
            raise DataError(f"{item!r:.60} is neither a number nor a word", location=where, key=key)
        if isinstance(item, float) and item - item != 0:
            raise DataError(f"{item} is not a finite number", location=where, key=key)
        facts[key] = base.fact(item) if isinstance(item, str) else base.tidy_number(item)
    return facts


def python_bytes(text: str, path: Path) -> str:
    """What a launched command printed: pos keeps it as Python prints bytes, ``b'...'``."""
    try:
        return without_colours(printed(text))
    except ValueError as error:
        raise DataError(str(error), location=Location(str(path))) from error


_FRACTION = re.compile(r"(?:^|-)([01]?\.[0-9]+|1)(?=-|$)")
_OUTPUT = (".stdout", ".stderr")
_LATENCY = ("histogram", "latency")


class PosImporter(base.Importer):
    name: ClassVar[str] = "pos"
    summary: ClassVar[str] = "pos: result folder with loop files and files of MoonGen"

    @override
    def recognises(self, path: Path) -> bool:
        return path.is_dir() and next(path.glob("*/*.loop"), None) is not None

    @override
    def read(self, path: Path, options: base.ImportOptions) -> base.Reading:
        """A trial for each repetition of each run that ended well."""
        reader = _Reader(path, options)
        trials = list(reader.trials())
        return base.Reading(tuple(trials), tuple(reader.left_out), tuple(reader.used), testbed="pos")


class _Reader:
    def __init__(self, root: Path, options: base.ImportOptions) -> None:
        self._root, self._options = root, options
        self._asked = {named.source for named in options.metrics if named.source}
        self._runs, self.left_out = scan_tree(root)
        self.used: dict[Path, None] = {}

    def trials(self) -> Iterator[base.ImportedTrial]:
        for number, run in sorted(self._runs.items()):
            if not run.loops:
                what = "has no loop file: its variables are not known"
                self.left_out.append(base.LeftOut(f"{self._root}, run {number}", what))
                continue
            facts = run.facts()
            if (failure := run.failure()) is not None:
                self.left_out.append(failure)
                continue
            self.used |= dict.fromkeys(run.loops)
            yield from self._trials_of(facts, run.files)

    def _trials_of(self, facts: Mapping[str, base.Fact], every: Sequence[RunFile]) -> Iterator[base.ImportedTrial]:
        groups: dict[int | None, list[RunFile]] = {}
        for file in every:
            groups.setdefault(file.repetition, []).append(file)
        for _, files in sorted(groups.items(), key=lambda item: -1 if item[0] is None else item[0]):
            values: list[base.ImportedValue] = []
            flags: set[str] = set()
            for file in files:
                found, left_out, marks = self._guarded(file, files)
                values += found
                self.left_out += left_out
                flags |= set(marks)
                if found:
                    self.used[file.path] = None
            if values:
                yield base.ImportedTrial(dict(facts), tuple(values), values[0].place, None, tuple(sorted(flags)))

    def _guarded(self, file: RunFile, others: list[RunFile]) -> Found:
        try:
            return self._part(file, others)
        except DataError as error:
            if not self._options.skip_damaged:
                error.hint = error.hint or "--skip-damaged leaves damaged files out"
                raise
            return [], [base.LeftOut(str(error.location or file.path), f"is damaged: {error.message}")], ()

    def _part(self, file: RunFile, others: list[RunFile]) -> Found:
        asked = bool(self._asked & {file.stem, file.stem + file.suffix})
        name = file.stem + file.suffix if file.stem + file.suffix in self._asked else file.stem
        if file.suffix in _OUTPUT and not asked:
            return [], [base.LeftOut(str(file.path), "is what a command printed; --metric METRIC=NAME takes it")], ()
        if file.launched and not asked:
            return [], [], ()
        text = base.read_plain_text(file.path)
        text = python_bytes(text, file.path) if file.launched else text
        fraction = _fraction(file.stem)
        if is_histogram(text) or (not text.strip() and any(word in file.stem for word in _LATENCY)):
            return latency_values(file.path, name, fraction)
        if not (is_counter_csv(text) or is_counter_log(text) or (not text.strip() and ".csv" in file.suffix)):
            return [], [base.LeftOut(str(file.path), "is of an unsupported kind")], ()
        counters = parse_counters(text, str(file.path))
        if counters and {counter.direction for counter in counters} == {"TX"}:
            self.used[file.path] = None
            return [], [], ()
        sent = self._sent(file, others)
        metric = "receive_rate" if "max" in file.stem.split("-") else "packet_rate"
        return counter_values(
            counters, file.path, self._options.device, name=name, metric=metric, fraction=fraction, sent=sent
        )

    def _sent(self, file: RunFile, others: list[RunFile]) -> DeviceCounter | None:
        """The counter of sent packets in the file that belongs to one of received packets."""
        words = file.stem.split("-")
        if "rx" not in words:
            return None
        wanted = "-".join("tx" if word == "rx" else word for word in words)
        for other in others:
            if (other.node, other.stem, other.suffix) == (file.node, wanted, file.suffix):
                counters = parse_counters(base.read_plain_text(other.path), str(other.path))
                return one_counter(counters, "TX", other.path, self._options.device)
        return None


def _fraction(stem: str) -> float | None:
    """The share of the maximum in a name such as ``histogram-0.1``."""
    match = _FRACTION.search(stem)
    if match is None:
        return None
    number = float(match[1])
    if not 0 < number <= 1:
        raise UsageError(f"{stem}: {number:g} is not a share of the maximum")
    return number
