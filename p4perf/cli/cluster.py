"""The options of commands that measure on the workers of a Dask scheduler."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from p4perf.cli.output import say
from p4perf.errors import UsageError

if TYPE_CHECKING:
    from p4perf.experiment import Crew
    from p4perf.testbeds.base import Testbed

SchedulerOption = Annotated[
    str | None,
    typer.Option(
        "--scheduler", help="Measure on all workers of a Dask scheduler that have a device: tcp://10.0.0.1:8786."
    ),
]

WorkersOption = Annotated[
    str | None,
    typer.Option("--workers", help="With --scheduler: only workers with names that match, such as 'xeon-*'."),
]


def check_cluster(scheduler: str | None, workers: str | None) -> None:
    """Refuse options that only a cluster understands.

    Raises:
        UsageError: there is none, or its package is missing.
    """
    from p4perf.cluster import require_distributed

    if scheduler is not None:
        require_distributed()
    elif workers is not None:
        raise UsageError("--workers chooses workers of a cluster", hint="name it with --scheduler")


@contextlib.contextmanager
def crew_opener(scheduler: str | None, workers: str | None, *, quiet: bool) -> Iterator[Callable[[str], Crew] | None]:
    """Opens the devices of a cluster for the address of a testbed, once; they are left with the body. None without one.

    Raises:
        UsageError: see :func:`check_cluster`.
    """
    from p4perf.experiment import open_crew

    check_cluster(scheduler, workers)
    if scheduler is None:
        yield None
        return
    with contextlib.ExitStack() as stack:

        def open_once(address: str) -> Crew:
            # What the client of Dask says of lost connections, p4perf says, too.
            logging.getLogger("distributed").setLevel(logging.CRITICAL)
            crew = open_crew(scheduler, address, workers, (lambda text: None) if quiet else _note)
            stack.callback(crew.close)
            return crew

        yield open_once


@contextlib.contextmanager
def opened_testbed(address: str, scheduler: str | None, workers: str | None, *, quiet: bool) -> Iterator[Testbed]:
    """The testbed at an address, or the devices of a cluster that have theirs there."""
    from p4perf.experiment import open_testbed

    with crew_opener(scheduler, workers, quiet=quiet) as opener:
        yield open_testbed(address) if opener is None else opener(address)


def _note(text: str) -> None:
    say(f"note: {text}")


def resuming(path: object, scheduler: str | None) -> str:
    """The command that goes on with a run."""
    return f"p4perf resume {path}" + (f" --scheduler {scheduler}" if scheduler else "")
