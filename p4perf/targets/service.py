"""A device that a load generator on another machine loads: how it starts, is watched, and stops again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from p4perf.errors import MeasurementError
from p4perf.targets.base import Job, JobResult

ServedProgram = Literal["program", "baseline"]


@dataclass(frozen=True, slots=True)
class ServiceStep:
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
        main: the command that runs as long as the device is needed; None where the device then runs by itself.
        ready: extended regular expression (POSIX); a line of the output of ``main`` that matches it means that the
            device forwards packets.
        broken: likewise; a line that matches it means that the device will never forward. Empty: there is none.
        ready_timeout_s: time limit for ``ready``, in seconds.
        settle_s: pause between ``ready`` and the first packet, in seconds.
        before: commands whose output is kept with a trial, run right before it: counters.
        during: commands that run while load is offered, beginning when it has settled.
        after: as ``before``, right after it.
        release: commands at the end, run whatever happened.
    """

    prepare: tuple[ServiceStep, ...] = ()
    main: Job | None = None
    ready: str = ""
    broken: str = ""
    ready_timeout_s: float = 60.0
    settle_s: float = 0.0
    before: tuple[ServiceStep, ...] = ()
    during: tuple[ServiceStep, ...] = ()
    after: tuple[ServiceStep, ...] = ()
    release: tuple[ServiceStep, ...] = ()


def step_failed(step: ServiceStep, result: JobResult, why: str = "") -> MeasurementError:
    """The failure of a step, with the last lines of its output."""
    printed = " / ".join((result.stderr.strip() or result.stdout.strip()).splitlines()[-3:])
    status = f"ended with status {result.returncode}"
    how = f"was stopped after {result.duration_s:.0f} s" if result.timed_out else status
    return MeasurementError(f"{step.what}: {why or f'the command {how}'}{f': {printed}' if printed else ''}")
