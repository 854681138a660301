"""The conductor: walks the stream for a whole sweep, one trial at a time, and can be killed at any moment.

Every finished trial is on disk before the next begins. What is measured next follows from what is on disk and from the
seed, so a resumed run continues where the killed one stopped.
"""

from __future__ import annotations

import math
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from typing_extensions import override

from p4perf.errors import BuildError, ExitCode, MeasurementError
from p4perf.experiment.adaptive import Judgement
from p4perf.experiment.bench import Bench, Shared, TrialDone, begin, tag_of
from p4perf.experiment.gates import known_before
from p4perf.experiment.ledger import Ledger
from p4perf.experiment.planning import PlannedPoint
from p4perf.experiment.recorder import Progress, Recorder, Silent, SweepOutcome, steal_share
from p4perf.records import counted
from p4perf.results import RunDirectory
from p4perf.specs import Experiment
from p4perf.targets.base import NodeFacts, Target
from p4perf.testbeds.base import Testbed


@dataclass(frozen=True, slots=True)
class TimeLimit:
    """Until when trials are begun, as a value of :func:`time.monotonic`; what is missing stays open for another time.

    A run that chooses its points also ends as soon as its error does not exceed ``error``; with ``ends``, as soon as
    the ends of its sweep are measured.
    """

    until_s: float = math.inf
    error: float = 0.0
    ends: bool = False

    def over(self, judgement: Judgement | None) -> bool:
        """Whether no trial is begun any more, given what the design makes of all trials so far."""
        if judgement is not None and (judgement.error <= self.error or (self.ends and not judgement.open_ends)):
            return True
        return time.monotonic() >= self.until_s


class SweepConductor(ABC):
    """Measures the points of one run: what all conductors do alike."""

    _record: Recorder
    _ledger: Ledger

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
        shared: Shared = lambda order: None,
    ) -> None:
        self._experiment, self._points = experiment, points
        self._target, self._testbed, self._run = target, testbed, run
        self._progress = progress or Silent()
        self._limit, self._shared = limit or TimeLimit(), shared
        self._built_s = 0.0

    @property
    def run(self) -> RunDirectory:
        return self._run

    @property
    def points(self) -> Sequence[PlannedPoint]:
        return self._points

    @property
    def record(self) -> Recorder:
        """The record of the run, in a :meth:`session`."""
        return self._record

    def measure(self) -> SweepOutcome:
        """Measure until every point is done; on any exception what was finished is on disk and in the table.

        Raises:
            StorageError: the run directory cannot be written, or another process measures into it.
            TestbedError: the testbed cannot continue.
            DataError: results are of another machine than was planned for, or of other programs.
            P4PerfError: no point at all could be measured; the first reason.
        """
        with self._run.lock():
            with self.session():
                waiting = self._sweep()
            return self.conclude(waiting)

    @contextmanager
    def session(self) -> Iterator[None]:
        """Do what comes before the first trial; at the end, also after an exception, write the table.

        The lock of the run has to be held.
        """
        self._began_s = time.monotonic()
        self._testbed.note = self._progress.note
        self._start()
        try:
            yield
        finally:
            self._end()
            own = self._ledger.own or self._testbed.label
            self._run.write_measurements(self._ledger.table(self._points, own))

    def conclude(self, waiting: str = "") -> SweepOutcome:
        """Note the end of the session in the manifest; how the sweep stands."""
        facts, wall_s = self._node_facts(), time.monotonic() - self._began_s
        session = {
            "ended": datetime.now(UTC).isoformat(timespec="seconds"),
            "trials": self._record.trials,
            "measured_s": round(self._record.measured_s, 3),
            "built_s": round(self._built_s, 3),
            "wall_s": round(wall_s, 3),
            "steal_share": None if facts is None else steal_share(*facts),
        }
        self._run.note("sessions", session, gate_ratio=self._ledger.gate_ratio())
        self._record.note_design()
        judgement, due = self._ledger.judgement(), {p.key for p in self._ledger.due(self._points)}
        every = [(p, self._ledger.status(p.key)) for p in self._points]
        statuses = [(p, s) for p, s in every if judgement is None or s.attempts or p.key in due]
        failed = tuple((p.label, s.failure) for p, s in statuses if s.failure is not None)
        starved = [p for p, s in statuses if s.failure is None and s.accepted == 0]
        if failed and len(failed) == len(statuses):
            first = statuses[0][0]
            failure = next(entry["failure"] for entry, _ in self._ledger.trials(first.key) if "failure" in entry)
            kind = BuildError if failure["exit_code"] == ExitCode.UNAVAILABLE else MeasurementError
            where = f"no point could be measured on {self._testbed.label}; the first, {first.label}"
            raise kind(f"{where}: {failure['message']}")
        return SweepOutcome(
            points=len(statuses),
            complete=sum(s.accepted > 0 for _, s in statuses),
            starved=tuple(p.label for p in starved),
            failed=failed,
            trials=self._record.trials,
            measured_s=self._record.measured_s,
            built_s=self._built_s,
            wall_s=wall_s,
            starved_flags=tuple(self._ledger.flags(p.key) for p in starved),
            waiting=waiting,
            judgement=judgement,
        )

    def _open_record(self) -> None:
        self._record = Recorder(self._experiment, self._points, self._target, self._run, self._progress)
        self._ledger = self._record.ledger

    def _late(self) -> bool:
        """Whether it is too late for another trial."""
        return self._limit.over(self._ledger.judgement())

    @abstractmethod
    def _start(self) -> None:
        """Open the record, and do what comes before the first trial."""

    @abstractmethod
    def _sweep(self) -> str:
        """Measure. Returns what the user has to do before the run can continue; empty if nothing."""

    def _end(self) -> None:  # noqa: B027 - most conductors leave nothing open
        """Drop what is still running, also after an exception."""

    def _node_facts(self) -> tuple[NodeFacts, NodeFacts] | None:
        """Facts of the node before and after the sweep; None if they are not known."""
        return None


