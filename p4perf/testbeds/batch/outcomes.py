"""Reads the files that the scripts of a batch left of a trial; every value is checked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from p4perf.errors import DataError, Location
from p4perf.targets.base import JobResult, NodeFacts
from p4perf.testbeds.base import Role
from p4perf.testbeds.batch.base import JobOutcome, LoadOutcome
from p4perf.testbeds.batch.folder import ROLES
from p4perf.testbeds.local import facts_of
from p4perf.testbeds.processes import exit_status

STDOUT, STDERR, OUTCOME = "trial.stdout", "trial.stderr", "trial.outcome"
MAX_BYTES = 64 << 20
"""Longer outputs are not read."""

STARTED = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00")
"""How times are written."""

_NUMBERS = {"exit": "[0-9]{1,3}", "duration_ns": "[0-9]{1,18}"}


class Missing(Exception):  # noqa: N818 - it is no failure of p4perf: the trial is measured again
    """A trial has no result that can be used; the message is a part of a sentence."""


def read_outcome(name: str, files: Mapping[str, Path]) -> JobOutcome:
    """What became of a trial.

    Args:
        files: where :data:`STDOUT`, :data:`STDERR` and :data:`OUTCOME` lie; those that are absent are not in it.

    Raises:
        Missing: it did not end, or what it left is not whole.
    """
    values = facts_of(part_bytes(files, OUTCOME).decode("ascii", errors="replace")).values
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


def _whole(files: Mapping[str, Path], part: str, values: Mapping[str, str]) -> str:
    data = part_bytes(files, part)
    if values.get(f"{part.partition('.')[2]}_bytes") != str(len(data)):
        raise Missing(f"its {part} is cut off")
    return data.decode(errors="replace")


def part_bytes(files: Mapping[str, Path], part: str) -> bytes:
    path = files.get(part)
    try:
        if path is None or not path.is_file():
            raise Missing(f"it has no {part}")
        if path.is_symlink() or path.stat().st_size > MAX_BYTES:
            raise Missing(f"its {part} is a link or larger than {MAX_BYTES >> 20} MiB")
        return path.read_bytes()
    except OSError as error:
        raise Missing(f"its {part} cannot be read: {error.strerror}") from error


def text_of(path: Path) -> str | None:
    """What a node wrote into a file; None if there is no regular one, or it is too large."""
    try:
        return part_bytes({path.name: path}, path.name).decode(errors="replace")
    except Missing:
        return None


def probed_facts(path: Path) -> NodeFacts:
    """The facts that the probe of a node printed into a file.

    Raises:
        DataError: it is not such a file.
    """
    facts = facts_of(text_of(path) or "")
    if not facts.text("machine"):
        raise DataError("is not what probe.sh prints", location=Location(str(path)))
    return facts


STEPS = "steps.txt"
"""What was done, line by line."""

BUILD_LOG = "build.log"

_NAME = "[a-z0-9-]{1,80}"
_FORMS = {
    key: re.compile(form)
    for key, form in {
        "trial": f"({_NAME})",
        "role": "(dut|loadgen)",
        "started": f"({STARTED.pattern})",
        "step": f"({_NAME}) ([0-9]{{1,3}}) (yes|no) ([0-9]{{1,18}}) ([0-9]{{1,12}}) ([0-9]{{1,12}})",
        "said": f"({_NAME}) ([0-9]{{1,12}})",
        "left": f"({_NAME}) ([A-Za-z0-9._+-]{{1,200}}) ([0-9]{{1,12}})",
        "unbuilt": "([0-9]{1,12})",
        "met": f"({_NAME}) ([0-9]{{1,3}})",
        "ended": "([0-9]{1,18})",
    }.items()
}


@dataclass(slots=True)
class RoleRecord:
    """What a node wrote down of a trial.

    ``lost`` is the meeting to which the other node did not come; empty if it came to all.
    """

    role: Role
    started: str
    duration_s: float
    results: dict[str, JobResult] = field(default_factory=dict)
    said: dict[str, tuple[str, ...]] = field(default_factory=dict)
    left: dict[tuple[str, str], str] = field(default_factory=dict)
    build_log: str | None = None
    lost: str = ""


def read_role(name: str, files: Mapping[str, Path]) -> RoleRecord:
    """What a node wrote down.

    Raises:
        Missing: it did not come to the end of the trial, or what it left is not whole.
    """
    lines = [_line(line) for line in part_bytes(files, STEPS).decode("ascii", errors="replace").splitlines()]
    once = {key: words[0] for key, words in lines}
    if once.get("trial") != name:
        raise Missing(f"its {STEPS} is not of it")
    if not {"role", "started", "ended"} <= once.keys():
        raise Missing(f"its {STEPS} is damaged")
    role = next(role for role in ROLES if role == once["role"])
    record = RoleRecord(role, once["started"], int(once["ended"]) / 1e9)
    for key, words in lines:
        if key == "step":
            out, err = (
                _whole_file(files, f"{words[0]}.{s}", n) for s, n in (("stdout", words[4]), ("stderr", words[5]))
            )
            code, late = exit_status(int(words[1])), words[2] == "yes"
            record.results[words[0]] = JobResult(code, out, err, int(words[3]) / 1e9, late)
        elif key == "said":
            record.said[words[0]] = tuple(_whole_file(files, f"{words[0]}.said", words[1]).splitlines())
        elif key == "left":
            record.left[words[0], words[1]] = _whole_file(files, f"{words[0]}-{words[1]}", words[2])
        elif key == "unbuilt":
            record.build_log = _whole_file(files, BUILD_LOG, words[0])
        elif key == "met" and words[1] != "0":
            record.lost = words[0]
    return record


def _line(line: str) -> tuple[str, tuple[str, ...]]:
    key, _, rest = line.partition(" ")
    match = _FORMS[key].fullmatch(rest) if key in _FORMS else None
    if match is None:
        raise Missing(f"its {STEPS} is damaged")
    return key, match.groups()


def _whole_file(files: Mapping[str, Path], name: str, size: str) -> str:
    """A file of that size; empty ones are not uploaded."""
    data = part_bytes(files, name) if int(size) else b""
    if len(data) != int(size):
        raise Missing(f"its {name} is cut off")
    return data.decode(errors="replace")


def together(found: Mapping[str, RoleRecord | Missing]) -> LoadOutcome:
    """What became of a trial.

    Raises:
        Missing: one of the nodes has no result, or waited in vain for the other.
    """
    records = {record.role: (node, record) for node, record in found.items() if isinstance(record, RoleRecord)}
    waited = [f"node {node} waited in vain at {record.lost}" for node, record in records.values() if record.lost]
    missing = [f"node {node}, measuring{gone}" for node, gone in found.items() if isinstance(gone, Missing)]
    if len(records) + len(missing) < len(ROLES):
        absent = [role for role in ROLES if role not in records]
        missing.append(f"measuring: the node with the role {absent[0]} has no run of it")
    if missing or waited or len(records) < len(ROLES):
        raise Missing("; ".join([*missing, *waited]) or "measuring: both nodes had the same role")
    record = records["dut"][1]
    other = records["loadgen"][1]
    return LoadOutcome(
        started=record.started,
        nodes={role: node for role, (node, _) in records.items()},
        results={**other.results, **record.results},
        said=record.said,
        left=other.left,
        duration_s=max(record.duration_s, other.duration_s),
        build_log=record.build_log if other.build_log is None else other.build_log,
    )
