"""Latency by the queue model against latency that is measured: dpdk-c in poll mode, loaded by the native generator.

The service time is the reciprocal of the rate under overload. At 10, 50 and 70 % of that rate, Poisson traffic is
offered to the program and, through the same link, to a device that only sends packets back: the noise floor. Predicted
is the processing time of the model in poll mode, convolved with the floor. Everything is measured in one run; a
repetition measures rate, floor and program one after another, and medians over the repetitions are printed, as rows of
the table in docs/queue.md. Arguments: repetitions (7) and entries of the table of the program (10000).

A rate does not tell what a batch costs beside its packets. So there are two predictions: without such a cost, and with
the one that makes the median at 10 % right, which leaves the other loads to be predicted.
"""

from __future__ import annotations

import statistics
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from _common import Bench, spread

from p4perf.evaluation.load import LatencyHistogram
from p4perf.models.queue import Lattice, Poisson, PollQueue, distributions
from p4perf.targets.link import LinkPlan
from p4perf.testbeds.loadgen.base import Load, LoadSession, Spacing
from p4perf.testbeds.loadgen.native import NativeGenerator

SHARES = (0.1, 0.5, 0.7)
BURST = 32
TRIAL_S = 0.4
STEP_US = 0.005
LONGEST_US = 200.0
"""Latencies of the floor beyond it count as this long: they are the machine's, and would only make the lattice long."""
LINK = LinkPlan()
MOST_COST_US = 2.0
"""Largest cost of a batch that is looked for."""


@dataclass(frozen=True)
class Trial:
    """One load: what was offered, floor and program."""

    offered_us: float
    floor: LatencyHistogram
    program: LatencyHistogram
    flags: tuple[str, ...]

    def predicted(self, saturated_us: float, cost_us: float) -> Lattice:
        """The latency by the model [steps]; full batches take 32 times ``saturated_us``."""
        service = (saturated_us - cost_us / BURST) / STEP_US
        queue = PollQueue(
            Poisson(self.offered_us / STEP_US),
            distributions.deterministic(service),
            distributions.from_samples([cost_us / STEP_US]),
            *(LINK.slots, BURST, 1, STEP_US),
        )
        edges = self.floor.layout.edges([index for index, _ in self.floor.counts])
        times = [min((low + high) / 2 / 1e3, LONGEST_US) / STEP_US for low, high in edges]
        floor = distributions.from_samples(times, [float(count) for _, count in self.floor.counts])
        return queue.solve().delay.plus(floor)


def main() -> None:
    """Measure and print."""
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    entries = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    bench = Bench("match_action_table", {"match_kind": "exact", "entries": entries})
    generator = NativeGenerator()
    measured: list[tuple[float, dict[float, Trial]]] = []
    with generator.open(bench.target, bench.plan, LINK, bench.testbed, bench.facts, bench.folder) as session:
        session.offer(Load(None, 0.05), bench.gate_ratio)
        for n in range(repetitions):
            overload = session.offer(Load(None, TRIAL_S, seed=n), bench.gate_ratio)
            rate = overload.receive_rate_pps
            measured.append((rate, {share: _trial(session, share * rate, n, bench.gate_ratio) for share in SHARES}))
    rates = [rate for rate, _ in measured]
    flags = {flag for _, trials in measured for trial in trials.values() for flag in trial.flags}
    costs = [_cost_us(1e6 / rate, trials[SHARES[0]]) for rate, trials in measured]
    print(f"dpdk-c, exact match table of {entries} entries, ring of {LINK.slots}; {repetitions} repetitions")
    print(f"rate under overload: Mpps {spread([r / 1e6 for r in rates])}")
    print(f"time per packet: {1e9 / statistics.median(rates):.1f} ns; flags: {', '.join(sorted(flags)) or 'none'}")
    print(f"cost of a batch from the median at {100 * SHARES[0]:g} %: {1e3 * statistics.median(costs):.0f} ns\n")
    for title, given in (("without a cost of batches", [0.0] * len(costs)), ("with it", costs)):
        print(f"{title}\n")
        _table(measured, given)
    print("range of the measured p50 over the repetitions:")
    for share in SHARES:
        values = [trials[share].program.percentile_us(50) for _, trials in measured]
        print(f"  {100 * share:g} %: {min(values):.2f} to {max(values):.2f} us")


def _table(measured: Sequence[tuple[float, Mapping[float, Trial]]], costs_us: Sequence[float]) -> None:
    """Rows of docs/queue.md; medians over the repetitions."""
    print("| load | floor p50 | predicted p50 | measured p50 | error | predicted p99 | measured p99 |")
    print("|---|---|---|---|---|---|---|")
    for share in SHARES:
        columns: dict[str, list[float]] = defaultdict(list)
        for (rate, trials), cost_us in zip(measured, costs_us, strict=True):
            trial = trials[share]
            predicted = trial.predicted(1e6 / rate, cost_us)
            columns["floor"].append(trial.floor.percentile_us(50))
            for percent in (50, 99):
                columns[f"p{percent}"].append(predicted.quantile(percent / 100) * STEP_US)
                columns[f"m{percent}"].append(trial.program.percentile_us(percent))
        middle = {name: statistics.median(values) for name, values in columns.items()}
        cells = [f"{middle[name]:.2f} us" for name in ("floor", "p50", "m50")]
        cells += [f"{100 * (middle['p50'] / middle['m50'] - 1):+.1f} %"]
        cells += [f"{middle[name]:.2f} us" for name in ("p99", "m99")]
        print(f"| {100 * share:g} % | {' | '.join(cells)} |")
    print()


def _cost_us(saturated_us: float, trial: Trial) -> float:
    """The cost of a batch with which the predicted median is the measured one, by bisection."""
    wanted = trial.program.percentile_us(50)
    low, high = 0.0, min(MOST_COST_US, 0.9 * BURST * saturated_us)
    while high - low > STEP_US:
        middle = (low + high) / 2
        if trial.predicted(saturated_us, middle).quantile(0.5) * STEP_US < wanted:
            low = middle
        else:
            high = middle
    return low


def _trial(session: LoadSession, rate_pps: float, seed: int, gate_ratio: float | None) -> Trial:
    """Floor and program at one load."""
    poisson = Spacing("poisson")
    floor = session.offer(Load(rate_pps, TRIAL_S, poisson, True, "null", seed), gate_ratio)
    program = session.offer(Load(rate_pps, TRIAL_S, poisson, True, "program", seed), gate_ratio)
    found = [LatencyHistogram.from_record(account.histogram or {}) for account in (floor, program)]
    return Trial(1e6 / program.rate_pps, *found, (*floor.flags, *program.flags))


if __name__ == "__main__":
    main()
