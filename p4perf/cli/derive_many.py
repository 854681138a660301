"""The command that derives the models of many series: fit-many."""

from __future__ import annotations

import contextlib
import logging
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from p4perf.cli import options as shared
from p4perf.cli.app import app
from p4perf.cli.options import check_choice, given
from p4perf.cli.output import Format, FormatOption, emit, say
from p4perf.errors import ExitCode, P4PerfError, UsageError
from p4perf.records import Document, Record, doc, spread
from p4perf.results import Run

if TYPE_CHECKING:
    from p4perf.evaluation.fitting.derivation import FitOptions
    from p4perf.evaluation.fitting.many import NamedSamples, SeriesResult
    from p4perf.evaluation.fitting.many.lines import ModelLines
    from p4perf.evaluation.fitting.many.sources import SeriesSource
    from p4perf.models.component import ComponentModel, Scale


class _ModelsRow(Record):
    values: dict[str, str] = spread(
        "label", "value of a label, such as `file`; a label with the name of another key has `label_` before it"
    )
    points: int | None = doc("points of the series")
    segments: int | None = doc("segments of its model; null without one")
    error: float | None = doc("combined error", "of the metric")
    error_metric: str | None = doc("[error metric](derivation.md#error-metrics)")
    families: tuple[str, ...] = doc("families of the templates")
    breakpoint_x: tuple[float, ...] = doc("first x of each segment but the first", "of x")
    formulas: tuple[str, ...] = doc("functions of the segments, for people")
    failure: str | None = doc("why there is no model")


class ModelsDocument(Document):
    """`p4perf fit-many DATA...`: one row for each series."""

    KIND = "models"

    labels: tuple[str, ...] = doc("names of the labels that tell series apart")
    output: str | None = doc("path of the file of models")
    series: int = doc("number of series")
    kept: int = doc("series that were in the file of models already")
    failed: int = doc("series without a model")
    rows: tuple[_ModelsRow, ...] = doc("")


LISTED = 20
"""Failures that are listed on stderr; the rows have them all."""
COLUMNS = tuple(_ModelsRow.KEYS)[1:]
"""Columns of a row besides the labels of the series."""


@app.command("fit-many")
def fit_many(
    data: Annotated[
        list[Path],
        typer.Argument(help="CSV files in long format, files of Extra-P, run directories.", show_default=False),
    ],
    x: Annotated[str | None, typer.Option("--x", help="CSV: column (Extra-P: parameter) of the variable.")] = None,
    y: Annotated[str | None, typer.Option("--y", help="CSV: column of what it costs; else: only this metric.")] = None,
    by: Annotated[
        list[str] | None,
        typer.Option("--by", help="CSV: columns that tell series apart, separated by commas. Repeatable."),
    ] = None,
    segments: shared.SegmentsOption = None,
    max_segments: shared.MaxSegmentsOption = None,
    min_points: shared.MinPointsOption = None,
    profile: shared.ProfileOption = None,
    error: shared.ErrorOption = None,
    loss: shared.LossOption = None,
    split_finder: shared.SplitFinderOption = None,
    level: shared.LevelOption = None,
    resamples: Annotated[
        int | None,
        typer.Option("--resamples", min=0, max=100_000, help="Bootstrap resamples; 0: no intervals, faster."),
    ] = None,
    x_scale: Annotated[str | None, typer.Option("--x-scale", help="Axis of x: linear or log.")] = None,
    processes: Annotated[
        int | None, typer.Option("--processes", min=1, max=1024, help="Processes; one for each processor by default.")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option("--scheduler", help="Fit on a Dask cluster: address such as tcp://10.0.0.1:8786.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="FILE.jsonl for the models, a line each, or a folder for models.jsonl. "
            "What is there already is not fitted again.",
        ),
    ] = None,
    restart: Annotated[bool, typer.Option("--restart", help="Begin the file of models anew.")] = False,
    fmt: FormatOption = Format.TABLE,
) -> int:
    """Derive the models of many series, on all processors or on a Dask cluster."""
    from p4perf.evaluation.fitting.cluster import require_distributed
    from p4perf.evaluation.fitting.derivation import FitOptions

    if restart and output is None:
        raise UsageError("--restart is for a file of models: name it with --output")
    if processes is not None and scheduler is not None:
        raise UsageError("--processes is for this machine: leave it out with --scheduler")
    check_choice(x_scale, "--x-scale", ("linear", "log"))
    if scheduler is not None:
        logging.disable(logging.CRITICAL)  # that of Dask: what matters is said by our own errors
        require_distributed()
    changes = given({
        "segments": segments, "max_segments": max_segments, "min_points": min_points, "profile": profile,
        "error": error, "loss": loss, "split_finder": split_finder, "level": level, "resamples": resamples,
    })  # fmt: skip
    options = FitOptions(**changes)
    options.check()
    scale: Scale | None = None if x_scale is None else "log" if x_scale == "log" else "linear"
    sources = _sources(data, (x, y, _columns(by or [])), scale, changes)
    with contextlib.ExitStack() as stack:
        lines = None if output is None else stack.enter_context(_lines(output, restart=restart))
        job = _Job(sources, options, lines)
        job.run(processes=processes, scheduler=scheduler)
        return job.conclude(fmt, one_file=len(data) == 1)


