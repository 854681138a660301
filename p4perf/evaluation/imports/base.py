"""What a reader of third-party results gives, the options of the user, and the contract of a reader."""

from __future__ import annotations

import os
import re
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, NoReturn

from typing_extensions import override

from p4perf.errors import DataError, Location, UsageError
from p4perf.formats.moongen import without_colours
from p4perf.results.files import decoded, parse_object, read_bytes, reading, real
from p4perf.specs.messages import nearest
from p4perf.specs.metrics import METRICS, metric_named
from p4perf.specs.schema import RESERVED
from p4perf.specs.types import WORD_PATTERN
from p4perf.specs.units import UNITS

_RATIOS = {"%": Fraction(1, 100), "ratio": Fraction(1)}
_SPELT = {"usec": "us", "nsec": "ns", "msec": "ms", "sec": "s", "pkts/s": "pps", "packets/s": "pps", "bps": "bit/s"}
"""Other spellings of units, as MoonGen, TRex and CSIT write them."""


def unit_of_metric(metric: str) -> str:
    """Its unit; a UsageError if there is no such metric."""
    found = metric_named(metric)
    if found is None:
        raise UsageError(f"unknown metric {metric!r}", hint=nearest(metric, METRICS, "metrics"))
    return found.unit


def needs_unit(metric: str) -> bool:
    """Whether numbers of a metric come in several units, and their name does not say in which."""
    return unit_of_metric(metric) in UNITS and not metric.endswith("_bytes")


def convert(value: float, unit: str, metric: str) -> float:
    """A number in the unit of a metric; an empty unit is that of the metric."""
    wanted = unit_of_metric(metric)
    given = _SPELT.get(unit, unit) or wanted
    if given == wanted:
        return value
    if wanted == "lost/sent" and given in _RATIOS:
        return float(Fraction(value) * _RATIOS[given])
    if given in UNITS and wanted in UNITS and UNITS[given].dimension == UNITS[wanted].dimension:
        return float(Fraction(value) * UNITS[given].factor / UNITS[wanted].factor)
    if given in UNITS and wanted in UNITS:
        raise UsageError(f"{unit} is a {UNITS[given].dimension}, but {metric} is a {UNITS[wanted].dimension}")
    if wanted in UNITS:
        same = [name for name, known in UNITS.items() if known.dimension == UNITS[wanted].dimension]
        raise UsageError(f"there is no unit {unit!r} for {metric}", hint=f"units of it: {', '.join(same)}")
    raise UsageError(f"{metric} is in {wanted}, not in {unit!r}")


Fact = int | float | str
"""Value of a condition: a whole number is an int, whatever the source writes."""

_FIELD = re.compile(r"\{([a-z][a-z0-9_]*)\}")
_NUMBER = r"[0-9]+(?:\.[0-9]+)?(?:[km](?![a-z0-9]))?"
_SCALES = {"k": 1000, "m": 1_000_000}
REPETITION = "repetition"


