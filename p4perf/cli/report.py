"""The command that makes a site of runs, to look at: report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from p4perf.cli.app import app
from p4perf.cli.output import Format, FormatOption, emit, say

KIND = "report"


@app.command()
def report(
    runs: Annotated[
        list[Path],
        typer.Argument(
            help="Runs, campaigns, comparisons, predictions, claims (folder or JSON file), or folders of these."
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder of the site; a site that is there is replaced.")
    ],
    title: Annotated[str | None, typer.Option("--title", help="Heading of the site; default: what it holds.")] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", min=1, help="Processes that read runs; default: all processors.")
    ] = None,
    fmt: FormatOption = Format.TABLE,
) -> None:
    """Make a site of pages with interactive figures, which opens from disk without a network."""
    from p4perf.cli.output import Share
    from p4perf.experiment.report import find_sources, write_site

    sources = find_sources(runs)
    with Share("reading runs") as progress:
        site = write_site(sources, output, title=title or "", processes=jobs, progress=progress)
    for note in site.notes:
        say(f"warning: {note}")
    rows = [{"kind": kind, "pages": count} for kind, count in site.pages.items() if count]
    place = {"output": str(site.path), "index": str(site.index)}
    emit(fmt, KIND, rows, title="", **place, size_bytes=site.size_bytes, notes=list(site.notes))
    say(f"written: {site.index}, {site.size_bytes / 1e6:.1f} MB")
