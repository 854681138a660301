"""The two roles of a trial with a load generator: a script for each, made of what device and generator describe.

On the node of the device a script brings it up and down by the steps of its
:class:`~p4perf.targets.service.Service`, on that of the load generator another one runs the commands of its
:class:`~p4perf.testbeds.loadgen.base.Offer`. They meet twice for every load: when the device is up and watched, and
when the traffic is over. Neither skips a meeting because something failed, so that the other does not wait in vain.

Every command has a name in the trial, under which its outputs are kept: ``part0-prepare1``, ``load2-during0``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from p4perf.generators.rendering import render
from p4perf.targets.base import Job
from p4perf.targets.service import Service, ServiceStep
from p4perf.testbeds.base import Role
from p4perf.testbeds.batch.base import LoadJob, LoadPart
from p4perf.testbeds.loadgen.base import Offer

MEET_S = 300.0
"""How much later than its commands may take a node may come to a meeting, in seconds: it copies and uploads files."""

PATIENCE = 2
"""Factor of the wait for a node that may itself have waited in vain before; as in ``role.sh``."""

ANSWER_S = 30.0
"""How long ``serve.sh`` may take to answer, in seconds."""

ROLES: tuple[Role, ...] = ("dut", "loadgen")


@dataclass(frozen=True, slots=True)
class NamedStep:
    name: str
    step: ServiceStep


@dataclass(frozen=True, slots=True)
class NamedOffer:
    """A trial of the load generator under its name, and the steps around it."""

    name: str
    offer: Offer
    before: tuple[NamedStep, ...]
    during: tuple[NamedStep, ...]
    after: tuple[NamedStep, ...]

    @property
    def begin(self) -> str:
        """Name of the meeting before the traffic."""
        return f"{self.name}-begin"

    @property
    def end(self) -> str:
        """Name of the meeting behind it."""
        return f"{self.name}-end"


@dataclass(frozen=True, slots=True)
class NamedPart:
    """A part of the trial under its name."""

    name: str
    service: Service
    prepare: tuple[NamedStep, ...]
    offers: tuple[NamedOffer, ...]
    release: tuple[NamedStep, ...]

    @property
    def main(self) -> str:
        """Name of the command that runs as long as the device is up."""
        return f"{self.name}-main"


def named_parts(job: LoadJob) -> tuple[NamedPart, ...]:
    parts, loads = [], 0
    for number, part in enumerate(job.parts):
        name, service = f"part{number}", part.service
        offers = []
        for offer in part.offers:
            load = f"load{loads}"
            around = (_named(f"{load}-{when}", getattr(service, when)) for when in ("before", "during", "after"))
            offers.append(NamedOffer(load, offer, *around))
            loads += 1
        prepare, release = (_named(f"{name}-{when}", getattr(service, when)) for when in ("prepare", "release"))
        parts.append(NamedPart(name, service, prepare, tuple(offers), release))
    return tuple(parts)


def _named(prefix: str, steps: Sequence[ServiceStep]) -> tuple[NamedStep, ...]:
    return tuple(NamedStep(f"{prefix}{number}", step) for number, step in enumerate(steps))


def jobs_of(job: LoadJob, role: Role) -> Iterator[Job]:
    for part in job.parts:
        service = part.service
        if role == "loadgen":
            yield from (offer.job for offer in part.offers)
            continue
        steps = (*service.prepare, *service.before, *service.during, *service.after, *service.release)
        yield from (step.job for step in steps)
        if service.main is not None:
            yield service.main


def limit_s(job: LoadJob) -> float:
    """What a trial may take at the most, in seconds, with the longest wait for the other node."""
    work_s = sum(
        _up_s(p.service) + _down_s(p.service) + len(p.offers) * (_around_s(p.service) + _load_s(p)) for p in job.parts
    )
    return work_s + PATIENCE * _wait_s(job)


def _up_s(service: Service) -> float:
    ready_s = service.ready_timeout_s + ANSWER_S if service.main is not None else 0.0
    return sum(step.job.timeout_s for step in service.prepare) + ready_s + service.settle_s


def _around_s(service: Service) -> float:
    return sum(step.job.timeout_s for step in (*service.before, *service.after)) + ANSWER_S


def _down_s(service: Service) -> float:
    return sum(step.job.timeout_s for step in service.release) + (ANSWER_S if service.main is not None else 0.0)


def _load_s(part: LoadPart) -> float:
    during = (step.job for step in part.service.during)
    return max((job.timeout_s for job in (*during, *(offer.job for offer in part.offers))), default=0.0)


def _wait_s(job: LoadJob) -> float:
    """How long a node waits for the other one: what that may do since the last meeting, at the most.

    That is a load, or going down (in the trial before, too), coming up, and the steps around a load.
    """
    services = [part.service for part in job.parts]
    longest = [max(map(of, services), default=0.0) for of in (_up_s, _around_s, _down_s)]
    return max(sum(longest), max(map(_load_s, job.parts), default=0.0)) + MEET_S


def script_text(job: LoadJob, role: Role, folders: Callable[[Job], tuple[str, str]]) -> str:
    """The script of a role."""
    return render(
        f"batch/role-{role}.sh.j2",
        name=job.name,
        about=job.about,
        parts=named_parts(job),
        wait_s=math.ceil(_wait_s(job)),
        folders=folders,
        answer_s=ANSWER_S,
    )
