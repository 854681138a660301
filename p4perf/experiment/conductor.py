"""The conductor: walks the stream for a whole sweep, one trial at a time, and can be killed at any moment.

Every finished trial is on disk before the next begins. What is measured next follows from what is on disk and from the
seed, so a resumed run goes on where the killed one stopped.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from p4perf.errors import BuildError, MeasurementError
from p4perf.evaluation.load import latency_log
from p4perf.experiment.ledger import SIMULATION
from p4perf.experiment.load import LoadMeasurement
from p4perf.experiment.load_plan import LoadPlan
from p4perf.experiment.planning import PlannedPoint
from p4perf.experiment.progress import Progress, Silent
from p4perf.experiment.recorder import SIMULATED, Outcome, Recorder, Spent
from p4perf.experiment.tidy import tidy_table
from p4perf.plugins import load_plugin
from p4perf.results import RunDirectory
from p4perf.specs import METRICS, Experiment
from p4perf.targets.base import Job, JobResult, Target
from p4perf.testbeds.base import Testbed
from p4perf.testbeds.loadgen.base import LoadGenerator


@dataclass(frozen=True, slots=True)
class TimeLimit:
    """Until when trials are begun, as values of :func:`time.monotonic`; what is missing stays open for another time.

    After ``soft_s`` only the first trial of a point is begun, so that a run is not built for nothing; after ``hard_s``
    none at all.
    """

    soft_s: float = math.inf
    hard_s: float = math.inf

    def over(self, attempts: int) -> bool:
        """Whether it is too late for a trial of a point that has had so many."""
        return time.monotonic() >= (self.hard_s if attempts == 0 else min(self.soft_s, self.hard_s))


class Conductor:
    """Measures the points of one run."""

    def __init__(
        self,
        experiment: Experiment,
        points: Sequence[PlannedPoint],
        target: Target,
        testbed: Testbed,
        run: RunDirectory,
        progress: Progress | None = None,
        *,
        limit: TimeLimit | None = None,
    ) -> None:
        self._experiment = experiment
        self._points = points
        self._target = target
        self._testbed = testbed
        self._run = run
        self._progress = progress or Silent()
        self._record = Recorder(experiment, points, target, run, self._progress)
        self._ledger = self._record.ledger
        self._unbuildable: dict[str, BuildError] = {}
        self._limit = limit or TimeLimit()

    def measure(self) -> Outcome:
        """Measure until every point is done; on any exception what was finished is on disk and in the table.

        Raises:
            StorageError: the run directory cannot be written, or another process measures into it.
            P4PerfError: no point at all could be measured; the first reason.
        """
        start = time.monotonic()
        with self._run.lock():
            self._open()
            self._build()
            built_s = time.monotonic() - start
            measured_s, trials = 0.0, 0
            try:
                while (planned := self._ledger.next_trial(self._points)) and not self._late(planned):
                    measured_s += self._trial(planned)
                    trials += 1
                self._simulate()
            finally:
                self._run.write_measurements(tidy_table(self._points, self._ledger))
            facts = (self._facts, self._testbed.facts())
            return self._record.close(Spent(trials, measured_s, built_s, start), self._testbed, facts)

    def _late(self, planned: PlannedPoint) -> bool:
        return self._limit.over(self._ledger.status(planned.key).attempts)

    def _open(self) -> None:
        self._facts = self._testbed.facts()
        self._record.open()
        job = self._target.calibration() if self._experiment.spec.trials.mode == "gated" else None
        if job is not None:
            self._record.calibrated(self._testbed.run(job, self._run.path))
        self._record.planned()

    def _build(self) -> None:
        """Build the programs of all open points before anything is measured: compilers disturb measurements.

        A build that fails is left for the first trial of its point, which records the failure.
        """
        plans = {p.plan.build.key: p.plan.build for p in self._points if self._ledger.status(p.key).open}
        wanted = [plan for plan in plans.values() if plan.commands]
        if not wanted:
            return
        if len(wanted) > 1:
            self._progress.note(f"building {len(wanted)} programs, where they are not built yet")
        with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
            for plan, future in [(plan, pool.submit(self._testbed.build, plan)) for plan in wanted]:
                try:
                    future.result()
                except BuildError as error:
                    self._unbuildable[plan.key] = error

    def _trial(self, planned: PlannedPoint) -> float:
        """Run one trial and put it on disk; the time it took, in seconds."""
        status = self._ledger.status(planned.key)
        options = self._record.options(self._experiment.spec.trials.seed * 1000 + status.attempts)
        entry: dict[str, Any] = {
            "trial": {"repetition": status.accepted, "attempt": status.attempts},
            "started": datetime.now(UTC).isoformat(timespec="milliseconds"),
        }
        begun = time.monotonic()
        try:
            folder = self._run.point_directory(planned.key)
            if status.attempts == 0:
                self._record.write_sources(planned)
            if (error := self._unbuildable.get(planned.plan.build.key)) is not None:
                raise error
            if planned.plan.build.commands:
                self._testbed.build(planned.plan.build)
            begun = time.monotonic()
            if planned.saturated:
                job = self._target.trial(planned.plan, options, self._facts)
                entry["record"] = dict(self._target.parse(self._run_job(planned, job, folder)))
            if planned.load is not None:
                entry["load"] = self._offer(planned, planned.load, status.accepted, options.seed, folder)
                self._write_latencies(planned, entry)
        except (MeasurementError, BuildError) as error:
            entry["failure"] = self._record.failure(planned, error)
        duration_s = time.monotonic() - begun
        self._record.add(planned, entry, duration_s)
        return duration_s

    def _simulate(self) -> None:
        """Count by simulation what the spec asks for: once a point, since a simulation repeats itself exactly."""
        asked = {*self._experiment.spec.metrics.collect, *self._experiment.spec.metrics.optional}
        if not asked & {name for name in METRICS if name.startswith(SIMULATED)}:
            return
        for planned in self._points:
            done = self._ledger.simulation(planned.key) is not None
            if done or not self._ledger.status(planned.key).accepted or self._late(planned):
                continue
            options = self._record.options(self._experiment.spec.trials.seed)
            jobs = self._target.simulation(planned.plan, options, self._facts)
            if not jobs:
                return
            folder = self._run.point_directory(planned.key)
            counts: dict[str, Any] = {}
            try:
                results = [self._testbed.run(job, folder) for job in jobs]
                counts["metrics"] = [[m.metric, m.value, m.unit] for m in self._target.simulated(results)]
            except (MeasurementError, BuildError) as error:
                counts["failure"] = error.message
                self._progress.note(f"{planned.label}: the simulation failed: {error.message}")
            # A line of the journal like any other, numbered behind the attempts; it is none of them.
            number = self._ledger.status(planned.key).attempts
            entry = {"trial": {"repetition": 0, "attempt": number}, SIMULATION: counts}
            self._run.append_trial(planned.key, entry)
            self._ledger.simulated(planned.key, entry)

    def _offer(self, planned: PlannedPoint, plan: LoadPlan, repetition: int, seed: int, folder: Path) -> dict[str, Any]:
        """What a load generator measures in one repetition."""
        found = self._search(planned, repetition)
        link = replace(plan.link, hugepages=self._record.hugepages)
        generator: LoadGenerator = load_plugin("p4perf.load_generators", plan.generator)()
        with (
            self._frequency(planned),
            generator.open(self._target, planned.plan, link, self._testbed, self._facts, folder) as session,
        ):
            record = LoadMeasurement(session, plan, seed, self._ledger.gate_ratio, found).measure()
        if plan.served:
            accounts = {"program": record["overload"], "baseline": record["baseline"]}
            counted = {
                n: {**account, "evidence": account["raw"].get("evidence", {})} for n, account in accounts.items()
            }
            served = self._target.served_metrics(counted, self._facts.values)
            record["served"] = [[m.metric, m.value, m.unit] for m in served]
        return record

    def _search(self, planned: PlannedPoint, repetition: int) -> dict[str, Any] | None:
        """What another point that differs in its offered load only found in the same repetition."""
        for other in self._points:
            if other.search_key != planned.search_key or other.key == planned.key:
                continue
            for entry, summary in self._ledger.trials(other.key):
                same = entry["trial"]["repetition"] == repetition and summary is not None and summary.accepted
                if same and "search" in entry.get("load", {}):
                    return {
                        **entry["load"]["search"],
                        "searched_at": entry["load"]["search"].get("searched_at", other.key),
                    }
        return None

    def _write_latencies(self, planned: PlannedPoint, entry: Mapping[str, Any]) -> None:
        """The histograms of a trial as a log of HdrHistogram, which other tools read, beside its record."""
        log = latency_log(entry["load"], datetime.fromisoformat(entry["started"]).timestamp())
        if log is not None:
            self._run.write_text(f"points/{planned.key}/latency-{entry['trial']['attempt']}.hlog", log)

    def _frequency(self, planned: PlannedPoint) -> contextlib.AbstractContextManager[None]:
        frequency_ghz = planned.point.cpu_frequency_ghz
        return contextlib.nullcontext() if frequency_ghz is None else self._testbed.at_frequency(frequency_ghz)

    def _run_job(self, planned: PlannedPoint, job: Job, folder: Path) -> JobResult:
        with self._frequency(planned):
            return self._testbed.run(job, folder)
