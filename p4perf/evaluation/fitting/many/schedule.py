"""Keeps workers busy with chunks of series, with bounded memory, and puts results in order.

Chunks begin with one series each and grow to what a worker is busy with for a fraction of a second, judged by those
that are finished: short series cost little besides their fitting, long ones travel alone.

When a worker dies, the series that may have killed it are tried again one at a time, in order, with nothing else under
way, so that the right one is given up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import Any

from p4perf.errors import ExitCode, P4PerfError, TestbedError
from p4perf.evaluation.fitting.many.backend import Backend
from p4perf.evaluation.fitting.many.series import NamedSamples, SeriesResult
from p4perf.evaluation.fitting.many.work import Done, pack_chunk, pack_series, unpack_results

LONGEST_CHUNK = 32
"""Series in one chunk."""
CHUNKS_PER_WORKER = 2
"""Chunks under way for every worker: one in work, one to go on with."""
READY, READY_PER_WORKER = 128, 16
"""So many results wait at most for one before them, and so many more for every worker."""
LOOK_S = 5.0
"""Workers that come and go are counted so often."""
HOPELESS = 2
"""If nothing was ever finished and so many series made workers die, it is not for the series."""


@dataclass(frozen=True, order=True)
class Item:
    """One series on its way.

    Args:
        index: its number in the order of the input.
        labels: labels of the series.
        packed: the series for a worker.
        weight: expected work in arbitrary units.
        deaths: how often workers died while it was under way alone.
    """

    index: int
    labels: Mapping[str, str]
    packed: bytes
    weight: float
    deaths: int = 0


class Schedule:
    """One run of many series. Use :meth:`results` once.

    Args:
        series: the series.
        options: packed options.
        backend: where to fit; it is stopped at the end, whatever that is.
        progress: called with the number of finished series.
    """

    def __init__(
        self,
        series: Iterable[NamedSamples],
        options: bytes,
        backend: Backend,
        progress: Callable[[int], Any] | None = None,
    ) -> None:
        self._source = iter(series)
        self._options = options
        self._backend = backend
        self._progress = progress
        self._pending: dict[Future[bytes], tuple[Item, ...]] = {}
        self._suspects: list[Item] = []  # a heap
        self._ready: dict[int, SeriesResult] = {}
        self._read = self._finished = self._given_up = 0
        self._exhausted = self._answered = self._alone = False
        self._seconds = self._weights = 0.0
        self._workers, self._counted = 1, -LOOK_S

    def results(self) -> Generator[SeriesResult, None, None]:
        """Results in the order of the input.

        Raises:
            TestbedError: the workers are gone or useless.
        """
        done, position = False, 0
        try:
            while True:
                self._fill()
                while position in self._ready:
                    yield self._ready.pop(position)
                    position += 1
                if self._pending:
                    self._collect()
                elif position == self._read and not self._suspects and self._exhausted:
                    break
            done = True
        finally:
            self._backend.stop(now=not done)

    def _fill(self) -> None:
        """Hand out work until every worker has enough."""
        self._count_workers()
        if self._pending and (self._alone or self._suspects):
            return
        self._alone = bool(self._suspects)
        if self._alone:
            self._submit((heappop(self._suspects),))
            return
        while len(self._pending) < CHUNKS_PER_WORKER * self._workers and (chunk := self._next()):
            self._submit(chunk)

    def _count_workers(self) -> None:
        now = time.monotonic()
        if now >= self._counted + LOOK_S:
            self._workers, self._counted = max(1, self._backend.capacity()), now

    def _next(self) -> tuple[Item, ...]:
        """The next chunk; empty if there is none, or if too many results wait."""
        items: list[Item] = []
        expected = 0.0
        while len(self._ready) < READY + READY_PER_WORKER * self._workers and len(items) < LONGEST_CHUNK:
            if (series := next(self._source, None)) is None:
                self._exhausted = True
                break
            index, self._read = self._read, self._read + 1
            if isinstance(series.samples, P4PerfError):
                self._finish(index, SeriesResult.failed(series.labels, series.samples))
                continue
            try:
                packed = pack_series(series)
            except Exception as error:
                self._finish(index, SeriesResult.failed(series.labels, error))
                continue
            item = Item(index, series.labels, packed, _weight(len(series.samples.x)))
            items.append(item)
            expected += item.weight * self._seconds / self._weights if self._weights else self._backend.chunk_s
            if expected >= self._backend.chunk_s:
                break
        return tuple(items)

    def _submit(self, items: tuple[Item, ...]) -> None:
        self._pending[self._backend.submit(pack_chunk(self._options, [item.packed for item in items]))] = items

    def _collect(self) -> None:
        """Take in what is finished; waits for one chunk at least, but not long.

        Raises:
            TestbedError: as the workers or the backend say.
        """
        done, _ = wait(self._pending, timeout=LOOK_S, return_when=FIRST_COMPLETED)
        if self._backend.share_fate and any(self._lost(future) for future in done):
            # All chunks under way fail together with the processes.
            wait(self._pending, timeout=LOOK_S)
            self._backend.recover()
            done = set(self._pending)
        for future in done:
            items = self._pending.pop(future)
            if self._lost(future):
                self._mourn(items)
            else:
                self._answer(items, unpack_results(future.result()))

    def _lost(self, future: Future[bytes]) -> bool:
        """Whether there is no answer because a worker died. Any other failure ends everything."""
        if not future.done():
            return True
        error: BaseException | None
        try:
            error = future.exception()
        except CancelledError as cancelled:
            error = cancelled
        if error is None or self._backend.died(error):
            return error is not None
        raise error

    def _answer(self, items: Sequence[Item], done: Done) -> None:
        self._answered = True
        self._seconds += done.seconds
        self._weights += sum(item.weight for item in items)
        for item, result in zip(items, done.results, strict=True):
            self._finish(item.index, SeriesResult(item.labels, result.derived, result.failure, result.exit_code))

    def _mourn(self, items: Sequence[Item]) -> None:
        """Series whose worker died: one is given up if that happens as often as it may while it is alone."""
        for item in items:
            deaths = item.deaths + self._alone
            if deaths < self._backend.patience:
                heappush(self._suspects, replace(item, deaths=deaths))
                continue
            self._given_up += 1
            if not self._answered and self._given_up >= HOPELESS:
                raise TestbedError("the processes that fit series die at once", hint=self._backend.hint())
            text = "every process that worked on this series died; did it run out of memory?"
            self._finish(item.index, SeriesResult(item.labels, failure=text, exit_code=ExitCode.UNAVAILABLE))

    def _finish(self, index: int, result: SeriesResult) -> None:
        self._ready[index] = result
        self._finished += 1
        if self._progress is not None:
            self._progress(self._finished)


def _weight(points: int) -> float:
    """Work for a series: a fixed part (bootstrap), and one that grows with the number of possible parts."""
    return 1.0 + (points / 200) ** 2
