"""What a reader of other people's results gives, and the contract of a reader."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from p4perf.errors import DataError, Location
from p4perf.evaluation.imports.options import Fact, ImportOptions


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands in the source.

    Args:
        file: the file.
        line: its line, from 1.
        key: dotted path in a JSON file, or name of a column.
    """

    file: Path
    line: int | None = None
    key: str = ""

    def __str__(self) -> str:
        line = "" if self.line is None else f":{self.line}"
        file = str(self.file).encode("utf-8", "backslashreplace").decode()  # names of files need not be Unicode
        return f"{file}{line}" + (f": {self.key}" if self.key else "")

    def error(self, message: str, *, hint: str | None = None) -> DataError:
        """What is wrong at this place, as an error to raise."""
        return DataError(message, location=Location(str(self.file), self.line), key=self.key or None, hint=hint)


@dataclass(frozen=True, slots=True)
class Value:
    """A number of the source.

    Args:
        name: what the source calls it.
        value: the number, in ``unit``.
        unit: unit in the source, such as ``pps``.
        place: where it stands.
        metric: what it is in the words of p4perf; empty if that is not certain, and the user has to say it.
        why: why it is not certain.
    """

    name: str
    value: float
    unit: str
    place: Place
    metric: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Trial:
    """What was measured together.

    Args:
        facts: what the source says of the conditions, by its own names: variables and constants.
        values: the numbers.
        place: where it begins.
        repetition: number from 0, if the source has one; else repetitions are counted.
        flags: short marks of what is unusual, such as ``unfinished``.
    """

    facts: Mapping[str, Fact]
    values: tuple[Value, ...]
    place: Place
    repetition: int | None = None
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something in the source that is not imported, and why."""

    place: str
    reason: str


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reader found.

    Args:
        trials: in the order of the source.
        left_out: what is not in them.
        files: every file that a value or a fact comes from.
        target: the device, where the source names it.
        testbed: the place, where the source names it.
    """

    trials: tuple[Trial, ...]
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
        """Everything in a file or folder.

        Args:
            path: exists.
            options: what the user said; names are those of the source.

        Raises:
            DataError: it is damaged, or not of this kind; with file, and line or key.
            UsageError: the options do not suit it.
        """
