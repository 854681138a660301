"""The command that makes a site of runs, to look at: report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from p4perf.cli.app import app
from p4perf.cli.output import Format, FormatOption, emit, say
from p4perf.records import Document, Record, doc


class _ReportRow(Record):
    kind: str = doc("`index`, `matrix`, `run`, `comparison` or `document`")
    pages: int = doc("pages of that kind")


class ReportDocument(Document):
    """`p4perf report RUN... -o DIR`.

    See [reports](report.md).
    """

    KIND = "report"

    output: str = doc("folder of the site")
    index: str = doc("the page to open")
    size_bytes: int = doc("size of all files", "B")
    notes: tuple[str, ...] = doc("what could not be shown, for people")
    rows: tuple[_ReportRow, ...] = doc("")


@app.command()
def report(
    runs: Annotated[
        list[Path],
        typer.Argument(
            help="Runs, campaigns, comparisons, predictions, claims (folders or JSON), or folders of these."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the site; a site there is replaced.")],
    title: Annotated[str | None, typer.Option("--title", help="Heading of the site; default: what it holds.")] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", min=1, help="Processes that read runs; default: all processors.")
    ] = None,
    fmt: FormatOption = Format.TABLE,
) -> None:
    """Make a site of pages with interactive figures, which opens from disk without a network."""
    from p4perf.cli.progress import Share
    from p4perf.experiment.report import find_sources, write_site

    sources = find_sources(runs)
    with Share("reading runs") as progress:
        site = write_site(sources, output, title=title or "", processes=jobs, progress=progress)
    for note in site.notes:
        say(f"warning: {note}")
    rows = tuple(_ReportRow(kind=kind, pages=count) for kind, count in site.pages.items() if count)
    emit(fmt, ReportDocument.read(site, output=site.path, rows=rows))
    say(f"written: {site.index}, {site.size_bytes / 1e6:.1f} MB")
