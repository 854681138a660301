"""The failures that p4perf reports, and the exit code that each one becomes.

Every failure that a user can cause or meet is a :class:`P4PerfError`. It says what is wrong, where, and what to do.
The command line prints exactly that and exits with ``error.exit_code``; nothing here ever prints or exits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar

from typing_extensions import override


class ExitCode(IntEnum):
    """Exit codes of the ``p4perf`` command (a stable contract for scripts)."""

    OK = 0
    """Everything that was asked for was done."""
    VERDICT_FAILED = 1
    """A check or comparison was made and its verdict is negative."""
    USAGE = 2
    """The command line, a spec or an input file is wrong."""
    UNAVAILABLE = 3
    """A target, testbed, tool or the storage is not available here."""
    INVALID_MEASUREMENT = 4
    """The measurement ran but did not meet the quality rules, or the program computed something wrong."""
    INTERNAL = 5
    """A defect of p4perf itself."""
    NO_VERDICT = 6
    """There is too little data to answer."""
    WAITING = 7
    """The run waits for results that are measured elsewhere."""
    INTERRUPTED = 130
    """Stopped by the user; what was finished is on disk."""


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a text file. ``line`` and ``column`` count from 1; ``text`` is the whole line, if known."""

    file: str
    line: int | None = None
    column: int | None = None
    text: str | None = None

    @override
    def __str__(self) -> str:
        parts = [self.file, *(str(n) for n in (self.line, self.column) if n is not None)]
        return ":".join(parts)

    def caret(self) -> str:
        """The offending line with a caret under the column, or an empty string if the text is unknown."""
        if self.text is None or self.column is None:
            return ""
        lead = "".join("\t" if c == "\t" else " " for c in self.text[: self.column - 1])
        return f"  {self.text}\n  {lead}^"


_ARGUMENTS = {"in": "folder", "with": "beside", "from": "kind", "as": "language"}
"""Arguments of Python for options of commands that are keywords of Python."""
_COMMANDS = re.compile(
    r"\bp4perf (list runs|compare|doctor|fit|learn|measure|resume|run)\b((?: \S*/\S*)*)( --\S+| [A-Z]+)?"
    r"|--([a-z][a-z-]*[a-z])\b"
)
"""Commands, those that only have operands as calls, and options, in messages for Python."""
MAX_MESSAGE = 2000
"""Longer messages, which quote a tool or a file, are cut in the middle; in characters."""


class P4PerfError(Exception):
    """Base of all failures of p4perf.

    Args:
        message: what is wrong, in one sentence.
        location: the file, line and column to blame, if there is one.
        key: dotted path of the offending key, such as ``traffic.frame_size``.
        hint: what the user can do about it.
    """

    exit_code: ClassVar[ExitCode] = ExitCode.INTERNAL

    def __init__(
        self, message: str, *, location: Location | None = None, key: str | None = None, hint: str | None = None
    ) -> None:
        if len(message) > MAX_MESSAGE:
            message = f"{message[: MAX_MESSAGE // 2]} ... {message[-MAX_MESSAGE // 2 :]}"
        super().__init__(message)
        self.message = message
        self.location = location
        self.key = key
        self.hint = hint
        self.component: int | None = None
        """Number of the component of a program that refuses a parameter."""
        self.arguments: Sequence[str] = ()
        """Of the Python function that failed: options of its command are named so."""

    @override
    def __str__(self) -> str:
        def in_python(found: re.Match[str]) -> str:
            command, given, more, option = found.groups()
            if command:
                paths = ", ".join(f'"{path}"' for path in given.split())
                return found[0] if more else f"p4perf.{command.replace(' ', '_')}({paths})"
            name = _ARGUMENTS.get(option, option.replace("-", "_"))
            return next((each for each in (name, f"{name}s") if each in self.arguments), found[0])

        return _COMMANDS.sub(in_python, self.text()) if self.arguments else self.text()

    def text(self) -> str:
        """What is wrong, where, and what to do, in the words of the command line."""
        head = f"{self.location}: " if self.location else ""
        head += f"{self.key}: " if self.key and not head.endswith(f" {self.key}: ") else ""
        lines = [head + self.message]
        if self.location and (caret := self.location.caret()):
            lines.append(caret)
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)


class UsageError(P4PerfError):
    """The command line or an argument of the Python API is wrong."""

    exit_code = ExitCode.USAGE


class SpecError(P4PerfError):
    """An experiment spec is wrong."""

    exit_code = ExitCode.USAGE


class CapabilityError(SpecError):
    """A point asks for something that the chosen target or generator cannot do; the message names the limit."""


class DataError(P4PerfError):
    """An input file (run directory, CSV, model) cannot be read as what it should be."""

    exit_code = ExitCode.USAGE


class TargetUnavailableError(P4PerfError):
    """The target cannot be used here: a tool, library or privilege is missing."""

    exit_code = ExitCode.UNAVAILABLE


class TestbedError(P4PerfError):
    """The testbed cannot be reached or cannot carry out a job."""

    __test__ = False  # not a test class, whatever its name looks like
    exit_code = ExitCode.UNAVAILABLE


class StorageError(P4PerfError):
    """The run directory cannot be written (disk full, no permission, locked by another process)."""

    exit_code = ExitCode.UNAVAILABLE


class BuildError(P4PerfError):
    """A generated program did not compile, or the target did not take it; ``log`` is what the tools said."""

    exit_code = ExitCode.UNAVAILABLE

    def __init__(self, message: str, *, log: str = "", key: str | None = None, hint: str | None = None) -> None:
        super().__init__(message, key=key, hint=hint)
        self.log = log


class MeasurementError(P4PerfError):
    """A measurement is not valid: wrong packets, no accepted window, unreadable output."""

    exit_code = ExitCode.INVALID_MEASUREMENT


class NoVerdictError(P4PerfError):
    """There is too little data for an answer."""

    exit_code = ExitCode.NO_VERDICT