class Conductor(SweepConductor):
    """Measures one trial at a time on a testbed that answers."""

    @override
    def _start(self) -> None:
        self._unbuildable: dict[str, BuildError] = {}
        self._facts = self._testbed.facts()
        self._bench = Bench(self._target, self._testbed, self._facts)
        self._tag = tag_of(self._run.record(), self._testbed)
        self._open_record()
        if (job := self._record.calibration()) is not None:
            done = self._testbed.run(job, self._run.path)
            self._record.calibrated(done, self._tag, lambda seen: known_before(seen, self._testbed, self._facts))
        self._record.planned()
        self._build()
        self._built_s = time.monotonic() - self._began_s

    @override
    def _sweep(self) -> str:
        while (planned := self._ledger.next_trial(self._points)) and not self._late():
            self.trial(planned)
        self._simulate()
        return ""

    def trial(self, planned: PlannedPoint, attempt: int | None = None) -> None:
        """Measure one start of a point, by default as its next attempt."""
        order = self._record.order(planned, self._tag, attempt)
        folder = self._record.begin(planned)
        error = self._unbuildable.get(planned.plan.build.key)
        if error is not None:
            done = TrialDone(begin(order), error=error)
        else:
            done = self._shared(order) or self._bench.trial(order, folder)
        self._record.take(planned, done, self._tag)

    @override
    def _node_facts(self) -> tuple[NodeFacts, NodeFacts]:
        return self._facts, self._testbed.facts()

    def _build(self) -> None:
        """Build the programs of all open points before anything is measured: compilers disturb measurements.

        A build that fails is left for the first trial of its point, which records the failure.
        """
        wanted = self._record.open_builds(ends=self._limit.ends)
        if not wanted:
            return
        if len(wanted) > 1:
            self._progress.note(f"building {counted(len(wanted), 'program')}, unless built before")
        with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
            for plan, future in [(plan, pool.submit(self._testbed.build, plan)) for plan in wanted]:
                try:
                    future.result()
                except BuildError as error:
                    self._unbuildable[plan.key] = error

    def _simulate(self) -> None:
        """Count by simulation what the spec asks for: once a point, since a simulation repeats itself exactly."""
        for planned in self._record.unsimulated():
            if self._late():
                return
            options = self._record.options(self._experiment.spec.trials.seed, self._tag)
            counts = self._bench.simulate(planned, options, self._run.point_directory(planned.key))
            if counts is None:
                return
            self._record.simulated(planned, counts)
