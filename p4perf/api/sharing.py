"""Functions that take results in and hand them on: import_results, export, report, open_page, pack."""

from __future__ import annotations

import os
import webbrowser
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from p4perf.api import arguments as given
from p4perf.api.arguments import Count, PathLike, Paths, Runs, Texts, checked
from p4perf.api.views import OpenRun
from p4perf.errors import UsageError
from p4perf.experiment.imports import FoundResults, read_results, write_import
from p4perf.experiment.report.site import find_sources, write_site
from p4perf.models.export import ExportLanguage, export_model
from p4perf.records import Document, Record, Scalar, doc, spread
from p4perf.results import find_run, read_model
from p4perf.results.crate import Author, CrateOptions
from p4perf.results.crate import pack as write_archive
from p4perf.results.files import file_word, real, write_text_atomically
from p4perf.results.names import FOLDER
from p4perf.testbeds.local import cache_folder


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

    @property
    def path(self) -> Path:
        """The page to open."""
        return Path(self.index)


class _PackRow(Record):
    archive: str = doc("path of the zip")
    files: int = doc("files of the folder that are in it")
    size_bytes: int = doc("their size", "B")
    packed_bytes: int = doc("size of the zip", "B")


class PackDocument(Document, kind="pack"):
    """`p4perf pack FOLDER`: one row.

    See [packing](campaigns.md#archives).
    """

    rows: tuple[_PackRow, ...] = doc("")

    @property
    def path(self) -> Path:
        """The zip."""
        return Path(self.rows[0].archive)


@checked
def import_results(sources: Paths, *, output: PathLike = FOLDER, **options: Any) -> OpenRun:
    """Read results of other tools into a run directory: the run.

    Args:
        sources: files, or a result folder, all of one kind.
        options: those of :func:`p4perf.experiment.imports.read_results`, such as ``kind="csv"``, ``x="frame_size"``,
            ``metrics={"packet_rate": "rate"}``, ``set={"flows": 1}`` and ``experiment="mine/switch"``.
    """
    found = checked(read_results)([Path(path) for path in given.listed(sources)], **options)
    return OpenRun(write_import(found, Path(output))[0])


def import_document(kind: type[Document], found: FoundResults, run: str | None) -> Document:
    """What was found in sources, as a document of that kind."""
    assembly = found.assembly
    trials = sum(len(point.results) for point in assembly.points)
    rows = _value_rows(found) if run is None else _metric_rows(found)
    return kind.read(found, run=run, points=len(assembly.points), trials=trials, rows=tuple(rows))


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


@checked
def export(model: PathLike, language: ExportLanguage = "python", output: PathLike | None = None) -> str:
    """Write a model as a function in Python or C, or as LaTeX: the text.

    Args:
        model: a model.json, or a run that has a model, by path or name.
        output: file for the text.
    """
    path = find_run(model)
    if not path.exists():
        raise UsageError(f"there is no model or run directory {path}")
    text = export_model(read_model(path), language)
    if output is not None:
        write_text_atomically(Path(output), text)
    return text


@checked
def report(
    runs: Runs,
    output: PathLike,
    *,
    title: str | None = None,
    jobs: Count | None = None,
    progress: Callable[[float], object] = lambda share: None,
) -> ReportDocument:
    """Build a site with interactive figures: where its index is, and the pages of each kind.

    Args:
        runs: runs, campaigns, comparisons, predictions, claims, or folders of these, by path or name.
        output: folder of the site; a site there is replaced.
        jobs: processes that read runs; by default one for each processor.
    """
    sources = find_sources([find_run(name) for name in given.runs(runs)])
    site = write_site(sources, Path(output), title=title or "", processes=jobs, progress=progress)
    rows = tuple(_ReportRow(kind=kind, pages=count) for kind, count in site.pages.items() if count)
    return ReportDocument.read(site, output=site.path, rows=rows)


@checked
def open_page(run: PathLike = "latest", *, browser: bool = True) -> Path:
    """Build the page of a run, campaign, comparison or prediction, and open it if there is a browser: its path."""
    what = find_run(run)
    site = write_site(find_sources([what]), cache_folder() / "pages" / file_word(real(what).name))
    page = site.index
    if site.pages["run"] == 1:
        (page,) = (site.path / "runs").glob("*.html")
    if browser and any(os.environ.get(name) for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")):
        webbrowser.open(page.resolve().as_uri())
    return page


@checked
def pack(
    folder: PathLike,
    output: PathLike | None = None,
    *,
    licence: str | None = None,
    authors: Texts = (),
    title: str | None = None,
) -> PackDocument:
    """Pack results into a self-describing zip (RO-Crate): where it is, and how large.

    Args:
        folder: a run, campaign or comparison, by path or name.
        output: path of the zip; by default the name of the folder, in the current folder.
        licence: SPDX identifier or address, such as ``CC-BY-4.0``.
        authors: one or several, such as ``Jane Doe <0000-0002-1825-0097>``.
    """
    source = find_run(folder)
    archive = Path(f"{source.absolute().name}.zip") if output is None else Path(output)
    named = tuple(map(Author.parse, given.listed(authors)))
    published = _published(os.environ.get("SOURCE_DATE_EPOCH"))
    entries = write_archive(source, archive, CrateOptions(title, None, licence, named, published))
    size = sum(entry.size_bytes for entry in entries)
    packed = archive.stat().st_size
    return PackDocument(
        rows=(_PackRow(archive=str(archive), files=len(entries), size_bytes=size, packed_bytes=packed),)
    )


def _published(text: str | None) -> datetime | None:
    """The time that reproducible builds set, in seconds since 1970."""
    if not text:
        return None
    try:
        return datetime.fromtimestamp(int(text), UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise UsageError(f"SOURCE_DATE_EPOCH={text} is not a time in seconds since 1970") from error
