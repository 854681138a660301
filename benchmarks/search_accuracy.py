"""How many trials do the throughput searches need, and how far from the truth do they end?

Simulated devices of known capacity, 10 kpps to 20 Mpps, one for each seed. What they do is in the first column:

exact         forwards its capacity and loses what is beyond
single 1/10   loses a single packet by chance as well, in every tenth trial at its capacity
single 1/3    in every third
degraded      forwards 70 % of its capacity as soon as it is overloaded
both          degraded, with single losses in every third trial

Columns: trials of a search for NDR and PDR together; distance of the NDR from the capacity; how many searches end more
than 1 % below it; seconds of traffic of all searches together. `overload` claims no NDR: its distance is that of its
receive rate.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from p4perf.experiment.search import Search, SearchLimits, ndr_and_pdr
from p4perf.experiment.search.bisection import Bisection, Overload
from p4perf.experiment.search.mlrsearch import MLRSearch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from support.simulated_device import SimulatedDevice, random_capacity, single_losses

TRIAL_S = 0.2
LIMITS = SearchLimits(1e3, 40e6)
FAR = 0.01
CASES: dict[str, tuple[float, float]] = {
    "exact": (0.0, 1.0),
    "single 1/10": (1 / 10, 1.0),
    "single 1/3": (1 / 3, 1.0),
    "degraded": (0.0, 0.7),
    "both": (1 / 3, 0.7),
}
"""Share of trials that lose a packet by chance, and share of the capacity that is left under overload."""
METHODS: tuple[tuple[Search, int, float], ...] = (
    (MLRSearch(), 12, 0.75),
    (MLRSearch(), 21, 0.5),
    (MLRSearch(), 1, 0.5),
    (Bisection(), 12, 0.75),
    (Bisection(), 1, 0.5),
    (Overload(), 3, 0.5),
)
"""Search, trials that decide on a load, and exceed ratio."""


def device(seed: int, share: float, degraded: float) -> SimulatedDevice:
    """The device of a seed."""
    made = SimulatedDevice(random_capacity(seed), degraded=degraded, seed=seed)
    return single_losses(made, TRIAL_S, share)


def line(search: Search, trials_per_load: int, exceed_ratio: float, devices: Sequence[SimulatedDevice]) -> str:
    """What a search needs for these devices and how near it comes."""
    goals = ndr_and_pdr(TRIAL_S, trials_per_load=trials_per_load, exceed_ratio=exceed_ratio)
    trials, errors, traffic_s = [], [], 0.0
    for one in devices:
        result = search.find(one, goals, LIMITS)
        rate = next(iter(result.bounds.values())).throughput_pps
        trials.append(len(result.trials))
        errors.append(abs(rate / one.capacity_pps - 1))
        traffic_s += result.duration_s
    far = sum(error > FAR for error in errors)
    return (
        f"{statistics.median(trials):6.0f} {max(trials):5d} {100 * statistics.median(errors):8.2f} % "
        f"{100 * max(errors):6.2f} % {far:6d} {traffic_s:9.0f}"
    )


def main() -> None:
    """Search and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=100, help="devices of each kind")
    seeds = range(parser.parse_args().seeds)
    print(f"{'':39} {'trials':>12} {'error':>19}")
    print(
        f"{'device':12} {'search':10} {'per load':>8} {'exceed':>6} {'median':>6} {'max':>5} {'median':>10} {'max':>8} "
        f"{'> 1 %':>6} {'traffic s':>9}"
    )
    for case, (share, degraded) in CASES.items():
        for search, trials_per_load, exceed_ratio in METHODS:
            found = line(search, trials_per_load, exceed_ratio, [device(seed, share, degraded) for seed in seeds])
            print(f"{case:12} {search.name:10} {trials_per_load:8d} {exceed_ratio:6.2f} {found}")


if __name__ == "__main__":
    main()
