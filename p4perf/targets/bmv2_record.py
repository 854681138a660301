"""From what a trial of target bmv2 printed to the record of its windows.

A window is one segment of overload. Its cost is the CPU time that all threads of simple_switch took, over the packets
that they finished; they share one core, so that nothing runs beside them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from p4perf.errors import MeasurementError
from p4perf.targets.base import JobResult, TrialRecord
from p4perf.targets.outcome import ending
from p4perf.targets.windows import GATE_TOLERANCE, lower_mode, window_statistics

LOAD_VERSION = 1
"""Of the load generator, whose lines these are."""

PROGRAMS = ("program", "baseline")
"""In the order in which windows take turns."""

CHAIN_CORE_CYCLES = 12
DRIFT_TOLERANCE = 0.05

LEAST_BUSY = 0.9
"""Under overload the switch has the core all the time; a window in which it had less of it does not count."""


def trial_record(result: JobResult) -> TrialRecord:
    """The record of a trial, with its windows as all local targets have them.

    Raises:
        MeasurementError: the program computes something else than the oracle (key ``verify``), the switch does not
            take it or its entries (key ``refused``), or something died, hung or printed nonsense.
    """
    lines = list(_lines(result))
    for line in lines:
        if "error" in line:
            kind = str(line.get("kind", ""))
            raise MeasurementError(str(line["error"]), key=kind or None)
    if result.timed_out:
        raise MeasurementError(f"the program was stopped after {result.duration_s:.0f} s without a result")
    try:
        trial = next(line["trial"] for line in lines if "trial" in line)
        compile_ns = next(line["compile_ns"] for line in lines if "compile_ns" in line)
        about = {str(line["pipeline"]): line for line in lines if "pipeline" in line}
        resident = {name: int(line["resident_bytes"]) for name, line in about.items()}
        ready = next(line for line in lines if "ready" in line)
        answers = [line for line in lines if "segments" in line]
        if result.returncode != 0 or ready["load_version"] != LOAD_VERSION:
            raise MeasurementError(f"the load generator {ending(result.returncode)} or speaks another version")
        if len(answers) != trial["orders"]:
            raise MeasurementError(f"the load generator answered {len(answers)} of {trial['orders']} orders")
        windows = list(_windows(answers[trial["warmup"] :], float(ready["tsc_hz"])))
        record = {
            "harness_version": LOAD_VERSION,
            "programs": list(PROGRAMS),
            "tsc_hz": float(ready["tsc_hz"]),
            "chain_core_cycles": CHAIN_CORE_CYCLES,
            "gated": bool(trial["gated"]),
            "gate_ratio": _gate_ratio(windows, trial["gate_ratio"]),
            "gate_tolerance": GATE_TOLERANCE,
            "drift_tolerance": DRIFT_TOLERANCE,
            "realtime": all(all(answer["realtime"]) for answer in answers),
            "verified_packets": int(ready["verified_packets"]),
            "compile_ms": float(compile_ns) / 1e6,
            "load_ms": float(about["program"]["load_ms"]),
            "memory_bytes": max(0, resident["program"] - resident["baseline"]),
            "windows": {"n": len(windows), **{key: [w[key] for w in windows] for key in windows[0]}},
        }
    except (StopIteration, KeyError, IndexError, TypeError, ValueError) as error:
        tail = " / ".join((result.stderr or result.stdout).strip().splitlines()[-3:])[:300] or "no output"
        raise MeasurementError(f"the trial {ending(result.returncode)} and its output is no record: {tail}") from error
    window_statistics(record)
    return record


def _lines(result: JobResult) -> Iterator[Mapping[str, Any]]:
    for text in result.stdout.splitlines():
        if text.startswith("{"):
            try:
                line = json.loads(text)
            except json.JSONDecodeError as error:
                raise MeasurementError(f"the load generator printed damaged JSON: {error}") from error
            yield line


def _windows(answers: Sequence[Mapping[str, Any]], tsc_hz: float) -> Iterator[dict[str, float]]:
    """One window for each answer, programs in turn."""
    for number, answer in enumerate(answers):
        if answer["segments"] != 1:
            raise ValueError(f"{answer['segments']} segments in a window")

        def of(name: str, answer: Mapping[str, Any] = answer) -> float:
            return float(answer[name][0])

        finished = of("device_sent") - of("device_copies") + of("device_dropped")
        if finished <= 0 or of("device_busy_us") <= 0:
            raise MeasurementError(f"none of {of('sent'):.0f} packets was finished in a window")
        share = of("device_busy_us") / (of("sending_us") + of("draining_us"))
        yield {
            "program": number % len(PROGRAMS),
            "preemptions": of("switches") + of("device_switches") + (share < LEAST_BUSY),
            "tsc_per_packet": of("device_busy_us") * 1e-6 * tsc_hz / finished,
            "packets": finished,
            "busy_share": share,
            "sent": of("sent"),
            "returned": of("received"),
            **{f"{loop}_{when}_tsc": of(f"device_{loop}_{when}_tsc") for loop in ("chain", "mix") for when in _TIMES},
        }


_TIMES = ("before", "after")


def _gate_ratio(windows: Sequence[Mapping[str, float]], known: float | None) -> float:
    """The lowest ratio of the calibrators that is known: that of earlier trials, or of this one."""
    own = lower_mode(sorted(w[f"mix_{when}_tsc"] / w[f"chain_{when}_tsc"] for w in windows for when in _TIMES))
    return min(own, known) if known else own
