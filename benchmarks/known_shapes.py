"""Do the local data planes show what is known of them? Shapes of costs, measured in one run, judged as ratios and fits.

Sources: measurements of DPDK 22.11 on a Sapphire Rapids class virtual machine (rte_hash with entries of 113 B: three
straight segments over the decades, 5, 166 and 55 cycles a decade, with knees at twice and at thirty times the L2 cache;
a linear list of masked keys: 0.9 cycles an entry; SWX: 21 cycles a header write when interpreted, 1.4 when compiled).
Where the knees are depends on the caches, and on the neighbours of a shared one; that there are two does not. Exits
with 1 if a shape is missing, 3 if there is too little to judge.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from p4perf.errors import P4PerfError
from p4perf.experiment import new_run, open_target, open_testbed
from p4perf.experiment.conductor import Conductor
from p4perf.specs import load_experiment

METRIC = "cycles_per_packet"

FULL_L2 = (2 << 20) / 113
"""Entries that fill a second-level cache of 2 MiB."""


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


def knees(points: dict[float, float]) -> tuple[tuple[float, float], tuple[float, float, float], float]:
    """Two knees in entries, the growth of the three segments in cycles per decade, and the relative error (RMS).

    Straight lines over the logarithm of the entries, joined at the knees, with the least relative squares.
    """
    x, y = np.log10(list(points)), np.array(list(points.values()))
    places = np.arange(x[2], x[-2], 0.05)

    def fitted(pair: tuple[float, float]) -> tuple[float, np.ndarray]:
        columns = [np.ones_like(x), x, *(np.maximum(x - knee, 0) for knee in pair)]
        rows = np.stack(columns, axis=1) / y[:, None]
        found = np.linalg.lstsq(rows, np.ones_like(y), rcond=None)[0]
        return float(np.mean((rows @ found - 1) ** 2)), found

    pairs = [(float(a), float(b)) for a, b in itertools.combinations(places, 2) if b - a >= 0.3]
    first, second = min(pairs, key=lambda pair: fitted(pair)[0])
    error, (_, start, more, most) = fitted((first, second))
    slopes = float(start), float(start + more), float(start + more + most)
    return (10**first, 10**second), slopes, error**0.5


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
    entries = measured("mat/exact-entries", "dpdk-c", "entries", [round(10 ** (n / 3)) for n in range(6, 22)])
    at, slopes, error = knees(entries)
    verdicts.say(error <= 0.08, f"dpdk-c exact entries: three straight segments over the decades (off by {error:.1%})")
    verdicts.say(
        1 <= at[0] / FULL_L2 <= 16 and at[1] >= 3 * at[0],
        f"dpdk-c exact entries: knees at {at[0]:.3g} and {at[1]:.3g}, beyond {FULL_L2:.3g} that fill the L2 cache",
    )
    verdicts.say(
        slopes[1] >= 5 * slopes[0] and slopes[2] <= 0.6 * slopes[1],
        "dpdk-c exact entries: gentle, steep, and less so ({:.0f}, {:.0f}, {:.0f} cycles a decade)".format(*slopes),
    )
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
