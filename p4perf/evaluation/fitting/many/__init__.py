"""Models of thousands of series: on all processors of this machine, or on a Dask cluster.

>>> from p4perf.evaluation.fitting.many import NamedSamples, fit_many
>>> for result in fit_many(series, FitOptions(max_segments=3)):  # doctest: +SKIP
...     print(result.labels, result.model.formulas() if result.model else result.failure)

Workers are processes of this machine or those of a cluster. Both take chunks of series as bytes, with bounded memory,
and give results in order. Everything is pickled one series at a time, so that one that cannot be sent or read fails
alone, and nothing depends on how a cluster serialises. When a worker dies, the series that were under way are tried
again one at a time, with nothing else under way, so that the right one is given up.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pickle
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from multiprocessing import connection, get_context
from pathlib import Path
from typing import Any, Protocol

from typing_extensions import override

from p4perf.errors import ExitCode, P4PerfError, TestbedError, UsageError
from p4perf.evaluation.fitting.cluster import Scheduler, require_distributed
from p4perf.evaluation.fitting.component import DerivedModel, derive_model
from p4perf.evaluation.fitting.derivation import FitOptions
from p4perf.evaluation.fitting.engine import threads_available
from p4perf.models.component import ComponentModel, Scale
from p4perf.results.table import Samples
from p4perf.version import __version__


def label_text(labels: Mapping[str, str]) -> str:
    """Labels for people: ``target=dpdk-c, metric=cycles``."""
    return ", ".join(f"{name}={value}" for name, value in labels.items())


@dataclass(frozen=True)
class NamedSamples:
    """One of many series: its measurements, or why they cannot be used, which then is the result.

    Labels tell it from the others, such as ``{"target": "dpdk-c", "metric": "cycles"}``.
    """

    labels: Mapping[str, str]
    samples: Samples | P4PerfError
    name: str = ""
    target: str = ""
    x_scale: Scale = "linear"
    x_unit: str = ""
    options: FitOptions | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @property
    def model_name(self) -> str:
        return self.name or " / ".join(self.labels.values())


@dataclass(frozen=True)
class SeriesResult:
    """What became of one series: a model, or a failure.

    ``exit_code`` is ``UNAVAILABLE`` if the processes that worked on the series died.
    """

    labels: Mapping[str, str]
    derived: DerivedModel | None = None
    failure: str = ""
    exit_code: ExitCode = ExitCode.OK

    @property
    def model(self) -> ComponentModel | None:
        return None if self.derived is None else self.derived.model

    @classmethod
    def failed(cls, labels: Mapping[str, str], error: BaseException) -> SeriesResult:
        if isinstance(error, P4PerfError):
            return cls(labels, failure=str(error), exit_code=error.exit_code)
        text = f"this is a defect of p4perf or of a plug-in: {type(error).__name__}: {error}"
        return cls(labels, failure=text, exit_code=ExitCode.INTERNAL)


def fit_series(series: NamedSamples, options: FitOptions) -> SeriesResult:
    """Derive the model of one series. Whatever fails becomes the failure of this series."""
    if isinstance(series.samples, P4PerfError):
        return SeriesResult.failed(series.labels, series.samples)
    own = options if series.options is None else replace(series.options, threads=options.threads)
    try:
        derived = derive_model(
            series.samples,
            name=series.model_name,
            target=series.target,
            x_scale=series.x_scale,
            x_unit=series.x_unit,
            options=own,
            provenance=series.provenance,
        )
    except Exception as error:
        return SeriesResult.failed(series.labels, error)
    return SeriesResult(series.labels, derived)


def fingerprint(series: NamedSamples, options: FitOptions) -> str:
    """A hash of everything that the model of a series depends on.

    That is: the samples, names, units, options and the version of p4perf, but not the number of threads.
    """
    samples = series.samples
    record = {
        "version": __version__,
        "labels": list(series.labels.items()),
        "samples": repr(samples),
        "named": [series.model_name, series.target, series.x_scale, series.x_unit],
        "options": repr(replace(series.options or options, threads=None)),
    }
    return hashlib.sha256(json.dumps(record).encode()).hexdigest()[:32]


FEW, SHORT = 16, 500
"""Fewer series than this, none longer than this, are fitted here unless the number of processes is given: starting
processes would take longer."""


def fit_many(
    series: Iterable[NamedSamples],
    options: FitOptions | None = None,
    *,
    processes: int | None = None,
    scheduler: str | None = None,
    tls: Path | None = None,
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
        tls: folder with the certificates ``ca.pem``, ``cert.pem`` and ``key.pem`` for a scheduler at ``tls://``.

    Raises:
        UsageError: an option is wrong or cannot be sent to other processes; ``distributed`` is not installed.
        TestbedError: the scheduler does not answer or has no workers of this version of p4perf; workers die at once.
    """
    options = options or FitOptions()
    if processes is not None and scheduler is not None:
        raise UsageError("either processes of this machine or the workers of a scheduler can fit, not both")
    if processes is not None and processes < 1:
        raise UsageError("at least one process is required")
    options.check()
    if scheduler is not None:
        require_distributed()
    packed = pack_options(options) if scheduler is not None or (processes or 1) > 1 else None

    def results() -> Generator[SeriesResult, None, None]:
        source, count = iter(series), processes
        if scheduler is None and count is None:
            count = threads_available()
            head = list(islice(source, FEW))
            sizes = (len(item.samples.x) for item in head if isinstance(item.samples, Samples))
            if len(head) < FEW and all(size <= SHORT for size in sizes):
                count = 1
            source = chain(head, source)
        if count == 1:
            found = (fit_series(item, options) for item in source)
        else:
            workers = Processes(count or 1) if scheduler is None else Cluster(scheduler, tls)
            found = fit_in_order(source, packed or pack_options(options), workers)
        with contextlib.closing(found):
            for finished, result in enumerate(found, start=1):
                if progress is not None:
                    progress(finished)
                yield result

    return results()


