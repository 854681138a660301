"""What does each factor of virtual network I/O gain? Leave-one-out and alone, in one run, interleaved.

Every configuration is started once in a round, in another order each time; the rate of a start is that of its median
window. Ratios are between configurations of the same round, and their median over the rounds is printed with what it
has to be. Ends with status 1 if one is not.
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from p4perf.errors import MeasurementError, P4PerfError
from p4perf.experiment import open_target, open_testbed, require_usable
from p4perf.experiment.bench import measured_gate_ratios
from p4perf.programs.component import TrafficPlan, build_workload
from p4perf.targets.base import TrialOptions
from p4perf.targets.roles import measuring

FACTORS: dict[str, dict[str, Any]] = {
    "a": {"virtio_header_bytes": 0},
    "b": {"descriptor_bytes": 4},
    "c": {"header_bytes": 0},
    "d": {"headroom_bytes": 0, "data_room_bytes": 64},
    "e": {"rx_copy": "none", "tx_copy": "none"},
    "f": {
        "batch": 1024,
        "queue": 2048,
        "host_cache": 1024,
        "function_cache": 1024,
        "rx_ring": 1024,
        "tx_ring": 1024,
    },
}
ALL = "".join(FACTORS)

CLAIMS = (
    ("all six factors over the base", ALL, "", 3.0, math.inf),
    ("a, virtio header: leave-one-out", ALL, "bcdef", 1.0, math.inf),
    ("b, descriptors of 4 B: leave-one-out", ALL, "acdef", 0.9, math.inf),
    ("c, buffer header: leave-one-out", ALL, "abdef", 2.0, math.inf),
    ("d, small buffers: leave-one-out", ALL, "abcef", 0.8, 1.5),
    ("e, zero-copy: leave-one-out", ALL, "abcdf", 1.2, math.inf),
    ("f, batches of 1024: leave-one-out", ALL, "abcde", 1.2, math.inf),
    ("f alone over the base", "f", "", 0.0, 1.5),
    ("header of 1024 B over the base", "header", "", 0.0, 0.7),
)
"""What, numerator, denominator, and the bounds of their ratio."""


def parameters_of(configuration: str) -> dict[str, Any]:
    """The parameters of a configuration: letters of factors, or ``header``."""
    if configuration == "header":
        return {"header_bytes": 1024}
    return {name: value for letter in configuration for name, value in FACTORS[letter].items()}


def main() -> int:
    """Measure and print; 0 if all ratios are what they have to be."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=9)
    rounds = arguments.parse_args().rounds
    target, testbed = measuring(open_target("vio")), open_testbed("local")
    try:
        facts = require_usable(target, testbed)
    except P4PerfError as error:
        raise SystemExit(f"skipped: {error}") from error
    names = sorted({c for _, over, under, _, _ in CLAIMS for c in (over, under)} | set(FACTORS))
    plans = {}
    for name in names:
        workload = build_workload([("vio", parameters_of(name))], frame_size_bytes=64)
        plans[name] = target.plan(workload, TrafficPlan(64), facts)
        testbed.build(plans[name].build)
    rates: list[dict[str, float]] = []
    rejected = 0
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="p4perf-bench-") as folder:
        ratio = measured_gate_ratios(target, testbed, Path(folder)).at()
        for number in range(rounds):
            order = np.random.default_rng(number).permutation(names)
            rate: dict[str, float] = {}
            for name in map(str, order):
                options = TrialOptions(seed=number + 1, gate_ratio=ratio)
                try:
                    record = target.parse(testbed.run(target.trial(plans[name], options, facts), Path(folder)))
                except MeasurementError as error:
                    print(f"  a start failed: {error}")
                    continue
                summary = target.summarise(record, ratio)
                rejected += not summary.accepted
                values = {m.metric: m.value for m in summary.metrics}
                if "packet_rate" in values:
                    rate[name] = values["packet_rate"]
            rates.append(rate)
    print(f"virtual I/O, {rounds} rounds of {len(names)} configurations, {time.monotonic() - begun:.0f} s, ", end="")
    print(f"{rejected} of {rounds * len(names)} starts outside of the rules of acceptance")
    for name in sorted(names, key=lambda n: (len(n), n)):
        found = [rate[name] for rate in rates if name in rate]
        if found:
            print(f"  {name or 'base':8} {statistics.median(found):8.1f} Mpps  ({min(found):.1f} to {max(found):.1f})")
    good = True
    for what, over, under, low, high in CLAIMS:
        ratios = [rate[over] / rate[under] for rate in rates if over in rate and under in rate]
        value = statistics.median(ratios) if ratios else math.nan
        fine = low <= value <= high
        good &= fine
        bounds = f">= {low:g}" if high == math.inf else f"{low:g} to {high:g}"
        print(f"  {what:40} {value:6.2f}  {bounds:12} {'ok' if fine else 'NOT MET'}")
    alone = [math.prod(rate[f] / rate[""] for f in FACTORS) for rate in rates if {*FACTORS, ""} <= set(rate)]
    together = [rate[ALL] / rate[""] for rate in rates if {ALL, ""} <= set(rate)]
    if alone and together:
        product, gain = statistics.median(alone), statistics.median(together)
        good &= product < gain
        print(
            f"  product of the gains alone {product:.1f}, gain together {gain:.1f} (super-additive: {product < gain})"
        )
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
