"""The record of a run while it is measured: journal, ledger and finished points, which always agree."""

from __future__ import annotations

import json
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from typing_extensions import override

from p4perf.errors import BuildError, ExitCode, MeasurementError
from p4perf.evaluation.load.records import latency_log
from p4perf.experiment.adaptive import Judgement, sweep_design
from p4perf.experiment.bench import OWN, SHARED, TrialDone, TrialOrder
from p4perf.experiment.ledger import SIMULATION, Ledger
from p4perf.experiment.planning import PlannedPoint, SweepPlan
from p4perf.records import counted
from p4perf.results import Run, RunDirectory
from p4perf.specs import Experiment
from p4perf.targets.base import BuildPlan, Job, JobResult, NodeFacts, Target, TrialOptions
from p4perf.targets.roles import calibration_of, measuring
from p4perf.targets.windows import Undisturbed

WINDOW_US = 500
BUILD_LOG = "build.log"

NOTE_S = 2.0
"""How often the manifest says how accurate a run is by now, in seconds."""

SIMULATED = "simulated_"
"""Names of metrics that are counted by a simulation begin like this."""

FINAL_FAILURES = ("verify", "refused", "workers")
"""Kinds of failures that another start of the same program would meet again: it computes something wrong, the target
does not take it, or workers of a cluster die of it (:class:`~p4perf.errors.MeasurementError` with that key)."""


class Progress(Protocol):
    """Listener of a sweep: the command line shows what it hears, tests record it, the default ignores it."""

    def begun(self, run: RunDirectory, plan: SweepPlan) -> None:
        """A new run is planned and has its directory; nothing is measured yet."""

    def planned(self, trials: int, finished: int) -> None:
        """The number of all planned trials, and of those that are on disk already."""

    def trial(self, label: str, accepted: bool, remaining: int, remaining_s: float) -> None:
        """A trial ended; about ``remaining`` trials and ``remaining_s`` seconds are left."""

    def note(self, text: str) -> None:
        """Something that the user should know."""


class Silent:
    """Ignores everything."""

    def note(self, *said: Any, **named: Any) -> None:
        pass

    begun = planned = trial = told = reached = note


Reached = Callable[[str, float], object]
"""Hears what is done now, and about how many seconds everything still takes."""


class PartOfWork(Silent):
    """Hears how far one run of several is, and says how long all of them take: ``rest_s`` beside this one."""

    def __init__(
        self, what: str, reached: Reached, rest_s: float, told: Callable[[str], object] = lambda text: None
    ) -> None:
        self._what, self._reached, self._rest_s, self._told = what, reached, rest_s, told

    @override
    def planned(self, trials: int, finished: int) -> None:
        if finished:
            self._told(f"{counted(trials, 'trial')} planned, {finished} of them finished before")

    @override
    def trial(self, label: str, accepted: bool, remaining: int, remaining_s: float) -> None:
        self._reached(f"{self._what}, {label}", remaining_s + self._rest_s)

    @override
    def note(self, text: str) -> None:
        self._told(f"note: {text}")


@dataclass(frozen=True, slots=True)
class SweepOutcome:
    """How a sweep ended. ``failed`` names points with the reason; ``starved`` those with too few accepted trials."""

    points: int
    complete: int
    starved: tuple[str, ...]
    failed: tuple[tuple[str, str], ...]
    trials: int
    measured_s: float
    """Time that the trials of this call took, in seconds."""
    built_s: float
    """Time before the first trial, in seconds: probing, calibrating, compiling."""
    wall_s: float
    """Time that this call took, in seconds."""
    starved_flags: tuple[tuple[str, ...], ...] = ()
    """Quality flags of the rejected trials of each starved point."""
    waiting: str = ""
    """What the user has to do before the run can continue; empty if nothing."""
    judgement: Judgement | None = None
    """How accurate a run is that chose its points; None if it has all of them."""

    @property
    def exit_code(self) -> ExitCode:
        """0 if every point has an accepted trial, 7 if the run waits for results, else 4."""
        if self.waiting:
            return ExitCode.WAITING
        return ExitCode.OK if not self.failed and not self.starved else ExitCode.INVALID_MEASUREMENT


