"""The command that checks the claims of published papers: reproduce."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from p4perf.cli.app import app
from p4perf.cli.options import QuietOption
from p4perf.cli.output import Format, FormatOption, emit, say
from p4perf.errors import UsageError

if TYPE_CHECKING:
    from p4perf.cli.progress import SweepProgress
    from p4perf.evaluation.papers import Claim, Finding, Kind


class Only(StrEnum):
    """Kinds of claims, in one word each."""

    ANALYTIC = "analytic"
    PUBLISHED = "published"
    MEASURED = "measured"


_KINDS: dict[Only, Kind] = {
    Only.ANALYTIC: "analytic",
    Only.PUBLISHED: "published data",
    Only.MEASURED: "re-measured by shape",
}


@app.command()
def reproduce(
    claims: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PAPER[:CLAIM]]...",
            help="Papers (scholz2021), their figures, tables and equations (scholz2021:fig2), single claims "
            "(scholz2021:fig2-four-parts), or a FILE.yaml of your own; default: all.",
            show_default=False,
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Measure few points, so that it takes some minutes.")] = False,
    only: Annotated[
        list[Only] | None, typer.Option("--only", help="Only claims of this kind. Repeatable.", show_default=False)
    ] = None,
    show: Annotated[bool, typer.Option("--list", help="List the claims, check nothing.")] = False,
    testbed: Annotated[str, typer.Option("--testbed", help="Where experiments run, as in p4perf run.")] = "local",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder of a new or an earlier reproduction; default: a new one."),
    ] = None,
    quiet: QuietOption = False,
    fmt: FormatOption = Format.TABLE,
) -> int:
    """Compute or measure again what published papers claim, and tell what comes out.

    Every claim has a source and a check. Verdicts that are not as expected end with 1.
    """
    from datetime import UTC, datetime

    from p4perf.evaluation.papers import chosen_claims
    from p4perf.experiment import reproduction

    chosen = chosen_claims(claims or (), tuple(_KINDS[each] for each in only or ()))
    if show:
        if quick or output is not None:
            raise UsageError("--list checks nothing", hint="leave --quick and --output out")
        emit(fmt, reproduction.listed(chosen))
        return 0
    folder = reproduction.ReproductionFolder.at(output, datetime.now(UTC))
    with Listener(quiet=quiet) as listener:
        try:
            findings = reproduction.Reproduction(folder, listener, testbed=testbed, quick=quick).check(chosen)
        except KeyboardInterrupt:
            say(f"\nstopped; everything finished is on disk. Continue with the same command and --output {folder.path}")
            raise
    code = reproduction.exit_code(findings)
    papers = list({paper.key: paper for paper, _ in chosen}.values())
    written = folder.report(findings, papers, code)
    document = reproduction.reproduction_document(findings, code, output=folder.path, quick=quick)
    table = [
        {
            "claim": f"{row.paper}:{row.claim}",
            "the paper": row.paper_value,
            "here": row.our_value,
            "verdict": row.verdict if row.as_expected else f"{row.verdict} (not expected)",
        }
        for row in document.rows
    ]
    emit(fmt, document, rows=table if fmt is Format.TABLE else None)
    _conclude(findings)
    for path in written:
        say(f"written: {path}")
    return int(code)


def _conclude(findings: tuple[Finding, ...]) -> None:
    for finding in findings:
        if finding.verdict == "not possible here" and finding.failure:
            say(f"not possible here: {finding.key}: {finding.reason}")
        elif not finding.as_expected:
            why = "; ".join((*finding.missed, *finding.drifted)) or finding.reason
            say(f"not as expected: {finding.key} is {finding.verdict}, not {finding.claim.expected}: {why}")
    verdicts = [finding.verdict for finding in findings]
    counted = ", ".join(f"{verdicts.count(v)} {v}" for v in dict.fromkeys(sorted(verdicts)))
    unexpected = sum(not finding.as_expected for finding in findings)
    say(f"{len(findings)} claims: {counted}; {unexpected or 'none'} not as expected")
    if ours := sum(bool(finding.claim.inference) for finding in findings):
        say(f"{ours} of them rest in part on our reading of the paper; the report says on which")


class Listener:
    """Tells of every claim, and shows the progress of the runs."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._sweep: SweepProgress | None = None

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, *error: object) -> None:
        self._close()

    def claim(self, number: int, total: int, finding: Finding, known: bool) -> None:
        self._close()
        if not self._quiet:
            before = ", from before" if known else f", {finding.duration_s:.1f} s"
            say(f"{number}/{total} {finding.key}: {finding.verdict}{before}")

    def run(self, claim: Claim) -> SweepProgress:
        from p4perf.cli.progress import SweepProgress

        self._close()
        if not self._quiet and claim.measure is not None:
            say(f"measuring {claim.measure.experiment} on {claim.measure.target}")
        self._sweep = SweepProgress(quiet=self._quiet)
        return self._sweep.__enter__()

    def _close(self) -> None:
        if self._sweep is not None:
            self._sweep.__exit__(None, None, None)
            self._sweep = None
