"""Checks the claims of papers one after another: computes what can be computed, measures what has to be measured.

What was found is put into the folder as it comes, so that a stopped call goes on where it was. Claims about the same
experiment share one run.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Protocol

from p4perf.errors import (
    BuildError,
    CapabilityError,
    DataError,
    ExitCode,
    MeasurementError,
    NoVerdictError,
    P4PerfError,
    TargetUnavailableError,
    TestbedError,
    UsageError,
)
from p4perf.evaluation.reproduction import Claim, Finding, Paper, Quantity, impossible, judge
from p4perf.evaluation.reproduction.checks import CHECKS, SHAPES
from p4perf.evaluation.reproduction.checks.shapes import MeasuredRun
from p4perf.evaluation.reproduction.schema import Remeasured
from p4perf.evaluation.working_set import CacheMark, WorkingSet, cache_marks
from p4perf.experiment.evaluate import evaluate_run, fit_options, swept_variable
from p4perf.experiment.factors import run_factorial
from p4perf.experiment.opening import open_target, open_testbed
from p4perf.experiment.progress import Progress
from p4perf.experiment.record import run_record
from p4perf.experiment.reproduction_files import ReproductionFolder
from p4perf.experiment.session import measure_run, new_run, resume_run
from p4perf.results import RunDirectory
from p4perf.specs import Experiment, load_experiment
from p4perf.targets.base import NodeFacts
from p4perf.testbeds.batch.base import BatchTestbed

Chosen = tuple[Paper, Claim]

_FAILURES: tuple[tuple[type[P4PerfError], ExitCode], ...] = (
    (CapabilityError, ExitCode.UNAVAILABLE),
    (TargetUnavailableError, ExitCode.UNAVAILABLE),
    (TestbedError, ExitCode.UNAVAILABLE),
    (BuildError, ExitCode.UNAVAILABLE),
    (MeasurementError, ExitCode.INVALID_MEASUREMENT),
    (DataError, ExitCode.INVALID_MEASUREMENT),
    (NoVerdictError, ExitCode.NO_VERDICT),
)
"""Failures of one claim; whatever else happens ends the whole call."""


class ReproductionProgress(Protocol):
    """Listener of a reproduction."""

    def claim(self, number: int, total: int, finding: Finding, known: bool) -> None:
        """Claim ``number`` (from 1) of ``total`` is done; ``known`` from before."""

    def run(self, claim: Claim) -> Progress:
        """The listener of the run that is measured for a claim."""


class Reproduction:
    """Checks claims and keeps what was found in a folder.

    Args:
        folder: where runs and findings are kept.
        progress: is told what happens.
        testbed: where experiments are run.
        quick: measure few points.
    """

    def __init__(
        self, folder: ReproductionFolder, progress: ReproductionProgress, *, testbed: str = "local", quick: bool = False
    ) -> None:
        self._folder = folder
        self._progress = progress
        self._testbed = testbed
        self._quick = quick
        self._measured: dict[str, MeasuredRun | P4PerfError] = {}

    def check(self, claims: Sequence[Chosen]) -> tuple[Finding, ...]:
        """Check claims; what is in the folder already is not done again.

        Raises:
            StorageError: the folder cannot be written, or another process works on it.
            DataError: what is in the folder is damaged.
            SpecError: an experiment of a claim is wrong.
        UsageError: the testbed works in batches.
        """
        with self._folder.lock():
            found = []
            try:
                for number, (paper, claim) in enumerate(claims, 1):
                    known = self._folder.finding(paper.key, claim, quick=self._quick)
                    finding = known or self._check(paper.key, claim)
                    if known is None:
                        self._folder.keep(finding)
                    found.append(finding)
                    self._progress.claim(number, len(claims), finding, known is not None)
            finally:
                self._folder.flush()
            return tuple(found)

    def _check(self, paper: str, claim: Claim) -> Finding:
        begun = time.monotonic()
        finding = self._found(paper, claim)
        if claim.measure is not None:
            key = self._key(claim.measure)
            finding = replace(finding, quick=self._quick, run=self._folder.run_of(key) or "")
            if finding.failure is not ExitCode.OK and finding.run and self._complete(finding.run):
                self._folder.forget_run(key)  # nothing is left to go on with: the next call measures anew
        return replace(finding, duration_s=round(time.monotonic() - begun, 3))

    def _found(self, paper: str, claim: Claim) -> Finding:
        if claim.check is None:
            return impossible(paper, claim, claim.reason)
        arguments = dict(claim.check.arguments)
        if claim.measure is None:
            try:
                quantities: Mapping[str, Quantity] = CHECKS[claim.check.name](**arguments)
            except P4PerfError as error:
                # What computes the claim does not work with these numbers: that is a verdict on us.
                return replace(judge(paper, claim, {}), reason=error.message)
            return judge(paper, claim, quantities)
        try:
            return judge(paper, claim, SHAPES[claim.check.name](self._run(claim, claim.measure), **arguments))
        except P4PerfError as error:
            failure = next((code for kind, code in _FAILURES if isinstance(error, kind)), None)
            if failure is None:
                raise
            reason = f"{error.message} ({error.hint})" if error.hint else error.message
            return impossible(paper, claim, reason, failure)

    def _run(self, claim: Claim, measure: Remeasured) -> MeasuredRun:
        """The run of a claim; what went wrong with it once is not tried again for the next claim."""
        key = self._key(measure)
        if key not in self._measured:
            try:
                self._measured[key] = self._measure(claim, measure, key)
            except P4PerfError as error:
                self._measured[key] = error
        known = self._measured[key]
        if isinstance(known, P4PerfError):
            raise known
        return known

    def _measure(self, claim: Claim, measure: Remeasured, key: str) -> MeasuredRun:
        path = self._folder.run_of(key)
        if path is not None and self._complete(path):
            return measured_run(RunDirectory.open(self._folder.path / path))
        progress = self._progress.run(claim)
        if path is not None:
            run, _ = resume_run(self._folder.path / path, progress)
        else:
            experiment = self._experiment(measure)
            target, place = open_target(measure.target), open_testbed(self._testbed)
            if isinstance(place, BatchTestbed):
                raise UsageError(
                    f"testbed {place.label} works in batches, and a reproduction measures one run after another",
                    hint="use local or ssh",
                )
            run, plan = new_run(experiment, target, place, self._folder.runs)
            self._folder.begin_run(key, run.path)
            measure_run(experiment, plan.points, target, place, run, progress)
        with suppress(NoVerdictError):
            evaluate_run(run, plots=not self._quick)
        return measured_run(run)

    def _complete(self, path: str) -> bool:
        return RunDirectory.open(self._folder.path / path).state().complete

    def _experiment(self, measure: Remeasured) -> Experiment:
        pairs = [text.partition("=") for text in (*measure.change, *(measure.quick if self._quick else ()))]
        return load_experiment(measure.experiment, overrides=[(key.strip(), value.strip()) for key, _, value in pairs])

    def _key(self, measure: Remeasured) -> str:
        """What tells runs apart: claims with the same key share one."""
        changes = (*measure.change, *(measure.quick if self._quick else ()))
        return " ".join([measure.experiment, measure.target, self._testbed, *changes])


def measured_run(run: RunDirectory) -> MeasuredRun:
    """What checks want to know of a run.

    Raises:
        DataError: the run is damaged.
        NoVerdictError: it has no trial that ran to its end.
    """
    spec = load_experiment(str(run.path / "spec.yaml")).spec
    table = run.read_measurements()
    if table.empty:
        raise NoVerdictError(f"{run.path.name} has no trial that ran to its end")
    variable = swept_variable(spec)
    factorial = None
    if spec.sweep.combined.subsets_of:
        factorial, _ = run_factorial(run, metric="packet_rate")
    return MeasuredRun(
        table=table,
        variable=variable,
        options=fit_options(spec, table, variable or "point_index", whole=True),
        log_x=spec.model is not None and spec.model.x_scale == "log",
        marks=_marks(run, variable),
        factorial=factorial,
    )


def _marks(run: RunDirectory, variable: str | None) -> tuple[CacheMark, ...]:
    manifest = run_record(run)
    figures = manifest.get("working_set")
    if not figures or variable != "entries":
        return ()
    table = WorkingSet(figures["fixed_bytes"], figures["bytes_per_entry"])
    return cache_marks(table, NodeFacts(manifest["node"]).cache_bytes)


def exit_code(findings: Sequence[Finding]) -> ExitCode:
    """0 if all verdicts are as expected, 1 if one is not; else 3, 4 or 6 if a claim could not be checked."""
    failures = [finding.failure for finding in findings if finding.failure is not ExitCode.OK]
    if any(not f.as_expected and f.failure is ExitCode.OK for f in findings):
        return ExitCode.VERDICT_FAILED
    order = (ExitCode.UNAVAILABLE, ExitCode.INVALID_MEASUREMENT, ExitCode.NO_VERDICT)
    return next((code for code in order if code in failures), ExitCode.OK)
