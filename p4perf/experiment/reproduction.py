"""Checks the claims of papers: computes what can be computed, measures what has to be measured, keeps a folder of it.

::

    DIR/
      reproduction.json   every claim: what the paper says, what was found, the verdict
      reproduction.md     the same for people
      reproduction.html
      runs/<run>/         the runs that were measured
      ro-crate-metadata.json

What was found is put into the folder as it comes, so that a stopped call continues where it was. Claims about the same
experiment share one run.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, get_args

from typing_extensions import override

from p4perf import errors
from p4perf.errors import DataError, ExitCode, Location, NoVerdictError, P4PerfError, UsageError
from p4perf.evaluation.fitting.working_set import run_marks
from p4perf.evaluation.papers import (
    CHECKS,
    SHAPES,
    Claim,
    Evidence,
    Finding,
    PaperClaims,
    Quantity,
    impossible,
    judge,
    shipped_papers,
)
from p4perf.evaluation.papers.claims import Remeasured
from p4perf.evaluation.papers.shapes import MeasuredRun
from p4perf.evaluation.report import render_markdown, render_page
from p4perf.experiment.bench import open_target, open_testbed, refuse_batches
from p4perf.experiment.conductor import TimeLimit
from p4perf.experiment.evaluate import evaluate_run, fit_options
from p4perf.experiment.factors import run_factorial
from p4perf.experiment.planning import SweepPlan, plan_sweep
from p4perf.experiment.recorder import PartOfWork
from p4perf.experiment.session import measure_run, new_run, require_usable, resume_run
from p4perf.experiment.sizing import Pace
from p4perf.programs.component import component_parameters
from p4perf.records import Document, Record, counted, doc, duration_text, listing
from p4perf.results import Run, files, is_run
from p4perf.results.campaign import RecordFolder
from p4perf.results.crate import CrateOptions, crate_metadata
from p4perf.results.files import dated_name, filled_folder, new_folder
from p4perf.specs import Experiment, load_experiment
from p4perf.version import __version__

SCHEMA_VERSION = 1
"""Version of ``reproduction.json``; it rises when a key changes its meaning or goes."""

KIND = "reproduction"
PARENT = Path("reproductions")
REPORT = "reproduction.json"
KEEP_EVERY_S = 2.0
"""Shortest time between two writes of computed findings."""


class ReproductionFolder(RecordFolder):
    """A folder on disk. Make or take up one with :meth:`at`; every write is atomic and durable."""

    FILE, NOUN, VERSION = REPORT, KIND, SCHEMA_VERSION
    KEYS = {"kind": str, "created": str, "claims": dict, "runs": dict}  # noqa: RUF012 - read only

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._content = self._read()
        self._written_s = time.monotonic()

    @classmethod
    def at(cls, path: Path | None, now: datetime) -> ReproductionFolder:
        """A folder that is there already, or a new one.

        Raises:
            UsageError: the path is a file, or a folder with something else in it.
        """
        created = now.astimezone(UTC).isoformat(timespec="seconds")
        empty = {"schema_version": SCHEMA_VERSION, "kind": KIND, "created": created, "claims": {}, "runs": {}}

        def fill(place: Path) -> None:
            cls.fill(place, empty)

        if path is None:
            return cls(new_folder(PARENT / dated_name((KIND,), now), fill))
        if cls.is_one(path):
            return cls(path)
        if path.is_dir() and any(path.iterdir()):
            raise UsageError(f"{path} has something else in it", hint="name a new folder, or one of p4perf reproduce")
        return cls(filled_folder(path, fill))

    @contextmanager
    @override
    def lock(self) -> Iterator[None]:
        with super().lock():
            self._content = self._read()
            yield

    def finding(self, paper: str, claim: Claim, *, quick: bool) -> Finding | None:
        """What was found before, if it still counts: the claim is the same, and so is the p4perf that computes it.

        A claim that could not be checked, or had no time, is tried again, and one that was measured with few points is
        measured with all if that is asked for.
        """
        record = self._content["claims"].get(f"{paper}:{claim.id}")
        if record is None or record["fingerprint"] != _fingerprint(claim) or record["failure"] != ExitCode.OK:
            return None
        if record.get("verdict") == "not run":
            return None
        if claim.measure is None and record["p4perf"] != __version__:
            return None
        if claim.measure is not None and record["quick"] and not quick:
            return None
        if claim.check is None:
            return replace(impossible(paper, claim, claim.reason), duration_s=0.0)
        try:
            stored = record["quantities"].items()
            quantities: dict[str, Quantity] = {n: tuple(v) if isinstance(v, list) else v for n, v in stored}
            found = judge(paper, claim, quantities)
            return replace(found, run=str(record["run"]), quick=record["quick"], duration_s=float(record["duration_s"]))
        except (AttributeError, TypeError, ValueError):  # it is damaged
            return None

    def keep(self, finding: Finding) -> None:
        """Put a finding on disk; computed ones at most every :data:`KEEP_EVERY_S` seconds."""
        self._content["claims"][finding.key] = {
            "fingerprint": _fingerprint(finding.claim),
            "p4perf": __version__,
            "failure": int(finding.failure),
            **claim_record(finding),
        }
        if finding.claim.measure is not None or time.monotonic() - self._written_s >= KEEP_EVERY_S:
            self.write()

    def run_of(self, key: str) -> str | None:
        """The run that was measured for a key, relative to the folder; None if there is none."""
        path = self._content["runs"].get(key)
        return path if isinstance(path, str) and is_run(self.run(path)) else None

    def finished_run(self, key: str) -> str | None:
        """The run of a key if nothing is left to do for it."""
        path = None if key in self._content["open"] else self.run_of(key)
        return path if path and self.is_complete(path) else None

    def is_complete(self, path: str) -> bool:
        """Whether a run has all its trials."""
        return Run.open(self.run(path)).directory.state().complete

    def begin_run(self, key: str, path: Path) -> None:
        """Note a run before its first trial, so that a kill loses nothing."""
        self._content["runs"][key] = path.relative_to(self._path).as_posix()
        self._content["open"] = [*(each for each in self._content["open"] if each != key), key]
        self.write()

    def end_run(self, key: str) -> None:
        """Note that a run has its tables, model and plots: a kill before left some of them out."""
        self._content["open"] = [each for each in self._content["open"] if each != key]

    def forget_run(self, key: str) -> None:
        """Do not take up a run again; its folder stays."""
        self._content["runs"].pop(key, None)

    def report(self, findings: Sequence[Finding], papers: Sequence[PaperClaims], code: ExitCode) -> tuple[Path, ...]:
        """Write the reports of these findings; the paths of those for people and of the crate."""
        self._content |= {**summary_record(findings, code), "papers": [_paper(paper) for paper in papers]}
        self.write()
        context = {
            "created": self._content["created"],
            "version": __version__,
            "papers": [
                {**_paper(paper), "claims": [claim_record(f) for f in findings if f.paper == paper.key]}
                for paper in papers
            ],
            "summary": summary_record(findings, code),
        }
        written = []
        for name, render in (("reproduction.md", render_markdown), ("reproduction.html", render_page)):
            path = self._path / name
            files.write_text_atomically(path, render(f"{name}.j2", **context))
            written.append(path)
        options = CrateOptions(
            name="Claims of published papers, checked again",
            description="What the papers say, what p4perf finds, and the runs that were measured for it.",
            published=datetime.fromisoformat(self._content["created"]),
        )
        crate = self._path / "ro-crate-metadata.json"
        files.write_text_atomically(crate, crate_metadata(self._path, options))
        return (*written, crate)

    def write(self) -> None:
        self._written_s = time.monotonic()
        self._content["updated"] = datetime.now(UTC).isoformat(timespec="seconds")
        self.write_record(self._content)

    def _read(self) -> dict[str, Any]:
        content = self.read_record()
        where = Location(str(self.file))
        if content["kind"] != KIND:
            raise DataError("is not a reproduction that this p4perf can read", location=where, key="kind")
        if not isinstance(content.setdefault("open", []), list):
            raise DataError("is not a list", location=where, key="open")
        for record in content["claims"].values():
            if not isinstance(record, dict) or not all(key in record for key in _CLAIM_KEYS):
                raise DataError("is missing or not what it should be", location=where, key="claims")
        return content


_CLAIM_KEYS = ("fingerprint", "p4perf", "failure", "quantities", "run", "quick", "duration_s")


def _fingerprint(claim: Claim) -> str:
    """A hash of what is computed or measured for a claim, not of its text."""
    what = claim.model_dump(mode="json", include={"kind", "check", "measure"})
    return hashlib.sha256(files.strict_json(what).encode()).hexdigest()[:16]


def _paper(paper: PaperClaims) -> dict[str, str]:
    return paper.model_dump(exclude={"reproduction_version", "claims"})


Chosen = tuple[PaperClaims, Claim]


class ClaimRecord(Record):
    """One claim, for tables, JSON and reports."""

    paper: str = doc("key of the paper")
    claim: str = doc("name of the claim", of="claim.id")
    source: str = doc("its place in the paper", of="claim.source.text()")
    text: str = doc("what is claimed", of="claim.claim")
    inference: str = doc("the part that is our reading of the paper, or empty", of="claim.inference")
    kind: str = doc("`analytic`, `published data` or `re-measured by shape`", of="claim.kind")
    evidence: str | None = doc(
        "what the verdict rests on, `independent`, `transcribed` or `own`; null where nothing is checked",
        of="claim.basis",
    )
    command: str = doc("the command that shows it", of="claim.command")
    check: str | None = doc("the check; null where there is none", of="claim.check.name")
    paper_value: str = doc("the value of the paper, or that of our reading, with its unit", of="claim.paper_text()")
    our_value: str = doc("what was found; empty if nothing", of="ours_text()")
    quantities: dict[str, Any] = doc("everything that the check computed, by name")
    verdict: str = doc("`reproduced`, `shape reproduced`, `not reproduced`, `not possible here` or `not run`")
    expected: str = doc("the expected verdict", of="claim.expected")
    as_expected: bool = doc("whether verdict and findings are the expected ones; true if it was not run")
    reason: str = doc("why it is not reproduced or not possible, or empty")
    drifted: tuple[str, ...] = doc("what is found instead, where that is not as expected")
    run: str = doc("run directory in the folder, or empty")
    quick: bool = doc("whether few points were measured for it")
    duration_s: float = doc("time that it took", "s")


class ReproductionDocument(Document, kind="reproduction"):
    """`p4perf reproduce`: one row for each claim."""

    output: str = doc("[the folder](#the-folder-of-a-reproduction)")
    quick: bool = doc("whether few points were measured")
    checked: int = doc("number of claims")
    reproduced: int = doc("number of claims that are reproduced, in shape or as a whole, by independent evidence")
    evidence: dict[str, Any] = doc("number of claims by what the verdict rests on, and each of these by verdict")
    verdicts: dict[str, Any] = doc("number of claims by verdict, with any evidence")
    unexpected: tuple[str, ...] = doc("`paper:claim` of those whose verdict is not the expected one")
    exit_code: int = doc("[exit code](commands.md#exit-codes)")
    rows: tuple[ClaimRecord, ...] = doc("")


class _ListedClaim(Record):
    paper: str = doc("key of the paper")
    claim: str = doc("name of the claim", of="id")
    source: str = doc("its place in the paper", of="source.text()")
    text: str = doc("what is claimed", of="claim")
    inference: str = doc("the part that is our reading of the paper, or empty")
    kind: str = doc("as in `reproduction`")
    evidence: str | None = doc("as in `reproduction`", of="basis")
    command: str = doc("the command that shows it")
    paper_value: str = doc("the value of the paper, or that of our reading, with its unit", of="paper_text()")
    expected: str = doc("the expected verdict")
    reason: str = doc("why it is not expected to be reproduced, or empty")


ReproductionClaimsDocument = listing(
    "reproduction.claims", _ListedClaim, "`p4perf reproduce --list`: one row for each claim."
)


def listed(claims: Sequence[Chosen]) -> Document:
    return ReproductionClaimsDocument(rows=tuple(_ListedClaim.read(claim, paper=paper.key) for paper, claim in claims))


def claim_record(finding: Finding) -> dict[str, Any]:
    return ClaimRecord.read(finding).as_dict()


def summary_record(findings: Sequence[Finding], code: ExitCode) -> dict[str, Any]:
    """How many claims there are of each evidence and verdict, and which are not as expected.

    Only what rests on independent evidence counts as reproduced.
    """
    counts: Mapping[str, int] = Counter(finding.verdict for finding in findings)
    evidence = {
        basis: dict(sorted(Counter(f.verdict for f in findings if (f.claim.basis or "none") == basis).items()))
        for basis in (*get_args(Evidence), "none")
    }
    return {
        "checked": len(findings),
        "reproduced": sum(evidence["independent"].get(verdict, 0) for verdict in ("reproduced", "shape reproduced")),
        "evidence": evidence,
        "verdicts": dict(sorted(counts.items())),
        "unexpected": [finding.key for finding in findings if not finding.as_expected],
        "exit_code": int(code),
    }


_FAILURES: Mapping[type[P4PerfError], ExitCode] = {
    errors.CapabilityError: ExitCode.UNAVAILABLE,
    errors.TargetUnavailableError: ExitCode.UNAVAILABLE,
    errors.TestbedError: ExitCode.UNAVAILABLE,
    errors.BuildError: ExitCode.UNAVAILABLE,
    errors.MeasurementError: ExitCode.INVALID_MEASUREMENT,
    DataError: ExitCode.INVALID_MEASUREMENT,
    NoVerdictError: ExitCode.NO_VERDICT,
}
"""Failures of one claim; whatever else happens ends the whole call."""


COMPUTED_S = 0.05
"""What a claim takes on average that is computed."""


class Watcher(Protocol):
    """Listener of a reproduction: the command line shows what it hears."""

    def told(self, text: str) -> None:
        """A claim or a run is finished, or something that the user should know."""

    def reached(self, what: str, left_s: float) -> None:
        """What is done now, and about how many seconds everything still takes."""


class Reproduction:
    """Checks claims and keeps what was found: those that are computed, then those that are measured, short runs first.

    Args:
        budget_s: what would end later is not begun, and its claims are not run.
    """

    def __init__(
        self,
        folder: ReproductionFolder,
        watcher: Watcher,
        *,
        testbed: str = "local",
        quick: bool = False,
        budget_s: float = math.inf,
    ) -> None:
        self._folder, self._watcher = folder, watcher
        self._testbed, self._quick, self._budget_s = testbed, quick, budget_s
        self._measured: dict[str, MeasuredRun | P4PerfError] = {}
        self._paces: dict[str, Pace] = {}
        self._waiting: dict[str, tuple[str, SweepPlan, int]] = {}
        self._computed = 0
        self._deadline_s = math.inf

    def check(self, claims: Sequence[Chosen]) -> tuple[Finding, ...]:
        """Check claims; what is in the folder already is not done again. They are returned in the order of the claims.

        Raises:
            SpecError: an experiment of a claim is wrong.
            UsageError: the testbed works in batches.
        """
        self._deadline_s = time.monotonic() + self._budget_s
        with self._folder.lock():
            found = {n: self._folder.finding(p.key, claim, quick=self._quick) for n, (p, claim) in enumerate(claims)}
            missing = [n for n, known in found.items() if known is None]
            self._estimate([claims[n][1] for n in missing], len(claims))
            try:
                for done, n in enumerate(sorted(missing, key=lambda n: self._claim_s(claims[n][1])), 1):
                    paper, claim = claims[n]
                    self._watcher.reached(f"{paper.key}:{claim.id}", self._left_s())
                    finding = found[n] = self._check(paper.key, claim)
                    self._folder.keep(finding)
                    unknown = finding.verdict in ("not run", "not possible here")
                    took = f": {finding.reason}" if unknown else f", {finding.duration_s:.1f} s"
                    self._watcher.told(f"{done}/{len(missing)} {finding.key}: {finding.verdict}{took}")
            finally:
                self._folder.write()
            return tuple(finding for finding in found.values() if finding is not None)

    def _estimate(self, claims: Sequence[Claim], of: int) -> None:
        """Say what will be done and about how long it takes."""
        self._computed = sum(claim.measure is None for claim in claims)
        runs = _planned_runs(claims, self._testbed, quick=self._quick)
        self._waiting = {key: run for key, run in runs.items() if self._folder.finished_run(key) is None}
        from_before = f", {of - len(claims)} known from before" if len(claims) < of else ""
        within = f"; {duration_text(self._budget_s)} at most" if math.isfinite(self._budget_s) else ""
        self._watcher.told(
            f"{counted(of, 'claim')}: {self._computed} to compute, {len(claims) - self._computed} to measure in "
            f"{counted(len(self._waiting), 'run')}{from_before}; about {duration_text(self._left_s())}{within}"
        )

    def _left_s(self) -> float:
        return self._computed * COMPUTED_S + sum(map(self._cost_s, self._waiting))

    def _claim_s(self, claim: Claim) -> float:
        """What a claim takes: nothing if it is computed, and more than that if it is measured."""
        key = "" if claim.measure is None else self._key(claim.measure)
        return self._cost_s(key) if key in self._waiting else float(claim.measure is not None)

    def _cost_s(self, key: str) -> float:
        label, plan, repetitions = self._waiting[key]
        return self._paces.setdefault(label, Pace()).cost_s(plan, repetitions)

    def _check(self, paper: str, claim: Claim) -> Finding:
        begun = time.monotonic()
        try:
            if begun >= self._deadline_s and (claim.measure is None or self._key(claim.measure) not in self._measured):
                raise _NoTimeError("the time was over")
            finding = self._found(paper, claim)
        except _NoTimeError as error:
            finding = Finding(paper, claim, "not run", reason=str(error))
        if claim.measure is None:
            self._computed -= 1
        if claim.measure is not None:
            key = self._key(claim.measure)
            finding = replace(finding, quick=self._quick, run=self._folder.run_of(key) or "")
            if finding.failure is not ExitCode.OK and finding.run and self._folder.is_complete(finding.run):
                self._folder.forget_run(key)  # nothing is left to resume: the next call measures anew
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
            return judge(paper, claim, SHAPES[claim.check.name](self._run(claim.measure), **arguments))
        except P4PerfError as error:
            failure = next((code for kind, code in _FAILURES.items() if isinstance(error, kind)), None)
            if failure is None:
                raise
            reason = f"{error.message} ({error.hint})" if error.hint else error.message
            return impossible(paper, claim, reason, failure)

    def _run(self, measure: Remeasured) -> MeasuredRun:
        """The run of a claim; a failure is kept and not tried again for the next claim."""
        key = self._key(measure)
        if key not in self._measured:
            try:
                self._measured[key] = self._measure(measure, key)
            except P4PerfError as error:
                self._measured[key] = error
        known = self._measured[key]
        if isinstance(known, P4PerfError):
            raise known
        return known

    def _measure(self, measure: Remeasured, key: str) -> MeasuredRun:
        if path := self._folder.finished_run(key):
            return measured_run(Run.open(self._folder.run(path)))
        path = self._folder.run_of(key)
        begun, left_s = time.monotonic(), self._deadline_s - time.monotonic()
        if key in self._waiting and self._cost_s(key) > left_s:
            needed = duration_text(self._cost_s(key))
            raise _NoTimeError(f"its run takes about {needed}, and {duration_text(max(0.0, left_s))} were left")
        waiting = self._waiting.pop(key, None)
        self._watcher.told(f"measuring {measure.experiment} on {measure.target}")
        what = f"{measure.experiment} on {measure.target}"
        listener = PartOfWork(what, self._watcher.reached, self._left_s(), self._watcher.told)
        limit = TimeLimit(self._deadline_s)
        if path is not None:
            self._folder.begin_run(key, self._folder.run(path))
            run, outcome = resume_run(self._folder.run(path), listener, limit=limit)
        else:
            experiment = _experiment(measure, quick=self._quick)
            target, place = open_target(measure.target), open_testbed(self._testbed)
            refuse_batches(place, "a reproduction measures one run after another")
            run, plan = new_run(experiment, target, place, self._folder.runs)
            self._folder.begin_run(key, run.path)
            outcome = measure_run(experiment, plan.points, target, place, run, listener, limit=limit)
        if time.monotonic() >= self._deadline_s and not run.state().complete:
            raise _NoTimeError(f"the time ended after {outcome.complete} of {counted(outcome.points, 'point')}")
        with suppress(NoVerdictError):
            evaluate_run(Run(run), plots=not self._quick)
        self._folder.end_run(key)
        if waiting is not None:
            label, plan, _ = waiting
            took_s = time.monotonic() - begun
            self._paces[label].learn(outcome, plan.builds, took_s, load_s=plan.load_s, setup_s=plan.setup_s)
        return measured_run(Run(run))

    def _key(self, measure: Remeasured) -> str:
        return _run_key(measure, self._testbed, quick=self._quick)


def _run_key(measure: Remeasured, testbed: str, *, quick: bool) -> str:
    """Identifies a run: claims with the same key share one."""
    return " ".join([measure.experiment, measure.target, testbed, *measure.change, *(measure.quick if quick else ())])


def _experiment(measure: Remeasured, *, quick: bool) -> Experiment:
    pairs = [text.partition("=") for text in (*measure.change, *(measure.quick if quick else ()))]
    overrides = [(key.strip(), value.strip()) for key, _, value in pairs]
    return load_experiment(measure.experiment, overrides=overrides, parameters_of=component_parameters)


def _planned_runs(claims: Sequence[Claim], testbed: str, *, quick: bool) -> dict[str, tuple[str, SweepPlan, int]]:
    """Target, plan and repetitions of each run that claims take; without those that are impossible here."""
    measured = {_run_key(c.measure, testbed, quick=quick): c.measure for c in claims if c.measure and c.check}
    found = {}
    for key, measure in measured.items():
        with suppress(P4PerfError):  # what is wrong with an experiment or a target is said when its claims come
            experiment, target = _experiment(measure, quick=quick), open_target(measure.target)
            plan = plan_sweep(experiment, target, require_usable(target, open_testbed(testbed)))
            found[key] = (target.label, plan, experiment.spec.trials.repetitions)
    return found


class _ListedPaper(Record):
    paper: str = doc("key of the paper", of="key")
    title: str = doc("title of the paper")
    claims: int = doc("claims")
    runs: int = doc("runs that the claims need and that are possible here")
    time: str = doc("approximate duration of all of them, for people")
    quick: str = doc("the same with `--quick`")
    command: str = doc("the command that checks them")


PAPERS_TEXT = "`p4perf reproduce` without a claim: one row for each paper."
ReproductionPapersDocument = listing("reproduction.papers", _ListedPaper, PAPERS_TEXT)


def papers(testbed: str) -> Document:
    """What checking the claims of each paper takes here."""
    rows = []
    for paper in shipped_papers():
        runs, times = 0, []
        for quick in (True, False):
            plans = _planned_runs(paper.claims, testbed, quick=quick).values()
            left_s = sum(Pace().cost_s(plan, repetitions) for _, plan, repetitions in plans)
            computed = sum(claim.measure is None for claim in paper.claims)
            times.append(duration_text(left_s + computed * COMPUTED_S))
            runs = len(plans)
        command = f"p4perf reproduce {paper.key}"
        counts = {"claims": len(paper.claims), "runs": runs, "time": times[1], "quick": times[0]}
        rows.append(_ListedPaper.read(paper, command=command, **counts))
    return ReproductionPapersDocument(rows=tuple(rows))


class _NoTimeError(Exception):
    """The budget does not suffice for a claim; the message says why."""


def measured_run(run: Run) -> MeasuredRun:
    spec, table = run.spec, run.measured
    factorial = None
    if spec.sweep.combined.subsets_of:
        factorial, _ = run_factorial(run, metric="packet_rate")
    return MeasuredRun(
        table=table,
        variable=run.variable,
        options=fit_options(spec, None),
        log_x=spec.model is not None and spec.model.x_scale == "log",
        marks=run_marks(run),
        factorial=factorial,
    )


def exit_code(findings: Sequence[Finding]) -> ExitCode:
    """0 if all verdicts are as expected, 1 if one is not; else 3, 4 or 6 if a claim could not be checked."""
    failures = [finding.failure for finding in findings if finding.failure is not ExitCode.OK]
    if any(not f.as_expected and f.failure is ExitCode.OK for f in findings):
        return ExitCode.VERDICT_FAILED
    order = (ExitCode.UNAVAILABLE, ExitCode.INVALID_MEASUREMENT, ExitCode.NO_VERDICT)
    return next((code for code in order if code in failures), ExitCode.OK)
