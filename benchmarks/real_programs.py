"""What will whole programs cost, and what do they cost? Programs of all kinds, predicted and then measured.

Every program (JSON of p4c-bm2-ss, .spec of SWX, .p4 where p4c is) gets made-up entries and packets, as ``p4perf
measure`` makes them, and is predicted with these very packets on every ``--target`` by its cost model. All predictions
are written to ``predictions.json`` before anything is measured. Then the programs are measured, each in as many
accepted starts as ``--repetitions`` says, and both stand beside one another: cycles per packet, the error of the
prediction, and whether its 90 % interval holds what was measured.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from p4perf.errors import MeasurementError, P4PerfError
from p4perf.evaluation.prediction.answer import TargetModel
from p4perf.evaluation.prediction.learning.constructs import workload_path
from p4perf.evaluation.prediction.library import open_models
from p4perf.evaluation.prediction.reading.swx_packets import UnknownDecisionError
from p4perf.experiment import open_target, open_testbed, require_usable
from p4perf.experiment.bench import measured_gate_ratios
from p4perf.programs.component import OWN, TrafficPlan, build_workload
from p4perf.programs.ir import Workload
from p4perf.programs.own import packed
from p4perf.programs.reading.p4c import compile_p4
from p4perf.targets.base import TrialOptions, TrialSummary
from p4perf.targets.roles import measuring

EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "programs"
TARGETS = ("dpdk-c", "dpdk-swx", "xdp")
FRAME_BYTES = 128
TRAFFIC = TrafficPlan(FRAME_BYTES)

ATTEMPTS = 5
"""Most starts for every one that is wanted."""


def own_program(file: Path, seed: int, **parameters: str | int) -> Workload:
    """A program with made-up entries and packets."""
    text = compile_p4(file, None, (), ())[1] if file.suffix == ".p4" else file.read_text(encoding="utf-8")
    given = {"program": packed(text, str(file)), "seed": seed, **parameters}
    return build_workload([(OWN, given)], frame_size_bytes=FRAME_BYTES)


def predicted(workload: Workload, model: TargetModel) -> dict[str, Any]:
    """The prediction for the packets of a workload [cycles/packet]."""
    found = model.pricing.breakdown(workload_path(model.target, workload, TRAFFIC))
    by_kind: dict[str, float] = {}
    for charge in found.charges:
        by_kind[charge.what.kind] = by_kind.get(charge.what.kind, 0.0) + charge.cycles.value
    return {
        "predicted": found.cycles.value,
        "low": found.cycles.low,
        "high": found.cycles.high,
        "unknown": sorted({c.what.kind for c in found.charges if c.basis == "unknown"}),
        "cycles": {kind: round(cycles, 2) for kind, cycles in sorted(by_kind.items(), key=lambda i: -i[1])},
    }


def predictions(files: Sequence[Path], models: Sequence[TargetModel], seed: int) -> Iterator[dict[str, Any]]:
    """A row for each program and model, or why there is none."""
    for file in files:
        try:
            workload = own_program(file, seed)
        except P4PerfError as error:
            yield {"program": str(file), "target": "", "error": error.message}
            continue
        for model in models:
            row: dict[str, Any] = {"program": str(file), "target": model.target, "model": model.name}
            try:
                yield row | predicted(workload, model)
            except (P4PerfError, UnknownDecisionError) as error:
                yield {**row, "error": str(error)}


def measured(row: dict[str, Any], repetitions: int, seed: int) -> dict[str, Any]:
    """A row with what was measured, or what went wrong."""
    try:
        medians, accepted, tried = measured_program(own_program(Path(row["program"]), seed), row["target"], repetitions)
    except P4PerfError as error:
        return {**row, "error": error.message}
    return beside(row, medians, f"{accepted} of {tried}")


def beside(row: dict[str, Any], medians: dict[str, float], starts: str) -> dict[str, Any]:
    """A row with what was measured."""
    cycles = medians["cycles_per_packet"]
    return row | {
        "measured": cycles,
        "measured_baseline": medians["baseline_cycles_per_packet"],
        "starts": starts,
        "relative_error": row["predicted"] / cycles - 1,
        "holds": row["low"] <= cycles <= row["high"],
    }


Measured = tuple[dict[str, float], int, int]
"""Median metrics of a program, accepted starts, and all starts."""


def measured_program(workload: Workload, label: str, repetitions: int, traffic: TrafficPlan = TRAFFIC) -> Measured:
    """What a program costs."""
    (found,) = measured_in_turn([(workload, traffic)], label, repetitions)
    return found


def measured_in_turn(workloads: Sequence[tuple[Workload, TrafficPlan]], label: str, repetitions: int) -> list[Measured]:
    """What programs cost that take turns, a start of each: whatever the machine does next to them, it does to all."""
    place = open_testbed("local")
    target = measuring(open_target(label))
    facts = require_usable(target, place)
    plans = [target.plan(workload, traffic, facts) for workload, traffic in workloads]
    for plan in plans:
        place.build(plan.build)
    accepted: list[list[TrialSummary]] = [[] for _ in plans]
    tried = [0] * len(plans)
    with tempfile.TemporaryDirectory() as folder:
        ratio = measured_gate_ratios(target, place, Path(folder)).at()
        for attempt in range(repetitions * ATTEMPTS):
            for number, plan in enumerate(plans):
                if len(accepted[number]) == repetitions:
                    continue
                tried[number] += 1
                hugepages = target.use_hugepages(plan.memory_bytes, facts)
                options = TrialOptions(seed=1000 + attempt, gate_ratio=ratio, hugepages=hugepages)
                output = target.parse(place.run(target.trial(plan, options, facts), Path(folder)))
                summary = target.summarise(output, ratio)
                accepted[number] += [summary] if summary.accepted else []
    if not all(accepted):
        raise MeasurementError("no start was accepted: the machine was disturbed")
    found = []
    for starts, number in zip(accepted, tried, strict=True):
        values: dict[str, list[float]] = {}
        for metric in (metric for each in starts for metric in each.metrics):
            values.setdefault(metric.metric, []).append(metric.value)
        found.append(({name: float(np.median(each)) for name, each in values.items()}, len(starts), number))
    return found


def summary(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Errors and widths of the predictions of each target."""
    lines = []
    for target in dict.fromkeys(row["target"] for row in rows):
        own = [row for row in rows if row["target"] == target and "relative_error" in row]
        if own:
            errors = np.abs([row["relative_error"] for row in own])
            widths = [(row["high"] - row["low"]) / row["predicted"] for row in own]
            lines.append(
                f"{target}: {len(own)} programs, error median {np.median(errors):.1%}, 90th percentile "
                f"{np.quantile(errors, 0.9):.1%}, mean signed {np.mean([row['relative_error'] for row in own]):+.1%}; "
                f"intervals hold {np.mean([row['holds'] for row in own]):.0%}, median width {np.median(widths):.0%}"
            )
    return lines


