"""Do the local data planes show what is known of them? Shapes of costs, measured in one run, judged as ratios and fits.

Sources: measurements of DPDK 22.11 on a Sapphire Rapids class virtual machine (rte_hash with entries of 113 B: knee at
about twice the L2 cache; a linear list of masked keys: 0.9 cycles an entry; SWX: 21 cycles a header write when
interpreted, 1.4 when compiled). Exits with 1 if a shape is missing, 3 if there is too little to judge.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from p4perf.errors import P4PerfError
from p4perf.experiment import Conductor, new_run, open_target, open_testbed
from p4perf.specs import load_experiment

METRIC = "cycles_per_packet"


def measured(name: str, target: str, variable: str, values: Sequence[float], **more: object) -> dict[float, float]:
    """Medians over the accepted starts by value of the variable, in core cycles per packet."""
    overrides = [(variable, "[" + ", ".join(f"{v:g}" for v in values) + "]")]
    overrides += [(f"program.parameters.{key}", str(value)) for key, value in more.items()]
    experiment = load_experiment(name, overrides=overrides)
    with tempfile.TemporaryDirectory(prefix="p4perf-bench-") as folder:
        run, plan = new_run(experiment, open_target(target), open_testbed("local"), Path(folder))
        Conductor(experiment, plan.points, open_target(target), open_testbed("local"), run).measure()
        table = run.read_measurements()
    rows = table[(table["metric"] == METRIC) & table["accepted"]]
    medians = rows.groupby(variable)["value"].median()
    print(f"  {name} on {target}: " + ", ".join(f"{x:g}: {y:.1f}" for x, y in medians.items()))
    return {float(x): float(y) for x, y in medians.items()}


def line(points: dict[float, float]) -> tuple[float, float]:
    """Slope and coefficient of determination of the straight line through the points."""
    x, y = np.array(list(points)), np.array(list(points.values()))
    slope, offset = np.polyfit(x, y, 1)
    return float(slope), float(1 - np.var(y - slope * x - offset) / np.var(y))


class Verdicts:
    """Prints every verdict and remembers the worst."""

    failed = False

    def say(self, good: bool, text: str) -> None:
        """A shape and whether it is there."""
        self.failed |= not good
        print(f"{'yes' if good else 'NO '}  {text}")


def main() -> int:
    """Measure and judge."""
    verdicts = Verdicts()
    entries = measured("mat/exact-entries", "dpdk-c", "entries", (10, 100, 1e3, 1e4, 2e4, 5e4, 1e5, 2e5, 1e6))
    flat, steep = entries[2e4] / entries[100], entries[2e5] / entries[2e4]
    verdicts.say(flat < 1.35, f"dpdk-c exact entries: nearly flat up to 20,000 ({flat:.2f} times from 100 to 20,000)")
    verdicts.say(steep > 1.6, f"dpdk-c exact entries: a knee beyond the L2 cache ({steep:.2f} times from 2e4 to 2e5)")
    sizes = (10, 50, 100, 200, 400, 600, 800, 1000)
    hits, misses = (line(measured("mat/ternary-entries", "dpdk-c", "entries", sizes, hit_ratio=r)) for r in (1, 0))
    verdicts.say(min(hits[1], misses[1]) >= 0.98, f"dpdk-c ternary list: linear (R2 {hits[1]:.4f}, {misses[1]:.4f})")
    # Packets that miss see all entries; those that hit, spread uniformly, see half of them.
    slopes = hits[0], misses[0]
    verdicts.say(
        min(slopes) >= 0.45 and max(slopes) <= 1.8,
        "dpdk-c ternary list: 0.9 cycles an entry, within a factor of two "
        f"({slopes[0]:.2f} for hits, {slopes[1]:.2f} for misses)",
    )
    verdicts.say(0.4 <= slopes[0] / slopes[1] <= 0.65, "dpdk-c ternary list: uniform hits search half of it")
    # A constant whose last byte has its highest bit clear: gcc makes one store of it. Of others, and of increments, it
    # makes overlapping loads and stores of 64 bit, which cost as much compiled as interpreted.
    writes, constant = (0, 2, 4, 6, 8, 10, 12), {"operation": "set", "constant": 1}
    slow = measured("action/header-field-writes", "dpdk-swx:interpreter", "writes", writes, **constant)
    fast = measured("action/header-field-writes", "dpdk-swx", "writes", writes, **constant)
    slope, r2 = line(slow)
    verdicts.say(r2 >= 0.97, f"dpdk-swx:interpreter header writes: linear (R2 {r2:.4f})")
    verdicts.say(10 <= slope <= 40, f"dpdk-swx:interpreter header writes: about 20 cycles each ({slope:.1f})")
    flat_slope, _ = line(fast)
    verdicts.say(flat_slope < 0.25 * slope, f"dpdk-swx codegen header writes: flat beside it ({flat_slope:.2f} each)")
    shared = sorted(set(slow) & set(fast))
    verdicts.say(
        all(fast[x] < slow[x] for x in shared),
        f"codegen is faster than the interpreter at all {len(shared)} points "
        f"({min(slow[x] / fast[x] for x in shared):.2f} to {max(slow[x] / fast[x] for x in shared):.2f} times)",
    )
    table = (10, 1e3, 1e5)
    slow, fast = (measured("mat/exact-entries", t, "entries", table) for t in ("dpdk-swx:interpreter", "dpdk-swx"))
    shared = sorted(set(slow) & set(fast))
    verdicts.say(
        all(fast[x] < slow[x] for x in shared),
        f"codegen is faster than the interpreter with tables, too ({len(shared)} points)",
    )
    return int(verdicts.failed)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (P4PerfError, KeyError) as error:
        print(f"no verdict: {error!r}")
        sys.exit(3)