def _columns(by: Sequence[str]) -> tuple[str, ...]:
    names = [name.strip() for text in by for name in text.split(",")]
    if "" in names:
        raise UsageError(f"--by {','.join(by)}: a name of a column is missing")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"--by {','.join(by)}: {twice} is there twice")
    return tuple(names)


def _lines(output: Path, *, restart: bool) -> ModelLines:
    from p4perf.evaluation.fitting.many.lines import ModelLines

    path = output if output.suffix == ".jsonl" else output / "models.jsonl"
    if path.is_dir():
        raise UsageError(f"{path} is a folder", hint="name a file")
    if path is not output and output.is_file():
        raise UsageError(f"{output} is a file whose name does not end with .jsonl", hint="name a folder, or FILE.jsonl")
    return ModelLines(path, restart=restart)


def _sources(
    data: Sequence[Path],
    names: tuple[str | None, str | None, tuple[str, ...]],
    x_scale: Scale | None,
    changes: Mapping[str, Any],
) -> list[SeriesSource]:
    """The series of everything that was named."""
    from p4perf.evaluation.fitting.many.sources import MOST_SERIES, open_series

    x, y, by = names
    seen: set[Path] = set()
    for path in data:
        if not path.exists():
            raise UsageError(f"there is no run directory or file {path}")
        if path.resolve() in seen:
            raise UsageError(f"{path} is named twice")
        seen.add(path.resolve())
    if all(path.is_dir() for path in data) and (wrong := [n for n, v in (("--x", x), ("--by", by)) if v]):
        raise UsageError(f"{', '.join(wrong)}: for files only; a run knows its variable")
    sources: list[SeriesSource] = []
    total = 0
    for path in data:
        if path.is_dir():
            sources.append([_run_series(path, y, x_scale, changes)])
        else:
            sources.append(open_series(path, x, y, by, x_scale=x_scale or "linear", most=MOST_SERIES - total))
        total += len(sources[-1])
    return sources


def _run_series(path: Path, metric: str | None, x_scale: Scale | None, changes: Mapping[str, Any]) -> NamedSamples:
    """The samples of a run, with the options of its spec."""
    from dataclasses import replace

    from p4perf.evaluation.fitting.many import NamedSamples
    from p4perf.evaluation.fitting.many.sources import FILE
    from p4perf.experiment.evaluate import fit_options
    from p4perf.results.table import Samples

    run = Run.open(path)
    spec = run.spec
    if spec.model is None or run.variable is None:
        raise UsageError(f"{path} has no model: its spec asks for none, or sweeps several variables")
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


