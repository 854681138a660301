"""How fast is the analysis of interrupt moderation, and how much faster than simulation that is as accurate?

Forty operating points (L = 5200 steps of 1 us, and eight with a small buffer), each solved several times: median and
longest CPU time. Points with a load of 0.97 to 1.03. Then the simulation: three pilots of four million packets tell
the width of its intervals, from which follows how many packets take them to the tolerance within which the model was
compared (0.05 % of the mean and of the standard deviation, 1 % of a loss above 0.1 %). What so many packets cost is the
measured CPU time of a simulation of hardly any packets, and that of each packet more, warming up included. Where fewer
packets are needed than in a pilot, so many are simulated and measured. Both run in this one process, on one core, point
by point. Prints whether the limits hold; 1 if one does not.
"""
# ruff: noqa: E402 - libraries read how many threads they may have when they are loaded

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

LIBRARIES = ("OMP", "OPENBLAS", "MKL")
if any(os.environ.get(f"{name}_NUM_THREADS") != "1" for name in LIBRARIES):
    os.environ |= {f"{name}_NUM_THREADS": "1" for name in LIBRARIES}
    os.execv(sys.executable, [sys.executable, *sys.argv])  # noqa: S606 - the same command again

from p4perf.models.queue import Lattice, ModeratedQueue, distributions
from p4perf.models.queue.simulation import Simulated, simulate

RUNS = 5
PILOT, PILOTS, FEW = 4_000_000, 3, 16_000
MEDIAN_S, LONGEST_S, NEAR_ONE, FASTER = 0.15, 1.5, 3.0, 40.0
TOLERANCE, LOSS_TOLERANCE, LEAST_LOSS = 5e-4, 1e-2, 1e-3
KINDS: dict[str, Callable[[float], Lattice]] = {
    "det": distributions.deterministic,
    "pois": distributions.poisson_pmf,
    "geo": distributions.geometric,
    "nbin": distributions.negative_binomial,
}
EMP = (0.05394, 0.113673, 0.148623, 0.151634, 0.134337, 0.109314, 0.084383, 0.063007, 0.046075, 0.033269, 0.02385)
EMP = (*EMP, 0.017039, 0.012164, 0.008692)
"""Probabilities of service times of 3 to 16 us; mean 7.25 us."""
LARGE = ((5, 200), (8, 200), (12, 200), (7, 100), (30, 100), (100, 100), (6, 500), (10, 500))
"""Mean interarrival time and moderation interval [us]."""
NEAR = ((7.6, 100), (7.4, 200), (7.2, 200), (7.35, 500), (7.15, 500))


@dataclass(frozen=True)
class Point:
    """An operating point."""

    name: str
    queue: ModeratedQueue


