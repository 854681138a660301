"""Many runs, read side by side."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from p4perf.errors import P4PerfError
from p4perf.experiment.report.runs import RunPage, read_run

WORTH_PROCESSES = 24
"""Fewer runs than this are read sooner than a process starts."""


def read_runs(
    paths: Sequence[Path], *, processes: int | None = None, progress: Callable[[float], object] | None = None
) -> tuple[list[RunPage], list[str]]:
    """All runs that can be read, in the given order, and why the others cannot.

    Args:
        paths: run directories.
        processes: how many read; by default as many as there are processors.
        progress: called with the finished share.
    """
    wanted = processes or len(os.sched_getaffinity(0))
    pages, notes = [], []
    for done, found in enumerate(_read(paths, min(wanted, len(paths) // WORTH_PROCESSES + 1)), 1):
        if isinstance(found, RunPage):
            pages.append(found)
        else:
            notes.append(found)
        if progress is not None:
            progress(0.9 * done / len(paths))
    return pages, notes


def _read(paths: Iterable[Path], processes: int) -> Iterator[RunPage | str]:
    if processes == 1:
        yield from map(_one, paths)
        return
    with ProcessPoolExecutor(processes, mp_context=get_context("forkserver")) as pool:
        yield from pool.map(_one, paths, chunksize=4)


def _one(path: Path) -> RunPage | str:
    try:
        return read_run(path)
    except P4PerfError as error:
        return f"{path.name}: {error}"
