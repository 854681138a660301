"""A third-party program, measured as it is: no sweep, no oracle, one table of numbers."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from p4perf.errors import BuildError, DataError, MeasurementError, UsageError
from p4perf.experiment.bench import measured_gate_ratio
from p4perf.experiment.evaluate import plain
from p4perf.experiment.record import open_target, open_testbed
from p4perf.experiment.session import require_usable
from p4perf.results.files import dated_name, json_text, new_folder, write_atomically, write_text_atomically
from p4perf.results.table import summarise
from p4perf.targets.base import TrialOptions, TrialSummary
from p4perf.targets.dpdk_swx import DpdkSwxTarget
from p4perf.targets.dpdk_swx_program import VaryingBytes, plan_specification, trial_of_specification

_SPECIFICATION = "program.spec"

BROADCAST = bytes.fromhex("ffffffffffff02000000000188b5").ljust(60, b"\0")
"""An Ethernet frame without content, and without FCS: what is sent where no frame is named."""

ATTEMPTS = 5
"""Most starts for every one that is wanted."""


@dataclass(frozen=True, slots=True)
class ProgramInput:
    """What is measured: the text of a specification, its entries, and the packets."""

    name: str
    specification: str
    frame: bytes
    entries: str = ""
    varying: VaryingBytes | None = None
    expectation: bytes | None = None


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """Median, interval and starts of every metric, and the folder with the raw records."""

    rows: tuple[dict[str, Any], ...]
    folder: Path
    accepted: int
    tried: int
    flags: tuple[str, ...]


def measure_program(
    given: ProgramInput,
    target: str,
    testbed: str,
    parent: Path,
    *,
    repetitions: int = 3,
    mode: str = "gated",
    told: Callable[[str], object] = lambda _: None,
) -> ProgramResult:
    """Measure a specification of an SWX pipeline in several process starts, and keep everything in a new folder.

    Raises:
        UsageError: the target runs no such programs, or program, entries and frame do not go together.
        DataError: SWX refuses the specification; the message is its own, with the line.
        BuildError: the compiler refuses what SWX generates.
        MeasurementError: no start was accepted, or the program computes something else than was expected.
    """
    device, place = open_target(target), open_testbed(testbed)
    if not isinstance(device, DpdkSwxTarget):
        raise UsageError(f"target {target} runs no .spec", hint="dpdk-swx does, and dpdk-swx:interpreter")
    facts = require_usable(device, place)
    plan = plan_specification(
        device,
        given.specification,
        given.frame,
        facts,
        entries=given.entries,
        varying=given.varying,
        expectation=given.expectation,
    )
    hugepages = device.use_hugepages(plan.memory_bytes, facts)
    records: list[dict[str, Any]] = []
    summaries: list[TrialSummary] = []
    failure = ""
    with tempfile.TemporaryDirectory(prefix="p4perf-") as work:
        ratio = measured_gate_ratio(device, place, Path(work)) if mode == "gated" else None
        for attempt in range(repetitions * ATTEMPTS):
            options = TrialOptions(mode=mode, seed=1000 + attempt, gate_ratio=ratio, hugepages=hugepages)
            try:
                record = dict(device.parse(place.run(trial_of_specification(plan, options, facts), Path(work))))
            except BuildError as error:
                if _SPECIFICATION in error.message:
                    raise DataError(error.message.partition(": ")[2], hint=error.hint) from error
                raise
            except MeasurementError as error:
                if error.key in ("spec", "usage"):
                    raise DataError(error.message, hint=error.hint) from error
                if error.key == "verify":
                    raise
                failure = error.message
                told(f"start {attempt + 1} failed: {failure}")
                continue
            records.append(record)
            summaries.append(device.summarise(record, ratio))
            if sum(s.accepted for s in summaries) >= repetitions:
                break
    if not any(s.accepted for s in summaries):
        raise MeasurementError(failure or "no start was accepted: the machine was disturbed")
    values = [
        ("program", n, m.metric, m.value, m.unit, s.accepted, ",".join(s.flags), 0)
        for n, s in enumerate(summaries)
        for m in s.metrics
    ]
    columns = ["point", "attempt", "metric", "value", "unit", "accepted", "flags", "point_index"]
    table = pd.DataFrame(values, columns=columns)
    kept = ("median", "low", "high", "unit", "n")
    rows = []
    for metric in dict.fromkeys(table["metric"]):
        row = summarise(table, metric, ["point_index"]).iloc[0]
        rows.append({"metric": metric, **{key: plain(row[key]) for key in kept}})
    manifest = {
        "program": given.name,
        "target": device.label,
        "testbed": place.label,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "key": plan.key,
        "mode": mode,
        "gate_ratio": ratio,
        "hugepages": hugepages,
        "frame": given.frame.hex(),
        "node": dict(facts.values),
        "metrics": rows,
    }

    def fill(folder: Path) -> None:
        write_text_atomically(folder / "program.spec", given.specification)
        write_text_atomically(folder / "entries.txt", given.entries)
        write_text_atomically(folder / "manifest.json", json_text(manifest))
        write_atomically(folder / "raw.jsonl", (json.dumps(r).encode() + b"\n" for r in records))

    name = dated_name((f"program-{given.name}", device.label, place.label), datetime.now(UTC))
    folder = new_folder(parent / name, fill)
    flags = tuple(sorted({flag for s in summaries if s.accepted for flag in s.flags}))
    return ProgramResult(tuple(rows), folder, sum(s.accepted for s in summaries), len(summaries), flags)