class Recorder:
    """Keeps the record of one run, which it continues from what is on disk. Its lock has to be held."""

    testbeds = 1
    """Number of points that are measured at once."""

    def __init__(
        self,
        experiment: Experiment,
        points: Sequence[PlannedPoint],
        target: Target,
        run: RunDirectory,
        progress: Progress,
    ) -> None:
        self.experiment, self.points, self.run = experiment, points, run
        self._target, self._progress = target, progress
        manifest = run.record()
        self.hugepages = bool(manifest.hugepages)
        loads = {p.key: p.load for p in points if p.load is not None}
        own = str(manifest.place.get(OWN, ""))
        design = sweep_design(Run(run), points)
        self.ledger = Ledger(target, experiment.spec.trials, experiment.spec.headline, loads, own, design)
        self.trials, self.measured_s = 0, 0.0
        self._durations_s: dict[str, float] = {}
        self._noted_s = -math.inf
        for planned in self.points:
            self.ledger.load(planned.key, self.run.trials(planned.key))
            if self.run.outcome(planned.key) is None and self.ledger.trials(planned.key):
                self._finish_if_done(planned)

    def planned(self) -> None:
        done = sum(self.ledger.status(p.key).accepted for p in self.points)
        if (judgement := self.ledger.judgement()) is not None:
            self._progress.planned(done + judgement.left, done)
            return
        wanted = len(self.points) * self.experiment.spec.trials.repetitions
        self._progress.planned(wanted, min(done, wanted))

    def calibration(self) -> Job | None:
        """The job that measures how undisturbed the machine is; None if trials are not gated or the target has none."""
        return calibration_of(self._target) if self.experiment.spec.trials.mode == "gated" else None

    def open_builds(self, *, ends: bool = False) -> tuple[BuildPlan, ...]:
        """Build plans of the points that are due, each once; with ``ends``, of those of the ends alone."""
        due, judgement = self.ledger.due(self.points), self.ledger.judgement()
        if ends and judgement is not None:
            due = [p for p in due if p.key in judgement.open_ends]
        plans = {p.plan.build.key: p.plan.build for p in due}
        return tuple(plan for plan in plans.values() if plan.commands)

    def options(self, seed: int, testbed: str | None = None) -> TrialOptions:
        """How a trial is measured, with the gate ratio of its testbed that is known by now."""
        spec = self.experiment.spec.trials
        return TrialOptions(
            mode=spec.mode,
            windows=max(20, round(float(spec.duration_ms) * 1000 / WINDOW_US)),
            window_us=WINDOW_US,
            warmup_ms=round(float(spec.warmup_ms)),
            seed=seed,
            gate_ratio=self.ledger.gate_ratio(testbed),
            hugepages=self.hugepages,
            simulated=self._asked_simulations(),
        )

    def calibrated(
        self,
        result: JobResult,
        testbed: str | None = None,
        known: Callable[[Sequence[Undisturbed]], Sequence[Undisturbed]] = lambda seen: (),
    ) -> None:
        """Take what a calibration saw; ``known``: what earlier ones of this machine saw, given this one."""
        lines = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
        seen = [each for line in lines if (each := measuring(self._target).undisturbed(line)) is not None]
        before = known(seen)
        for each in (*before, *seen):
            self.ledger.observe(each, testbed)
        entry: dict[str, Any] = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "cpus": lines}
        if before:
            entry["known_gate_ratio"] = min(each.gate_ratio for each in before)
        if testbed is not None:
            entry["testbed"] = testbed
        self.run.note("calibrations", entry)

    def order(self, planned: PlannedPoint, testbed: str | None = None, attempt: int | None = None) -> TrialOrder:
        """The next trial of a point, on one of several testbeds or on the only one; its number may be a later one."""
        attempt = self.ledger.next_attempt(planned.key) if attempt is None else attempt
        here = self.ledger.testbed(planned.key) in (None, testbed or self.ledger.own)
        repetition = self.ledger.status(planned.key).accepted if here else 0
        options = self.options(self.experiment.spec.trials.seed * 1000 + attempt, testbed)
        return TrialOrder(planned, repetition, attempt, options, self._search(planned, repetition, testbed))

    def begin(self, planned: PlannedPoint) -> Path:
        """The folder of a point; before its first trial the sources come into it."""
        if self.ledger.status(planned.key).attempts == 0:
            self.run.write_point_texts(planned.key, planned.plan.build.files)
        return self.run.point_directory(planned.key)

    def take(self, planned: PlannedPoint, done: TrialDone, testbed: str | None = None) -> None:
        """Put a trial on disk and into the ledger, with all that belongs to it."""
        entry = dict(done.entry)
        if testbed is not None:
            entry["testbed"] = testbed
        if done.error is not None:
            entry["failure"] = self._failure(planned, done.error)
        if "load" in entry:
            # The histograms of a trial as a log of HdrHistogram, which other tools read, beside its record.
            log = latency_log(entry["load"], datetime.fromisoformat(entry["started"]).timestamp())
            if log is not None:
                self.run.write_point_file(planned.key, f"latency-{entry['trial']['attempt']}.hlog", log)
        entry["duration_s"] = round(done.duration_s, 4)
        self.run.append_trial(planned.key, entry)
        summary = self.ledger.add(planned.key, entry)
        if SHARED not in entry:
            self.trials += 1
            self.measured_s += done.duration_s
        self._durations_s[planned.key] = done.duration_s
        self._finish_if_done(planned)
        if "failure" in entry and len(self.points) > 1:  # the failure of the only point ends the run
            self._progress.note(f"{planned.label}: {entry['failure']['message']}")
        remaining, left_s = self._left()
        self._progress.trial(planned.label, bool(summary and summary.accepted), remaining, left_s)
        if time.monotonic() >= self._noted_s + NOTE_S:
            self.note_design()

    def _left(self) -> tuple[int, float]:
        """Trials that are left, and how long they take in seconds: roughly, as far as is known by now."""
        if (judgement := self.ledger.judgement()) is not None:
            return judgement.left, judgement.left_s / self.testbeds
        statuses = {p.key: self.ledger.status(p.key) for p in self.points}
        needed = {key: status.needed for key, status in statuses.items() if status.open}
        typical = statistics.median(self._durations_s.values())
        left_s = sum(n * self._durations_s.get(key, typical) for key, n in needed.items()) / self.testbeds
        return sum(needed.values()), left_s

    def note_design(self) -> None:
        """Note in the manifest how accurate a run is that chooses its points."""
        self._noted_s = time.monotonic()
        if (judgement := self.ledger.judgement()) is None:
            return
        known = math.isfinite(judgement.error)
        labels = {p.key: p.label for p in self.points}
        state = {
            "accuracy": judgement.accuracy,
            "error": round(judgement.error, 5) if known else None,
            "worst": labels[judgement.worst] if known else None,
            "left_s": round(judgement.left_s, 1),
            "done": not self.ledger.waiting(self.points),
        }
        self.run.update_manifest({"design": state})

    def _search(self, planned: PlannedPoint, repetition: int, testbed: str | None) -> dict[str, Any] | None:
        """The search of another point that differs only in its offered load, in the same repetition."""
        for other in self.points:
            if other.search_key != planned.search_key or other.key == planned.key:
                continue
            if self.ledger.testbed(other.key) not in (None, testbed or self.ledger.own):
                continue
            for entry, summary in self.ledger.trials(other.key):
                same = entry["trial"]["repetition"] == repetition and summary is not None and summary.accepted
                if same and "search" in entry.get("load", {}):
                    search = entry["load"]["search"]
                    return {**search, "searched_at": search.get("searched_at", other.key)}
        return None

    def unsimulated(self) -> list[PlannedPoint]:
        """Points whose simulation is missing, if the spec asks for any."""
        if not self._asked_simulations():
            return []
        measured = [p for p in self.points if self.ledger.status(p.key).accepted]
        return [p for p in measured if self.ledger.simulation(p.key) is None]

    def _asked_simulations(self) -> tuple[str, ...]:
        metrics = self.experiment.spec.metrics
        return tuple(name for name in (*metrics.collect, *metrics.optional) if name.startswith(SIMULATED))

    def simulated(self, planned: PlannedPoint, counts: Mapping[str, Any]) -> None:
        """Put what a simulation counted on disk and into the ledger."""
        if "failure" in counts:
            self._progress.note(f"{planned.label}: the simulation failed: {counts['failure']}")
        # A line of the journal like any other, numbered behind the attempts; it is none of them.
        number = self.ledger.next_attempt(planned.key)
        entry = {"trial": {"repetition": 0, "attempt": number}, SIMULATION: dict(counts)}
        self.run.append_trial(planned.key, entry)
        self.ledger.simulated(planned.key, entry)

    def _failure(self, planned: PlannedPoint, error: MeasurementError | BuildError) -> dict[str, Any]:
        """Why a trial failed, with the place of the generated files; the output of the tools is kept with them."""
        final = isinstance(error, BuildError) or error.key in FINAL_FAILURES
        if isinstance(error, BuildError) and error.log:
            self.run.write_point_file(planned.key, BUILD_LOG, error.log)
        reason = f"{error.key}: {error.message}" if error.key else error.message
        message = f"{reason} (generated files: {self.run.point_directory(planned.key)})" if final else reason
        return {"message": message, "exit_code": int(error.exit_code), "final": final}

    def _finish_if_done(self, planned: PlannedPoint) -> None:
        if not self.ledger.status(planned.key).open:
            self.finish(planned)

    def finish(self, planned: PlannedPoint) -> None:
        """Note that a point needs no more trials."""
        status = self.ledger.status(planned.key)
        outcome = {"accepted": status.accepted, "attempts": status.attempts, "failure": status.failure}
        self.run.finish_point(planned.key, outcome)


def steal_share(before: NodeFacts, after: NodeFacts) -> float | None:
    """Share of CPU time that the hypervisor took away between two probes; None where it is not known."""
    ticks = [(f.number("steal_ticks"), f.number("total_ticks")) for f in (before, after)]
    (steal_0, total_0), (steal_1, total_1) = ticks
    if None in (steal_0, total_0, steal_1, total_1) or total_1 == total_0:
        return None
    return round((steal_1 - steal_0) / (total_1 - total_0), 5)  # type: ignore[operator]
