"""How an Agilio CX starts with a design, is watched, and stops again: steps with rtecli, and what they print.

There is no process of ours: the runtime (RTE, service ``nfp-sdk6-rte``) loads the firmware, and the card forwards by
itself then. The steps are verbs of ``harness/nfp4000.sh``.

rtecli prints lists and dictionaries as Python does (``pprint``), or as JSON with ``--json``; names of counters are
those of the runtime. What cannot be read is kept as text, and no number is made up.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final

from p4perf.errors import MeasurementError
from p4perf.targets.base import BuildPlan, Job, JobResult, NodeFacts
from p4perf.targets.service import Service, Step, step_failed

LOAD_TIMEOUT_S = 900.0
"""How long loading a design without rules may take, in seconds; it takes minutes."""

RULE_S = 0.01
"""How much longer it may take for each rule, in seconds."""

STEP_TIMEOUT_S = 120.0
"""How long any other step may take, in seconds."""

SETTLE_S = 2.0
"""Pause before the first packet, in seconds: the MAC blocks are enabled last."""

SCRIPT = "nfp4000.sh"
RULES = "rules.p4cfg"

LOG = "/var/log/nfp-sdk6-rte.log"
"""The log of the runtime."""

REACHING: Final = "asking the runtime of the card (rtecli status)"
LOADING: Final = "loading the design (rtecli design-load)"
UNLOADING: Final = "unloading the design (rtecli design-unload)"
PORTS: Final = "looking for the ports of the card (rtecli ports list)"
CLEARING: Final = "clearing the counters (rtecli counters clear-all-system)"
COUNTERS_BEFORE: Final = "counters before"
COUNTERS_AFTER: Final = "counters after"
INTERFACES_BEFORE: Final = "interfaces before"
INTERFACES_AFTER: Final = "interfaces after"
BUILT: Final = "what was built"

_ADDRESS = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")

_START = f"start it: systemctl start nfp-sdk6-rte; its log is {LOG}"

_KNOWN: tuple[tuple[str, str, str], ...] = (
    (
        "incompatible firmware",
        "the card holds a firmware that the runtime does not know",
        "unload it with nfp-nffw unload -n 0, then start the runtime: systemctl start nfp-sdk6-rte",
    ),
    (
        r"load\w* (is )?(already )?in progress|already loading|\bbusy\b",
        "somebody else is loading a design",
        "wait until rtecli status reports that it is loaded, and leave the card to one user at a time",
    ),
    (r"connection refused|could not connect|cannot connect|ttransport", "the runtime does not answer", _START),
)
"""Patterns of failures, their meaning, and what to do. None of them is the fault of the point."""


@dataclass(frozen=True, slots=True)
class CardDesign:
    """What the card is to run: firmware, rules, and the physical ports that it sends by."""

    build: BuildPlan
    rules: bytes | None
    rule_count: int
    ports: Sequence[int]


def service_of(design: CardDesign, facts: NodeFacts) -> Service:
    rtecli = facts.text("tool_rtecli", "rtecli")
    script = script_text()
    carried = {SCRIPT: script} if design.rules is None else {SCRIPT: script, RULES: design.rules}

    def step(what: str, *words: str, limit_s: float = STEP_TIMEOUT_S, build: BuildPlan | None = None) -> Step:
        named = carried if what == LOADING else {SCRIPT: script}
        return Step(what, Job(("sh", f"{{folder}}/{SCRIPT}", *words), limit_s, build, named))

    def counters(what: str) -> Step:
        return Step(what, Job((rtecli, "counters", "list-system"), STEP_TIMEOUT_S))

    rules = () if design.rules is None else (f"{{folder}}/{RULES}",)
    ports = [f"p{port}" for port in design.ports]
    interfaces = _interfaces(facts)
    before, after = [counters(COUNTERS_BEFORE)], [counters(COUNTERS_AFTER)]
    if interfaces:
        before.append(step(INTERFACES_BEFORE, "interfaces", "/sys", *interfaces))
        after.append(step(INTERFACES_AFTER, "interfaces", "/sys", *interfaces))
    limit_s = LOAD_TIMEOUT_S + RULE_S * design.rule_count
    unload = step(UNLOADING, "unload", rtecli, limit_s=LOAD_TIMEOUT_S)
    return Service(
        prepare=(
            step(REACHING, "status", rtecli, LOG),
            unload,
            step(LOADING, "load", rtecli, "{build}", *rules, limit_s=limit_s, build=design.build),
            *([step(PORTS, "ports", rtecli, *ports)] if ports else []),
            Step(CLEARING, Job((rtecli, "counters", "clear-all-system"), STEP_TIMEOUT_S)),
        ),
        settle_s=SETTLE_S,
        before=(step(BUILT, "built", "{build}", build=design.build), *reversed(before)),
        after=tuple(after),
        release=(unload,),
    )


def script_text() -> bytes:
    return (files("p4perf.targets") / "harness" / SCRIPT).read_bytes()


def _interfaces(facts: NodeFacts) -> list[str]:
    found = []
    for key, address in sorted(facts.values.items()):
        name = key.removeprefix("interface_")
        if name != key and _NAME.fullmatch(name) and _ADDRESS.fullmatch(address):
            found.append(f"{name}={address}")
    return found


def judge(step: Step, result: JobResult) -> None:
    """Judge a step by its status and by ``error:`` on stderr."""
    complaint = re.search(r"^error:", result.stderr, re.MULTILINE)
    if not result.timed_out and result.returncode == 0 and complaint is None:
        return
    said = f"{result.stderr}\n{result.stdout}"
    for pattern, meaning, hint in _KNOWN:
        if re.search(pattern, said, re.IGNORECASE):
            raise MeasurementError(step_failed(step, result, meaning).message, hint=hint)
    if step.what not in (BUILT, INTERFACES_BEFORE, INTERFACES_AFTER) and (result.timed_out or result.returncode == 124):
        why = "" if result.timed_out else "the runtime does not answer"
        raise MeasurementError(step_failed(step, result, why).message, hint=_START)
    why = "it complained" if result.returncode == 0 else ""
    message = step_failed(step, result, why).message
    if step.what == REACHING:
        raise MeasurementError(message, hint=_START)
    if step.what in (LOADING, PORTS):
        raise MeasurementError(message, key="refused", hint=f"the log of the runtime, {LOG}, may hold more details")
    raise MeasurementError(message)


MAX_TEXT_BYTES = 1 << 20
"""Longest output of rtecli that is read."""

KEPT_CHARACTERS = 2000
"""How much of an output that cannot be read is kept."""

_LONG = re.compile(r"(?<=[\s:\[(,])(-?\d+)L(?=\s*[,}\])])")
"""An integer as Python 2 writes it."""

_STATISTIC = re.compile(r"\s*(\S[^:]*?)\s*:\s*(\d+)\s*")
_DROPS = re.compile(r"drop|discard|lost|loss|overflow|no_?buf|error", re.IGNORECASE)

Counters = Mapping[str, int]


def evidence_of(results: Mapping[str, JobResult]) -> Mapping[str, Any]:
    """Evidence of the steps around a trial.

    Returns:
        ``counters`` (of the runtime) and ``interfaces`` (of the driver, by the name of the node file), each with
        ``before``, ``after`` and ``difference``; ``drops``: the differences of all that count drops or errors;
        ``firmware``, see :func:`firmware_of`.
    """
    found: dict[str, Any] = {}
    drops: dict[str, int] = {}
    before, after = (_read(results, name, counters_of) for name in (COUNTERS_BEFORE, COUNTERS_AFTER))
    if before is not None or after is not None:
        found["counters"] = _compared(before, after)
        drops |= _of_drops(found["counters"].get("difference", {}))
    earlier, later = (_read(results, name, interfaces_of) or {} for name in (INTERFACES_BEFORE, INTERFACES_AFTER))
    interfaces = {name: _compared(earlier.get(name), later.get(name)) for name in sorted({*earlier, *later})}
    if interfaces:
        found["interfaces"] = interfaces
    for name, compared in interfaces.items():
        drops |= {f"{name}.{counter}": n for counter, n in _of_drops(compared.get("difference", {})).items()}
    found["drops"] = drops
    if (firmware := _read(results, BUILT, firmware_of)) is not None:
        found["firmware"] = firmware
    return found


def _read(results: Mapping[str, JobResult], name: str, reader: Any) -> Any:
    return reader(results[name].stdout) if name in results else None


def _compared(before: Counters | None, after: Counters | None) -> dict[str, Any]:
    known = {name: counts for name, counts in (("before", before), ("after", after)) if counts is not None}
    if before is None or after is None:
        return known
    numbers = {n: after[n] - before[n] for n in after if _is_number(after[n]) and _is_number(before.get(n))}
    return {**known, "difference": numbers}


def _of_drops(difference: Counters) -> dict[str, int]:
    return {name: n for name, n in difference.items() if _DROPS.search(name)}


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def plain(text: str) -> Any:
    """What rtecli printed: JSON, or a literal of Python 2 or 3; None if it is neither."""
    if len(text) > MAX_TEXT_BYTES:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(_LONG.sub(r"\1", text.strip()))
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None


def counters_of(text: str) -> Mapping[str, Any]:
    """System counters of ``rtecli counters list-system``, name and value of each; ``unread``: unreadable text."""
    rows = plain(text)
    if isinstance(rows, dict):
        rows = [{"name": name, "value": value} for name, value in rows.items()]
    if not isinstance(rows, list):
        return {"unread": text[:KEPT_CHARACTERS]}
    found: dict[str, Any] = {}
    for row in rows:
        name, value = (row.get("name"), row.get("value")) if isinstance(row, dict) else (None, None)
        if isinstance(name, str) and _is_number(value):
            found[name] = value
    return found if found or not rows else {"unread": text[:KEPT_CHARACTERS]}


def interfaces_of(text: str) -> dict[str, dict[str, int]]:
    """What ``ethtool -S`` prints for each interface."""
    found: dict[str, dict[str, int]] = {}
    current: dict[str, int] = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 3 and words[0] == "interface":
            current = found.setdefault(words[1], {})
        elif match := _STATISTIC.fullmatch(line):
            current[match[1]] = int(match[2])
    return found


def firmware_of(text: str) -> dict[str, Any]:
    """The literal content of the files that nfp4build left.

    Returns:
        ``firmware_bytes``, ``compile_ms``; of ``build_info.json``: ``sku``, ``worker_mes`` (how many microengines run
        the program) and ``reduced_thread_usage``; of ``pif_design.json``: for each table ``max_entries`` (one of them
        is the default rule) and ``data_bytes`` (action data of one entry). What is not there is left out.
    """
    lines = dict(line.partition(" ")[::2] for line in text.splitlines())
    found: dict[str, Any] = {
        name: int(lines[name]) for name in ("firmware_bytes", "compile_ms") if lines.get(name, "").strip().isdigit()
    }
    info = _object(lines.get("build_info", ""))
    if isinstance(info.get("sku"), str):
        found["sku"] = info["sku"]
    if isinstance(info.get("worker_mes"), list):
        found["worker_mes"] = len(info["worker_mes"])
    if isinstance(info.get("reduced_thread_usage"), bool):
        found["reduced_thread_usage"] = info["reduced_thread_usage"]
    vendor = _object(lines.get("pif_design", "")).get("vendor")
    tables = vendor.get("tables_info") if isinstance(vendor, dict) else None
    if isinstance(tables, dict):
        found["tables"] = {str(name): _table(table) for name, table in tables.items() if isinstance(table, dict)}
    return found


def _table(table: Mapping[str, Any]) -> dict[str, int]:
    numbers = {"max_entries": table.get("max_entries"), "data_bytes": table.get("data_size")}
    return {name: value for name, value in numbers.items() if isinstance(value, int) and _is_number(value)}


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
