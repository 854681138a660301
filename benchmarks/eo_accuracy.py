"""How close do estimates from elementary operations come to measurements on dpdk-c?

The machine is described by `p4perf learn --operations` (or by the file that is given as the first argument), from
micro-benchmarks of single operations. Then every experiment of the catalogue that dpdk-c can run from memory is
estimated and measured at the middle point of its sweep, and the L2 switch besides. Prints a table in Markdown, and the
median of the errors.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from p4perf.errors import CapabilityError, P4PerfError
from p4perf.evaluation.papers.baldi2018 import load_hardware
from p4perf.evaluation.prediction.operations import derive
from p4perf.experiment import open_target, open_testbed, point_workload, require_usable
from p4perf.experiment.bench import measured_gate_ratios
from p4perf.experiment.operations import calibrate
from p4perf.models.eo import Hardware, estimate
from p4perf.programs.component import TrafficPlan, build_workload
from p4perf.programs.ir import Workload
from p4perf.specs import load_experiment
from p4perf.specs.loader import list_catalogue
from p4perf.targets.base import TrialOptions
from p4perf.targets.roles import measuring

STARTS = 3
ATTEMPTS = 5
GOAL = 0.25
LARGEST_SETUP_S = 3.0
LEFT_OUT = ("demo/", "load/", "operator/", "vio/", "baseline/offered-load", "baseline/cpu-frequency")
SWITCH_ENTRIES = 10_000


def main() -> int:
    """Measure and print; 1 if the median error is above the goal."""
    target, testbed = measuring(open_target("dpdk-c")), open_testbed("local")
    try:
        facts = require_usable(target, testbed)
    except P4PerfError as error:
        raise SystemExit(f"skipped: {error}") from error
    with tempfile.TemporaryDirectory(prefix="p4perf-bench-") as temporary:
        folder = Path(temporary)
        hardware = _described(folder)
        errors = []
        print("| program | point | estimate | interval | measured | error |")
        print("|---|---|---|---|---|---|")
        gate = measured_gate_ratios(target, testbed, folder).at()
        for name, label, workload, traffic in _programs():
            try:
                plan = target.plan(workload, traffic, facts)
            except CapabilityError as error:
                print(f"left out {name}: {error.message}", file=sys.stderr)
                continue
            found = estimate([derive(workload, traffic, name=name)], hardware)
            hugepages = target.use_hugepages(plan.memory_bytes, facts)
            measured: list[float] = []
            for seed in range(STARTS * ATTEMPTS):
                options = TrialOptions(seed=seed + 1, gate_ratio=gate, hugepages=hugepages)
                try:
                    record = target.parse(testbed.run(target.trial(plan, options, facts), folder))
                except P4PerfError as error:
                    print(f"{name}: {error.message}", file=sys.stderr)
                    continue
                summary = target.summarise(record, gate)
                if summary.accepted:
                    measured += [m.value for m in summary.metrics if m.metric == "cycles_per_packet"]
                if len(measured) == STARTS:
                    break
            if not measured:
                print(f"left out {name}: no accepted start", file=sys.stderr)
                continue
            true, guess = statistics.median(measured), found.breakdown.cycles.value
            errors.append(guess / true - 1)
            interval = f"{found.breakdown.cycles.low:.1f} to {found.breakdown.cycles.high:.1f}"
            print(
                f"| `{name}` | {label} | {guess:.1f} | {interval} | {true:.1f} | {100 * errors[-1]:+.0f} % |",
                flush=True,
            )
    median = statistics.median(map(abs, errors))
    print(f"\nmedian error {100 * median:.0f} % of {len(errors)} programs; goal {100 * GOAL:.0f} %")
    return int(median > GOAL)


def _described(folder: Path) -> Hardware:
    """The machine, from the file that was named or measured now."""
    if len(sys.argv) > 1:
        return load_hardware(sys.argv[1])
    path = folder / "machine.yaml"
    found = calibrate(open_testbed("local"), told=lambda line: print(line, file=sys.stderr))
    path.write_text(found.text(), encoding="utf-8")
    return load_hardware(str(path))


def _programs() -> Iterator[tuple[str, str, Workload, TrafficPlan]]:
    """The L2 switch, and the middle point of every experiment."""
    table = {"match_kind": "exact", "entries": SWITCH_ENTRIES, "key_bits": 48, "action_data_bytes": 4}
    workload = build_workload([("match_action_table", table)], frame_size_bytes=64)
    yield "L2 switch", f"entries={SWITCH_ENTRIES}", workload, TrafficPlan(64)
    for entry in list_catalogue():
        if entry.name.startswith(LEFT_OUT):
            continue
        experiment = load_experiment(entry.name)
        for at in range(len(experiment.points) // 2, -1, -1):
            point = experiment.points[at]
            try:
                workload, traffic = point_workload(experiment, point)
            except CapabilityError:
                continue
            if 4e-6 * sum(t.entries.count for t in workload.program.tables) > LARGEST_SETUP_S:
                continue
            label = ", ".join(f"{k}={v}" for k, v in point.values.items())
            yield entry.name, label, workload, traffic
            break


if __name__ == "__main__":
    raise SystemExit(main())
