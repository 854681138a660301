"""The conductor of testbeds that work in batches: it hands over all open trials at once, and reads their results.

Loads are planned and read by :class:`~p4perf.experiment.load.LoadMeasurement`, first with a session that only notes
them, then with one that replays the accounts of the batch. So the record equals that of a trial that was run alone.
Searches are refused: each of their loads follows from the one before.

A round is one batch: of every open point as many trials as it needs, in random order, behind a calibration. Every
result goes the same way as one of a trial that was run alone. What is open after that, because a trial was disturbed,
disagreed or got lost, is the next round, until all points are done or their attempts are exhausted.

A batch is on disk before it is begun, in ``batches/<number>`` of the run directory, and a killed run continues with it:
what was measured is read, never measured again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from typing_extensions import override

from p4perf.errors import BuildError, DataError, Location, MeasurementError, StorageError, TestbedError, UsageError
from p4perf.experiment.bench import TrialDone, adopt, same_machine, with_served
from p4perf.experiment.conductor import SweepConductor
from p4perf.experiment.load import LoadMeasurement, load_plan
from p4perf.experiment.planning import PlannedPoint
from p4perf.experiment.recorder import SIMULATED
from p4perf.plugins import load_plugin
from p4perf.results import RunDirectory
from p4perf.results.files import json_text, read_text, write_text_atomically
from p4perf.specs import Experiment
from p4perf.targets.base import JobResult, NodeFacts, Target
from p4perf.targets.roles import Serves, ServiceStep, is_served, links_of, measuring, serving
from p4perf.testbeds.base import build_failure, says_disk_full
from p4perf.testbeds.batch import base as batches
from p4perf.testbeds.batch.folder import TRIAL, NamedOffer, NamedPart, named_parts
from p4perf.testbeds.loadgen.base import Account, Load, LoadGenerator, LoadOffers, LoadSession
from p4perf.testbeds.serving import check_answer


class TwoNodeTrial:
    """A trial of a point with a load generator, as commands of two nodes."""

    def __init__(self, target: Serves, planned: PlannedPoint, facts: NodeFacts, testbed: batches.BatchTestbed) -> None:
        assert planned.load is not None  # noqa: S101 - callers pass only points with a load
        self._target, self._planned, self._plan = target, planned, planned.load
        self._facts, self._testbed = facts, testbed
        generator: LoadGenerator = load_plugin("p4perf.load_generators", self._plan.generator)()
        self._offers = generator.offers(planned.plan, self._plan.link, testbed.generator_facts())
        asking = _Script(self._offers)
        self._measure(asking)
        self._loads = asking.asked

    def job(self, name: str) -> batches.BatchJob:
        parts = []
        for program, loads in groupby(self._loads, key=lambda load: load.device):
            assert program in ("program", "baseline")  # noqa: S101 - there are no others behind interfaces
            service = self._target.service(self._planned.plan, program, self._facts)
            parts.append(batches.LoadPart(service, tuple(map(self._offers.offer, loads))))
        return batches.BatchJob(name, None, self._planned.label, tuple(parts))

    def record(self, name: str, outcome: batches.JobOutcome) -> dict[str, Any]:
        """The record of a trial, as :meth:`p4perf.experiment.load.LoadMeasurement.measure` returns it."""
        accounts = _Reader(self._target, self._offers, outcome).accounts(named_parts(self.job(name)), self._loads)
        ready = {"generator": self._plan.generator, "node": f"{self._testbed.name}:{outcome.nodes['loadgen']}"}
        replayed = _Script(self._offers, ready, accounts)
        record = self._measure(replayed)
        assert replayed.asked == self._loads  # noqa: S101 - it is the same measurement
        return with_served(record, self._target, self._facts) if self._plan.served else record

    def _measure(self, session: LoadSession) -> dict[str, Any]:
        return LoadMeasurement(session, self._plan, 0, None, attempts=1).measure()


class _Script(LoadSession):
    """Notes what is asked for, and answers with what was measured, or made up where nothing was yet."""

    def __init__(
        self, offers: LoadOffers, ready: Mapping[str, Any] | None = None, accounts: Sequence[Account] = ()
    ) -> None:
        self.devices, self.shortest_s, self.ready = offers.devices, offers.shortest_s, ready or {}
        self.asked: list[Load] = []
        self._accounts = iter(accounts)

    @override
    def offer(self, load: Load, gate_ratio: float | None = None) -> Account:
        self.asked.append(load)
        return next(self._accounts, Account(1, 1, 1, 0, 0, 0, 0, 1.0, 1.0, (), None, {}))


class _Reader:
    """Judges what two nodes did as the live testbeds do it: every step by the target, every load by the generator."""

    def __init__(self, target: Serves, offers: LoadOffers, outcome: batches.JobOutcome) -> None:
        self._target, self._offers, self._outcome = target, offers, outcome
        self._dut, self._sender = (f"node {outcome.nodes[role]}" for role in ("dut", "loadgen"))

    def accounts(self, parts: Sequence[NamedPart], loads: Sequence[Load]) -> list[Account]:
        found: list[Account] = []
        for part in parts:
            for name, step in part.prepare.items():
                self._step(name, step)
            self._answer(part, 0)
            for number, offer in enumerate(part.offers):
                found.append(self._load(part, offer, loads[len(found)], number))
            for name, step in part.release.items():
                self._step(name, step)
        return found

    def _load(self, part: NamedPart, named: NamedOffer, load: Load, number: int) -> Account:
        steps = {**named.before, **named.during, **named.after}
        seen = {step.what: self._step(name, step) for name, step in steps.items()}
        self._answer(part, number + 1)
        result = self._result(named.name, self._sender)
        texts = {name: self._outcome.left.get((named.name, name)) for name in named.offer.leaves}
        left = {name: text for name, text in texts.items() if text is not None}
        return self._offers.account(load, result, left, self._target.evidence(seen), self._sender)

    def _step(self, name: str, step: ServiceStep) -> JobResult:
        result = self._result(name, f"{self._dut}, {step.what}")
        try:
            self._target.check_step(step, result)
        except MeasurementError as error:
            raise MeasurementError(f"{self._dut}, {error.message}", key=error.key, hint=error.hint) from error
        return result

    def _result(self, name: str, where: str) -> JobResult:
        result = self._outcome.results.get(name)
        if result is None:
            raise MeasurementError(f"{where}: {name} was not run, because something before it failed")
        return result

    def _answer(self, part: NamedPart, number: int) -> None:
        """Check what the device reported of itself: at its start, and after each load."""
        if part.service.main is None:
            return
        lines = self._outcome.said.get(part.main, ())
        if number >= len(lines):
            raise MeasurementError(f"{self._dut}, {self._target.label}: it did not say whether it is up ({part.main})")
        try:
            check_answer(lines[number], self._target.label, part.service, coming_up=number == 0)
        except MeasurementError as error:
            raise MeasurementError(f"{self._dut}: {error.message}", hint=error.hint) from error


def refuse_what_needs_answers(experiment: Experiment, target: Target, testbed: batches.BatchTestbed) -> None:
    """Refuse experiments that cannot be measured in batches."""
    if is_served(target, NodeFacts({"load_generator": testbed.load_generator})):
        _refuse_searches(experiment, target, testbed)
    elif links_of(target) and experiment.spec.asks_load:
        raise UsageError(
            f"testbed {testbed.label} measures the device alone, as its own source of packets: offered loads, "
            "throughput, loss and latency need a load generator that answers between trials",
            hint="use testbed local or ssh, or an experiment without load",
        )
    if any(point.cpu_frequency_ghz is not None for point in experiment.points):
        raise UsageError(
            f"testbed {testbed.label} does not set the frequency of cores", hint="use testbed local or ssh"
        )


def _refuse_searches(experiment: Experiment, target: Target, testbed: batches.BatchTestbed) -> None:
    if not testbed.load_generator:
        raise UsageError(
            f"target {target.label} is loaded from outside, and testbed {testbed.label} has no load generator",
            hint="testbeds pos and ssh have one where their file has a node with the role loadgen and a load_generator",
        )
    plans = [load_plan(experiment.spec, point, (), experiment.capture, served=True) for point in experiment.points]
    if any(plan.searches for plan in plans):
        raise UsageError(
            f"testbed {testbed.label} cannot search a throughput (throughput_ndr, throughput_pdr, and loads that are a "
            "fraction of it): each load of a search follows from the one before, and nothing answers between trials",
            hint="sweep fixed rates (traffic.offered_load: {rate_mpps: ...}), or ask for receive_rate, that of an "
            "overload; testbed ssh searches",
        )


CALIBRATION = "calibration"
"""Name of the first job of a batch."""

_NOTE = "batch.json"


@dataclass(frozen=True, slots=True)
class BatchTrial:
    """A trial of a batch. ``point`` is the number of its point in the sweep."""

    name: str
    point: int
    attempt: int
    seed: int


@dataclass(frozen=True, slots=True)
class TrialBatch:
    """A batch as it is on disk: whether it calibrates, and whether that result and all others were taken over."""

    number: int
    trials: tuple[BatchTrial, ...]
    calibrates: bool
    calibrated: bool = False
    read: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return (*((CALIBRATION,) if self.calibrates else ()), *(trial.name for trial in self.trials))


_BATCH = TypeAdapter(TrialBatch)


class TrialBatches:
    """The batches of a run, in ``batches/<number>`` of its directory."""

    def __init__(self, run: RunDirectory) -> None:
        self._run = run

    def folder(self, number: int) -> Path:
        return self._run.locate(f"batches/{number:03}")

    def all(self) -> list[TrialBatch]:
        found: list[TrialBatch] = []
        while (path := self.folder(len(found) + 1) / _NOTE).exists():
            try:
                content = json.loads(read_text(path))
                found.append(_BATCH.validate_python({**content, "number": len(found) + 1}))
            except (ValueError, TypeError) as error:
                raise DataError("is damaged", location=Location(str(path))) from error
        return found

    def write(self, batch: TrialBatch) -> None:
        content = {key: value for key, value in asdict(batch).items() if key != "number"}
        text = json_text({"schema_version": 1, **content})
        write_text_atomically(self.folder(batch.number) / _NOTE, text)


class BatchConductor(SweepConductor):
    """Measures the points of one run in rounds."""

    _testbed: batches.BatchTestbed
    _seen: tuple[NodeFacts, NodeFacts] | None = None

    @override
    def _start(self) -> None:
        refuse_what_needs_answers(self._experiment, self._target, self._testbed)
        if simulated := sorted(name for name in self._experiment.spec.metrics.optional if name.startswith(SIMULATED)):
            self._progress.note(f"testbed {self._testbed.label} simulates nothing: {', '.join(simulated)} are left out")
        self._batches = TrialBatches(self._run)
        self._open_record()
        self._record.planned()

    @override
    def _node_facts(self) -> tuple[NodeFacts, NodeFacts] | None:
        return self._seen

    @override
    def _sweep(self) -> str:
        while True:
            unread = (batch for batch in self._batches.all() if not batch.read)
            batch = next(unread, None) or self._new_batch()
            if batch is None:
                return ""
            folder = self._batches.folder(batch.number)
            results = self._testbed.run_batch(batch.names, folder, self._progress.note)
            self._agree(results)
            fresh = self._take(batch, results)
            lost = {t.name: results.missing[t.name] for t in batch.trials if t.name in results.missing}
            if lost and results.waiting:
                return f"{len(lost)} of {len(batch.trials)} trials have no result yet: {results.waiting}"
            self._batches.write(replace(batch, calibrated=True, read=True))
            if lost:
                name, why = next(iter(lost.items()))
                what = f"{len(lost)} of {len(batch.trials)} trials have no result; the first, {name}: {why}"
                if not fresh:
                    hint = f"the results are in {results.place}; p4perf resume measures again"
                    raise TestbedError(f"{self._testbed.label}: {what}", hint=hint)
                self._progress.note(f"{what}; they are measured again")

    @property
    def _facts(self) -> NodeFacts:
        return self._run.record().node

    def _two_node_trial(self, planned: PlannedPoint) -> TwoNodeTrial:
        return TwoNodeTrial(serving(self._target), planned, self._facts, self._testbed)

    def _new_batch(self) -> TrialBatch | None:
        """Write what is open as a batch; None if nothing is."""
        earlier, ledger = self._batches.all(), self._ledger
        attempts = {p.point.index: ledger.next_attempt(p.key) for p in self._points}
        for trial in (t for batch in earlier for t in batch.trials if t.point in attempts):
            attempts[trial.point] = max(attempts[trial.point], trial.attempt + 1)
        trials: list[BatchTrial] = []
        jobs: list[batches.BatchJob] = []
        facts = self._facts
        for planned in ledger.next_trials(self._points):
            index = planned.point.index
            attempt = attempts[index]
            attempts[index] += 1
            seed = self._experiment.spec.trials.seed * 1000 + attempt
            trials.append(BatchTrial(f"p{index:03}-a{attempt}", index, attempt, seed))
            if planned.load is not None:
                jobs.append(self._two_node_trial(planned).job(trials[-1].name))
                continue
            job = measuring(self._target).trial(planned.plan, self._record.options(seed), facts)
            jobs.append(batches.BatchJob(trials[-1].name, job, planned.label))
        if not trials:
            return None
        calibration = self._record.calibration()
        if calibration is not None and any(planned.saturated for planned in self._points):
            jobs.insert(0, batches.BatchJob(CALIBRATION, calibration, "how undisturbed the machine is"))
        calibrates = len(jobs) > len(trials)
        batch = TrialBatch(len(earlier) + 1, tuple(trials), calibrates)
        title = f"{self._experiment.spec.name} on {self._target.label}"
        self._testbed.write_batch(jobs, self._batches.folder(batch.number), title)
        self._batches.write(batch)
        return batch

    def _agree(self, results: batches.BatchResults) -> None:
        """Results are of the machine that was planned for; a plan for any machine becomes one for that."""
        if results.facts is None:
            if results.outcomes:
                raise DataError(
                    "the results do not name their machine: facts.txt is missing", location=Location(results.place)
                )
            return
        if self._run.record().provisional:
            self._points = adopt(self._run, self._experiment, self._target, self._points, results.facts)
            self._open_record()
        else:
            same_machine(self._run, results.facts)
        if results.facts_after is not None:
            self._seen = (results.facts, results.facts_after)

    def _take(self, batch: TrialBatch, results: batches.BatchResults) -> int:
        """Take over results that are not on disk yet; how many there were."""
        calibration = results.outcomes.get(CALIBRATION)
        if batch.calibrates and not batch.calibrated and calibration is not None:
            try:
                self._record.calibrated(calibration.results[TRIAL])
            except (ValueError, KeyError, TypeError, AttributeError):
                self._progress.note("the calibration of the batch is unreadable and is ignored")
            self._batches.write(replace(batch, calibrated=True))
        points = {p.point.index: p for p in self._points}
        fresh = 0
        for trial in batch.trials:
            outcome, planned = results.outcomes.get(trial.name), points.get(trial.point)
            if outcome is None or planned is None or self._ledger.has_attempt(planned.key, trial.attempt):
                continue
            fresh += 1
            if outcome.build_log is None or self._ledger.status(planned.key).failure is None:
                self._add(planned, trial, outcome)
        return fresh

    def _add(self, planned: PlannedPoint, trial: BatchTrial, outcome: batches.JobOutcome) -> None:
        identity = {"repetition": self._ledger.status(planned.key).accepted, "attempt": trial.attempt}
        entry = {"trial": identity, "started": outcome.started}
        self._record.begin(planned)
        try:
            done = TrialDone({**entry, **self._read(planned, trial, outcome)}, outcome.duration_s)
        except (MeasurementError, BuildError) as error:
            done = TrialDone(entry, outcome.duration_s, error)
        self._record.take(planned, done)

    def _read(self, planned: PlannedPoint, trial: BatchTrial, outcome: batches.JobOutcome) -> dict[str, Any]:
        """The record of a trial, under its key in the journal."""
        if outcome.build_log is not None:
            if says_disk_full(outcome.build_log):
                where = f"{self._testbed.label}: the disk of the node was full when programs were built"
                raise StorageError(where, hint="make room there; p4perf resume measures again")
            raise build_failure(outcome.build_log, f" on {self._testbed.label}")
        if planned.load is not None:
            return {"load": self._two_node_trial(planned).record(trial.name, outcome)}
        if TRIAL not in outcome.results:
            raise MeasurementError("the program was not started")
        return {"record": dict(measuring(self._target).parse(outcome.results[TRIAL]))}
