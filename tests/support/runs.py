"""Run directories of made-up measurements: given curves, starts and noise, without a target."""

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from p4perf.results import RunDirectory
from p4perf.specs import load_experiment

NOW = datetime(2026, 11, 21, 10, 15, tzinfo=UTC)
UNITS = {"packet_rate": "Mpps", "memory_bytes": "B"}
NODE = {"cpu_model": "Some CPU", "cpu_id": "6-1-1", "machine": "x86_64", "dpdk_version": "22.11.11"}


def make_run(
    parent: Path,
    curve: Callable[..., float],
    *,
    spec: str = "mat/exact-entries",
    overrides: Sequence[tuple[str, str]] = (("entries", "{log: [1, 1e6], points_per_decade: 2}"),),
    target: str = "dpdk-c",
    testbed: str = "local",
    metrics: Mapping[str, Callable[..., float]] | None = None,
    metric: str = "cycles_per_packet",
    starts: int = 3,
    noise: float = 0.01,
    seed: int = 0,
    rejected: Sequence[float] = (),
    node: Mapping[str, str] | None = None,
    hugepages: bool = True,
    manifest: Mapping[str, Any] | None = None,
) -> Path:
    """A finished run.

    Args:
        parent: folder of the runs.
        curve: the metric as a function of the swept variables; of 0 if nothing is swept.
        spec: spec to start from.
        overrides: changes of the spec.
        target: name of the target, which need not exist.
        testbed: name of the testbed.
        metrics: further metrics.
        metric: name of the first metric.
        starts: starts of every point.
        noise: standard deviation of the logarithm of a start.
        seed: of the noise.
        rejected: values of the first variable without an accepted start.
        node: changes of the facts of the machine.
        hugepages: whether the run used hugepages.
        manifest: further keys of the manifest.
    """
    experiment = load_experiment(spec, overrides=list(overrides))
    generator = np.random.default_rng(seed)
    points = [{"hash": f"p{p.index}", "index": p.index, "values": dict(p.values)} for p in experiment.points]
    rows: list[dict[str, Any]] = []
    for point in points:
        swept = point["values"] or {"point_index": 0}
        bad = next(iter(swept.values())) in rejected
        for start in range(starts):
            factor = math.exp(generator.normal(0, noise)) if noise else 1.0
            for name, function in {metric: curve, **(metrics or {})}.items():
                head = {"point": point["hash"], "point_index": point["index"], "repetition": start, "attempt": start}
                tail = {
                    "metric": name,
                    "value": function(*swept.values()) * factor,
                    "unit": UNITS.get(name, "cycles/packet"),
                }
                flags = "few_windows" if bad else ""
                rows.append({**head, **swept, **tail, "accepted": not bad, "flags": flags})
    run = RunDirectory.create(
        parent,
        experiment_name=experiment.spec.name,
        target=target,
        testbed=testbed,
        resolved_spec=experiment.resolved_yaml(),
        manifest={
            "spec_hash": experiment.spec_hash,
            "planned_points": [point["hash"] for point in points],
            "points": points,
            "node": {**NODE, **(node or {})},
            "hugepages": hugepages,
            "versions": {"p4perf": "0.1.0"},
            **(manifest or {}),
        },
        now=NOW,
    )
    run.write_measurements(pd.DataFrame(rows))
    return run.path
