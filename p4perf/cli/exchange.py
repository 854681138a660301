"""The commands that take results in and hand them on: import, export, report, pack."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Argument, Option

from p4perf.cli.app import Format, FormatOption, Scale, app, emit, near, pairs, say
from p4perf.errors import UsageError
from p4perf.records import Document, Record, Scalar, counted, doc, listing, spread
from p4perf.results import find_run, read_model
from p4perf.results.files import write_text_atomically

if TYPE_CHECKING:
    from p4perf.evaluation.imports import Named
    from p4perf.experiment.imports import FoundResults


LISTED = 3
"""Places that are named for each reason why something was left out."""


class _LeftOut(Record):
    reason: str = doc("why something in the source is not imported")
    count: int = doc("how often")
    examples: tuple[str, ...] = doc("up to 20 places")


class _Source(Record):
    run: str | None = doc("path of the run directory; null with `--dry-run`, which writes nothing")
    importer: str = doc("which importer read the sources")
    experiment: str = doc("name of the experiment", of="spec.name")
    target: str = doc("target")
    testbed: str = doc("testbed")
    variables: tuple[str, ...] = doc("variables, the abscissa first", of="assembly.variables")
    constants: dict[str, Any] = doc("what the source states and is the same everywhere", of="assembly.constants")
    points: int = doc("points")
    trials: int = doc("repetitions of all points")
    left_out: tuple[_LeftOut, ...] = doc("", of="left_out()")


class _ImportRow(Record):
    metric: str = doc("metric")
    unit: str = doc("its unit")
    points: int = doc("points that have it")
    values: int = doc("number of values")
    smallest: float = doc("smallest value", "of the metric")
    largest: float = doc("largest value", "of the metric")


class ImportDocument(Document, _Source, kind="import"):
    """`p4perf import SOURCE`: one row for each metric."""

    rows: tuple[_ImportRow, ...] = doc("")


class _ImportPlanRow(Record):
    values: dict[str, Scalar] = spread("variable", "value of a variable")
    repetition: int = doc("number of the repetition")
    metric: str = doc("metric")
    value: float = doc("value, converted", "of the metric")
    unit: str = doc("unit of the metric")
    name: str = doc("what the source calls it")
    place: str = doc("file, and line or key")


class ImportPlanDocument(Document, _Source, kind="import.plan"):
    """`p4perf import SOURCE --dry-run`: one row for each value."""

    rows: tuple[_ImportPlanRow, ...] = doc("")


@app.command("import")
def import_(
    sources: Annotated[list[Path], Argument(help="Files, or a result folder, all of one kind.")],
    kind: Annotated[str | None, Option("--from", help="pos, moongen, trex, csit, csv, or a plug-in.")] = None,
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
    title: Annotated[str | None, Option(help="One line for people.")] = None,
    target: Annotated[str | None, Option("--target", "-t", help="What was measured.")] = None,
    testbed: Annotated[str | None, Option(help="Where it was measured.")] = None,
    y: Annotated[str | None, Option(help="Metric to model; default: the first.")] = None,
    x_scale: Annotated[Scale, Option(help="Axis of the abscissa.")] = "linear",
    dry_run: Annotated[bool, Option("--dry-run", help="Show what would be imported, without writing.")] = False,
    output: Annotated[Path, Option("--output", "-o", help="Folder that gets the run directory.")] = Path("runs"),
    fmt: FormatOption = Format.TABLE,
) -> int:
    """Read results of other tools into a run directory.

    The commands show, fit, compare and export read it as any run. What testbed manual measured goes to its run.
    """
    from p4perf.cli.measure import resume
    from p4perf.evaluation.imports import ImportOptions
    from p4perf.experiment.imports import ImportOrder, read_import, write_import
    from p4perf.testbeds.manual import batch_of, is_ours

    options = ImportOptions(
        variables=_named(x),
        metrics=_named(metric),
        units=_units(unit),
        settings=_facts(sets, "--set"),
        only=_facts(only, "--only"),
        repetition=repetition or "",
        pattern=pattern or "",
        value=value or "",
        metric_column=metric_column or "",
        unit_column=unit_column or "",
        device=device or "",
        skip_damaged=skip_damaged,
    )
    if len(sources) == 1 and kind is None and is_ours(sources[0]):
        others = (experiment, target, testbed, title, y, dry_run, x_scale != "linear", output != Path("runs"))
        if options != ImportOptions() or any(others):
            what = f"{sources[0]} is of a run of p4perf, which knows what its results are"
            raise UsageError(what, hint="give p4perf import no options but --format with it")
        return resume(batch_of(sources[0]).parent.parent, fmt=fmt)
    order = ImportOrder(experiment or "", target or "", testbed or "", title or "", y or "", x_scale)
    found = read_import(sources, options, order, importer=kind)
    if dry_run:
        _emit(fmt, ImportPlanDocument, found, _value_rows(found), run=None)
    else:
        run, new = write_import(found, output)
        _emit(fmt, ImportDocument, found, _metric_rows(found), run=str(run.path))
    _say_left_out(found.left_out())
    if not dry_run:
        if not found.spec.get("model"):
            say("no model: nothing numeric varies; p4perf show prints the points")
        say(f"written: {run.path}" if new else f"imported before: {run.path}")
    return 0


def _named(texts: Sequence[str] | None) -> tuple[Named, ...]:
    from p4perf.evaluation.imports import Named

    return tuple(Named.parse(text) for text in texts or ())


def _facts(texts: Sequence[str] | None, option: str) -> dict[str, int | float | str]:
    from p4perf.evaluation.imports.base import fact

    found: dict[str, int | float | str] = {}
    example = f"for example {option} frame_size=64"
    for name, value in pairs(texts, option, "VARIABLE=VALUE", example):
        if not value:
            raise UsageError(f"{option} {name}=: expected VARIABLE=VALUE", hint=example)
        if name in found:
            raise UsageError(f"{option}: {name} is given twice")
        found[name] = fact(value)
    return found


def _units(texts: Sequence[str] | None) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts or ():
        name, equals, unit = text.partition("=")
        found[name.strip() if equals else ""] = (unit if equals else text).strip()
    return found


def _emit(fmt: Format, kind: type[Document], found: FoundResults, rows: Sequence[Record], *, run: str | None) -> None:
    assembly = found.assembly
    trials = sum(len(point.results) for point in assembly.points)
    document = kind.read(found, run=run, points=len(assembly.points), trials=trials, rows=rows)
    over = f" over {', '.join(assembly.variables)}" if assembly.variables else ""
    title = f"{found.spec['name']} on {found.target} ({found.importer}): {counted(len(assembly.points), 'point')}{over}"
    emit(fmt, document, title=title)
    if fmt is Format.TABLE and assembly.constants:
        say("the same everywhere: " + ", ".join(f"{k}={v}" for k, v in assembly.constants.items()))


def _metric_rows(found: FoundResults) -> list[_ImportRow]:
    rows = []
    for metric in found.assembly.metrics:
        results = [r for point in found.assembly.points for r in point.results]
        values = [r.values[metric] for r in results if metric in r.values]
        numbers = [value.value for value in values]
        rows.append(
            _ImportRow(
                metric=metric,
                unit=values[0].unit,
                points=sum(any(metric in r.values for r in point.results) for point in found.assembly.points),
                values=len(values),
                smallest=min(numbers),
                largest=max(numbers),
            )
        )
    return rows


def _value_rows(found: FoundResults) -> list[_ImportPlanRow]:
    return [
        _ImportPlanRow.read(value, values=point.values, repetition=result.repetition)
        for point in found.assembly.points
        for result in point.results
        for value in result.values.values()
    ]


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
    from p4perf.models.export import export_model

    if not model.exists():
        raise UsageError(f"there is no model or run directory {model}")
    text = export_model(read_model(model), language)
    if output is None:
        typer.echo(text, nl=not text.endswith("\n"))
        return
    write_text_atomically(output, text if text.endswith("\n") else text + "\n")
    say(f"written: {output}")


class _ReportRow(Record):
    kind: str = doc("`index`, `matrix`, `run`, `comparison`, `history` or `document`")
    pages: int = doc("pages of that kind")


class ReportDocument(Document, kind="report"):
    """`p4perf report RUN... -o DIR`.

    See [reports](campaigns.md#reports).
    """

    output: str = doc("folder of the site")
    index: str = doc("the page to open")
    size_bytes: int = doc("size of all files", "B")
    notes: tuple[str, ...] = doc("what could not be shown, for people")
    rows: tuple[_ReportRow, ...] = doc("")


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
    from p4perf.cli.progress import Share
    from p4perf.experiment.report.site import find_sources, write_site

    sources = find_sources(runs)
    with Share("reading runs") as progress:
        site = write_site(sources, output, title=title or "", processes=jobs, progress=progress)
    for note in site.notes:
        say(f"warning: {note}")
    rows = tuple(_ReportRow(kind=kind, pages=count) for kind, count in site.pages.items() if count)
    emit(fmt, ReportDocument.read(site, output=site.path, rows=rows))
    say(f"written: {site.index}, {site.size_bytes / 1e6:.1f} MB")


@app.command("open")
def open_(
    what: Annotated[
        Path, Argument(metavar="[RUN]", parser=find_run, help="A run, campaign, comparison or prediction.")
    ] = Path("latest"),
    no_browser: Annotated[bool, Option("--no-browser", help="Only print the path.")] = False,
) -> None:
    """Open the page of a run in a browser, and print its path."""
    from p4perf.experiment.report.site import find_sources, write_site
    from p4perf.results.files import file_word, real
    from p4perf.testbeds.local import cache_folder

    place = cache_folder() / "pages" / file_word(real(what).name)
    site = write_site(find_sources([what]), place)
    page = site.index
    if site.pages["run"] == 1:
        (page,) = (site.path / "runs").glob("*.html")
    typer.echo(near(str(page)))
    if not no_browser and any(os.environ.get(name) for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")):
        import webbrowser

        webbrowser.open(page.resolve().as_uri())


class _PackRow(Record):
    archive: str = doc("path of the zip")
    files: int = doc("files of the folder that are in it")
    size_bytes: int = doc("their size", "B")
    packed_bytes: int = doc("size of the zip", "B")


PackDocument = listing("pack", _PackRow, "`p4perf pack FOLDER`: one row.\n\nSee [packing](campaigns.md#archives).")


@app.command()
def pack(
    folder: Annotated[Path, Argument(metavar="FOLDER", parser=find_run, help="Run directory, campaign or comparison.")],
    output: Annotated[
        Path | None,
        Option("--output", "-o", help="Path of the zip; default: the name of the folder, in the current folder."),
    ] = None,
    licence: Annotated[
        str | None, Option("--licence", "--license", help="SPDX identifier or address, such as CC-BY-4.0.")
    ] = None,
    author: Annotated[list[str] | None, Option(help="'Jane Doe [<ORCID>]'. Repeatable.")] = None,
    title: Annotated[str | None, Option(help="Title; default: what was measured.")] = None,
    fmt: FormatOption = Format.TABLE,
) -> None:
    """Pack results into a self-describing zip (RO-Crate)."""
    from p4perf.results.crate import Author, CrateOptions
    from p4perf.results.crate import pack as write_archive

    archive = output if output is not None else Path(f"{folder.absolute().name}.zip")
    options = CrateOptions(
        name=title,
        licence=licence,
        authors=tuple(map(Author.parse, author or ())),
        published=_published(os.environ.get("SOURCE_DATE_EPOCH")),
    )
    entries = write_archive(folder, archive, options)
    size = sum(entry.size_bytes for entry in entries)
    packed_bytes = archive.stat().st_size
    row = _PackRow(archive=str(archive), files=len(entries), size_bytes=size, packed_bytes=packed_bytes)
    emit(fmt, PackDocument(rows=(row,)))
    if licence is None:
        say("note: without --licence the results may not be reused")


def _published(text: str | None) -> datetime | None:
    """The time that reproducible builds set, in seconds since 1970."""
    if not text:
        return None
    try:
        return datetime.fromtimestamp(int(text), UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise UsageError(f"SOURCE_DATE_EPOCH={text} is not a time in seconds since 1970") from error