def main() -> int:
    """Measure and print."""
    points = [_point(kind, mean, tau) for mean, tau in LARGE for kind in KINDS]
    points += [_point(kind, 8, 100, limit=300) for kind in KINDS]
    bimodal = distributions.from_samples([3, 10, 24], [0.7, 0.2, 0.1])
    points += [_point(kind, 7 if kind == "det" else 7.5, 50, 150, bimodal, 2) for kind in KINDS]
    near = [_point(kind, mean, tau) for mean, tau in NEAR for kind in KINDS]
    _cpu_s(points[0].queue)
    took = {point.name: _cpu_s(point.queue) for point in points}
    beside = {p.name: _cpu_s(p.queue) for p in near if 0.97 <= p.queue.load() <= 1.03}
    median, longest = statistics.median(took.values()), max(took.values())
    slowest = max(took, key=lambda name: took[name])
    good = [
        _limit("median CPU time of an operating point [s]", median, MEDIAN_S),
        _limit(f"longest CPU time [s] ({slowest})", longest, LONGEST_S),
    ]
    nearest = max(beside, key=lambda name: beside[name])
    print(
        f"  load 0.97 to 1.03, {len(beside)} points: median {statistics.median(beside.values()):.3f} s, "
        f"longest {beside[nearest]:.3f} s ({nearest})"
    )
    good.append(_limit("  longest of them over the allowed median", beside[nearest] / MEDIAN_S, NEAR_ONE))
    print(f"  longest of them over the median that was measured: {beside[nearest] / median:.1f}")
    print(f"\n{'point':24} {'analysis s':>10} {'packets':>10} {'simulation s':>12} {'faster':>8}")
    ratios, simulated_s = {}, 0.0
    for point in points:
        packets, needed_s = _needed(point.queue)
        simulated_s += needed_s
        ratios[point.name] = needed_s / took[point.name]
        print(f"{point.name:24} {took[point.name]:10.5f} {packets:10.3g} {needed_s:12.3f} {ratios[point.name]:8.0f}")
    print()
    whole = simulated_s / sum(took.values())
    good.append(_limit("all points: times faster than the simulation", whole, FASTER, at_least=True))
    least, *cuts, most = _deciles(list(ratios.values()))
    print(f"  of single points: median {cuts[4]:.0f}, least {least:.0f}, most {most:.0f}")
    print(f"  deciles: {' '.join(f'{cut:.0f}' for cut in cuts)}")
    below = [f"{name} ({ratio:.0f})" for name, ratio in ratios.items() if ratio < FASTER]
    print(f"  {len(ratios) - len(below)} of {len(ratios)} reach it; below: {', '.join(below) or 'none'}")
    return 0 if all(good) else 1


def _point(
    kind: str, mean: float, tau: int, limit: int = 5200, service: Lattice | None = None, overhead: int = 4
) -> Point:
    given = service or distributions.from_samples(range(3, 17), EMP)
    return Point(f"{kind} {mean:g}/{tau}/{limit}", ModeratedQueue(KINDS[kind](mean), given, tau, overhead, limit))


def _cpu_s(queue: ModeratedQueue) -> float:
    """CPU time of a solution, median of a few."""
    found = []
    for _ in range(RUNS):
        began = time.process_time()
        queue.solve()
        found.append(time.process_time() - began)
    return statistics.median(found)


def _needed(queue: ModeratedQueue) -> tuple[float, float]:
    """Packets for the tolerance, and CPU time of a simulation of so many."""
    fixed_s = _simulation_s(queue, FEW)
    began = time.process_time()
    squares = [_width(simulate(queue, PILOT, seed=seed)) ** 2 for seed in range(1, PILOTS + 1)]
    each_s = ((time.process_time() - began) / PILOTS - fixed_s) / (PILOT - FEW)
    packets = PILOT * statistics.mean(squares)
    if packets <= PILOT:
        return packets, _simulation_s(queue, max(int(packets), FEW))
    return packets, fixed_s + (packets - FEW) * each_s


def _width(seen: Simulated) -> float:
    """Half-width of the widest interval over its tolerance."""
    widths = [
        seen.mean_us.half_width / seen.mean_us.value / TOLERANCE,
        seen.std_us.half_width / seen.std_us.value / TOLERANCE,
    ]
    if seen.loss.value > LEAST_LOSS:
        widths.append(seen.loss.half_width / seen.loss.value / LOSS_TOLERANCE)
    return max(widths)


def _simulation_s(queue: ModeratedQueue, packets: int) -> float:
    """CPU time of a simulation, median of a few."""
    found = []
    for seed in range(RUNS):
        began = time.process_time()
        simulate(queue, packets, seed=seed)
        found.append(time.process_time() - began)
    return statistics.median(found)


def _deciles(values: list[float]) -> list[float]:
    """Least, the nine deciles, most."""
    return [min(values), *statistics.quantiles(values, n=10, method="inclusive"), max(values)]


def _limit(what: str, value: float, limit: float, *, at_least: bool = False) -> bool:
    holds = value >= limit if at_least else value <= limit
    print(f"{what}: {value:.3g} ({'at least' if at_least else 'at most'} {limit:g}): {'holds' if holds else 'FAILS'}")
    return holds


if __name__ == "__main__":
    sys.exit(main())
