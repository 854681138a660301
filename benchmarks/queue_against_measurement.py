"""Latency by the queue model against latency that is measured: dpdk-c in poll mode, loaded by the native generator.

The service time is the reciprocal of the rate under overload. At 10, 50 and 70 % of that rate, Poisson traffic is
offered to the program and, through the same link, to a device that only sends packets back: the noise floor. Predicted
is the processing time of the model in poll mode, convolved with the floor. Everything is measured in one run; a
repetition measures rate, floor and program one after another, and medians over the repetitions are printed, as rows of
the table in docs/queue.md. Arguments: repetitions (7) and entries of the table of the program (10000).
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Mapping
from typing import Any

from _common import Bench, spread

from p4perf.evaluation.latency import LatencyHistogram
from p4perf.models.queue import Lattice, Poisson, PollQueue, shapes
from p4perf.targets.link import LinkPlan
from p4perf.testbeds.loadgen.base import Load, LoadSession, Spacing
from p4perf.testbeds.loadgen.native import NativeGenerator

SHARES = (0.1, 0.5, 0.7)
BURST = 32
TRIAL_S = 0.4
STEP_US = 0.002
LONGEST_US = 200.0
"""Latencies of the floor beyond it count as this long: they are the machine's, and would only make the lattice long."""
LINK = LinkPlan()
WANTED = (0.5, 0.99)

Row = dict[str, float]


def main() -> None:
    """Measure and print."""
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    entries = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    bench = Bench("match_action_table", {"match_kind": "exact", "entries": entries})
    generator = NativeGenerator()
    rates: list[float] = []
    rows: dict[float, list[Row]] = {share: [] for share in SHARES}
    flags: set[str] = set()
    with generator.open(bench.target, bench.plan, LINK, bench.testbed, bench.facts, bench.folder) as session:
        session.offer(Load(None, 0.05), bench.gate_ratio)
        for n in range(repetitions):
            overload = session.offer(Load(None, TRIAL_S, seed=n), bench.gate_ratio)
            rates.append(overload.receive_rate_pps)
            for share in SHARES:
                row, seen = _row(session, overload.receive_rate_pps, share, n, bench.gate_ratio)
                rows[share].append(row)
                flags |= seen
    print(f"dpdk-c, exact match table of {entries} entries, ring of {LINK.slots}; {repetitions} repetitions")
    print(f"rate under overload: Mpps {spread([r / 1e6 for r in rates])}")
    print(f"service time: {1e9 / statistics.median(rates):.1f} ns; flags: {', '.join(sorted(flags)) or 'none'}\n")
    print("| load | floor p50 | predicted p50 | measured p50 | error | predicted p99 | measured p99 |")
    print("|---|---|---|---|---|---|---|")
    for share, found in rows.items():
        middle = {key: statistics.median(row[key] for row in found) for key in found[0]}
        error = middle["predicted_p50"] / middle["measured_p50"] - 1
        cells = [f"{middle[k]:.2f} us" for k in ("floor_p50", "predicted_p50", "measured_p50")]
        cells += [f"{100 * error:+.1f} %", f"{middle['predicted_p99']:.2f} us", f"{middle['measured_p99']:.2f} us"]
        print(f"| {100 * share:g} % | " + " | ".join(cells) + " |")
    print("\nrange of the measured p50 over the repetitions:")
    for share, found in rows.items():
        values = [row["measured_p50"] for row in found]
        print(f"  {100 * share:g} %: {min(values):.2f} to {max(values):.2f} us")


def _row(
    session: LoadSession, saturated_pps: float, share: float, seed: int, gate_ratio: float | None
) -> tuple[Row, set[str]]:
    """One load: floor, program, and what the model makes of the floor."""
    rate_pps = share * saturated_pps
    poisson = Spacing("poisson")
    floor = session.offer(Load(rate_pps, TRIAL_S, poisson, True, "null", seed), gate_ratio)
    program = session.offer(Load(rate_pps, TRIAL_S, poisson, True, "program", seed), gate_ratio)
    service_us, offered_us = 1e6 / saturated_pps, 1e6 / program.rate_pps
    queue = PollQueue(
        Poisson(offered_us / STEP_US), shapes.deterministic(service_us / STEP_US), 0, LINK.slots, BURST, 1, STEP_US
    )
    predicted = queue.solve().delay.plus(_lattice(floor.histogram))
    measured, below = _histogram(program.histogram), _histogram(floor.histogram)
    row = {"floor_p50": below.percentile_us(50)}
    for quantile in WANTED:
        name = f"p{100 * quantile:g}"
        row[f"predicted_{name}"] = predicted.quantile(quantile) * STEP_US
        row[f"measured_{name}"] = measured.percentile_us(100 * quantile)
    return row, {*floor.flags, *program.flags}


def _histogram(record: Mapping[str, Any] | None) -> LatencyHistogram:
    if record is None:
        raise SystemExit("the generator gave no latencies")
    return LatencyHistogram.from_record(record)


def _lattice(record: Mapping[str, Any] | None) -> Lattice:
    """The floor in steps."""
    histogram = _histogram(record)
    edges = histogram.layout.edges([index for index, _ in histogram.counts])
    times = [min((low + high) / 2 / 1e3, LONGEST_US) / STEP_US for low, high in edges]
    return shapes.from_samples(times, [float(count) for _, count in histogram.counts])


if __name__ == "__main__":
    main()
