"""Made-up costs of operators: as they are, and as run directories."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from p4perf.evaluation.papers.ren2025.costs import OperatorCosts, Platform
from p4perf.results import RunDirectory

SIZES = (64, 128, 256, 512, 1024, 1500)
CPU = "Maker 9000"
NOW = datetime(2026, 11, 21, 10, 15, tzinfo=UTC)

CURVES: Mapping[str, Callable[[float], float]] = {
    "rte_hash_crc": lambda s: 0.15 * s**1.11,
    "rte_net_crc": lambda s: 0.059 * s**1.22,
    "checksum": lambda s: 3.0 + 0.09 * s,
    "hash_lookup": lambda s: 82.0,
    "htons": lambda s: 0.4,
    "printf_file": lambda s: 9000.0,
    "rte_log_suppressed": lambda s: 26.0,
}
"""About what one machine measured."""


def power(base: float, exponent: float) -> Callable[[float], float]:
    """A power law as a function of the size."""
    return lambda size: base * (size / 64) ** exponent


def made_costs(
    name: str = "op",
    curve: Callable[[float], float] = lambda size: 100 * (size / 64) ** 0.5,
    *,
    platform: str = "here",
    sizes: Sequence[int] = SIZES,
    starts: int = 3,
    noise: float = 0.01,
    resolution: float = 1.0,
    seed: int = 0,
) -> OperatorCosts:
    """Costs with repetitions that scatter log-normally."""
    generator = np.random.default_rng(seed)
    cycles = tuple(tuple(curve(size) * math.exp(generator.normal(0, noise)) for _ in range(starts)) for size in sizes)
    return OperatorCosts(name, platform, tuple(sizes), cycles, (resolution,) * len(sizes))


def made_platform(*operators: OperatorCosts, name: str = "here", pairs: Sequence[OperatorCosts] = ()) -> Platform:
    """A platform that was measured."""
    mine = [tuple(replace(each, platform=name) for each in rows) for rows in (operators, pairs)]
    return Platform(name, f"{name}, 2 GHz", "runs/x", False, *mine)


def make_operator_run(
    parent: Path,
    curves: Mapping[str, Callable[[float], float]] = CURVES,
    *,
    sizes: Sequence[int] = SIZES,
    starts: int = 3,
    noise: float = 0.004,
    resolution: float | None = 1.0,
    seed: int = 0,
    rejected: Sequence[tuple[str, int]] = (),
    further: Mapping[str, Sequence[Any]] | None = None,
    cpu: str = CPU,
) -> Path:
    """A finished run over operator and packet size.

    Args:
        parent: folder of the runs.
        curves: cost by size of every operator; ``a+b`` for two together.
        sizes: packet sizes.
        starts: accepted starts of every point.
        noise: standard deviation of the logarithm of a cost.
        resolution: that of every start; None leaves the metric out.
        seed: of the noise.
        rejected: points without an accepted start.
        further: another swept variable with its values, on which the cost depends linearly.
        cpu: name of the processor.
    """
    generator = np.random.default_rng(seed)
    ((name, values),) = (further or {"": [None]}).items()
    points, rows = [], []
    for operator, curve in curves.items():
        for size in sizes:
            for value in values:
                swept = {"operator": operator, "packet_size": size} | ({name: value} if name else {})
                points.append({"hash": f"p{len(points)}", "index": len(points), "values": swept})
                cost = curve(size) * (value if name else 1)
                for start in range(starts):
                    measured = cost * math.exp(generator.normal(0, noise))
                    metrics = {
                        "cost_cycles_per_packet": (measured, "cycles/packet"),
                        "cost_tsc_cycles_per_packet": (measured * 0.8, "TSC cycles/packet"),
                        "cycles_per_packet": (measured + 20, "cycles/packet"),
                        "tsc_cycles_per_packet": ((measured + 20) * 0.8, "TSC cycles/packet"),
                    }
                    if resolution is not None:
                        metrics["cost_resolution_cycles_per_packet"] = (resolution, "cycles/packet")
                    good = (operator, size) not in rejected
                    rows += [
                        {
                            "point": points[-1]["hash"], "point_index": points[-1]["index"], "repetition": start,
                            "attempt": start, "testbed": "local", **swept, "metric": metric, "value": number,
                            "unit": unit, "accepted": good, "flags": "" if good else "few_windows",
                        }
                        for metric, (number, unit) in metrics.items()
                    ]  # fmt: skip
    run = RunDirectory.create(
        parent,
        experiment_name="operator/all",
        target="dpdk-c",
        testbed="local",
        resolved_spec="name: operator/all\n",
        manifest={
            "spec_hash": "0" * 64,
            "planned_points": [point["hash"] for point in points],
            "points": points,
            "node": {"cpu_model": cpu},
            "hugepages": True,
            "versions": {"p4perf": "0.1.0"},
        },
        now=NOW,
    )
    run.write_measurements(pd.DataFrame(rows))
    return run.path
