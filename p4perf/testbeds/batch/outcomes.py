"""Reads the files that the scripts of a batch left of a trial; every value is checked."""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Mapping, Sequence
from pathlib import Path

from p4perf.errors import DataError, Location
from p4perf.targets.base import JobResult, NodeFacts
from p4perf.testbeds.base import Role
from p4perf.testbeds.batch.base import JobOutcome
from p4perf.testbeds.batch.folder import ROLES
from p4perf.testbeds.local import facts_of
from p4perf.testbeds.processes import exit_status

MAX_BYTES = 64 << 20
"""Longer outputs are not read."""

STEPS = "steps.txt"
"""What was done, line by line."""

BUILD_LOG = "build.log"

_NAME = "[a-z0-9-]{1,80}"
_FORMS = {
    key: re.compile(form)
    for key, form in {
        "trial": f"({_NAME})",
        "role": "(dut|loadgen)",
        "started": r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00)",
        "step": f"({_NAME}) ([0-9]{{1,3}}) (yes|no) ([0-9]{{1,18}}) ([0-9]{{1,12}}) ([0-9]{{1,12}})",
        "said": f"({_NAME}) ([0-9]{{1,12}})",
        "left": f"({_NAME}) ([A-Za-z0-9._+-]{{1,200}}) ([0-9]{{1,12}})",
        "unbuilt": "([0-9]{1,12})",
        "met": f"({_NAME}) ([0-9]{{1,3}})",
        "ended": "([0-9]{1,18})",
    }.items()
}


class Missing(Exception):  # noqa: N818 - it is no failure of p4perf: the trial is measured again
    """A trial has no result that can be used; the message is a part of a sentence."""


def text_of(path: Path) -> str | None:
    """What a node wrote into a file; None if there is no regular one, or it is too large."""
    try:
        return _bytes({path.name: path}, path.name).decode(errors="replace")
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


def read_trial(name: str, node: str, files: Mapping[str, Path]) -> JobOutcome:
    """What a node wrote down of a trial.

    Args:
        files: where the files are that it left, by name.

    Raises:
        Missing: it did not come to the end of the trial, or what it left is not whole.
    """
    lines = [_line(line) for line in _bytes(files, STEPS).decode("ascii", errors="replace").splitlines()]
    once = {key: words[0] for key, words in lines}
    if once.get("trial") != name:
        raise Missing(f"its {STEPS} is not of it")
    if not {"role", "started", "ended"} <= once.keys():
        raise Missing(f"its {STEPS} is damaged")
    role = next(role for role in ROLES if role == once["role"])
    results: dict[str, JobResult] = {}
    said: dict[str, list[str]] = {}
    left: dict[tuple[str, str], str] = {}
    build_log, lost = None, ""
    for key, words in lines:
        if key == "step":
            out, err = (_whole(files, f"{words[0]}.{s}", n) for s, n in (("stdout", words[4]), ("stderr", words[5])))
            code, late = exit_status(int(words[1])), words[2] == "yes"
            results[words[0]] = JobResult(code, out, err, int(words[3]) / 1e9, late)
        elif key == "said":
            said[words[0]] = _whole(files, f"{words[0]}.said", words[1]).splitlines()
        elif key == "left":
            left[words[0], words[1]] = _whole(files, f"{words[0]}-{words[1]}", words[2])
        elif key == "unbuilt":
            build_log = _whole(files, BUILD_LOG, words[0])
        elif key == "met" and words[1] != "0":
            lost = words[0]
    duration_s = int(once["ended"]) / 1e9
    return JobOutcome(once["started"], duration_s, {role: node}, results, said, left, build_log, lost)


def _line(line: str) -> tuple[str, tuple[str, ...]]:
    key, _, rest = line.partition(" ")
    match = _FORMS[key].fullmatch(rest) if key in _FORMS else None
    if match is None:
        raise Missing(f"its {STEPS} is damaged")
    return key, match.groups()


def _whole(files: Mapping[str, Path], name: str, size: str) -> str:
    """A file of that size; empty ones are not uploaded."""
    data = _bytes(files, name) if int(size) else b""
    if len(data) != int(size):
        raise Missing(f"its {name} is cut off")
    return data.decode(errors="replace")


def _bytes(files: Mapping[str, Path], name: str) -> bytes:
    path = files.get(name)
    try:
        if path is None or not path.is_file():
            raise Missing(f"it has no {name}")
        if path.is_symlink() or path.stat().st_size > MAX_BYTES:
            raise Missing(f"its {name} is a link or larger than {MAX_BYTES >> 20} MiB")
        return path.read_bytes()
    except OSError as error:
        raise Missing(f"its {name} cannot be read: {error.strerror}") from error


def together(found: Mapping[str, JobOutcome | Missing], roles: Sequence[Role]) -> JobOutcome:
    """What became of a trial in which nodes of these roles have a part, from what each node has of it.

    Raises:
        Missing: one of the nodes has no result, or waited in vain for the other.
    """
    by_role = {role: each for each in found.values() if isinstance(each, JobOutcome) for role in each.nodes}
    waited = [f"node {each.nodes[role]} waited in vain at {each.lost}" for role, each in by_role.items() if each.lost]
    absent = [role for role in roles if role not in by_role]
    if absent or waited:
        missing = [f"node {node}, measuring{gone}" for node, gone in found.items() if isinstance(gone, Missing)]
        if len(missing) < len(absent):
            missing.append(f"measuring: the node with the role {absent[0]} has no run of it")
        raise Missing("; ".join([*missing, *waited]))
    parts = [by_role[role] for role in roles]
    return JobOutcome(
        started=parts[0].started,
        duration_s=max(part.duration_s for part in parts),
        nodes=dict(ChainMap(*(part.nodes for part in parts))),
        results=dict(ChainMap(*(part.results for part in parts))),
        said=dict(ChainMap(*(part.said for part in parts))),
        left=dict(ChainMap(*(part.left for part in parts))),
        build_log=next((part.build_log for part in parts if part.build_log is not None), None),
    )
