"""Processes of this machine that fit series.

Every process is started afresh (``spawn``), so threads of the caller do no harm. The script or notebook of the caller
is not run again in it, unless the options refer to classes that are defined there; then, as always with processes of
Python, its last lines must stand below ``if __name__ == "__main__":``.

The processes do not take part in an interruption from the keyboard, and end as soon as the process that started them
is gone, however that came about.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from multiprocessing import connection, parent_process
from multiprocessing.context import SpawnContext, SpawnProcess
from types import ModuleType
from typing import Any

from typing_extensions import override

from p4perf.evaluation.fitting.many.work import fit_chunk

SINGLE_THREAD = tuple(f"{library}_NUM_THREADS" for library in ("OMP", "OPENBLAS", "MKL"))
"""What keeps libraries from starting a thread for each processor in each process."""
END_S = 5.0
"""How long to wait for a process that was killed."""
_STARTING = threading.Lock()


@contextlib.contextmanager
def _surroundings(*, with_main: bool) -> Iterator[None]:
    """What a process is started in: no interrupts, one thread a library, and no main module to run again."""
    with _STARTING:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        unset = [name for name in SINGLE_THREAD if name not in os.environ]
        main = sys.modules["__main__"]
        try:
            os.environ.update(dict.fromkeys(unset, "1"))
            if not with_main:
                sys.modules["__main__"] = ModuleType("__main__")
            yield
        finally:
            sys.modules["__main__"] = main
            for name in unset:
                os.environ.pop(name, None)
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Worker(SpawnProcess):
    """A process that is started in :func:`_surroundings`."""

    with_main = False

    @override
    def start(self) -> None:
        with _surroundings(with_main=self.with_main):
            super().start()


class _Context(SpawnContext):
    """Makes processes, and remembers them."""

    def __init__(self, *, with_main: bool) -> None:
        self._with_main = with_main
        self.workers: list[_Worker] = []

    @override
    def Process(self, *args: Any, **kwargs: Any) -> _Worker:  # type: ignore[override]
        worker = _Worker(*args, **kwargs)
        worker.with_main = self._with_main
        self.workers.append(worker)
        return worker


def _begin() -> None:
    """The first thing in a process: see to it that it does not outlive the one that started it."""
    parent = parent_process()
    if parent is None:
        return

    def watch() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, name="p4perf-parent", daemon=True).start()


class ProcessPool:
    """A :class:`~p4perf.evaluation.fitting.many.backend.Backend` of processes.

    Args:
        processes: how many.
        with_main: whether they need the main module of the caller.
    """

    chunk_s = 0.25
    share_fate = True
    patience = 2

    def __init__(self, processes: int, *, with_main: bool = False) -> None:
        self._processes = processes
        self._with_main = with_main
        self._start()

    def _start(self) -> None:
        self._context = _Context(with_main=self._with_main)
        self._executor = ProcessPoolExecutor(self._processes, self._context, _begin)

    def capacity(self) -> int:
        """Number of processes."""
        return self._processes

    def submit(self, chunk: bytes) -> Future[bytes]:
        """Have a chunk fitted."""
        try:
            return self._executor.submit(fit_chunk, chunk)
        except BrokenExecutor as error:
            broken: Future[bytes] = Future()
            broken.set_exception(error)
            return broken

    def died(self, error: BaseException) -> bool:
        """Whether a process died."""
        return isinstance(error, BrokenExecutor)

    def recover(self) -> None:
        """Go on with new processes."""
        self.stop(now=True)
        self._start()

    def hint(self) -> str | None:
        """What to do if processes die at once."""
        if self._with_main:
            return 'put the last lines of your script below if __name__ == "__main__":, or use processes=1'
        return "use a single process (processes=1) to see why"

    def stop(self, *, now: bool) -> None:
        """End the processes."""
        if now:
            for worker in self._context.workers:
                with contextlib.suppress(ValueError, AttributeError, OSError):
                    worker.kill()
        self._executor.shutdown(wait=not now, cancel_futures=True)
        for worker in self._context.workers:
            with contextlib.suppress(ValueError, AssertionError, OSError):
                worker.join(END_S)
