"""What do the harness and the framework cost?

The harness: cycles per packet of a program that does nothing, beside the baseline, in one process. The framework: the
share of the wall time of a sweep that is not spent in trials.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from _common import Bench

from p4perf.experiment import new_run, open_target, open_testbed
from p4perf.experiment.conductor import Conductor
from p4perf.specs import load_experiment
from p4perf.targets.windows import window_statistics

STARTS = 5


def main() -> None:
    """Measure and print."""
    for label, component, parameters in (
        ("packets that do not change", "l2fwd", {}),
        ("packets with a key of 16 B", "match_action_table", {"entries": 1000}),
    ):
        bench = Bench([(component, parameters)])
        records = [r for seed in range(STARTS) if (r := bench.trial(seed, "--with-empty")) is not None]
        by_program = [window_statistics(r, bench.gate_ratio) for r in records]
        empty, baseline = (statistics.median(s[name].core_cycles for s in by_program) for name in ("empty", "baseline"))
        print(f"harness, {label}: empty program {empty:.2f}, baseline {baseline:.2f} core cycles per packet")

    experiment = load_experiment("demo/exact-entries")
    target, testbed = open_target("dpdk-c"), open_testbed("local")
    with tempfile.TemporaryDirectory(prefix="p4perf-bench-") as folder:
        run, plan = new_run(experiment, target, testbed, Path(folder))
        outcome = Conductor(experiment, plan.points, target, testbed, run).measure()
    share = 100 * (1 - outcome.measured_s / outcome.wall_s)
    print(
        f"framework: {share:.1f} % of {outcome.wall_s:.1f} s for {outcome.trials} trials of {outcome.points} points "
        f"({outcome.built_s:.1f} s of it before the first trial: probing, calibrating, compiling)"
    )


if __name__ == "__main__":
    main()
