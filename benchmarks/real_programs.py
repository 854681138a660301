"""What will whole programs cost, and what do they cost? The example programs, predicted and then measured.

Every program of ``examples/programs`` is predicted by each cost model of ``--target``: on ``dpdk-swx`` (compiled and
interpreted) from what p4c-dpdk makes of it, on other targets from the JSON of p4c-bm2-ss. Entries are those of the
program's data, ways those of packets that change as they do when they are measured. The predictions are written to
``predictions.json`` before anything is measured.

Where p4c-dpdk and DPDK are, the programs are then measured on ``dpdk-swx`` in as many starts as ``--repetitions`` says,
checked with packets of their main path, and both stand beside one another: cycles per packet, the error of the
prediction, and whether its interval holds what was measured. Packets find the entries of a table at random (``vary`` in
the data of each program), or are all the same with ``--single``. ``--output`` keeps predictions and records.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from p4perf.errors import MeasurementError, P4PerfError
from p4perf.evaluation.prediction.answer import Conditions, TargetModel
from p4perf.evaluation.prediction.library import open_models
from p4perf.evaluation.prediction.programs import Wanted, open_subjects
from p4perf.evaluation.prediction.reading import ReadOptions
from p4perf.evaluation.prediction.record import answer
from p4perf.experiment import open_target, open_testbed, require_usable
from p4perf.experiment.bench import measured_gate_ratio
from p4perf.programs.component import TrafficPlan, build_workload
from p4perf.programs.ir import Workload
from p4perf.programs.own import OwnParameters, own_workload
from p4perf.programs.packets import FCS_BYTES
from p4perf.targets.base import TrialOptions, TrialSummary
from p4perf.targets.roles import measuring

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "programs"
SWX = "dpdk-swx"
TARGETS = ("dpdk-c", SWX, f"{SWX}:interpreter", "xdp")

PACKETS = 24
"""So many packets of the main path are followed through a program."""


def example_programs() -> ModuleType:
    """``examples/programs/make.py`` as a module."""
    spec = importlib.util.spec_from_file_location("example_programs", FOLDER / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def specification(name: str) -> str:
    """What p4c-dpdk makes of a program.

    Raises:
        subprocess.CalledProcessError: it refuses the program.
    """
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / f"{name}.spec"
        command = ["p4c-dpdk", "--arch", "pna", "-DPNA", "-o", str(made), str(FOLDER / name / f"{name}.p4")]
        subprocess.run(command, capture_output=True, text=True, check=True)
        return made.read_text(encoding="utf-8")


def trace(make: ModuleType, data: dict[str, Any], *, single: bool) -> bytes:
    """A capture of packets that change as they do when the program is measured, of numbers drawn with one seed."""
    keys = int(data["vary"].rpartition(":")[2])
    numbers = np.random.default_rng(0).integers(0, keys, PACKETS)
    frames = [bytes.fromhex(data["frame"])] if single else [make.varied(data, int(n)) for n in numbers]
    head = struct.pack("=IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    return head + b"".join(struct.pack("=IIII", 0, n, len(f), len(f)) + f for n, f in enumerate(frames))


def predicted(
    names: Sequence[str], models: Sequence[TargetModel], place: Path, *, single: bool, compiled: bool
) -> Iterator[dict[str, Any]]:
    """A row for each program and model, or what went wrong; the files of the programs are written to ``place``."""
    make = example_programs()
    for name in names:
        data = make.load(name)
        make.write(name, place)
        (place / f"{name}.pcap").write_bytes(trace(make, data, single=single))
        if compiled:
            (place / f"{name}.spec").write_text(specification(name), encoding="utf-8")
        for model in models:
            from_spec = compiled and model.target.partition(":")[0] == SWX
            path = place / f"{name}.spec" if from_spec else FOLDER / name / f"{name}.json"
            row: dict[str, Any] = {"program": name, "target": model.target, "model": model.name}
            row["read"] = "p4c-dpdk" if from_spec else "p4c-bm2-ss"
            try:
                yield row | _prediction(path, place / name, model, len(bytes.fromhex(data["frame"])))
            except P4PerfError as error:
                yield {**row, "error": error.message}


def _prediction(path: Path, files: Path, model: TargetModel, frame_bytes: int) -> dict[str, Any]:
    read = ReadOptions(commands=files.with_suffix(".commands"))
    pairs = open_subjects(Wanted(str(path), trace=files.with_suffix(".pcap"), read=read))
    conditions = Conditions(frame_bytes=max(frame_bytes + 4, 64), offered=None)
    (found,) = answer(pairs, [model], conditions).predictions
    band = found.cycles()
    by_kind: dict[str, float] = {}
    for line in found.expected.lines:
        by_kind[line.charge.what.kind] = by_kind.get(line.charge.what.kind, 0.0) + line.charge.cycles.value
    return {
        "predicted": band.value,
        "low": band.low,
        "high": band.high,
        "baseline": found.expected.breakdown.baseline,
        "interaction": found.expected.breakdown.interaction,
        "cycles": {kind: round(cycles, 2) for kind, cycles in sorted(by_kind.items(), key=lambda i: -i[1])},
        "warnings": list(found.warnings),
    }


ATTEMPTS = 5
"""Most starts for every one that is wanted."""

FRAMES = 16_384
"""Most different packets that are sent in turn."""


def own_workload_of(make: ModuleType, data: dict[str, Any], text: str, *, single: bool) -> Workload:
    """A specification with the entries of the program's data, and packets of its main path."""
    keys = int(data["vary"].rpartition(":")[2])
    numbers = np.random.default_rng(1).integers(0, keys, min(keys, FRAMES))
    frames = [bytes.fromhex(data["frame"])] if single else [make.varied(data, int(n)) for n in numbers]
    frames = [frame.ljust(60, b"\0") for frame in frames]
    size = len(frames[0]) + FCS_BYTES
    given = OwnParameters(program=text, entries=make.swx_entries(data), default_fill=0, packets=1)
    workload = own_workload(given, build_workload([], frame_size_bytes=size).program, size)
    return replace(workload, frames=tuple(frames))


