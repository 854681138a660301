"""Models of many series, from files and run directories, and a file that keeps them."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from p4perf.errors import P4PerfError, UsageError
from p4perf.evaluation.fitting.derivation import FitOptions
from p4perf.evaluation.fitting.many import NamedSamples, SeriesResult, fingerprint, fit_many
from p4perf.evaluation.fitting.many.lines import ModelLines
from p4perf.evaluation.fitting.many.sources import FILE, MOST_SERIES, SeriesSource, open_series
from p4perf.experiment.evaluate import fit_options
from p4perf.models.component import ComponentModel, Scale
from p4perf.results import Run
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
    """The series of files and run directories.

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