SINGLE_THREAD = tuple(f"{library}_NUM_THREADS" for library in ("OMP", "OPENBLAS", "MKL"))
"""What keeps libraries from starting a thread for each processor in each process."""
LONGEST_CHUNK, POINTS_PER_CHUNK = 8, 1600
"""Series in a chunk, and samples: long series travel alone."""
CHUNKS_PER_WORKER, READY_PER_WORKER = 2, 16
"""Chunks under way for every worker: one in work, one that waits; and chunks held back by one before them."""
LOOK_S = 5.0
"""Workers that come and go are counted this often."""


class Workers(Protocol):
    hint: str
    """What the user can do if workers die at once."""

    def count(self) -> int:
        """Number of workers; a TestbedError if they are gone."""
        ...

    def submit(self, chunk: bytes) -> Future[bytes]:
        """Have :func:`fit_chunk` done by a worker."""
        ...

    def died(self, error: BaseException) -> bool:
        """Whether a chunk failed because a worker died, not necessarily of this chunk."""
        ...

    def recover(self) -> None: ...

    def stop(self, *, now: bool) -> None:
        """Let the workers go; ``now`` does not wait for their work."""
        ...


class Processes(Workers):
    """Processes of this machine.

    They are started afresh (``spawn``), so threads of the caller do no harm, and import the main module of the caller,
    as always with processes of Python: a script must do its work below ``if __name__ == "__main__":``. They do not take
    part in an interruption from the keyboard, and end as soon as this process lets go of its end of a pipe, however
    that comes about.
    """

    hint = 'put the last lines of your script below if __name__ == "__main__":, or use a single process (processes=1)'

    def __init__(self, count: int) -> None:
        self._count = count
        self._start()

    def _start(self) -> None:
        context = get_context("spawn")
        self._watched, self._held = context.Pipe(duplex=False)
        self._executor = ProcessPoolExecutor(self._count, context, end_with, (self._watched,))

    @override
    def count(self) -> int:
        return self._count

    @override
    def submit(self, chunk: bytes) -> Future[bytes]:
        try:
            with _start_conditions():
                return self._executor.submit(fit_chunk, chunk)
        except BrokenExecutor as error:
            broken: Future[bytes] = Future()
            broken.set_exception(error)
            return broken

    @override
    def died(self, error: BaseException) -> bool:
        return isinstance(error, BrokenExecutor)

    @override
    def recover(self) -> None:
        self.stop(now=True)
        self._start()

    @override
    def stop(self, *, now: bool) -> None:
        if now:
            self._held.close()
        self._executor.shutdown(cancel_futures=True)
        self._held.close()
        self._watched.close()


