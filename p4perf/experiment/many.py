"""Models of many series, from files and run directories, and a file that keeps them."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from typing_extensions import override

from p4perf.errors import P4PerfError, UsageError
from p4perf.evaluation.fitting.derivation import FitOptions
from p4perf.evaluation.fitting.many import NamedSamples, SeriesResult, fingerprint, fit_many
from p4perf.evaluation.fitting.many.lines import ModelLines
from p4perf.evaluation.fitting.many.sources import FILE, MOST_SERIES, SeriesSource, open_series
from p4perf.experiment.evaluate import fit_options
from p4perf.models.component import ComponentModel, Scale
from p4perf.records import Document, Record, Tabular, as_rows, doc, spread
from p4perf.results import Run, all_run_folders, is_run
from p4perf.results.files import real
from p4perf.results.table import Samples


def open_lines(output: Path, *, restart: bool) -> ModelLines:
    """The file of models at ``FILE.jsonl``, or ``models.jsonl`` in a folder.

    Raises:
        UsageError: the path is of the other kind.
    """
    path = output if output.suffix == ".jsonl" else output / "models.jsonl"
    if path.is_dir():
        raise UsageError(f"{path} is a folder", hint="name a file")
    if path is not output and output.is_file():
        raise UsageError(f"{output} is a file whose name does not end with .jsonl", hint="name a folder, or FILE.jsonl")
    return ModelLines(path, restart=restart)


def open_sources(
    data: Sequence[Path],
    x: str | None,
    y: str | None,
    by: Sequence[str],
    x_scale: Scale | None,
    changes: Mapping[str, Any],
) -> list[SeriesSource]:
    """The series of files, of run directories, and of the runs with a model in other folders.

    Args:
        x: column or parameter of the variable of files.
        y: column of what it costs; metric of files of Extra-P and of runs.
        by: columns that tell the series of CSV files apart.
        changes: fields of :class:`FitOptions` that override the specs of runs.

    Raises:
        UsageError: a path does not exist or is named twice, or a name is not known.
        DataError: a file cannot be read.
    """
    seen: set[Path] = set()
    data = [run for path in data for run in _modelled(path)]
    for path in data:
        if not path.exists():
            raise UsageError(f"there is no run directory or file {path}")
        if real(path) in seen:
            raise UsageError(f"{path} is named twice")
        seen.add(real(path))
    if all(path.is_dir() for path in data) and (wrong := [n for n, v in (("--x", x), ("--by", by)) if v]):
        raise UsageError(f"{', '.join(wrong)}: for files, or one run without --by")
    sources: list[SeriesSource] = []
    total = 0
    for path in data:
        if path.is_dir():
            sources.append([_run_series(path, y, x_scale, changes)])
        else:
            sources.append(open_series(path, x, y, by, x_scale=x_scale or "linear", most=MOST_SERIES - total))
        total += len(sources[-1])
    return sources


def _modelled(path: Path) -> list[Path]:
    """The runs in a folder that have a model by their specs; any other path as it is."""
    inside = all_run_folders(path) if path.is_dir() and not is_run(path) else []
    if not inside:
        return [path]
    found = []
    for each in inside:
        with contextlib.suppress(P4PerfError):
            run = Run.open(each)
            found += [each] if run.spec.model is not None and run.variable is not None else []
    if not found:
        raise UsageError(f"none of the runs in {path} has a model: their specs ask for none")
    return found


def _run_series(path: Path, metric: str | None, x_scale: Scale | None, changes: Mapping[str, Any]) -> NamedSamples:
    """The samples of a run, with the options of its spec."""
    run = Run.open(path)
    spec = run.spec
    if spec.model is None or run.variable is None:
        raise UsageError(f"{path} has no model: {run.unmodelled}")
    samples: Samples | P4PerfError
    try:
        samples = run.samples(metric)
    except P4PerfError as error:
        samples = error
    points = 0 if isinstance(samples, P4PerfError) else len(samples.x)
    options = fit_options(spec, None if "max_segments" in changes else points)
    return NamedSamples(
        labels={FILE: str(path)},
        samples=samples,
        name=spec.name,
        target=run.identity.target,
        x_scale=x_scale or spec.model.x_scale,
        options=replace(options, **changes),
        provenance={"run": run.name, **({"imported": run.identity.origin} if run.identity.origin else {})},
    )


class ModelsRow(Record):
    values: dict[str, str] = spread(
        "label", "value of a label, such as `file`; `label_` precedes a label that has the name of another key"
    )
    points: int | None = doc("points of the series")
    segments: int | None = doc("segments of its model; null without one")
    error: float | None = doc("combined error", "of the metric")
    error_metric: str | None = doc("[error metric](methods.md#error-metrics)")
    families: tuple[str, ...] = doc("families of the templates")
    breakpoint_x: tuple[float, ...] = doc("first x of each segment but the first", "of x")
    formulas: tuple[str, ...] = doc("functions of the segments, for people")
    failure: str | None = doc("why there is no model")


class ModelsDocument(Document, kind="models"):
    """`p4perf fit DATA...` of many series: one row for each."""

    labels: tuple[str, ...] = doc("names of the labels that distinguish series")
    output: str | None = doc("path of the file of models")
    series: int = doc("number of series")
    kept: int = doc("series that were in the file of models already")
    failed: int = doc("series without a model")
    rows: tuple[ModelsRow, ...] = doc("")


COLUMNS = tuple(ModelsRow.KEYS)[1:]
"""Columns of a row besides the labels of the series."""


@dataclass(frozen=True, repr=False)
class FittedSeries(Tabular):
    """The models of many series as rows; ``models`` are None where there is none, and empty if they were not kept."""

    document: ModelsDocument
    models: tuple[ComponentModel | None, ...]
    failed: tuple[SeriesResult, ...]

    @override
    def __repr__(self) -> str:
        return f"<FittedSeries: {self.document.series} series, {self.document.failed} without a model>"

    @override
    def rows_of_table(self) -> list[dict[str, Any]]:
        return as_rows(self.document.rows)


def fit_all(
    sources: Sequence[SeriesSource],
    options: FitOptions,
    output: Path | None = None,
    *,
    restart: bool = False,
    processes: int | None = None,
    scheduler: str | None = None,
    tls: Path | None = None,
    keep: bool = True,
    told: Callable[[str], object] = lambda text: None,
    bar: Callable[[int], AbstractContextManager[Callable[[int], None]]] = lambda total: nullcontext(lambda count: None),
) -> FittedSeries:
    """Derive the models of many series on all processors or on a cluster; those in the file of models are kept.

    Args:
        output: file of models, or its folder.
        tls: folder of certificates for the scheduler.
        restart: begin the file anew.
        keep: whether the result has the models, not only their rows.
        told: hears what is known from before, and what an interruption leaves.
        bar: opens what hears how many of all series are finished.

    Raises:
        P4PerfError: the samples of all series are unusable, or an option or the file of models is wrong.
    """
    options.check()
    failed: list[SeriesResult] = []
    with contextlib.ExitStack() as stack:
        lines = None if output is None else stack.enter_context(open_lines(output, restart=restart))
        where = None if lines is None else str(lines.path)
        known = list(kept_models(sources, options, lines))
        rows = [None if each is None else _row(*each, "") for each in known]
        models = [None if each is None or not keep else each[1] for each in known]
        if kept := len(rows) - rows.count(None):
            told(f"{kept} of {len(rows)} series are in {where} already")
        progress = stack.enter_context(bar(rows.count(None)))
        on: dict[str, Any] = {"processes": processes, "scheduler": scheduler, "tls": tls}
        results = fit_rest(sources, rows, options, lines, where=on, progress=progress)
        try:
            for index, result in stack.enter_context(contextlib.closing(results)):
                if result.model is None:
                    failed.append(result)
                rows[index] = _row(result.labels, result.model, result.failure)
                models[index] = result.model if keep else None
        except (KeyboardInterrupt, P4PerfError):
            if lines is not None and len(lines):
                told(f"\n{len(lines)} models are in {lines.path}; the same command fits the rest")
            raise
    done = tuple(row for row in rows if row is not None)
    labels = tuple(dict.fromkeys(key for row in done for key in row.values))
    document = ModelsDocument(labels=labels, output=where, series=len(done), kept=kept, failed=len(failed), rows=done)
    return FittedSeries(document, tuple(models) if keep else (), tuple(failed))


def _row(labels: Mapping[str, str], model: ComponentModel | None, failure: str) -> ModelsRow:
    """One series. A label that is named as one of the columns gets a longer name."""
    values = {f"label_{name}" if name in COLUMNS else name: value for name, value in labels.items()}
    if model is None:
        empty = dict.fromkeys(("points", "segments", "error", "error_metric"))
        return ModelsRow(values=values, **empty, families=(), breakpoint_x=(), formulas=(), failure=failure)
    fitting = model.fitting
    return ModelsRow(
        values=values,
        points=fitting.points,
        segments=len(fitting.segments),
        error=fitting.error,
        error_metric=model.error,
        families=tuple(segment.template.family for segment in fitting.segments),
        breakpoint_x=fitting.breakpoint_x,
        formulas=model.formulas(),
        failure=None,
    )


def kept_models(
    sources: Sequence[SeriesSource], options: FitOptions, lines: ModelLines | None
) -> Iterator[tuple[Mapping[str, str], ComponentModel] | None]:
    """Labels and models of the series that are in the file already, None for each other series.

    Raises:
        P4PerfError: the samples of all series are unusable; the error of the first.
    """
    unusable: list[P4PerfError] = []
    for series in chain.from_iterable(sources):
        if isinstance(series.samples, P4PerfError):
            unusable.append(series.samples)
        elif lines is not None and lines.has(series.labels, fingerprint(series, options)):
            yield series.labels, lines.read(series.labels)
            continue
        yield None
    if unusable and len(unusable) == sum(map(len, sources)):
        raise unusable[0]


def fit_rest(
    sources: Sequence[SeriesSource],
    done: Sequence[object],
    options: FitOptions,
    lines: ModelLines | None,
    *,
    where: Mapping[str, Any],
    progress: Callable[[int], None],
) -> Generator[tuple[int, SeriesResult], None, None]:
    """Fit the series that have None in ``done``, and write their models; ``where`` are arguments of :func:`fit_many`.

    Yields the number of each series, from 0, with its result.
    """
    waiting: deque[tuple[int, str]] = deque()

    def todo() -> Iterator[NamedSamples]:
        for index, series in enumerate(chain.from_iterable(sources)):
            if done[index] is None:
                waiting.append((index, "" if lines is None else fingerprint(series, options)))
                yield series

    results = fit_many(todo(), options, **where, progress=progress)
    with contextlib.closing(results):
        for result in results:
            index, mark = waiting.popleft()
            if result.model is not None and lines is not None:
                try:
                    lines.append(result.labels, mark, result.model)
                except UsageError as error:
                    result = SeriesResult.failed(result.labels, error)
            yield index, result
