"""Models of thousands of series: on all processors of this machine, or on a Dask cluster.

>>> from p4perf.evaluation.fitting.many import NamedSamples, fit_many
>>> for result in fit_many(series, FitOptions(max_segments=3)):  # doctest: +SKIP
...     print(result.labels, result.model.formulas() if result.model else result.failure)
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterable
from itertools import chain, islice
from typing import Any

from p4perf.errors import UsageError
from p4perf.evaluation.fitting.cluster import require_distributed
from p4perf.evaluation.fitting.engine import threads_available
from p4perf.evaluation.fitting.many.series import NamedSamples as NamedSamples
from p4perf.evaluation.fitting.many.series import SeriesResult as SeriesResult
from p4perf.evaluation.fitting.many.series import fingerprint as fingerprint
from p4perf.evaluation.fitting.many.series import fit_series
from p4perf.evaluation.fitting.many.series import label_text as label_text
from p4perf.evaluation.fitting.many.workers import Cluster, Processes, fit_in_order, pack_options
from p4perf.evaluation.fitting.options import FitOptions
from p4perf.results.table import Samples

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
    are ended at once, and a cluster drops what it has not begun.

    Args:
        options: how to derive; those of a series itself take precedence. Threads count for ``processes=1`` only: where
            several processes or a cluster fit, each series has one thread.
        processes: number of processes of this machine; 1 fits in this process, with all its threads. Default: one for
            each processor. With more than one, a script must call this below ``if __name__ == "__main__":``.
        scheduler: address of a Dask scheduler whose workers are to fit, such as ``tcp://10.0.0.1:8786``. They need the
            same version of p4perf, and the packages that the options refer to.

    Raises:
        UsageError: an option is wrong or cannot be sent to other processes; ``distributed`` is not installed.
        TestbedError: the scheduler does not answer or has no workers of this version of p4perf; workers die at once.
    """
    options = options or FitOptions()
    if processes is not None and scheduler is not None:
        raise UsageError("either processes of this machine or the workers of a scheduler can fit, not both")
    if processes is not None and processes < 1:
        raise UsageError("there must be one process at least")
    options.check()
    if scheduler is not None:
        require_distributed()
    packed = pack_options(options) if scheduler is not None or (processes or 1) > 1 else None
    return _results(series, options, packed, processes, scheduler, progress or (lambda _: None))


def _results(
    series: Iterable[NamedSamples],
    options: FitOptions,
    packed: bytes | None,
    processes: int | None,
    scheduler: str | None,
    progress: Callable[[int], Any],
) -> Generator[SeriesResult, None, None]:
    source = iter(series)
    if scheduler is None and processes is None:
        processes = threads_available()
        head = list(islice(source, FEW))
        sizes = (len(item.samples.x) for item in head if isinstance(item.samples, Samples))
        if len(head) < FEW and all(size <= SHORT for size in sizes):
            processes = 1
        source = chain(head, source)
    if processes == 1:
        results = (fit_series(item, options) for item in source)
    else:
        workers = Processes(processes or 1) if scheduler is None else Cluster(scheduler)
        results = fit_in_order(source, packed or pack_options(options), workers)
    with contextlib.closing(results):
        for finished, result in enumerate(results, start=1):
            progress(finished)
            yield result
