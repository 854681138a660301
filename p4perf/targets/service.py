"""A device that a load generator of its own loads from outside: how it comes up, is watched, and goes down again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from p4perf.targets.base import Job

ServedProgram = Literal["program", "baseline"]
"""What a device runs while it is loaded."""


@dataclass(frozen=True, slots=True)
class Step:
    """A command that runs to its end on the node of the device.

    ``what`` is what it does, in the words of a message: ``loading the firmware``.
    """

    what: str
    job: Job


@dataclass(frozen=True, slots=True)
class Service:
    """A device between the packets of a load generator.

    Args:
        prepare: commands before, one after the other.
        main: the command that runs as long as the device is needed; None where the device runs by itself then.
        ready: a line of the output of ``main`` that matches this extended regular expression (POSIX) says that it
            forwards packets.
        broken: a line that matches this one says that it never will; empty: there is none.
        ready_timeout_s: how long coming up may take, in seconds.
        settle_s: pause after it is up, before the first packet, in seconds.
        before: commands whose output is kept with a trial, run right before it: counters.
        during: commands that run while load is offered, beginning when it has settled.
        after: as ``before``, right after it.
        release: commands at the end, run whatever happened.
    """

    prepare: tuple[Step, ...] = ()
    main: Job | None = None
    ready: str = ""
    broken: str = ""
    ready_timeout_s: float = 60.0
    settle_s: float = 0.0
    before: tuple[Step, ...] = ()
    during: tuple[Step, ...] = ()
    after: tuple[Step, ...] = ()
    release: tuple[Step, ...] = ()
