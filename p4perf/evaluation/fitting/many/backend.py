"""Where series are fitted: processes of this machine, or a cluster."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Protocol


class Backend(Protocol):
    """Carries chunks to workers.

    Attributes:
        chunk_s: a chunk should keep a worker busy for about so long, in seconds.
        share_fate: whether all chunks under way fail together when a worker dies. In either case chunks may fail for
            the death of a worker that another one killed.
        patience: a series is given up after so many failures while it was under way alone.
    """

    chunk_s: float
    share_fate: bool
    patience: int

    def capacity(self) -> int:
        """Number of workers, 1 at least.

        Raises:
            TestbedError: there are none any more.
        """
        ...

    def submit(self, chunk: bytes) -> Future[bytes]:
        """Have :func:`p4perf.evaluation.fitting.many.work.fit_chunk` done by a worker.

        Raises:
            TestbedError: nobody takes work any more.
        """
        ...

    def died(self, error: BaseException) -> bool:
        """Whether a failure of a chunk means that its worker died.

        Raises:
            TestbedError: it means that nothing works any more.
        """
        ...

    def recover(self) -> None:
        """Make ready for work again after workers died."""
        ...

    def hint(self) -> str | None:
        """What the user can do if workers die at once."""
        ...

    def stop(self, *, now: bool) -> None:
        """Let the workers go; ``now`` does not wait for what they are doing."""
        ...
