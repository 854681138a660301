"""What the tools of the NFP print, as plain data: counters, and what nfp4build says of its work.

rtecli prints lists and dictionaries as Python does (``pprint``), or as JSON with ``--json``; names of counters are
those of the runtime. What cannot be read is kept as text, and no number is made up.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from typing import Any

from p4perf.targets import nfp4000_service as steps
from p4perf.targets.base import JobResult

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
    """What the steps around a trial say.

    Returns:
        ``counters`` (of the runtime) and ``interfaces`` (of the driver, by the name of the node file), each with
        ``before``, ``after`` and ``difference``; ``drops``: the differences of all that count drops or errors;
        ``firmware``, see :func:`firmware_of`.
    """
    found: dict[str, Any] = {}
    drops: dict[str, int] = {}
    before, after = (_read(results, name, counters_of) for name in (steps.COUNTERS_BEFORE, steps.COUNTERS_AFTER))
    if before is not None or after is not None:
        found["counters"] = _compared(before, after)
        drops |= _of_drops(found["counters"].get("difference", {}))
    earlier, later = (
        _read(results, name, interfaces_of) or {} for name in (steps.INTERFACES_BEFORE, steps.INTERFACES_AFTER)
    )
    interfaces = {name: _compared(earlier.get(name), later.get(name)) for name in sorted({*earlier, *later})}
    if interfaces:
        found["interfaces"] = interfaces
    for name, compared in interfaces.items():
        drops |= {f"{name}.{counter}": n for counter, n in _of_drops(compared.get("difference", {})).items()}
    found["drops"] = drops
    if (firmware := _read(results, steps.BUILT, firmware_of)) is not None:
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
    """The system counters of ``rtecli counters list-system``: name and value of each; ``unread``: text that is none."""
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
    """What nfp4build left: literally what its files say.

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
