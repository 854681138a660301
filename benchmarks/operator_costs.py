"""What operators cost on dpdk-c, and whether the numbers hold what they should: a yes or no for each claim.

1. ``operator/all``, with nothing built before, ends within 90 s on a machine of two cores.
2. The cost of a CRC grows faster than the packet: exponent k above 1 of a power law, least squares in log space.
3. Hash lookups and printf do not grow: k between -0.1 and 0.1.
4. A printed line costs ten times a suppressed message of the log, or more.
5. Two runs agree for every cost above 5 cycles: within 10 %, or within 2 cycles.
6. A known cost of 20 to 2,000 cycles is found within 5 %: chains of dependent multiplications between fences.
7. Two operators cost the sum of both and an interaction, which is within the cost of the cheaper one.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from p4perf.errors import P4PerfError
from p4perf.evaluation.papers.ren2025.analysis import interactions
from p4perf.evaluation.papers.ren2025.costs import COST, OperatorCost, OperatorCosts, operator_costs
from p4perf.experiment import measure_run, new_run, open_target
from p4perf.experiment.opq import read_platforms
from p4perf.results import RunDirectory
from p4perf.specs import load_experiment
from p4perf.testbeds.local import LocalTestbed

MOST_S = 90.0
SMALL_K = 0.1
RATIO = 10.0
AGREE, AGREE_CYCLES, ABOVE_CYCLES = 0.10, 2.0, 5.0
ACCURACY = 0.05
KNOWN_CYCLES = (20.0, 2000.0)
CYCLES_PER_MULTIPLICATION = 3


class Verdicts:
    """Claims with their answers, printed as they come."""

    def __init__(self) -> None:
        self.failed = 0

    def say(self, claim: str, holds: bool, numbers: str) -> None:
        """Print one."""
        self.failed += not holds
        print(f"{'yes' if holds else 'NO '}  {claim}: {numbers}")


def measured(name: str, testbed: LocalTestbed, folder: Path) -> tuple[RunDirectory, float]:
    """A run of an experiment of the catalogue, and the seconds that it took."""
    began = time.monotonic()
    experiment, target = load_experiment(name), open_target("dpdk-c")
    run, plan = new_run(experiment, target, testbed, folder)
    outcome = measure_run(experiment, plan.points, target, testbed, run)
    seconds = time.monotonic() - began
    print(f"     {name}: {outcome.complete} of {outcome.points} points, {outcome.trials} starts in {seconds:.1f} s")
    return run, seconds


def exponent(costs: Sequence[OperatorCost]) -> tuple[float, float]:
    """K and R2 of cost = a size^k, least squares of the logarithms."""
    x = np.log([c.packet_size_bytes for c in costs])
    y = np.log([c.cost_cycles for c in costs])
    k, a = np.polyfit(x, y, 1)
    spread = float(np.sum((y - y.mean()) ** 2))
    return float(k), 1 - float(np.sum((y - a - k * x) ** 2)) / spread if spread else 1.0


def of(costs: Sequence[OperatorCost], name: str) -> list[OperatorCost]:
    """The costs of one operator."""
    return [c for c in costs if c.operator == name]


def table(costs: Sequence[OperatorCost]) -> None:
    """Print operators over sizes."""
    sizes = sorted({c.packet_size_bytes for c in costs})
    print(f"     {'operator':30}" + "".join(f"{size:>14}" for size in sizes))
    for name in dict.fromkeys(c.operator for c in costs):
        cells = {c.packet_size_bytes: c.text().replace(" cycles", "") for c in of(costs, name)}
        print(f"     {name:30}" + "".join(f"{cells.get(size, '-'):>14}" for size in sizes))


def scaling(verdicts: Verdicts, costs: Sequence[OperatorCost]) -> None:
    """Claims 2 to 4."""
    for name in ("rte_net_crc", "rte_hash_crc"):
        k, r2 = exponent(of(costs, name))
        verdicts.say(f"{name}: k above 1", k > 1, f"k {k:.3f}, R2 {r2:.4f}")
    for name in ("hash_lookup", "hash_insert", "printf_file", "printf_null"):
        k, r2 = exponent(of(costs, name))
        verdicts.say(f"{name}: |k| below {SMALL_K}", abs(k) < SMALL_K, f"k {k:+.4f}")
    line = of(costs, "printf_file")[0].cost_cycles
    suppressed = of(costs, "rte_log_suppressed")[0].cost_cycles
    verdicts.say(
        f"printf over suppressed log at least {RATIO:g}",
        line >= RATIO * suppressed,
        f"{line:.0f} / {suppressed:.1f} = {line / suppressed:.1f}",
    )


def repetition(verdicts: Verdicts, first: Sequence[OperatorCost], second: Sequence[OperatorCost]) -> None:
    """Claim 5."""
    others = {(c.operator, c.packet_size_bytes): c.cost_cycles for c in second}
    apart = []
    for c in first:
        other = others.get((c.operator, c.packet_size_bytes))
        if other is None or max(c.cost_cycles, other) <= ABOVE_CYCLES:
            continue
        difference = abs(c.cost_cycles - other)
        apart.append((difference / max(c.cost_cycles, other), difference, c, other))
    wrong = [entry for entry in apart if entry[0] > AGREE and entry[1] > AGREE_CYCLES]
    verdicts.say(
        "two runs agree (10 % or 2 cycles) above 5 cycles",
        not wrong,
        f"{len(apart) - len(wrong)} of {len(apart)}, largest difference {100 * max(e[0] for e in apart):.1f} %",
    )
    for _, _, c, other in wrong:
        print(f"     {c.operator} on {c.packet_size_bytes} B: {c.cost_cycles:.1f} and {other:.1f} cycles")


def accuracy(verdicts: Verdicts, run: RunDirectory) -> None:
    """Claim 6."""
    rows = run.read_measurements()
    costs = rows[(rows["metric"] == COST) & rows["accepted"]].groupby("multiplications")["value"].median()
    low, high = KNOWN_CYCLES
    for count, cost in costs.items():
        known = CYCLES_PER_MULTIPLICATION * float(str(count))
        if not low <= known <= high * 1.01:
            print(f"     chain of {count}: {cost:.2f} cycles")
            continue
        error = cost / known - 1
        verdicts.say(
            f"chain of {known:g} cycles within 5 %", abs(error) <= ACCURACY, f"{cost:.1f} cycles, {100 * error:+.2f} %"
        )


SLACK_CYCLES = 2.0
"""The bound of an interaction (the cheaper operator costs between nothing and twice) is no closer to zero than this,
the effect of the layout of code."""


def together(verdicts: Verdicts, run: RunDirectory) -> None:
    """Claim 7."""
    (platform,) = read_platforms([run.path])
    operators = [each for each in platform.operators if isinstance(each, OperatorCosts)]
    alone = {
        (each.operator, s): float(m) for each in operators for s, m in zip(each.sizes, each.medians(), strict=True)
    }
    for pair in interactions(platform.pairs, operators):
        costs = [alone[name, pair.size_bytes] for name in (pair.first, pair.second)]
        bound = max(min(costs), SLACK_CYCLES) + pair.resolution_cycles
        verdicts.say(
            f"{pair.first}+{pair.second} on {pair.size_bytes} B: interaction within {bound:.1f} cycles",
            abs(pair.extra.value) <= bound,
            f"{pair.extra.value:+.1f} cycles of a sum of {pair.alone.value:.1f}",
        )


def main() -> None:
    """Measure and print."""
    verdicts = Verdicts()
    with tempfile.TemporaryDirectory(prefix="p4perf-bench-") as folder:
        testbed = LocalTestbed(Path(folder) / "cache")
        runs = Path(folder) / "runs"
        try:
            run, seconds = measured("operator/all", testbed, runs)
        except P4PerfError as error:
            raise SystemExit(f"skipped: {error}") from error
        first = operator_costs(run.read_measurements())
        table(first)
        verdicts.say(f"operator/all within {MOST_S:g} s, builds included", seconds <= MOST_S, f"{seconds:.1f} s")
        scaling(verdicts, first)
        repetition(verdicts, first, operator_costs(measured("operator/all", testbed, runs)[0].read_measurements()))
        accuracy(verdicts, measured("operator/accuracy", testbed, runs)[0])
        together(verdicts, measured("operator/pairs", testbed, runs)[0])
    sys.exit(verdicts.failed > 0)


if __name__ == "__main__":
    main()
