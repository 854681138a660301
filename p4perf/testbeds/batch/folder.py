"""What a batch is on a node: a folder of text that builds every program once and runs every trial by its name.

::

    dut/
      probe.sh              prints the facts of the node
      build.sh              builds every program of sources/ that is not built yet, into built/
      builds/               how each one is built (KEY.sh), and in which order (level-*.txt: parts first)
      sources/KEY/          files of each program
      trials.txt            name and time limit in seconds of each trial, in order
      trials/NAME.sh        runs one trial, with its results in a folder: steps.txt and the outputs of all commands
      files/KEY/            what trials find in their folder, such as packets to verify
      role.sh, serve.sh     what these scripts need
      build-one.sh          what build.sh starts

Where trials have a load generator, there is the same for each of the two nodes. On the node of the device the script
brings it up and down by the steps of its :class:`~p4perf.targets.roles.Service`, on that of the load generator another
one runs the commands of its :class:`~p4perf.testbeds.loadgen.base.Offer`. They meet twice for every load: when the
device is up and watched, and when the traffic is over. Neither skips a meeting because something failed, so that the
other does not wait in vain. Every command has a name in the trial, under which its outputs are kept: ``trial`` where
there is one only, ``part0-prepare1``, ``load2-during0``.
"""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any

from p4perf.errors import StorageError, TestbedError
from p4perf.generators.base import render
from p4perf.targets.base import BuildPlan, Job
from p4perf.targets.roles import Service, ServiceStep
from p4perf.testbeds.base import BUILD_TIMEOUT_S, FILE_NAME, Role, files_key
from p4perf.testbeds.batch.base import BatchJob, LoadPart
from p4perf.testbeds.loadgen.base import Offer
from p4perf.testbeds.local import probe_text
from p4perf.testbeds.serving import ANSWER_S
from p4perf.testbeds.serving import SCRIPT as SERVE

DUT: Role = "dut"
LOADGEN: Role = "loadgen"
ROLES = (DUT, LOADGEN)
"""Folders of what device under test and load generator get."""

MEET_S = 300.0
"""How much later than its commands may take a node may come to a meeting, in seconds: it copies and uploads files."""

PATIENCE = 2
"""Factor of the wait for a node that may itself have waited in vain before; as in ``role.sh``."""

NONE = "-"
"""What stands in a script where a command has no program or no files."""

TRIALS = "trials.txt"

TRIAL = "trial"
"""Name of the command of a trial without load generator."""

_SCRIPTS = ("build.sh", "build-one.sh", "role.sh")
_NAME = re.compile("[a-z0-9][a-z0-9-]{0,63}")

Files = dict[str, bytes]


def node_files(jobs: Sequence[BatchJob], role: Role = DUT) -> Files:
    """The folder of a node: contents by path, relative to it."""
    found: Files = {"probe.sh": probe_text().encode()}
    found |= {name: (package_files("p4perf.testbeds.batch") / name).read_bytes() for name in _SCRIPTS}
    found[SERVE] = (package_files("p4perf.testbeds") / SERVE).read_bytes()
    own = [job for job in jobs if job.parts or role == DUT]
    commands = [command for job in own for command in _commands(job, role)]
    found |= _builds([command.build for command in commands if command.build is not None])
    for command in commands:
        found |= {f"files/{_folders(command)[1]}/{_checked(name)}": data for name, data in command.files.items()}
    for job in own:
        for name in (name for part in job.parts for offer in part.offers for name in offer.leaves):
            _checked(name)
        found[f"trials/{_name(job)}.sh"] = _role_script(job, role).encode()
    return found | {TRIALS: "".join(f"{job.name} {_limit_s(job):.3f}\n" for job in own).encode()}


def _folders(job: Job) -> tuple[str, str]:
    """Names of the folders of the build of a command and of its files."""
    return (job.build.key if job.build is not None else NONE, files_key(job.files) if job.files else NONE)


def trial_limits_s(folder: Path) -> dict[str, float]:
    """The time limits of the trials in the folder of a node, in seconds, by name; none if there is no such folder."""
    path = folder / TRIALS
    rows = map(str.split, path.read_text(encoding="ascii").splitlines() if path.exists() else ())
    return {name: float(limit_s) for name, limit_s in rows}


def _name(job: BatchJob) -> str:
    if _NAME.fullmatch(job.name) is None:
        raise TestbedError(f"{job.name!r:.80} is no name for a trial")
    return job.name


def _checked(name: str) -> str:
    if FILE_NAME.fullmatch(name) is None:
        raise TestbedError(f"{name!r:.80} is no name for a file on a node")
    return name


