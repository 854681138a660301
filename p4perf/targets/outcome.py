"""What became of a program that a target ran: its line of JSON, or why there is none."""

from __future__ import annotations

import json
import signal

from p4perf.errors import MeasurementError
from p4perf.targets.base import JobResult, TrialRecord
from p4perf.targets.windows import window_statistics

_SIGNALS = {int(s): s.name for s in signal.Signals}


def ending(returncode: int) -> str:
    """How a process ended, in words: ``ended with status 1``, ``died of signal 11 (SIGSEGV)``."""
    if returncode >= 0:
        return f"ended with status {returncode}"
    name = _SIGNALS.get(-returncode)
    return f"died of signal {-returncode}{f' ({name})' if name else ''}"


def harness_record(result: JobResult, version: int) -> TrialRecord:
    """The record that a harness printed as the last line that begins with a brace."""
    lines = [line for line in result.stdout.splitlines() if line.startswith("{")]
    if result.timed_out:
        raise MeasurementError(f"the program was stopped after {result.duration_s:.0f} s without a result")
    if not lines:
        tail = " / ".join((result.stderr or result.stdout).strip().splitlines()[-3:]) or "no output"
        raise MeasurementError(f"the program {ending(result.returncode)} and left no result: {tail}")
    try:
        record = json.loads(lines[-1])
    except json.JSONDecodeError as error:
        raise MeasurementError(f"the program printed damaged JSON: {error}") from error
    if "error" in record:
        kind = str(record.get("kind", ""))
        raise MeasurementError(str(record["error"]), key="verify" if kind == "verifier" else kind or None)
    if result.returncode != 0 or record.get("harness_version") != version:
        raise MeasurementError(f"the program {ending(result.returncode)} or speaks another version")
    window_statistics(record)
    return dict(record)
