"""What do drawn points of the catalogue cost, and what was predicted?

In every experiment that sweeps one number of one component, a seed draws a value, evenly on a logarithmic axis. All
predictions are written to ``predictions.json`` before anything is measured. Then every point is measured on every
``--target`` that takes it, and both stand beside one another, compared over their baselines: the packet source draws
keys and indices beside the baseline, too, which no program pays for.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from real_programs import TARGETS, beside, line, measured_program, summary

from p4perf.errors import P4PerfError
from p4perf.evaluation.prediction.answer import Conditions, TargetModel, predict
from p4perf.evaluation.prediction.library import open_models
from p4perf.evaluation.prediction.programs import ProgramSubject, Wanted, open_subjects
from p4perf.evaluation.prediction.reading.swx_packets import UnknownDecisionError
from p4perf.experiment.planning import point_workload
from p4perf.models.program.costs import CostModel
from p4perf.programs.component import component_parameters
from p4perf.specs import load_experiment
from p4perf.specs.loader import catalogue_names

ELSEWHERE = ("base/", "baseline/", "composition/", "load/", "operator/", "vio/")
"""What others extend, what cost models are made of, and what is no cost of a program or has no price."""

MOST_ENTRIES = 3000
"""Of ternary tables: each packet searches their lists."""


def drawn(seed: int) -> Iterator[tuple[str, str, float]]:
    """Experiments, their swept variables, and the values that are drawn."""
    rng = np.random.default_rng(seed)
    for name in sorted(catalogue_names()):
        if name.startswith(ELSEWHERE):
            continue
        points = load_experiment(name, parameters_of=component_parameters).points
        variables = {variable for point in points for variable in point.values}
        if len(variables) != 1 or any(len(point.components) != 1 for point in points):
            continue
        (variable,) = variables
        grid = sorted({point.values[variable] for point in points}, key=str)
        if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in grid):
            continue
        low, high = min(v for v in grid if float(v) > 0), max(grid, key=float)
        if name == "mat/ternary-entries":
            high = MOST_ENTRIES
        value = math.exp(rng.uniform(math.log(float(low)), math.log(float(high))))
        if any(isinstance(v, float) for v in grid):
            yield name, variable, round(value, 3)
        else:
            step = math.gcd(*(int(v) for v in grid if v > low)) or 1
            yield name, variable, max(round(value / step), 1) * step


def subject_of(row: dict[str, Any]) -> ProgramSubject:
    """The point of a row."""
    (pair,) = open_subjects(Wanted(row["name"], sets=(f"sweep.{row['variable']}=[{row['value']}]",)))
    return pair.subject


def predictions(models: Sequence[TargetModel], seed: int) -> Iterator[dict[str, Any]]:
    """A row for each point and model, or why there is none."""
    for name, variable, value in drawn(seed):
        for model in models:
            row: dict[str, Any] = {"program": f"{name} {value}", "target": model.target, "model": model.name}
            row |= {"name": name, "variable": variable, "value": value}
            try:
                cycles = predict(subject_of(row).graph_for(model.target), model, Conditions()).cycles()
            except (P4PerfError, UnknownDecisionError) as error:
                yield {**row, "error": str(error)}
                continue
            yield row | {"predicted": cycles.value, "low": cycles.low, "high": cycles.high, "unknown": []}


def measured(row: dict[str, Any], repetitions: int, baseline: float) -> dict[str, Any]:
    """A row with what was measured, or what went wrong; ``baseline`` is that of the model [cycles/packet]."""
    subject = subject_of(row)
    assert subject.experiment is not None
    assert subject.point is not None
    try:
        workload, traffic = point_workload(subject.experiment, subject.point)
        medians, accepted, tried = measured_program(workload, row["target"], repetitions, traffic)
    except P4PerfError as error:
        return {**row, "error": error.message}
    cycles = baseline + medians["cost_cycles_per_packet"]
    return beside(row, {**medians, "cycles_per_packet": cycles}, f"{accepted} of {tried}")


def main() -> int:
    """Predict, write that down, measure, and print both."""
    parser = argparse.ArgumentParser(description="Drawn points of the catalogue, predicted and then measured.")
    parser.add_argument("--target", action="append", help="default: dpdk-c, dpdk-swx and xdp")
    parser.add_argument("--model", action="append", help="a cost model; default: those of p4perf predict")
    parser.add_argument("--repetitions", type=int, default=3, help="accepted starts of each")
    parser.add_argument("--seed", type=int, default=1, help="of the values")
    parser.add_argument("--output", type=Path, help="keep predictions and what was measured in this folder")
    options = parser.parse_args()
    models = open_models(options.model or [], options.target or TARGETS)
    baselines = {m.name: m.pricing.baseline for m in models if isinstance(m.pricing, CostModel)}
    with tempfile.TemporaryDirectory() as folder:
        place = options.output or Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        rows = list(predictions(models, options.seed))
        (place / "predictions.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
        for at, row in enumerate(rows):
            if "predicted" in row:
                rows[at] = measured(row, options.repetitions, baselines[row["model"]])
            print(line(rows[at]), flush=True)
            (place / "measured.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
        print("\n".join(summary(rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
