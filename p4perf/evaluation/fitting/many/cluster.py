"""Workers of a Dask cluster that fit series."""

from __future__ import annotations

from concurrent.futures import Future

from p4perf.evaluation.fitting.cluster import Scheduler
from p4perf.evaluation.fitting.many.work import fit_chunk


class Cluster:
    """A :class:`~p4perf.evaluation.fitting.many.backend.Backend` of workers of a Dask scheduler.

    Args:
        address: address of the scheduler, such as ``tcp://10.0.0.1:8786``.

    Raises:
        UsageError, TestbedError: see :class:`~p4perf.evaluation.fitting.cluster.Scheduler`.
    """

    chunk_s = 1.0
    share_fate = False
    patience = 1  # the scheduler has tried it on several workers by then (its allowed-failures)

    def __init__(self, address: str) -> None:
        self._scheduler = Scheduler(address)

    def capacity(self) -> int:
        """Number of threads of all workers.

        Raises:
            TestbedError: the scheduler is gone or silent, or all workers have been gone for some time.
        """
        return self._scheduler.threads()

    def submit(self, chunk: bytes) -> Future[bytes]:
        """Have a chunk fitted."""
        return self._scheduler.submit(fit_chunk, chunk).future

    def died(self, error: BaseException) -> bool:
        """Whether several workers died that were given a chunk, not necessarily on this one.

        Raises:
            TestbedError: the connection is lost, or the workers cannot do what they should.
        """
        return self._scheduler.killed_worker(error, "fit series")

    def recover(self) -> None:
        """The scheduler does."""

    def hint(self) -> str | None:
        """What to do if workers die at once."""
        return "the logs of the workers tell why"

    def stop(self, *, now: bool) -> None:
        """Take back what is not finished, and leave."""
        self._scheduler.close()
