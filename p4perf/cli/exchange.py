"""The commands that take results in and hand them on: import, export, report, open, pack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer import Argument, Option

from p4perf.cli.app import Format, FormatOption, Scale, app, emit, near, say
from p4perf.errors import UsageError
from p4perf.records import counted
from p4perf.results import find_run

LISTED = 3
"""Places that are named for each reason why something was left out."""


@app.command("import")
def import_(
    sources: Annotated[list[Path], Argument(help="Files, or a result folder, all of one kind.")],
    kind: Annotated[str | None, Option("--from", help="Source: pos, moongen, trex, csit, csv, or a plug-in.")] = None,
    x: Annotated[
        list[str] | None,
        Option(help="Variable, or VARIABLE=NAME of the source; the first is the abscissa. Repeatable."),
    ] = None,
    metric: Annotated[
        list[str] | None, Option(help="Import only this metric, or METRIC=NAME of the source. Repeatable.")
    ] = None,
    unit: Annotated[list[str] | None, Option(help="CSV: UNIT, or METRIC=UNIT. Repeatable.")] = None,
    sets: Annotated[
        list[str] | None, Option("--set", help="VARIABLE=VALUE that the source does not state. Repeatable.")
    ] = None,
    only: Annotated[list[str] | None, Option(help="Import only VARIABLE=VALUE. Repeatable.")] = None,
    repetition: Annotated[str | None, Option(help="Variable or column of repetitions.")] = None,
    pattern: Annotated[
        str | None,
        Option("--name", help="Meaning of numbers in file or test names: 'rx-{frame_size}-{repetition}.csv'."),
    ] = None,
    value: Annotated[str | None, Option(help="CSV with one value per line: column of the values.")] = None,
    metric_column: Annotated[str | None, Option(help="CSV with one value per line: column of the metrics.")] = None,
    unit_column: Annotated[str | None, Option(help="CSV: column of the units.")] = None,
    device: Annotated[str | None, Option(help="MoonGen: which of several devices counts.")] = None,
    skip_damaged: Annotated[
        bool, Option("--skip-damaged", help="Folders: leave damaged files out instead of stopping.")
    ] = False,
    experiment: Annotated[
        str | None, Option(help="Name of the experiment; runs with the same name can be compared.")
    ] = None,
    title: Annotated[str | None, Option(help="Title of the experiment, in one line.")] = None,
    target: Annotated[str | None, Option("--target", "-t", help="Target that was measured.")] = None,
    testbed: Annotated[str | None, Option(help="Testbed on which it was measured.")] = None,
    y: Annotated[str | None, Option(help="Metric to model; default: the first.")] = None,
    x_scale: Annotated[Scale, Option(help="Axis of the abscissa.")] = "linear",
    dry_run: Annotated[bool, Option("--dry-run", help="Show what would be imported, without writing.")] = False,
    output: Annotated[Path, Option("--output", "-o", help="Folder for the run directory.")] = Path("runs"),
    fmt: FormatOption = Format.TABLE,
) -> int:
    """Read results of other tools into a run directory.

    The commands show, fit, compare and export read it like any run. Results of testbed manual go to their run.
    """
    from p4perf.api import sharing
    from p4perf.cli.measure import resume
    from p4perf.experiment.imports import read_results, write_import
    from p4perf.testbeds.manual import batch_of, is_ours

    texts = {"repetition": repetition, "name": pattern, "value": value, "metric_column": metric_column,
             "unit_column": unit_column, "device": device, "experiment": experiment, "target": target,
             "testbed": testbed, "title": title, "y": y}  # fmt: skip
    several = {"x": x, "metrics": metric, "units": unit, "set": sets, "only": only}
    options: dict[str, Any] = {name: value for name, value in (texts | several).items() if value}
    if len(sources) == 1 and kind is None and is_ours(sources[0]):
        if options or skip_damaged or dry_run or x_scale != "linear" or output != Path("runs"):
            what = f"{sources[0]} is of a run of p4perf, which knows what its results are"
            raise UsageError(what, hint="give p4perf import no options but --format with it")
        return resume(batch_of(sources[0]).parent.parent, fmt=fmt)
    found = read_results(sources, kind=kind, x_scale=x_scale, skip_damaged=skip_damaged, **options)
    if dry_run:
        document = sharing.import_document(sharing.ImportPlanDocument, found, None)
    else:
        run, new = write_import(found, output)
        document = sharing.import_document(sharing.ImportDocument, found, str(run.path))
    assembly = found.assembly
    over = f" over {', '.join(assembly.variables)}" if assembly.variables else ""
    title = f"{found.spec['name']} on {found.target} ({found.importer}): {counted(len(assembly.points), 'point')}{over}"
    emit(fmt, document, title=title)
    if fmt is Format.TABLE and assembly.constants:
        say("the same everywhere: " + ", ".join(f"{k}={v}" for k, v in assembly.constants.items()))
    _say_left_out(found.left_out())
    if not dry_run:
        if not found.spec.get("model"):
            say("no model: nothing numeric varies; p4perf show prints the points")
        say(f"written: {run.path}" if new else f"imported before: {run.path}")
    return 0


def _say_left_out(reasons: Sequence[Mapping[str, Any]]) -> None:
    for reason in reasons:
        places = reason["examples"][:LISTED]
        more = f" and {reason['count'] - len(places)} more" if reason["count"] > len(places) else ""
        say(f"left out: {', '.join(places)}{more}: {reason['reason']}")


@app.command()
def export(
    model: Annotated[
        Path, Argument(metavar="MODEL", parser=find_run, help="A model.json, or a run directory that has one.")
    ],
    language: Annotated[Literal["python", "c", "latex"], Option("--as", help="What to write.")] = "python",
    output: Annotated[Path | None, Option("--output", "-o", help="File to write; default: stdout.")] = None,
) -> None:
    """Write a model as a function in Python or C, or as LaTeX."""
    from p4perf.api import sharing

    text = sharing.export(model, language, output)
    if output is None:
        typer.echo(text, nl=False)
    else:
        say(f"written: {output}")


@app.command()
def report(
    runs: Annotated[
        list[Path],
        Argument(
            metavar="RUN...",
            parser=find_run,
            help="Runs, campaigns, comparisons, predictions, claims (folders or JSON), or folders of these.",
        ),
    ],
    output: Annotated[Path, Option("--output", "-o", help="Folder of the site; a site there is replaced.")],
    title: Annotated[str | None, Option(help="Heading of the site; default: its contents.")] = None,
    jobs: Annotated[
        int | None,
        Option("--jobs", "-j", min=1, max=1024, help="Processes that read runs; default: one per processor."),
    ] = None,
    fmt: FormatOption = Format.TABLE,
) -> None:
    """Build a site with interactive figures, readable offline."""
    from p4perf.api import sharing
    from p4perf.cli.progress import Share

    with Share("reading runs") as progress:
        site = sharing.report(list(runs), output, title=title, jobs=jobs, progress=progress)
    for note in site.notes:
        say(f"warning: {note}")
    emit(fmt, site)
    say(f"written: {site.index}, {site.size_bytes / 1e6:.1f} MB")


@app.command("open")
def open_(
    what: Annotated[
        Path, Argument(metavar="[RUN]", parser=find_run, help="A run, campaign, comparison or prediction.")
    ] = Path("latest"),
    no_browser: Annotated[bool, Option("--no-browser", help="Only print the path.")] = False,
) -> None:
    """Open the page of a run in a browser, and print its path."""
    from p4perf.api import sharing

    typer.echo(near(str(sharing.open_page(what, browser=not no_browser))))


@app.command()
def pack(
    folder: Annotated[Path, Argument(metavar="FOLDER", parser=find_run, help="Run directory, campaign or comparison.")],
    output: Annotated[
        Path | None,
        Option("--output", "-o", help="Path of the zip; default: the name of the folder, in the current folder."),
    ] = None,
    licence: Annotated[
        str | None, Option("--licence", "--license", help="Licence: SPDX identifier or URL, such as CC-BY-4.0.")
    ] = None,
    author: Annotated[list[str] | None, Option(help="Author: 'Jane Doe [<ORCID>]'. Repeatable.")] = None,
    title: Annotated[str | None, Option(help="Title; default: describes what was measured.")] = None,
    fmt: FormatOption = Format.TABLE,
) -> None:
    """Pack results into a self-describing zip (RO-Crate)."""
    from p4perf.api import sharing

    emit(fmt, sharing.pack(folder, output, licence=licence, authors=author or (), title=title))
    if licence is None:
        say("note: without --licence the results may not be reused")
