"""How exact is the native load generator, and how fast?

Rate: the achieved rate against the asked one, from 1 kpps to 70 % of the highest rate, through the program. Highest
rate: packets that come back in a second, without a device, with the baseline and with the program. Accounts: losses,
duplicates and swaps that a faulty device injects against those that are counted. Repeatability: the throughput without
loss, searched again and again.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from _common import Bench, spread

from p4perf.experiment.load import LoadMeasurement, LoadPlan
from p4perf.targets.link import LinkPlan
from p4perf.testbeds.loadgen.base import Load, LoadSession, Spacing
from p4perf.testbeds.loadgen.native import NativeGenerator

RUNS = 9
SEARCHES = 5
RATES_PPS = (1e3, 1e4, 1e5, 1e6)
SHARES = (0.1, 0.5, 0.7)
LIMIT = 1e-4
MOST_MPPS = 10.0
LINK = LinkPlan()


def main() -> int:
    """Measure and print; 1 if something that should hold does not."""
    bench = Bench([("match_action_table", {"match_kind": "exact", "entries": 10_000})])
    generator = NativeGenerator()
    with generator.open(bench.target, bench.plan, LINK, bench.testbed, bench.facts, bench.folder) as session:
        maximum_pps, fast = _highest(session, bench.gate_ratio)
        good = [fast, _rates(session, maximum_pps, bench.gate_ratio), _accounts(session, bench.gate_ratio)]
        _searches(session, bench.gate_ratio)
    return 0 if all(good) else 1


def _highest(session: LoadSession, gate_ratio: float | None) -> tuple[float, bool]:
    best = {}
    for device in ("null", "baseline", "program"):
        trials = [session.offer(Load(None, 0.2, device=device, seed=n), gate_ratio) for n in range(RUNS)]
        rates = [t.receive_rate_pps / 1e6 for t in trials]
        best[device] = statistics.median(rates)
        print(f"highest rate, {device:8}: Mpps {spread(rates)}")
    good = best["null"] >= MOST_MPPS
    print(f"  at least {MOST_MPPS:g} Mpps through the ring at 64 B: {'holds' if good else 'does NOT hold'}")
    return best["program"] * 1e6, good


def _rates(session: LoadSession, maximum_pps: float, gate_ratio: float | None) -> bool:
    good = True
    for rate_pps in (*RATES_PPS, *(share * maximum_pps for share in SHARES)):
        duration_s = 0.2 if rate_pps > 5e3 else 1.0
        trials = [session.offer(Load(rate_pps, duration_s, seed=n), gate_ratio) for n in range(RUNS)]
        errors = [t.rate_pps / rate_pps - 1 for t in trials]
        median = statistics.median(errors)
        good &= abs(median) <= LIMIT
        flags = sorted({flag for t in trials for flag in t.flags})
        print(
            f"rate {rate_pps / 1e6:9.4f} Mpps: median error {100 * median:+.5f} %, largest "
            f"{100 * max(map(abs, errors)):.5f} %, lost {sum(t.lost for t in trials)} of {sum(t.sent for t in trials)}"
            f"{'  ' + ', '.join(flags) if flags else ''}"
        )
    print(f"  within 0.01 % of the asked rate: {'holds' if good else 'does NOT hold'}")
    return good


def _accounts(session: LoadSession, gate_ratio: float | None) -> bool:
    good = True
    for n in range(RUNS):
        offered = Load(2e6, 1.0, device="faulty", seed=n, faults=(1_000_000, 300_007, 200_003))
        account = session.offer(offered, gate_ratio)
        raw = account.raw
        injected = [sum(raw[f"injected_{what}"]) for what in ("losses", "duplicates", "swaps")]
        in_front = sum(raw["link_full"]) + sum(raw["device_tx_full"])
        counted = [account.lost - in_front, account.duplicated, account.reordered]
        good &= counted == injected
        if counted != injected:
            print(f"  injected {injected}, counted {counted}")
    print(f"accounts of losses, duplicates and swaps in {RUNS} runs: {'exact' if good else 'NOT exact'}")
    return good


def _searches(session: LoadSession, gate_ratio: float | None) -> None:
    plan = LoadPlan(
        *("native", LINK, Spacing(), ("throughput_ndr", "throughput_pdr"), None, (), False),
        *("mlrsearch", 0.005, 0.005, 0.75, 12, 300, 0.2, 0.4),
    )
    found: dict[str, list[float]] = {"ndr": [], "pdr": []}
    trials: list[float] = []
    for n in range(SEARCHES):
        record = LoadMeasurement(session, plan, 1000 * n, gate_ratio).measure()
        trials.append(len(record["search"]["trials"]))
        for name, rates in found.items():
            rates.append(record["search"]["bounds"][name]["lower_pps"] / 1e6)
        print(f"  search {n}: {record['search']['end']}, {_flags(record['search']['bounds'].values())}")
    for name, rates in found.items():
        print(f"{name.upper()}: Mpps {spread(rates)}")
    print(f"trials of a search: {spread(trials)}")


def _flags(bounds: Sequence[dict[str, list[str]]]) -> str:
    return ", ".join(sorted({flag for b in bounds for flag in b["flags"]})) or "no flags"


if __name__ == "__main__":
    raise SystemExit(main())