@dataclass(frozen=True, slots=True)
class Named:
    """A name of p4perf, and what the source calls it; empty if it is the same."""

    name: str
    source: str = ""

    @classmethod
    def parse(cls, text: str) -> Named:
        """``entries=Number of entries``, or only ``entries``."""
        name, _, source = text.partition("=")
        return cls(name.strip(), source.strip())

    @property
    def wanted(self) -> str:
        return self.source or self.name


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What the user said.

    Args:
        variables: swept variables; the first is the abscissa of the model.
        metrics: metrics to import, with their names in the source; empty: all that are certain.
        units: unit by metric; under the empty name for all.
        settings: facts that the source does not tell.
        only: keep trials with these facts (names of the source or of p4perf).
        repetition: name of the fact, or column, that numbers repetitions.
        pattern: how names of files or tests tell facts: ``rx-{frame_size}-{repetition}.csv``.
        value: CSV in long format: column of the values.
        metric_column: CSV in long format: column of the names of metrics.
        device: device of MoonGen whose counters count; needed where a file has several.

    Raises:
        UsageError: a name is not that of a variable or metric, or a duplicate.
    """

    variables: tuple[Named, ...] = ()
    metrics: tuple[Named, ...] = ()
    units: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Fact] = field(default_factory=dict)
    only: Mapping[str, Fact] = field(default_factory=dict)
    repetition: str = ""
    pattern: str = ""
    value: str = ""
    metric_column: str = ""
    unit_column: str = ""
    device: str = ""
    skip_damaged: bool = False

    def __post_init__(self) -> None:
        for named in self.variables:
            check_variable(named.name, "--x")
        for name in self.settings:
            check_variable(name, "--set")
        for name in (*(named.name for named in self.metrics), *filter(None, self.units)):
            unit_of_metric(name)
        wanted_once = {
            "the variable {} is given twice": [*(named.name for named in self.variables), *self.settings],
            "{} of the source is given twice": [named.wanted for named in self.variables],
            "--metric: {} is given twice": [named.wanted for named in self.metrics],
        }
        for message, names in wanted_once.items():
            if twice := [name for name in names if names.count(name) > 1]:
                raise UsageError(message.format(twice[0]))
        if self.pattern:
            name_facts(self.pattern, "")

    def facts_of(self, name: str) -> tuple[dict[str, Fact], int | None, str]:
        """What the name of a file or test tells: facts, repetition, and the name with fields instead of the numbers.

        Raises:
            UsageError: the name does not fit the pattern.
        """
        if not self.pattern:
            return {}, None, name
        found = name_facts(self.pattern, name)
        if found is None:
            hint = "a field in braces stands for a number: rx-{size}.csv"
            raise UsageError(f"{name} does not fit --name {self.pattern}", hint=hint)
        facts, rest = found
        number = facts.pop(REPETITION, None)
        if number is not None and not isinstance(number, int):
            raise UsageError(f"{name}: the repetition {number} is not a whole number")
        return facts, number, rest


def name_facts(pattern: str, name: str) -> tuple[dict[str, Fact], str] | None:
    """The numbers that stand in a name where a pattern has fields; None if it does not fit.

    ``k`` and ``m`` after a number, at the end of a word, are factors of a thousand and of a million.
    """
    fields = _FIELD.findall(pattern)
    if not fields or len(set(fields)) < len(fields) or "{" in _FIELD.sub("", pattern):
        hint = "such as rx-{frame_size}-{repetition}.csv; small letters, digits and underscores"
        raise UsageError(f"--name {pattern}: expected a name with different fields in braces", hint=hint)
    for wanted in fields:
        if wanted != REPETITION:
            check_variable(wanted, "--name")
    parts = [re.escape(text) if at % 2 == 0 else f"({_NUMBER})" for at, text in enumerate(_FIELD.split(pattern))]
    match = re.search(f"(?<![0-9])(?<![0-9][.]){''.join(parts)}" if pattern.startswith("{") else "".join(parts), name)
    if match is None:
        return None
    facts = {wanted: _scaled(text) for wanted, text in zip(fields, match.groups(), strict=True)}
    return facts, name[: match.start()] + pattern + name[match.end() :]


def _scaled(text: str) -> Fact:
    factor = _SCALES.get(text[-1], 1)
    return tidy_number(float(text[:-1]) * factor) if factor > 1 else fact(text)


def fact(text: str) -> Fact:
    stripped = text.strip()
    try:
        return int(stripped)
    except ValueError:
        pass
    try:
        number = float(stripped)
    except ValueError:
        return stripped
    return tidy_number(number) if number - number == 0 else stripped


def tidy_number(number: float) -> Fact:
    """The number, as an int if it is whole."""
    return int(number) if float(number).is_integer() and abs(number) <= 1e18 else number


def check_variable(name: str, where: str) -> None:
    if not re.fullmatch(WORD_PATTERN[1:-1], name):
        plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") or "variable"
        raise UsageError(
            f"{where}: {name!r} is not a name of a variable (small letters, digits and underscores, a letter first)",
            hint=f"rename it: --x {plain}={name!r}" if plain[0].isalpha() else "rename it with --x NAME=THEIR_NAME",
        )
    if name in RESERVED:
        hint = f"rename it: --x the_{name}={name}"
        raise UsageError(f"{where}: {name} is a column of the tables of results", hint=hint)


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands in the source: line from 1, dotted path in JSON or name of a column."""

    file: Path
    line: int | None = None
    key: str = ""

    @override
    def __str__(self) -> str:
        line = "" if self.line is None else f":{self.line}"
        file = str(self.file).encode("utf-8", "backslashreplace").decode()  # names of files need not be Unicode
        return f"{file}{line}" + (f": {self.key}" if self.key else "")

    def error(self, message: str, *, hint: str | None = None) -> DataError:
        return DataError(message, location=Location(str(self.file), self.line), key=self.key or None, hint=hint)