class _Job:
    """All series on their way to rows."""

    def __init__(self, sources: Sequence[SeriesSource], options: FitOptions, lines: ModelLines | None) -> None:
        self._sources, self._options, self._lines = sources, options, lines
        self._there = bytearray(sum(map(len, sources)))
        self._rows: list[_ModelsRow] = [_row({}, None, "")] * len(self._there)
        self._waiting: deque[tuple[int, str]] = deque()
        self._failed: list[SeriesResult] = []
        self._look()

    def _series(self) -> Iterator[tuple[int, NamedSamples]]:
        return enumerate(series for source in self._sources for series in source)

    def _look(self) -> None:
        """Find out what is in the file already."""
        from p4perf.evaluation.fitting.many import fingerprint

        first: P4PerfError | None = None
        readable = 0
        for index, series in self._series():
            if isinstance(series.samples, P4PerfError):
                first = first or series.samples
                continue
            readable += 1
            if self._lines is not None:
                self._there[index] = self._lines.has(series.labels, fingerprint(series, self._options))
        if first is not None and not readable:
            raise first

    def _todo(self) -> Iterator[NamedSamples]:
        from p4perf.evaluation.fitting.many import fingerprint

        for index, series in self._series():
            if not self._there[index]:
                self._waiting.append((index, fingerprint(series, self._options) if self._lines is not None else ""))
                yield series

    def run(self, *, processes: int | None, scheduler: str | None) -> None:
        from p4perf.evaluation.fitting.many import fit_many as fitted

        kept, total = sum(self._there), len(self._there)
        if kept:
            say(f"{kept} of {total} series are in {self._where} already")
        from p4perf.cli.progress import SeriesProgress

        with SeriesProgress(total - kept) as progress:
            results = fitted(
                self._todo(), self._options, processes=processes, scheduler=scheduler, progress=progress.finished
            )
            try:
                with contextlib.closing(results):
                    for result in results:
                        self._take(result)
            except (KeyboardInterrupt, P4PerfError):
                if self._lines is not None and len(self._lines):
                    say(f"\n{len(self._lines)} models are in {self._where}; the same command fits the rest")
                raise

    @property
    def _where(self) -> Path | None:
        return None if self._lines is None else self._lines.path

    def _take(self, result: SeriesResult) -> None:
        from p4perf.evaluation.fitting.many import SeriesResult

        index, mark = self._waiting.popleft()
        if result.model is not None and self._lines is not None:
            try:
                self._lines.append(result.labels, mark, result.model)
            except UsageError as error:
                result = SeriesResult.failed(result.labels, error)
        if result.model is None:
            self._failed.append(result)
        self._rows[index] = _row(result.labels, result.model, result.failure)

    def conclude(self, fmt: Format, *, one_file: bool) -> int:
        """Print rows, list failures; the exit code."""
        if self._lines is not None:
            for index, series in self._series():
                if self._there[index]:
                    self._rows[index] = _row(series.labels, self._lines.read(series.labels), "")
        rows = self._rows
        labels = tuple(dict.fromkeys(key for row in rows for key in row.values))
        document = ModelsDocument(
            labels=labels,
            output=None if self._lines is None else str(self._where),
            series=len(rows),
            kept=sum(self._there),
            failed=len(self._failed),
            rows=tuple(rows),
        )
        hidden = {"error_metric"} | ({"file"} if one_file and len(labels) > 1 else set())
        hidden |= set() if self._failed else {"failure"}
        emit(fmt, document, rows=[_for_people(row, hidden) for row in rows] if fmt is Format.TABLE else None)
        if self._lines is not None:
            say(f"models: {self._where}")
        return self._judge()

    def _judge(self) -> int:
        from p4perf.evaluation.fitting.many import label_text

        for result in self._failed[:LISTED]:
            say(f"failed: {label_text(result.labels)}: {result.failure}")
        if len(self._failed) > LISTED:
            say(f"... and {len(self._failed) - LISTED} more; --format json or csv has them all")
        if not self._failed:
            return ExitCode.OK
        say(f"{len(self._failed)} of {len(self._rows)} series have no model")
        codes = {result.exit_code for result in self._failed}
        return next((c for c in (ExitCode.INTERNAL, ExitCode.UNAVAILABLE) if c in codes), ExitCode.NO_VERDICT)


def _row(labels: Mapping[str, str], model: ComponentModel | None, failure: str) -> _ModelsRow:
    """One series. A label that is named as one of the columns gets a longer name."""
    values = {f"label_{name}" if name in COLUMNS else name: value for name, value in labels.items()}
    if model is None:
        empty = dict.fromkeys(("points", "segments", "error", "error_metric"))
        return _ModelsRow(values=values, **empty, families=(), breakpoint_x=(), formulas=(), failure=failure)
    fitting = model.fitting
    return _ModelsRow(
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


def _for_people(row: _ModelsRow, hidden: set[str]) -> dict[str, Any]:
    from p4perf.evaluation.fitting.error_metrics import error_text

    error = None if row.error is None or row.error_metric is None else error_text(row.error_metric, row.error)
    shown = {**row.as_dict(), "error": error, "formulas": "; ".join(row.formulas)}
    return {key: value for key, value in shown.items() if key not in hidden}
