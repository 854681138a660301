"""Shares of packets counted in a capture, which is run through the meaning of a program."""

from __future__ import annotations

from pathlib import Path

from p4perf.evaluation.reading.program import ReadOptions
from p4perf.evaluation.reading.shares import Shares


def shares_of_trace(
    path: Path | str, capture: Path, options: ReadOptions | None = None
) -> tuple[Shares, tuple[str, ...]]:
    """Run the packets of a capture through a program and count which way they take.

    Programs in the JSON of bmv2, in P4 for v1model, and p4perf's own can be run.

    Args:
        path: the program, as for :func:`~p4perf.evaluation.reading.program.read_program`.
        capture: packets in the classic format of libpcap.
        options: as for the program; ``commands`` fills its tables.

    Returns:
        The shares, and remarks on what could not be executed.

    Raises:
        DataError: the program or the capture cannot be read.
        UsageError: programs of this kind cannot be run.
    """
    raise NotImplementedError
