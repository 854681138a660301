"""What will a table cost as it grows, and what does it cost? In the catalogue's programs and in examples.

Every kind of table gets sizes that a seed draws, evenly on a logarithmic axis, on every ``--target`` that has it. All
predictions are written to ``predictions.json`` before anything is measured. Then the sizes of a table are measured,
start by start in turn, so that what the machine does next to them concerns all of them, and both stand beside one
another: the error of each size, and the error of what two neighbouring sizes differ by, where that is more than ten
cycles. A size counts if it is within 20 %, a difference as well. Programs of the catalogue are compared over their
baselines: the packet source draws a key for every table beside the baseline, too, which no program pays for.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from real_programs import EXAMPLES, TARGETS, TRAFFIC, beside, line, measured_in_turn, own_program, predicted

from p4perf.errors import P4PerfError
from p4perf.evaluation.prediction.answer import Conditions, TargetModel, predict
from p4perf.evaluation.prediction.library import open_models
from p4perf.evaluation.prediction.programs import ProgramSubject, Wanted, open_subjects
from p4perf.evaluation.prediction.reading.swx_packets import UnknownDecisionError
from p4perf.experiment.planning import point_workload
from p4perf.models.program.costs import CostModel
from p4perf.programs.component import TrafficPlan
from p4perf.programs.ir import Workload

WITHIN = 0.2
LEAST_CYCLES = 10.0
MOST_PACKETS = 4096


@dataclass(frozen=True)
class Growing:
    """A table that grows: of an experiment of the catalogue, or of an example program."""

    name: str
    most: float
    table: str = ""
    """Empty: of the catalogue's component."""

    def workload(self, entries: int, seed: int) -> tuple[Workload, TrafficPlan]:
        """The program with a table of that size, and its traffic."""
        if self.table:
            packets = min(max(entries, 256), MOST_PACKETS)
            file = EXAMPLES / self.name / f"{self.name}.json"
            return own_program(file, seed, fill=f"{self.table}={entries}", packets=packets), TRAFFIC
        subject = self._experiment(entries)
        assert subject.experiment is not None
        assert subject.point is not None
        return point_workload(subject.experiment, subject.point)

    def predicted(self, entries: int, seed: int, model: TargetModel) -> dict[str, Any]:
        """The prediction [cycles/packet], as ``p4perf predict`` gives it."""
        if self.table:
            return predicted(self.workload(entries, seed)[0], model)
        cycles = predict(self._experiment(entries).graph_for(model.target), model, Conditions()).cycles()
        return {"predicted": cycles.value, "low": cycles.low, "high": cycles.high}

    def _experiment(self, entries: int) -> ProgramSubject:
        (pair,) = open_subjects(Wanted(self.name, sets=(f"sweep.entries=[{entries}]",)))
        return pair.subject


TABLES = (
    Growing("mat/exact-entries", 1e6),
    Growing("mat/lpm-entries", 1e5),
    Growing("mat/ternary-entries", 1e4),
    Growing("l2_switch", 5e4, "destinations"),
    Growing("ipv4_router", 5e4, "routes"),
    Growing("acl_firewall", 4e3, "access_list"),
)


def sizes(most: float, number: int, rng: np.random.Generator) -> list[int]:
    """Sizes from 1 to the most, one from each of equal stretches of a logarithmic axis, in order."""
    edges = np.linspace(0.0, np.log10(most), number + 1)
    return [round(10**x) for x in rng.uniform(edges[:-1], edges[1:])]


def predictions(models: Sequence[TargetModel], number: int, seed: int) -> Iterator[dict[str, Any]]:
    """A row for each size and model, or why there is none."""
    rng = np.random.default_rng(seed)
    for table in TABLES:
        drawn = sizes(table.most, number, rng)
        for model in models:
            for entries in drawn:
                row = {"program": f"{table.name} {entries}", "target": model.target, "model": model.name}
                row |= {"name": table.name, "entries": entries}
                try:
                    yield row | table.predicted(entries, seed, model)
                except (P4PerfError, UnknownDecisionError) as error:
                    yield {**row, "error": str(error)}


def measured(rows: Sequence[dict[str, Any]], repetitions: int, seed: int, baseline: float) -> list[dict[str, Any]]:
    """Rows of one table with what was measured, or what went wrong.

    Args:
        baseline: that of the model [cycles/packet].
    """
    (table,) = (t for t in TABLES if t.name == rows[0]["name"])
    try:
        workloads = [table.workload(row["entries"], seed) for row in rows]
        measurements = measured_in_turn(workloads, rows[0]["target"], repetitions)
    except P4PerfError as error:
        return [{**row, "error": error.message} for row in rows]
    found = []
    for row, (medians, accepted, tried) in zip(rows, measurements, strict=True):
        drawn = 0.0 if table.table else medians["baseline_cycles_per_packet"] - baseline
        cycles = medians["cycles_per_packet"] - drawn
        found.append(beside(row, {**medians, "cycles_per_packet": cycles}, f"{accepted} of {tried}"))
    return found


def summary(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """How many sizes and differences of each target are within the bound."""
    for target in dict.fromkeys(row["target"] for row in rows):
        own = [row for row in rows if row["target"] == target and "measured" in row]
        good = sum(abs(row["relative_error"]) <= WITHIN for row in own)
        held = sum(row["holds"] for row in own)
        steps = [
            (b["predicted"] - a["predicted"], b["measured"] - a["measured"])
            for a, b in pairwise(own)
            if a["name"] == b["name"] and abs(b["measured"] - a["measured"]) > LEAST_CYCLES
        ]
        near = sum(abs(said / found - 1) <= WITHIN for said, found in steps)
        yield (
            f"{target}: {good} of {len(own)} sizes within {WITHIN:.0%}, {held} inside their intervals; "
            f"{near} of {len(steps)} differences of more than {LEAST_CYCLES:g} cycles within {WITHIN:.0%}"
        )


def main() -> int:
    """Predict, write that down, measure, and print both."""
    parser = argparse.ArgumentParser(description="Tables that grow, predicted and then measured.")
    parser.add_argument("--target", action="append", help="default: dpdk-c, dpdk-swx and xdp")
    parser.add_argument("--model", action="append", help="a cost model; default: those of p4perf predict")
    parser.add_argument("--sizes", type=int, default=4, help="of each table")
    parser.add_argument("--repetitions", type=int, default=5, help="accepted starts of each")
    parser.add_argument("--seed", type=int, default=1, help="of sizes, entries and packets")
    parser.add_argument("--output", type=Path, help="keep predictions and what was measured in this folder")
    options = parser.parse_args()
    models = open_models(options.model or [], options.target or TARGETS)
    with tempfile.TemporaryDirectory() as folder:
        place = options.output or Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        rows = list(predictions(models, options.sizes, options.seed))
        (place / "predictions.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
        told, baselines = [], {m.name: m.pricing.baseline for m in models if isinstance(m.pricing, CostModel)}
        told += [row for row in rows if "predicted" not in row]
        known = [row for row in rows if "predicted" in row]
        for _, group in groupby(known, key=lambda row: (row["name"], row["target"])):
            together = list(group)
            told += measured(together, options.repetitions, options.seed, baselines[together[0]["model"]])
            print("\n".join(line(row) for row in told[-len(together) :]), flush=True)
            (place / "measured.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
        print("\n".join(summary(told)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
