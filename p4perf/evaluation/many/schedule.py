"""Keeps workers busy with chunks of series, with bounded memory, and puts results in order.

Chunks begin with one series each and grow to what a worker is busy with for a fraction of a second, judged by those
that are finished: short series cost little besides their fitting, long ones travel alone.

When a worker dies, the series that may have killed it are tried again one at a time and alone, so that the right one
is given up.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from typing import Any

from p4perf.errors import ExitCode, P4PerfError, TestbedError
from p4perf.evaluation.many.backend import Backend
from p4perf.evaluation.many.series import NamedSamples, SeriesResult
from p4perf.evaluation.many.work import Done, pack_chunk, pack_series, unpack_results

LONGEST_CHUNK = 32
"""Series in one chunk."""
CHUNKS_PER_WORKER = 2
"""Chunks under way for every worker: one in work, one to go on with."""
READY, READY_PER_WORKER = 128, 16
"""So many results wait at most for one before them, and so many more for every worker."""
LOOK_S = 5.0
"""Workers that come and go are counted so often."""
HOPELESS = 3
"""If nothing was ever finished and so many series made workers die, it is not for the series."""


@dataclass(frozen=True)
class Item:
    """One series on its way.

    Args:
        index: its number in the order of the input.
        series: the series.
        packed: the same for a worker.
        weight: expected work in arbitrary units.
        deaths: how many workers died on it.
    """

    index: int
    series: NamedSamples
    packed: bytes
    weight: float
    deaths: int = 0


@dataclass
class Schedule:
    """One run of many series. Use :meth:`results` once.

    Args:
        series: the series.
        options: packed options.
        backend: where to fit; it is stopped at the end, whatever that is.
        progress: called with the number of finished series.
    """

    series: Iterable[NamedSamples]
    options: bytes
    backend: Backend
    progress: Callable[[int], Any] | None = None
    _pending: dict[Future[bytes], tuple[Item, ...]] = field(default_factory=dict)
    _suspects: deque[Item] = field(default_factory=deque)
    _ready: dict[int, SeriesResult] = field(default_factory=dict)
    _read: int = 0
    _finished: int = 0
    _work: tuple[float, float] = (0.0, 0.0)
    _answered: bool = False
    _given_up: int = 0
    _alone: bool = False
    _capacity: tuple[int, float] | None = None

    def results(self) -> Iterator[SeriesResult]:
        """Results in the order of the input.

        Raises:
            TestbedError: the workers are gone or useless.
        """
        done, position = False, 0
        source = iter(self.series)
        try:
            while True:
                self._fill(source)
                while position in self._ready:
                    yield self._ready.pop(position)
                    position += 1
                if self._pending:
                    self._collect()
                elif position == self._read and not self._suspects and self._exhausted:
                    break
            done = True
        finally:
            self.backend.stop(now=not done)

    _exhausted: bool = False

    def _fill(self, source: Iterator[NamedSamples]) -> None:
        """Hand out work until every worker has enough."""
        workers = self._workers()
        if self._alone and self._pending:
            return
        self._alone = False
        while self._suspects:
            self._alone = not self.backend.names_the_dead
            if self._alone and self._pending:
                return
            self._submit((self._suspects.popleft(),))
            if self._alone:
                return
        while len(self._pending) < CHUNKS_PER_WORKER * workers and (chunk := self._next(source, workers)):
            self._submit(chunk)

    def _workers(self) -> int:
        now = time.monotonic()
        if self._capacity is None or now > self._capacity[1] + LOOK_S:
            self._capacity = max(1, self.backend.capacity()), now
        return self._capacity[0]

    def _next(self, source: Iterator[NamedSamples], workers: int) -> tuple[Item, ...]:
        """The next chunk; empty if there is none, or if too many results wait."""
        items: list[Item] = []
        expected = 0.0
        while len(self._ready) < READY + READY_PER_WORKER * workers and len(items) < LONGEST_CHUNK:
            if (series := next(source, None)) is None:
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
            item = Item(index, series, packed, _weight(len(series.samples.x)))
            items.append(item)
            seconds, weights = self._work
            expected += item.weight * seconds / weights if weights else self.backend.chunk_s
            if expected >= self.backend.chunk_s:
                break
        return tuple(items)

    def _submit(self, items: tuple[Item, ...]) -> None:
        self._pending[self.backend.submit(pack_chunk(self.options, [item.packed for item in items]))] = items

    def _collect(self) -> None:
        """Take in what is finished; waits for one chunk at least."""
        done, _ = wait(self._pending, timeout=LOOK_S, return_when=FIRST_COMPLETED)
        failed = [future for future in done if self._failure(future) is not None]
        if failed and not self.backend.names_the_dead:
            # All chunks under way fail together with the processes.
            done, _ = wait(self._pending, timeout=LOOK_S)
            self.backend.recover()
        alone = len(self._pending) == 1
        for future in done:
            items = self._pending.pop(future)
            error = self._failure(future)
            if error is None:
                self._answer(items, unpack_results(future.result()))
            else:
                self._mourn(items, alone=alone or self.backend.names_the_dead)

    def _failure(self, future: Future[bytes]) -> BaseException | None:
        """Why a worker gave no answer; what is no worker's death ends everything.

        Raises:
            TestbedError: as the worker or the backend says.
        """
        error: BaseException | None
        try:
            error = future.exception()
        except BaseException as cancelled:  # noqa: BLE001
            error = cancelled
        if error is None or self.backend.died(error):
            return error
        raise error

    def _answer(self, items: Sequence[Item], done: Done) -> None:
        seconds, weights = self._work
        self._answered = True
        self._work = seconds + done.seconds, weights + sum(item.weight for item in items)
        for item, result in zip(items, done.results, strict=True):
            self._finish(
                item.index, SeriesResult(item.series.labels, result.derived, result.failure, result.exit_code)
            )

    def _mourn(self, items: Sequence[Item], *, alone: bool) -> None:
        """Series whose worker died: those that certainly killed it several times are given up."""
        for item in items:
            deaths = item.deaths + (alone and len(items) == 1)
            if deaths < self.backend.patience:
                self._suspects.append(Item(item.index, item.series, item.packed, item.weight, deaths))
                continue
            self._given_up += 1
            if not self._answered and self._given_up >= HOPELESS:
                raise TestbedError("the processes that fit series die at once", hint=self.backend.hint())
            text = "every process that worked on this series died; did it run out of memory?"
            self._finish(item.index, SeriesResult(item.series.labels, failure=text, exit_code=ExitCode.UNAVAILABLE))

    def _finish(self, index: int, result: SeriesResult) -> None:
        self._ready[index] = result
        self._finished += 1
        if self.progress is not None:
            self.progress(self._finished)


def _weight(points: int) -> float:
    """Work for a series: a fixed part (bootstrap), and one that grows with the number of possible parts."""
    return 1.0 + (points / 200) ** 2