def measured_program(workload: Workload, label: str, repetitions: int) -> tuple[dict[str, float], int, int, set[str]]:
    """Median metrics of a program, accepted starts, all starts, and flags of the accepted ones."""
    place = open_testbed("local")
    target = measuring(open_target(label))
    facts = require_usable(target, place)
    plan = target.plan(workload, TrafficPlan(workload.packets.frame_size_bytes), facts)
    accepted: list[TrialSummary] = []
    place.build(plan.build)
    with tempfile.TemporaryDirectory() as folder:
        ratio = measured_gate_ratio(target, place, Path(folder))
        for attempt in range(repetitions * ATTEMPTS):
            hugepages = target.use_hugepages(plan.memory_bytes, facts)
            options = TrialOptions(seed=1000 + attempt, gate_ratio=ratio, hugepages=hugepages)
            summary = target.summarise(target.parse(place.run(target.trial(plan, options, facts), Path(folder))), ratio)
            accepted += [summary] if summary.accepted else []
            if len(accepted) == repetitions:
                break
    if not accepted:
        raise MeasurementError("no start was accepted: the machine was disturbed")
    values: dict[str, list[float]] = {}
    for each in accepted:
        for metric in each.metrics:
            values.setdefault(metric.metric, []).append(metric.value)
    medians = {name: float(np.median(found)) for name, found in values.items()}
    return medians, len(accepted), attempt + 1, {flag for each in accepted for flag in each.flags}