def _builds(plans: Iterable[BuildPlan]) -> Files:
    """Sources and scripts of plans and all of their parts, and lists of their keys, parts before what needs them."""
    found: Files = {}
    levels: dict[str, int] = {}

    def add(plan: BuildPlan) -> int:
        if plan.key in levels:
            return levels[plan.key]
        levels[plan.key] = level = 1 + max((add(part) for part in plan.parts.values()), default=0)
        found.update({f"sources/{plan.key}/{_checked(name)}": text.encode() for name, text in plan.files.items()})
        found[f"builds/{plan.key}.sh"] = _build_script(plan).encode()
        return level

    for plan in plans:
        add(plan)
    for level in sorted(set(levels.values())):
        keys = [key for key, at in levels.items() if at == level]
        found[f"builds/level-{level:02}.txt"] = "".join(f"{key}\n" for key in keys).encode()
    return found


def _build_script(plan: BuildPlan) -> str:
    variables = {name: f"part_{number}" for number, name in enumerate(plan.parts)}
    return _render(
        "build-plan.sh.j2",
        product=plan.product,
        parts=[{"name": n, "variable": variables[n], "key": part.key} for n, part in plan.parts.items()],
        commands=[list(command) for command in plan.commands],
        places=variables,
        limit_s=round(plan.timeout_s or BUILD_TIMEOUT_S),
    )


def _render(template: str, **values: Any) -> str:
    return render(f"batch/{template}", **values)


Steps = Mapping[str, ServiceStep]
"""Steps by their names in the trial."""


@dataclass(frozen=True, slots=True)
class NamedOffer:
    """A trial of the load generator under its name, and the steps around it."""

    name: str
    offer: Offer
    before: Steps
    during: Steps
    after: Steps


@dataclass(frozen=True, slots=True)
class NamedPart:
    """A part of the trial under its name; ``main`` is that of the command that runs as long as the device is up."""

    main: str
    service: Service
    prepare: Steps
    offers: tuple[NamedOffer, ...]
    release: Steps


def named_parts(job: BatchJob) -> tuple[NamedPart, ...]:
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
        parts.append(NamedPart(f"{name}-main", service, prepare, tuple(offers), release))
    return tuple(parts)


def _named(prefix: str, steps: Sequence[ServiceStep]) -> Steps:
    return {f"{prefix}{number}": step for number, step in enumerate(steps)}


def _commands(job: BatchJob, role: Role) -> Iterator[Job]:
    """The commands of a trial on the node of a role."""
    if job.job is not None:
        yield job.job
    for part in job.parts:
        service = part.service
        if role == LOADGEN:
            yield from (offer.job for offer in part.offers)
            continue
        steps = (*service.prepare, *service.before, *service.during, *service.after, *service.release)
        yield from (step.job for step in steps)
        if service.main is not None:
            yield service.main


def _limit_s(job: BatchJob) -> float:
    """What a trial may take at the most, in seconds, with the longest wait for the other node."""
    if job.job is not None:
        return job.job.timeout_s
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


def _wait_s(job: BatchJob) -> float:
    """How long a node waits for the other one: what that may do since the last meeting, at the most.

    That is a load, or going down (in the trial before, too), coming up, and the steps around a load.
    """
    services = [part.service for part in job.parts]
    longest = [max(map(of, services), default=0.0) for of in (_up_s, _around_s, _down_s)]
    return max(sum(longest), max(map(_load_s, job.parts), default=0.0)) + MEET_S


def _role_script(job: BatchJob, role: Role) -> str:
    return _render(
        f"role-{role}.sh.j2",
        job=job,
        trial=TRIAL,
        parts=named_parts(job),
        wait_s=math.ceil(_wait_s(job)),
        folders=_folders,
        answer_s=ANSWER_S,
    )


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files below a folder; what p4perf wrote there before, into folders of folders that it writes, is removed.

    Files beside them, such as results and built programs, stay.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        deep = (path.split("/")[:2] for path in files if path.count("/") > 1)
        parents = {parent for path in files for parent in (folder / path).parents if folder in parent.parents}
        if link := next(filter(Path.is_symlink, sorted(parents)), None):
            raise StorageError(f"{link} is a symbolic link: p4perf would write where it leads", hint="remove it")
        for first, second in sorted(set(map(tuple, deep))):
            shutil.rmtree(folder / first / second, ignore_errors=True)
        for name, data in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)  # a link stays what it is when it is written
            path.write_bytes(data)
            if path.suffix == ".sh":
                path.chmod(0o755)
    except OSError as error:
        raise StorageError(f"cannot write the experiment folder {folder}: {error.strerror}") from error


def below(prefix: str, files: Mapping[str, bytes]) -> Files:
    return {f"{prefix}/{name}": data for name, data in files.items()}


def text_files(templates: Mapping[str, tuple[str, Mapping[str, Any]]]) -> Files:
    """Files made from templates of batches: template and values by path."""
    return {path: _render(template, **values).encode() for path, (template, values) in templates.items()}
