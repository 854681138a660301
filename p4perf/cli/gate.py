"""The command that stops at a regression: gate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from p4perf.cli.app import app
from p4perf.cli.output import Format, FormatOption, emit, say
from p4perf.errors import UsageError


@app.command()
def gate(
    runs: Annotated[list[Path], typer.Argument(help="New run directories or campaigns.")],
    baseline: Annotated[
        list[Path], typer.Option("--baseline", help="A run directory, a campaign or a model.json. Repeatable.")
    ],
    margin: Annotated[str, typer.Option("--margin", help="Smallest change that matters, such as 5% or 0.05.")] = "5%",
    metric: Annotated[str | None, typer.Option("--metric", help="Metric; default: the modelled one.")] = None,
    relative: Annotated[
        bool, typer.Option("--relative", help="Compare in units of the baseline program that each start measures, too.")
    ] = False,
    junit: Annotated[Path | None, typer.Option("--junit", help="Write JUnit XML to this file.")] = None,
    summary: Annotated[Path | None, typer.Option("--summary", help="Append a table in Markdown to this file.")] = None,
    fmt: FormatOption = Format.TABLE,
) -> int:
    """Judge new runs by a baseline: exit code 0 if nothing is slower, 1 if something is, 6 if that cannot be told."""
    share = _share(margin)

    from p4perf.evaluation.comparison.gate import GateOptions
    from p4perf.experiment.gate import append_summary, counts, gate_document, gate_runs, junit_xml, short_rows
    from p4perf.results.files import write_atomically

    options = GateOptions(margin=share)
    found = gate_runs(baseline, runs, metric=metric, relative=relative, options=options)
    if junit is not None:
        write_atomically(junit, (junit_xml(found),))
    if summary is not None:
        append_summary(found, summary)
    for warning in found.warnings:
        say(f"warning: {warning}")
    document = gate_document(found)
    title = f"against {', '.join(map(str, baseline))}, margin {100 * options.margin:g} %"
    emit(fmt, document, title=title, rows=short_rows(found) if fmt is Format.TABLE else None)
    say(f"{document.verdict}: {counts(found)}")
    return int(found.exit_code)


def _share(text: str) -> float:
    """A share from ``5%`` or ``0.05``."""
    number = text.strip().removesuffix("%").strip()
    try:
        value = float(number)
    except ValueError:
        value = float("nan")
    value = value / 100 if text.strip().endswith("%") else value
    if not 0 < value < 1:
        raise UsageError(f"--margin {text}: expected a share below 1", hint="for example --margin 5% or --margin 0.05")
    return value
