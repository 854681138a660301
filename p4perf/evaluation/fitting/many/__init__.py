"""Models of thousands of series: on all processors of this machine, or on a Dask cluster.

>>> from p4perf.evaluation.fitting.many import NamedSamples, fit_many
>>> for result in fit_many(series, FitOptions(max_parts=3)):  # doctest: +SKIP
...     print(result.labels, result.model.formulas() if result.model else result.failure)
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterable
from dataclasses import replace
from itertools import chain, islice
from typing import Any

import numpy as np

from p4perf.errors import DataError, UsageError
from p4perf.evaluation.fitting.cluster import require_distributed
from p4perf.evaluation.fitting.component import FitOptions, derive_model
from p4perf.evaluation.fitting.engine import threads_available
from p4perf.evaluation.fitting.many.backend import Backend
from p4perf.evaluation.fitting.many.cluster import Cluster
from p4perf.evaluation.fitting.many.pool import ProcessPool
from p4perf.evaluation.fitting.many.schedule import Schedule
from p4perf.evaluation.fitting.many.series import NamedSamples, SeriesResult, fingerprint, fit_series, label_text
from p4perf.evaluation.fitting.many.work import pack_options
from p4perf.results.table import Samples

__all__ = ["NamedSamples", "SeriesResult", "check_options", "fingerprint", "fit_many", "label_text"]

FEW, SHORT = 16, 500
"""Fewer series than this, none longer than this, are fitted here unless the number of processes is given: starting
processes would take longer."""


def fit_many(
    series: Iterable[NamedSamples],
    options: FitOptions | None = None,
    *,
    processes: int | None = None,
    scheduler: str | None = None,
    progress: Callable[[int], Any] | None = None,
) -> Generator[SeriesResult, None, None]:
    """Derive the models of many series.

    The results come in the order of the series, and are the same wherever they are computed. Series are taken from
    the iterable as workers get free, so there can be more of them than fit into memory. A series that cannot be
    fitted does not stop the others, not even if the process that works on it dies.

    Nothing is computed before the first result is asked for. When the iterator is closed or interrupted, processes
    are ended at once, and a cluster is told to drop what it has not begun.

    Args:
        series: the series.
        options: how to derive; those of a series itself take precedence. Threads count for ``processes=1`` only: where
            several processes or a cluster fit, each series has one thread.
        processes: number of processes of this machine; 1 fits in this process, with all its threads. Default: one for
            each processor.
        scheduler: address of a Dask scheduler whose workers are to fit, such as ``tcp://10.0.0.1:8786``. They need the
            same version of p4perf, and the packages that the options refer to.
        progress: called with the number of finished series, which may be ahead of those that were given out.

    Raises:
        UsageError: an option is wrong or cannot be sent to other processes; ``distributed`` is not installed.
        TestbedError: the scheduler does not answer or has no workers of this version of p4perf; workers die at once.
    """
    options = options or FitOptions()
    if processes is not None and scheduler is not None:
        raise UsageError("either processes of this machine or the workers of a scheduler can fit, not both")
    if processes is not None and processes < 1:
        raise UsageError("there must be one process at least")
    check_options(options)
    if scheduler is not None:
        require_distributed()
    packed = pack_options(options) if scheduler is not None or (processes or 1) > 1 else None
    return _results(series, options, packed, processes, scheduler, progress)


def _results(
    series: Iterable[NamedSamples],
    options: FitOptions,
    packed: bytes | None,
    processes: int | None,
    scheduler: str | None,
    progress: Callable[[int], Any] | None,
) -> Generator[SeriesResult, None, None]:
    source = iter(series)
    if scheduler is None and processes is None:
        processes = threads_available()
        head = list(islice(source, FEW))
        if len(head) < FEW and all(_points(item) <= SHORT for item in head):
            processes = 1
        source = chain(head, source)
    if processes == 1:
        for finished, item in enumerate(source, start=1):
            result = fit_series(item, options)
            if progress is not None:
                progress(finished)
            yield result
        return
    packed = packed or pack_options(options)
    backend: Backend
    if scheduler is not None:
        backend = Cluster(scheduler)
    else:
        backend = ProcessPool(processes or 1, with_main=b"__main__" in packed)
    yield from Schedule(source, packed, backend, progress).results()


def _points(series: NamedSamples) -> int:
    return len(series.samples.x) if isinstance(series.samples, Samples) else 0


def check_options(options: FitOptions) -> None:
    """Find out about wrong options before thousands of series do.

    Raises:
        UsageError: an option is wrong for every series.
    """
    if any(number is not None and number < 1 for number in (options.max_parts, options.parts, options.min_points)):
        raise UsageError("max_parts, parts and min_points must be 1 at least")
    if not 0 < options.level < 1:
        raise UsageError(f"the level must lie between 0 and 1, not {options.level}")
    x = np.arange(1.0, 11.0)
    probe = replace(options, parts=None, max_parts=1, min_points=None, resamples=min(options.resamples, 1))
    with contextlib.suppress(DataError):  # a straight line may be nothing for them, the series something
        derive_model(Samples.from_arrays(x, x), options=probe)
