"""Workers that fit series: processes of this machine, or those of a Dask cluster.

Both take chunks of series as bytes, with bounded memory, and give results in order. Everything is pickled one series at
a time, so that one that cannot be sent or read fails alone, and nothing depends on how a cluster serialises.

When a worker dies, the series that were under way are tried again one at a time, with nothing else under way, so that
the right one is given up.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import threading
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, replace
from itertools import islice
from multiprocessing import connection, get_context
from typing import Protocol

from typing_extensions import override

from p4perf.errors import ExitCode, P4PerfError, TestbedError, UsageError
from p4perf.evaluation.fitting.cluster import Scheduler
from p4perf.evaluation.fitting.many.series import NamedSamples, SeriesResult, fit_series
from p4perf.evaluation.fitting.options import FitOptions
from p4perf.version import __version__

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
        self._executor = ProcessPoolExecutor(self._count, context, _end_with, (self._watched,))

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


def _end_with(watched: connection.Connection) -> None:
    """End this process when the other end of a pipe is closed."""

    def watch() -> None:
        connection.wait([watched])
        os._exit(1)

    threading.Thread(target=watch, name="p4perf-parent", daemon=True).start()


class Cluster(Workers):
    hint = "see the logs of the workers"

    def __init__(self, address: str) -> None:
        self._scheduler = Scheduler(address)

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
        raise TestbedError(
            f"the workers cannot read the options: {type(error).__name__}: {error}",
            hint="install the module with your templates or split finders where the workers run",
        ) from error
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