def line(row: dict[str, Any]) -> str:
    head = f"{Path(row['program']).stem[:32]:32} {row['target']:10}"
    if "predicted" not in row:
        return f"{head} {row['error']}"
    text = f"{head} {row['predicted']:9.1f}  {row['low']:7.0f} to {row['high']:<7.0f}"
    if "measured" not in row:
        return f"{text} {row.get('error', '')}".rstrip()
    held = "in" if row["holds"] else "OUT"
    return f"{text} {row['measured']:9.1f} {row['relative_error']:+7.1%} {held:3} {row['starts']}"


def main() -> int:
    """Predict, write that down, measure, and print both."""
    parser = argparse.ArgumentParser(description="Costs of whole programs, predicted and then measured.")
    parser.add_argument("programs", nargs="*", type=Path, help="files; default: the example programs")
    parser.add_argument("--target", action="append", help="default: dpdk-c, dpdk-swx and xdp")
    parser.add_argument("--model", action="append", help="a cost model; default: those of p4perf predict")
    parser.add_argument("--repetitions", type=int, default=3, help="accepted starts of each")
    parser.add_argument("--seed", type=int, default=1, help="of entries and packets")
    parser.add_argument("--predict-only", action="store_true", help="measure nothing")
    parser.add_argument("--output", type=Path, help="keep predictions and what was measured in this folder")
    options = parser.parse_args()
    files = options.programs or sorted(EXAMPLES.glob("*/*.json"))
    models = open_models(options.model or [], options.target or TARGETS)
    with tempfile.TemporaryDirectory() as folder:
        place = options.output or Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        rows = list(predictions(files, models, options.seed))
        (place / "predictions.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
        print(f"{'program':32} {'target':10} {'predicted':>9}  {'interval':>18} {'measured':>9} {'error':>7}")
        told = []
        for row in rows:
            if "predicted" in row and not options.predict_only:
                row = measured(row, options.repetitions, options.seed)
            told.append(row)
            print(line(row), flush=True)
            (place / "measured.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
        print("\n".join(summary(told)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
