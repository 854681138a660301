"""How well does a baseline measurement repeat beside busy neighbours? Gated against ungated, in one run, interleaved.

Gated: short windows between calibrations in real-time bursts, median of the windows that count. Ungated: what a simple
benchmark does in the same time: the mean over all windows under ordinary scheduling. Prints the coefficient of
variation (CV) of each over 20 process starts, in core cycles and in TSC cycles per packet.
"""

from __future__ import annotations

import statistics

from _common import Bench, busy_neighbours, spread

from p4perf.targets.windows import window_statistics

STARTS = 20
NEIGHBOURS = 2


def main() -> None:
    """Measure and print."""
    bench = Bench([("l2fwd", {})])
    gated: list[float] = []
    ungated: list[float] = []
    tried = rejected = 0
    with busy_neighbours(NEIGHBOURS):
        while len(gated) < STARTS and tried < 4 * STARTS:
            tried += 1
            record = bench.trial(tried)
            if record is not None:
                summary = bench.target.summarise(record, bench.gate_ratio)
                if summary.accepted:
                    gated.append(window_statistics(record, bench.gate_ratio)["baseline"].core_cycles)
                else:
                    rejected += 1
            plain = bench.trial(tried, mode="plain")
            if plain is not None:
                windows = plain["windows"]
                both = zip(windows["program"], windows["tsc_per_packet"], strict=True)
                ungated.append(statistics.fmean(cycles for program, cycles in both if program == 1))
    print(f"baseline of dpdk-c beside {NEIGHBOURS} busy processes, cycles per packet over process starts")
    print(f"  gated (core cycles):   {spread(gated)}  ({rejected} starts rejected)")
    print(f"  ungated (TSC cycles):  {spread(ungated)}")


if __name__ == "__main__":
    main()
