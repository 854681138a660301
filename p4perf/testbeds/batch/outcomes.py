"""Reading what ``trial.sh`` left of a trial, on whatever way it came here: nothing in it is believed."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from pathlib import Path

from p4perf.targets.base import JobResult
from p4perf.testbeds.batch.base import JobOutcome

STDOUT, STDERR, OUTCOME = "trial.stdout", "trial.stderr", "trial.outcome"
MAX_BYTES = 64 << 20
"""Longer outputs are not read."""

_SIGNALS = frozenset(map(int, signal.Signals))
STARTED = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00")
"""How times are written."""

_NUMBERS = {"exit": "[0-9]{1,3}", "duration_ns": "[0-9]{1,18}"}


class Missing(Exception):  # noqa: N818 - it is no failure of p4perf: the trial is measured again
    """A trial has no result that can be used; ``why`` is a part of a sentence."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


def read_outcome(name: str, files: Mapping[str, Path]) -> JobOutcome:
    """What became of a trial.

    Args:
        name: of the trial.
        files: where :data:`STDOUT`, :data:`STDERR` and :data:`OUTCOME` lie; those that are absent are not in it.

    Raises:
        Missing: it did not end, or what it left is not whole.
    """
    values = _values(part_bytes(files, OUTCOME))
    if values.get("trial") != name:
        raise Missing(f"its {OUTCOME} is not of it")
    started = values.get("started", "")
    if STARTED.fullmatch(started) is None:
        raise Missing(f"its {OUTCOME} is damaged")
    out, err = (_whole(files, part, values) for part in (STDOUT, STDERR))
    if values.get("build") == "failed":
        return JobOutcome(JobResult(1, "", err, 0.0), started, build_log=err)
    numbers = {}
    for key, form in _NUMBERS.items():
        if re.fullmatch(form, values.get(key, "")) is None:
            raise Missing(f"its {OUTCOME} is damaged")
        numbers[key] = int(values[key])
    code = exit_status(numbers["exit"])
    late = values.get("late") == "yes"
    return JobOutcome(JobResult(code, out, err, numbers["duration_ns"] / 1e9, late), started)


def exit_status(code: int) -> int:
    """The status of a command that a shell said: of one that died of a signal the negative number of that."""
    return 128 - code if code - 128 in _SIGNALS else code


def _values(data: bytes) -> dict[str, str]:
    pairs = (line.partition("=") for line in data.decode("ascii", errors="replace").splitlines())
    return {key: value for key, equals, value in pairs if equals}


def _whole(files: Mapping[str, Path], part: str, values: Mapping[str, str]) -> str:
    data = part_bytes(files, part)
    if values.get(f"{part.partition('.')[2]}_bytes") != str(len(data)):
        raise Missing(f"its {part} is cut off")
    return data.decode(errors="replace")


def part_bytes(files: Mapping[str, Path], part: str) -> bytes:
    """The content of a file.

    Raises:
        Missing: it is not there, or is none that is read.
    """
    path = files.get(part)
    try:
        if path is None or not path.is_file():
            raise Missing(f"it has no {part}")
        if path.is_symlink() or path.stat().st_size > MAX_BYTES:
            raise Missing(f"its {part} is a link or larger than {MAX_BYTES >> 20} MiB")
        return path.read_bytes()
    except OSError as error:
        raise Missing(f"its {part} cannot be read: {error.strerror}") from error


def facts_text(path: Path) -> str | None:
    """What the probe of a node printed, None if it did not yet or the file is none."""
    try:
        if not path.is_file() or path.is_symlink() or path.stat().st_size > MAX_BYTES:
            return None
        return path.read_bytes().decode(errors="replace")
    except OSError:
        return None
