"""A user's own program, measured as it is: a specification for SWX, and an operator in C as an experiment."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from p4perf.errors import BuildError, DataError, Location, MeasurementError, UsageError
from p4perf.experiment.bench import measured_gate_ratio, open_target, open_testbed
from p4perf.experiment.evaluate import plain
from p4perf.experiment.session import require_usable
from p4perf.generators.c.dpdk import OWN_OPERATOR
from p4perf.programs.components.operator import MAX_CODE_BYTES
from p4perf.programs.operators import OPERATORS
from p4perf.results.files import dated_name, json_text, new_folder, read_text, write_atomically, write_text_atomically
from p4perf.results.table import summarise
from p4perf.specs import Experiment, load_experiment
from p4perf.targets.base import BuildPlan, TrialOptions, TrialSummary
from p4perf.targets.dpdk_swx import DpdkSwxTarget
from p4perf.targets.dpdk_swx_program import VaryingBytes, plan_specification, trial_of_specification
from p4perf.testbeds.base import Testbed

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
        ratio = measured_gate_ratio(device, place, Path(work))
        for attempt in range(repetitions * ATTEMPTS):
            options = TrialOptions(seed=1000 + attempt, gate_ratio=ratio, hugepages=hugepages)
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
        "mode": "gated",
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


SMALLEST, LARGEST = 64, 2048

SIGNATURE = "uint64_t operate(uint8_t *packet, uint32_t length)"

_ERROR = re.compile(rf"^{re.escape(OWN_OPERATOR)}:(\d+):(?:(\d+):)? (?:fatal )?error: (.*)$", re.MULTILINE)
_UNDEFINED = "undefined reference to `operate'"
_TWICE = re.compile(r"multiple definition of [`‘']?([A-Za-z_][A-Za-z0-9_]*)")


def read_code(path: Path) -> str:
    where = Location(str(path))
    text = read_text(path)
    if len(text.encode()) > MAX_CODE_BYTES:
        raise DataError(f"is larger than {MAX_CODE_BYTES} B, the limit for an operator", location=where)
    text = text.replace("\r\n", "\n")
    wrong = next((n for n, c in enumerate(text) if not (c.isprintable() or c in "\n\t\f\v")), None)
    if wrong is not None:
        line = text.count("\n", 0, wrong) + 1
        raise DataError(f"has a control character ({text[wrong]!a})", location=Location(str(path), line))
    if not text.strip():
        raise DataError("is empty", location=where, hint=f"define {SIGNATURE}")
    return text


def operator_name(path: Path) -> str:
    """A name for the operator of a file: its stem in small letters, digits and underscores."""
    name = re.sub(r"[^a-z0-9]+", "_", path.stem.lower()).strip("_")[:60]
    return name if name[:1].isalpha() and name not in OPERATORS else f"own_{name}".rstrip("_")


def operator_experiment(path: Path, sizes: Sequence[int], repetitions: int | None = None) -> Experiment:
    """The experiment that measures the operator of a C file on packets of some sizes.

    Raises:
        UsageError: a size is out of bounds, or there twice.
    """
    for size in sizes:
        if not SMALLEST <= size <= LARGEST:
            raise UsageError(f"--sizes: {size} is not within {SMALLEST} to {LARGEST} bytes")
    if len(set(sizes)) < len(sizes) or not sizes:
        raise UsageError("--sizes: every size once", hint="for example --sizes 64,128,256")
    code, name = read_code(path), operator_name(path)
    changes: list[tuple[str, object]] = [
        ("name", f"operator/{name.replace('_', '-')}"),
        ("title", f"The operator of {path.name} over packet size"),
        ("sweep.operator", [name]),
        ("sweep.packet_size", sorted(sizes)),
        ("program.parameters.code", code),
    ]
    if repetitions is not None:
        changes.append(("trials.repetitions", repetitions))
    overrides = [
        (key, yaml.safe_dump(value, default_style='"' if isinstance(value, str) else None, width=10**9))
        for key, value in changes
    ]
    return load_experiment("operator/all", overrides=overrides)


def build_operator(path: Path, plan: BuildPlan, testbed: Testbed) -> None:
    """Compile the operator, so that its errors are reported before anything else happens.

    Raises:
        DataError: the compiler refuses it, with its message, line and column; or it does not define ``operate``.
    """
    try:
        testbed.build(plan)
    except BuildError as error:
        raise explained(error, path) from error


def explained(error: BuildError, path: Path) -> BuildError | DataError:
    """The error of the user's operator that made a build fail; the failure itself if the operator is not to blame."""
    if (found := _ERROR.search(error.log)) is not None:
        line, column, message = found.groups()
        lines = read_code(path).split("\n")
        text = lines[int(line) - 1] if int(line) <= len(lines) else None
        where = Location(str(path), int(line), int(column) if column else None, text)
        return DataError(f"the compiler says: {message}", location=where, hint=error.hint)
    if _UNDEFINED in error.log:
        return DataError("defines no function operate", location=Location(str(path)), hint=f"define {SIGNATURE}")
    if (twice := _TWICE.search(error.log)) is not None:
        return DataError(
            f"defines {twice.group(1)}, which is a name of the harness",
            location=Location(str(path)),
            hint="declare the functions and variables of your own as static",
        )
    return error
