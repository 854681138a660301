"""What the benchmarks share: a point that can be tried again and again."""

from __future__ import annotations

import contextlib
import multiprocessing
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from p4perf.errors import MeasurementError, P4PerfError
from p4perf.experiment import open_target, open_testbed, require_usable
from p4perf.experiment.bench import measured_gate_ratios
from p4perf.programs.component import TrafficPlan, build_workload
from p4perf.targets.base import TrialOptions
from p4perf.targets.roles import measuring


class Bench:
    """One program of components on this machine."""

    def __init__(
        self, components: list[tuple[str, dict[str, Any]]], frame_size_bytes: int = 64, target: str = "dpdk-c"
    ) -> None:
        self.target, self.testbed = measuring(open_target(target)), open_testbed("local")
        try:
            self.facts = require_usable(self.target, self.testbed)
        except P4PerfError as error:
            raise SystemExit(f"skipped: {error}") from error
        workload = build_workload(components, frame_size_bytes=frame_size_bytes)
        self.plan = self.target.plan(workload, TrafficPlan(frame_size_bytes), self.facts)
        self.testbed.build(self.plan.build)
        self.folder = Path(tempfile.mkdtemp(prefix="p4perf-bench-"))
        self.gate_ratio = measured_gate_ratios(self.target, self.testbed, self.folder).at()

    def trial(self, seed: int, *arguments: str, mode: str = "gated") -> dict[str, Any] | None:
        """One start of the process; its record, None if it failed."""
        options = TrialOptions(mode=mode, seed=seed, gate_ratio=self.gate_ratio)
        job = self.target.trial(self.plan, options, self.facts)
        job = replace(job, argv=(*job.argv, *arguments))
        try:
            return dict(self.target.parse(self.testbed.run(job, self.folder)))
        except MeasurementError as error:
            print(f"  a start failed: {error}")
            return None


def spread(values: Sequence[float]) -> str:
    """Median, coefficient of variation, minimum and maximum, as text."""
    cv = statistics.pstdev(values) / statistics.fmean(values)
    return (
        f"median {statistics.median(values):7.2f}  CV {100 * cv:5.1f} %  min {min(values):7.2f}  "
        f"max {max(values):7.2f}  n {len(values)}"
    )


def _burn() -> None:
    table = list(range(200_000))
    while True:
        table.sort(key=lambda v: v * 7919 % 10007)


@contextlib.contextmanager
def busy_neighbours(count: int) -> Iterator[None]:
    """So many processes that use CPU and caches, for the body."""
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_burn, daemon=True) for _ in range(count)]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.join()