@dataclass(frozen=True, slots=True)
class ImportedValue:
    """A number of the source; ``metric`` is empty if that is not certain and the user has to say it."""

    name: str
    value: float
    unit: str
    place: Place
    metric: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class ImportedTrial:
    """What was measured together, under conditions by the names of the source.

    Repetitions without a number are counted. Flags are short marks of what is unusual, such as ``unfinished``.
    """

    facts: Mapping[str, Fact]
    values: tuple[ImportedValue, ...]
    place: Place
    repetition: int | None = None
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LeftOut:
    place: str
    reason: str


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reader found; ``files`` is every file that a value or a fact comes from."""

    trials: tuple[ImportedTrial, ...]
    left_out: tuple[LeftOut, ...] = ()
    files: tuple[Path, ...] = field(default=())
    target: str = ""
    testbed: str = ""


class Importer(ABC):
    """A reader of one kind of results. It is made without arguments, reads only, and keeps nothing between calls."""

    name: ClassVar[str]
    """Name of the entry point."""
    summary: ClassVar[str]
    """One line for lists."""

    @abstractmethod
    def recognises(self, path: Path) -> bool:
        """Whether a file or folder is of this kind, by its content. It is read only a little, and damage is no error.

        A reader that cannot tell returns False; the user names it then.
        """

    @abstractmethod
    def read(self, path: Path, options: ImportOptions) -> Reading:
        """Everything in a file or folder, by the names of the source.

        Raises:
            DataError: it is damaged, or not of this kind; with file, and line or key.
            UsageError: the options do not suit it.
        """


MAX_FILE_MIB = 64
"""Larger files are refused."""

MAX_FILES = 200_000
"""A folder with more files is refused."""

HEAD_BYTES = 4096
_ARCHIVES = {b"\x1f\x8b": "gzip", b"PK\x03\x04": "zip", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zstd"}


def read_plain_text(path: Path) -> str:
    """The text of a file: UTF-8, without byte order mark, with colours of terminals taken out."""
    where = Location(str(path))
    check_file(path)
    data = read_bytes(path)
    for magic, kind in _ARCHIVES.items():
        if data.startswith(magic):
            raise DataError(f"is an archive ({kind})", location=where, hint="unpack it first")
    if (at := data.find(b"\0")) >= 0:
        line = data.count(b"\n", 0, at) + 1
        raise DataError("is binary: there is a zero byte in it", location=Location(str(path), line))
    return without_colours(decoded(data, path).removeprefix("\ufeff")).replace("\r\n", "\n")


def check_file(path: Path) -> None:
    """Raise a DataError if a path is not a regular file of a size that can be read."""
    where = Location(str(path))
    with reading(path):
        status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise DataError("is not a file", location=where)
    if status.st_size > MAX_FILE_MIB * 2**20:
        size = f"{status.st_size / 2**20:.0f} MiB"
        raise DataError(f"has {size}, more than the limit of {MAX_FILE_MIB} MiB", location=where)


def head_of(path: Path) -> str:
    """The beginning of a file as text, for recognising it; empty if it cannot be read as text."""
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            data = file.read(HEAD_BYTES)
    except OSError:
        return ""
    return "" if b"\0" in data else without_colours(data.decode(errors="ignore").removeprefix("\ufeff"))


def json_of(path: Path) -> dict[str, Any]:
    """A file with one JSON object, for recognising it; empty if it is none."""
    try:
        return read_json(path) if head_of(path).lstrip().startswith("{") else {}
    except DataError:
        return {}


def files_below(folder: Path) -> Iterator[Path]:
    """All files below a folder, in order; hidden ones and their folders are passed over."""
    root = real(folder)
    count = 0
    for place, folders, names in os.walk(folder, onerror=_unreadable):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in (*folders, *sorted(names)):
            path = Path(place, name)
            if path.is_symlink() and not real(path).is_relative_to(root):
                raise DataError(f"is a link to a place outside of {folder}", location=Location(str(path)))
        for name in sorted(names):
            if name.startswith("."):
                continue
            count += 1
            if count > MAX_FILES:
                raise DataError(f"has more than {MAX_FILES} files", location=Location(str(folder)))
            yield Path(place, name)


def _unreadable(error: OSError) -> NoReturn:
    with reading(Path(error.filename)):
        raise error


def read_json(path: Path) -> dict[str, Any]:
    """A file with one JSON object. Numbers are finite."""
    text = read_plain_text(path)
    if not text.strip():
        raise DataError("the file is empty", location=Location(str(path)))
    return parse_object(text, path)
