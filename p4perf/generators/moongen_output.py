"""What a generated MoonGen script leaves: lines for p4perf, counters, histogram. Exit codes play no part in it.

MoonGen ends with 0 though a task of it failed, and goes on without links, so success is what the script says at its
very end (:data:`~p4perf.generators.moongen.COMPLETION_MARKER`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from p4perf.errors import DataError, MeasurementError
from p4perf.generators.moongen import COMPLETION_MARKER, TOKEN
from p4perf.generators.moongen_counters import Counter, parse_counters

_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_FATAL = re.compile(r"\[FATAL\]|Lua error")
_DOWN = re.compile(r"Device \d+ \(.*\) is DOWN")
_PAIR = re.compile(r"([a-z_]+)=(\S+)")
_LATENCY = re.compile(r"([0-9.eE+]{1,40}),([0-9]{1,18})")
_TAIL = 3


@dataclass(frozen=True, slots=True)
class ScriptOutput:
    """What a script measured.

    Args:
        sent, received: packets in the measured time, probes among them, counted after they had drained.
        send_rate_mpps, receive_rate_mpps: means without the first and the last second [Mpps].
        probes_sent, probes_lost: of the measurement of latency; 0 without one.
        latencies_ns: latency in ns and how often it was seen, ascending; empty without one.
    """

    sent: int
    received: int
    send_rate_mpps: float
    receive_rate_mpps: float
    probes_sent: int = 0
    probes_lost: int = 0
    latencies_ns: tuple[tuple[float, int], ...] = ()


def without_colours(text: str) -> str:
    """The text without the sequences that colour it on a terminal."""
    return _COLOUR.sub("", text)


def read_output(stdout: str, files: Mapping[str, str], status: int) -> ScriptOutput:
    """Read what a run of ``max-load.lua`` or ``latency.lua`` printed and wrote.

    Args:
        stdout: what MoonGen printed, colours and all.
        files: the texts of its files that are there, by name: ``*-tx.csv``, ``*-rx.csv``, ``histogram.csv``.
        status: exit code, for messages only.

    Raises:
        MeasurementError: a task failed, a link is down, the script did not come to its end, or a file is missing,
            empty or damaged.
    """
    lines = [line.strip() for line in without_colours(stdout).splitlines() if line.strip()]
    for pattern, what in ((_FATAL, "MoonGen failed"), (_DOWN, "a link of MoonGen is down")):
        if found := next((line for line in lines if pattern.search(line)), None):
            raise MeasurementError(f"{what}: {found}")
    if COMPLETION_MARKER not in lines:
        said = " / ".join(lines[-_TAIL:]) or "no output"
        raise MeasurementError(f"MoonGen ended with status {status} before its script was complete: {said}")
    packets = _said(lines, "packets")
    probes = _said(lines, "probes") if any(line.startswith(f"{TOKEN} probes ") for line in lines) else {}
    return ScriptOutput(
        sent=_whole(packets, "sent"),
        received=_whole(packets, "received"),
        send_rate_mpps=_rate(files, "tx"),
        receive_rate_mpps=_rate(files, "rx"),
        probes_sent=_whole(probes, "sent") if probes else 0,
        probes_lost=_whole(probes, "lost") if probes else 0,
        latencies_ns=_latencies(files["histogram.csv"]) if probes and "histogram.csv" in files else (),
    )


def _said(lines: list[str], what: str) -> dict[str, str]:
    """The values of the line ``P4PERF what key=value ...``."""
    start = f"{TOKEN} {what} "
    line = next((line for line in lines if line.startswith(start)), None)
    if line is None:
        raise MeasurementError(f"MoonGen did not say its {what}")
    return dict(_PAIR.findall(line.removeprefix(start)))


def _whole(said: Mapping[str, str], key: str) -> int:
    text = said.get(key, "")
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise MeasurementError(f"MoonGen said {key}={text[:40]!r}, which is no number of packets")
    return int(text)


def _rate(files: Mapping[str, str], direction: str) -> float:
    counter = _counter(files, direction)
    if counter.rate_mpps is None:
        raise MeasurementError(f"the {direction} counter of MoonGen has too few rows for a mean rate")
    return counter.rate_mpps


def _counter(files: Mapping[str, str], direction: str) -> Counter:
    name = next((name for name in files if name.endswith(f"-{direction}.csv")), None)
    if name is None:
        raise MeasurementError(f"MoonGen left no file of its {direction} counter")
    try:
        counters = parse_counters(without_colours(files[name]), name)
    except DataError as error:
        raise MeasurementError(f"{error.location}: {error.message}") from error
    if len(counters) != 1:
        what = "is empty: MoonGen ended before its first row" if not counters else "has several counters"
        raise MeasurementError(f"{name} {what}")
    return counters[0]


def _latencies(text: str) -> tuple[tuple[float, int], ...]:
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        match = _LATENCY.fullmatch(line.strip())
        if match is None:
            raise MeasurementError(f"histogram.csv:{number}: {line[:40]!r} is not latency,count")
        found.append((float(match[1]), int(match[2])))
    return tuple(sorted(found))
