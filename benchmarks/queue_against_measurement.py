"""Latency and loss by the queue model against what is measured over rings, by the native load generator.

For each program and each repetition: the rate under some overload; 30 % of it, from which the cost of batches follows
(a + b n, and what one behind an empty look takes more) and how much slower the program works behind stolen time (the
median over the repetitions so far); then Poisson traffic at 10, 50 and 70 % of the rate. At each load a device that
only sends packets back comes first: its latency is the noise floor, and what it says of stolen time is that of the
machine. So all that a prediction is made of is there before the program is measured at that load. Loss is predicted at
110 %. Printed are medians over the repetitions, as rows of the table in docs/estimates.md.
Arguments: repetitions (7), targets (dpdk-c,dpdk-swx).

The machine may move the two cores, nearer to each other or farther apart, and steal time. What a batch of one packet
costs without a program shows the former: a load counts if that is the same, to NEAR, before and after the program and
when its batches were learnt. Quiet are those of them in which stolen time is no more than QUIET of the time, and the
same, to SAME, for floor and program.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from _common import Bench

from p4perf.errors import NoVerdictError, UsageError
from p4perf.evaluation.load import LatencyHistogram
from p4perf.evaluation.load.batches import BatchCost, StolenTime, latency, slower_behind_stolen
from p4perf.targets.link import LinkPlan
from p4perf.testbeds.loadgen.base import Account, Load, LoadSession, Spacing
from p4perf.testbeds.loadgen.native import NativeGenerator

SHARES = (0.1, 0.5, 0.7)
LEARNT_AT = 0.3
OVERLOAD = 1.1
SOME = 1.2
TRIAL_S = 0.4
STEP_US = 0.005
LINK = LinkPlan(hugepages=True)
NEAR = 0.15
QUIET = 0.03
SAME = 0.5
FRAME_BYTES = 128

TABLE = "match_action_table"
PROGRAMS = {
    "exact table, 10 000 entries": [(TABLE, {"match_kind": "exact", "entries": 10_000})],
    "lpm table, 1 000 entries": [(TABLE, {"match_kind": "lpm", "entries": 1000})],
    "lpm table and checksum": [
        (TABLE, {"match_kind": "lpm", "entries": 1000}),
        ("checksum", {"operation": "update", "size_bytes": 20}),
    ],
}


@dataclass(frozen=True)
class Row:
    """One load in one repetition: what was predicted, what was measured [us]; at :data:`OVERLOAD` shares of loss."""

    load: float
    predicted: tuple[float, ...]
    measured: tuple[float, ...]
    same_place: bool
    quiet: bool


def main() -> None:
    """Measure and print."""
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    targets = sys.argv[2].split(",") if len(sys.argv) > 2 else ["dpdk-c", "dpdk-swx"]
    for target in targets:
        for name, components in PROGRAMS.items():
            bench = Bench(components, FRAME_BYTES, target)
            rows: list[Row] = []
            slower: list[float] = []
            with NativeGenerator().open(
                bench.target, bench.plan, LINK, bench.testbed, bench.facts, bench.folder
            ) as session:
                session.offer(Load(None, TRIAL_S), bench.gate_ratio)
                for seed in range(repetitions):
                    try:
                        rows += list(_repetition(session, seed, slower))
                    except (NoVerdictError, UsageError) as error:
                        print(f"  a repetition says nothing: {error}", flush=True)
            print(f"\n{target}, {name}: {repetitions} repetitions, ring of {LINK.slots}\n")
            kept = [row for row in rows if row.same_place]
            _table(kept)
            print("\nin quiet:\n")
            _table([row for row in kept if row.quiet])
            lost = [row for row in kept if row.load == OVERLOAD]
            if lost:
                both = [(row.predicted[0], row.measured[0]) for row in lost]
                predicted, measured, off = (
                    statistics.median(values) for values in zip(*((p, m, p - m) for p, m in both), strict=True)
                )
                print(f"\nloss at {OVERLOAD:.0%}: predicted {predicted:.1%}, measured {measured:.1%}, ", end="")
                print(f"difference {off:+.1%} ({len(lost)})", flush=True)


def _repetition(session: LoadSession, seed: int, slower: list[float]) -> Iterator[Row]:
    # More than some overload would slow the device down, which reads rings that are written all the time.
    most = session.offer(Load(None, TRIAL_S, seed=seed)).receive_rate_pps
    overload = _poisson(session, SOME * most, seed, "program")
    rate = overload.receive_rate_pps
    learnt = {who: _poisson(session, LEARNT_AT * rate, seed, who) for who in ("null", "program")}
    program = BatchCost.of([learnt["program"].raw, overload.raw])
    nothing = BatchCost.of([learnt["null"].raw])
    batch, packet, more = (1e3 * us for us in (program.batch_us, program.packet_us, program.idle_us))
    print(f"  {rate / 1e6:.2f} Mpps; a batch of n packets {batch:.0f} + {packet:.0f} n ns, {more:.0f} more behind none")
    calm, marks = [learnt["null"]], [_mark(learnt["null"])]
    costs = {"program": program, "nothing": nothing, "most_pps": rate, "ring": LINK.slots, "step_us": STEP_US}
    some = {"floor": _histogram(learnt["null"]), "stolen": StolenTime.of([learnt["null"].raw])}
    some |= {"rate_pps": learnt["program"].rate_pps}
    p99_us = _histogram(learnt["program"]).percentile_us(99)
    slower.append(slower_behind_stolen(p99_us, lambda factor: latency(**costs, **some, slower=factor), STEP_US))
    waiting: list[tuple[Row, int]] = []
    for load in (*SHARES, OVERLOAD):
        floor = _poisson(session, load * rate, seed, "null")
        calm.append(floor)
        marks.append(_mark(floor))
        stolen = StolenTime.of([each.raw for each in calm])
        offered_pps, predicted = floor.rate_pps, (max(1 - rate / floor.rate_pps, 0.0),)
        if load != OVERLOAD:
            now = {"floor": _histogram(floor), "stolen": stolen, "rate_pps": offered_pps}
            delay = latency(**costs, **now, slower=statistics.median(slower))
            predicted = tuple(delay.quantile(share) * STEP_US for share in (0.5, 0.99))
        found = _poisson(session, load * rate, seed, "program")
        seen = StolenTime.of([found.raw]).share
        quiet = stolen.share < QUIET and abs(seen / stolen.share - 1) < SAME
        measured = (found.loss_ratio,)
        if load != OVERLOAD:
            measured = tuple(_histogram(found).percentile_us(p) for p in (50, 99))
        waiting.append((Row(load, predicted, measured, True, quiet), len(marks)))
    marks.append(_mark(_poisson(session, LEARNT_AT * rate, seed, "null")))
    for row, after in waiting:
        near = [marks[n] / marks[0] - 1 for n in (1, after - 1, after)]
        yield replace(row, same_place=all(abs(off) < NEAR for off in near))


def _mark(null: Account) -> float:
    """Time of a batch of one packet behind an empty look, without a program [us]."""
    count, time_us = null.raw["batches_after_idle"][1]
    return float(time_us / max(count, 1))


def _poisson(session: LoadSession, rate_pps: float, seed: int, device: str) -> Account:
    return session.offer(Load(rate_pps, TRIAL_S, Spacing("poisson"), True, device, seed))  # type: ignore[arg-type]


def _histogram(account: Account) -> LatencyHistogram:
    return LatencyHistogram.from_record(account.histogram or {})


def _table(rows: Sequence[Row]) -> None:
    """Rows of docs/estimates.md; medians over the repetitions, also of the error, and the middle half of measurements.

    The cores are nearer to each other in some repetitions than in others, so errors are those inside one.
    """
    print("| load | repetitions | predicted p50 | measured p50 | error | predicted p99 | measured p99 | error |")
    print("|---|---|---|---|---|---|---|---|")
    for load in SHARES:
        chosen = [row for row in rows if row.load == load]
        if not chosen:
            continue
        cells = [f"{load:.0%}", str(len(chosen))]
        for n in (0, 1):
            predicted = statistics.median(row.predicted[n] for row in chosen)
            low, measured, high = np.quantile([row.measured[n] for row in chosen], (0.25, 0.5, 0.75))
            error = statistics.median(row.predicted[n] / row.measured[n] - 1 for row in chosen)
            cells += [f"{predicted:.2f} us", f"{measured:.2f} us ({low:.2f} .. {high:.2f})", f"{error:+.1%}"]
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