@contextlib.contextmanager
def _start_conditions() -> Iterator[None]:
    """Processes that are started here get no interruptions, and libraries in them one thread."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    unset = [name for name in SINGLE_THREAD if name not in os.environ]
    try:
        os.environ.update(dict.fromkeys(unset, "1"))
        yield
    finally:
        for name in unset:
            os.environ.pop(name, None)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_with(watched: connection.Connection) -> None:
    """End this process when the other end of a pipe is closed."""

    def watch() -> None:
        connection.wait([watched])
        os._exit(1)

    threading.Thread(target=watch, name="p4perf-parent", daemon=True).start()


class Cluster(Workers):
    hint = "see the logs of the workers"

    def __init__(self, address: str, tls: Path | None) -> None:
        self._scheduler = Scheduler(address, tls=tls)

    @override
    def count(self) -> int:
        return self._scheduler.threads()

    @override
    def submit(self, chunk: bytes) -> Future[bytes]:
        return self._scheduler.submit(fit_chunk, chunk).future

    @override
    def died(self, error: BaseException) -> bool:
        return self._scheduler.killed_worker(error, "fit series")

    @override
    def recover(self) -> None:
        """Nothing to do: the scheduler starts workers again."""

    @override
    def stop(self, *, now: bool) -> None:
        self._scheduler.close()


@dataclass(frozen=True, eq=False)
class _Chunk:
    """Series under way: their labels, themselves as bytes, and what comes of them."""

    labels: tuple[Mapping[str, str], ...]
    packed: tuple[bytes, ...]
    future: Future[bytes]


def fit_in_order(
    series: Iterable[NamedSamples], options: bytes, workers: Workers
) -> Generator[SeriesResult, None, None]:
    """Results in the order of the series; the workers are stopped at the end, however it comes about."""
    source = iter(series)
    waiting: deque[_Chunk] = deque()
    count, counted, submitted, answered, finished = 1, -LOOK_S, 0, False, False
    try:
        while True:
            if time.monotonic() >= counted + LOOK_S:
                count, counted = max(1, workers.count()), time.monotonic()
            if any(chunk.future.done() and _lost(chunk.future, workers) for chunk in waiting):
                waiting = _one_by_one(waiting, options, workers, hopeful=answered)
            under_way = [chunk.future for chunk in waiting if not chunk.future.done()]
            while len(under_way) < CHUNKS_PER_WORKER * count and len(waiting) < READY_PER_WORKER * count:
                # Chunks begin with one series, so that all workers soon have work.
                taken = _take(source, min(LONGEST_CHUNK, 1 + submitted // count))
                if not taken:
                    break
                waiting.append(_submitted(taken, options, workers))
                under_way.append(waiting[-1].future)
                submitted += 1
            if not waiting:
                break
            if not waiting[0].future.done():
                wait(under_way, timeout=LOOK_S, return_when=FIRST_COMPLETED)
                continue
            if _lost(waiting[0].future, workers):
                continue
            chunk = waiting.popleft()
            answered = True
            for labels, result in zip(chunk.labels, results_of(chunk.future.result()), strict=True):
                yield replace(result, labels=labels)
        finished = True
    finally:
        workers.stop(now=not finished)


def _take(source: Iterator[NamedSamples], most: int) -> list[NamedSamples]:
    taken: list[NamedSamples] = []
    points = 0
    for series in islice(source, most):
        taken.append(series)
        points += 0 if isinstance(series.samples, P4PerfError) else len(series.samples.x)
        if points >= POINTS_PER_CHUNK:
            break
    return taken


def _submitted(taken: Sequence[NamedSamples], options: bytes, workers: Workers) -> _Chunk:
    packed = tuple(pack_series(series) for series in taken)
    return _Chunk(tuple(series.labels for series in taken), packed, workers.submit(packed_chunk(options, packed)))


def _lost(future: Future[bytes], workers: Workers) -> bool:
    """Whether there is no answer because a worker died. Any other failure ends everything."""
    error: BaseException | None
    try:
        error = future.exception()
    except CancelledError as cancelled:
        error = cancelled
    if error is None or workers.died(error):
        return error is not None
    raise error


def _one_by_one(waiting: Iterable[_Chunk], options: bytes, workers: Workers, *, hopeful: bool) -> deque[_Chunk]:
    """All chunks answered: lost series are tried again alone; one whose worker dies again is given up."""
    out: deque[_Chunk] = deque()
    waiting = list(waiting)
    for chunk in waiting:
        _settled(chunk.future, workers)
    hopeful = hopeful or any(not _lost(chunk.future, workers) for chunk in waiting)
    workers.recover()
    given_up = 0
    for chunk in waiting:
        if not _lost(chunk.future, workers):
            out.append(chunk)
            continue
        for labels, packed in zip(chunk.labels, chunk.packed, strict=True):
            future = workers.submit(packed_chunk(options, (packed,)))
            _settled(future, workers)
            if _lost(future, workers):
                workers.recover()
                given_up += 1
                if not hopeful and given_up > 1:
                    raise TestbedError("the processes that fit series die at once", hint=workers.hint)
                text = "every process that worked on this series died; did it run out of memory?"
                failed = SeriesResult({}, failure=text, exit_code=ExitCode.UNAVAILABLE)
                future = Future()
                future.set_result(pickle.dumps((pickle.dumps(failed),)))
            else:
                hopeful = True
            out.append(_Chunk((labels,), (packed,), future))
    return out


def _settled(future: Future[bytes], workers: Workers) -> None:
    while not wait((future,), timeout=LOOK_S).done:
        workers.count()


def pack_options(options: FitOptions) -> bytes:
    """Options for workers, which use one thread each."""
    try:
        return pickle.dumps(replace(options, threads=1))
    except Exception as error:
        raise UsageError(
            f"the options cannot be sent to other processes: {error}",
            hint="templates and split finders must be instances of classes of a module, without lambdas; "
            "or use processes=1",
        ) from error


def pack_series(series: NamedSamples) -> bytes:
    """One series for a worker, or why it cannot be sent; its labels stay here."""
    try:
        if isinstance(series.samples, P4PerfError):
            return pickle.dumps(SeriesResult.failed({}, series.samples))
        return pickle.dumps(replace(series, labels={}, name=series.model_name))
    except Exception as error:
        return pickle.dumps(SeriesResult.failed({}, error))


def packed_chunk(options: bytes, series: Sequence[bytes]) -> bytes:
    return pickle.dumps((__version__, options, tuple(series)))


def fit_chunk(chunk: bytes) -> bytes:
    version, packed_options, items = pickle.loads(chunk)  # noqa: S301 - from the process that we work for
    if version != __version__:
        raise TestbedError(f"a worker has p4perf {__version__}, but {version} is used here")
    try:
        options: FitOptions = pickle.loads(packed_options)  # noqa: S301
    except Exception as error:
        message = f"the workers cannot read the options: {type(error).__name__}: {error}"
        hint = "install the module with your templates or split finders where the workers run"
        raise TestbedError(message, hint=hint) from error
    return pickle.dumps(tuple(_fit_packed(item, options) for item in items))


def _fit_packed(item: bytes, options: FitOptions) -> bytes:
    try:
        series: NamedSamples | SeriesResult = pickle.loads(item)  # noqa: S301
        return item if isinstance(series, SeriesResult) else pickle.dumps(fit_series(series, options))
    except Exception as error:
        return pickle.dumps(SeriesResult.failed({}, error))


def results_of(answer: bytes) -> Iterator[SeriesResult]:
    """Read what :func:`fit_chunk` returned; the results have no labels."""
    for item in pickle.loads(answer):  # noqa: S301 - from our own workers
        try:
            result: SeriesResult = pickle.loads(item)  # noqa: S301
        except Exception as error:
            result = SeriesResult.failed({}, error)
        yield result
