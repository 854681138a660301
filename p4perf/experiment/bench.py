"""What is done with the device itself: one trial, one simulation. Nothing here knows a run directory.

So it works in the process that keeps the run, and as well in one on another machine.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from p4perf.errors import BuildError, MeasurementError
from p4perf.experiment.load import LoadMeasurement, LoadPlan
from p4perf.experiment.planning import PlannedPoint
from p4perf.plugins import load_plugin
from p4perf.targets.base import NodeFacts, Target, TrialOptions
from p4perf.targets.roles import Measures, Simulates, calibration_of, measuring, serving
from p4perf.testbeds.base import Testbed
from p4perf.testbeds.loadgen.base import LoadGenerator


@dataclass(frozen=True, slots=True)
class TrialOrder:
    """One trial that shall be run.

    Args:
        repetition: accepted trials of the point before it.
        attempt: its number among all trials of the point.
        found: the record of a search for the same throughput in this repetition, which is not made again.
    """

    planned: PlannedPoint
    repetition: int
    attempt: int
    options: TrialOptions
    found: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class TrialDone:
    """What became of a trial."""

    entry: dict[str, Any]
    duration_s: float = 0.0
    error: MeasurementError | BuildError | None = None


def begin(order: TrialOrder) -> dict[str, Any]:
    """The beginning of the line of a trial that starts now."""
    return {
        "trial": {"repetition": order.repetition, "attempt": order.attempt},
        "started": datetime.now(UTC).isoformat(timespec="milliseconds"),
    }


@dataclass(frozen=True)
class Bench:
    """A device, the place where it is, and what is known of its node."""

    target: Target
    testbed: Testbed
    facts: NodeFacts = field(repr=False)

    def trial(self, order: TrialOrder, folder: Path) -> TrialDone:
        """Run one trial in a folder that is there."""
        planned, entry = order.planned, begin(order)
        begun = time.monotonic()
        try:
            if planned.plan.build.commands:
                self.testbed.build(planned.plan.build)
            begun = time.monotonic()
            if planned.saturated:
                target = measuring(self.target)
                job = target.trial(planned.plan, order.options, self.facts)
                with self._frequency(planned):
                    result = self.testbed.run(job, folder)
                entry["record"] = dict(target.parse(result))
            if planned.load is not None:
                entry["load"] = self._offer(order, planned.load, folder)
        except (MeasurementError, BuildError) as error:
            return TrialDone(entry, time.monotonic() - begun, error)
        return TrialDone(entry, time.monotonic() - begun)

    def simulate(self, planned: PlannedPoint, options: TrialOptions, folder: Path) -> dict[str, Any] | None:
        """Count by simulation: ``metrics``, or ``failure`` with the reason; None if nothing can be simulated."""
        if not isinstance(self.target, Simulates):
            return None
        jobs = self.target.simulation(planned.plan, options, self.facts)
        if not jobs:
            return None
        try:
            results = [self.testbed.run(job, folder) for job in jobs]
            return {"metrics": [[m.metric, m.value, m.unit] for m in self.target.simulated(results)]}
        except (MeasurementError, BuildError) as error:
            return {"failure": error.message}

    def _offer(self, order: TrialOrder, plan: LoadPlan, folder: Path) -> dict[str, Any]:
        """What a load generator measures in one repetition."""
        options = order.options
        link = replace(plan.link, hugepages=options.hugepages)
        generator: LoadGenerator = load_plugin("p4perf.load_generators", plan.generator)()
        with (
            self._frequency(order.planned),
            generator.open(self.target, order.planned.plan, link, self.testbed, self.facts, folder) as session,
        ):
            record = LoadMeasurement(session, plan, options.seed, options.gate_ratio, order.found).measure()
        return with_served(record, self.target, self.facts) if plan.served else record

    def _frequency(self, planned: PlannedPoint) -> contextlib.AbstractContextManager[None]:
        frequency_ghz = planned.point.cpu_frequency_ghz
        return contextlib.nullcontext() if frequency_ghz is None else self.testbed.at_frequency(frequency_ghz)


def measured_gate_ratio(target: Measures, testbed: Testbed, folder: Path) -> float | None:
    """The lowest gate ratio that a calibration of the node prints; None if the target has no calibration."""
    job = calibration_of(target)
    lines = [] if job is None else testbed.run(job, folder).stdout.splitlines()
    ratios = (target.gate_ratio(json.loads(line)) for line in lines if line.startswith("{"))
    return min((ratio for ratio in ratios if ratio), default=None)


def with_served(record: Mapping[str, Any], target: Target, facts: NodeFacts) -> dict[str, Any]:
    """The record of a load, with the metrics of a target that is measured by its load alone."""
    accounts = {"program": record["overload"], "baseline": record["baseline"]}
    counted = {n: {**account, "evidence": account["raw"].get("evidence", {})} for n, account in accounts.items()}
    served = serving(target).served_metrics(counted, facts.values)
    return {**record, "served": [[m.metric, m.value, m.unit] for m in served]}