def measured(rows: list[dict[str, Any]], place: Path, repetitions: int, *, single: bool) -> Iterator[dict[str, Any]]:
    """The same rows of ``dpdk-swx`` with what was measured, or what went wrong."""
    make = example_programs()
    for row in rows:
        if row["read"] != "p4c-dpdk":
            continue
        text = (place / f"{row['program']}.spec").read_text(encoding="utf-8")
        try:
            workload = own_workload_of(make, make.load(row["program"]), text, single=single)
            medians, accepted, tried, flags = measured_program(workload, row["target"], repetitions)
        except P4PerfError as error:
            yield {**row, "error": error.message}
            continue
        cycles = medians["cycles_per_packet"]
        more = {"measured": cycles, "measured_baseline": medians["baseline_cycles_per_packet"]}
        more |= {"starts": f"{accepted} of {tried}", "flags": ", ".join(sorted(flags))}
        if "predicted" in row:
            more |= {"relative_error": row["predicted"] / cycles - 1, "holds": row["low"] <= cycles <= row["high"]}
        yield row | more


def summary(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Errors of the predictions of each target that was measured."""
    lines = []
    for target in dict.fromkeys(row["target"] for row in rows):
        own = [row for row in rows if row["target"] == target and "relative_error" in row]
        if own:
            errors = np.abs([row["relative_error"] for row in own])
            lines.append(
                f"{target}: {len(own)} programs, error median {np.median(errors):.1%}, largest {errors.max():.1%}, "
                f"mean signed {np.mean([row['relative_error'] for row in own]):+.1%}, "
                f"interval holds {sum(row['holds'] for row in own)}"
            )
    return lines


def main() -> int:
    """Predict, write that down, measure, and print both."""
    known = example_programs().names()
    parser = argparse.ArgumentParser(description="Costs of the example programs, predicted and measured.")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help="default: all")
    parser.add_argument("--target", action="append", help="default: all local targets that have a cost model")
    parser.add_argument("--model", action="append", help="a cost model; default: those of p4perf predict")
    parser.add_argument("--repetitions", type=int, default=3, help="accepted starts of each")
    parser.add_argument("--single", action="store_true", help="all packets are the same")
    parser.add_argument("--predict-only", action="store_true", help="measure nothing")
    parser.add_argument("--output", type=Path, help="keep predictions and records in this folder")
    options = parser.parse_args()
    if unknown := set(options.programs) - set(known):
        parser.error(f"no program {min(unknown)}; there are {', '.join(known)}")
    wanted = options.target or TARGETS
    models = [m for m in open_models(options.model or []) if m.target in wanted]
    compiled = shutil.which("p4c-dpdk") is not None
    if not compiled:
        print(f"p4c-dpdk is not on the PATH: {SWX} is predicted from JSON, and nothing is measured")
    with tempfile.TemporaryDirectory() as folder:
        place = options.output or Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        rows = list(predicted(options.programs or known, models, place, single=options.single, compiled=compiled))
        (place / "predictions.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
        print(
            f"{'program':18} {'target':21} {'read':10} {'predicted':>9}  {'interval':15} {'measured':>8} {'error':>7}"
        )
        beside = []
        for row in rows:
            if compiled and not options.predict_only and row["read"] == "p4c-dpdk":
                row = next(measured([row], place, options.repetitions, single=options.single))
            beside.append(row)
            print(_line(row), flush=True)
        (place / "measured.json").write_text(json.dumps(beside, indent=1) + "\n", encoding="utf-8")
        print("\n".join(summary(beside)))
    return 0


def _line(row: dict[str, Any]) -> str:
    head = f"{row['program']:18} {row['target']:21} {row['read']:10}"
    if "error" in row and "predicted" not in row:
        return f"{head} {row['error']}"
    band = f"{row['low']:.0f} to {row['high']:.0f}"
    text = f"{head} {row['predicted']:9.1f}  {band:15}"
    if "measured" not in row:
        return f"{text} {row.get('error', '')}".rstrip()
    held = "in" if row["holds"] else "OUT"
    return (
        f"{text} {row['measured']:8.1f} {row['relative_error']:+7.1%} {held:3} {row['starts']} {row['flags']}".rstrip()
    )


if __name__ == "__main__":
    sys.exit(main())
