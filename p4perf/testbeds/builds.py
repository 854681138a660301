"""How a program is built, wherever that is: once for equal plans, and never half."""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path

from p4perf.errors import BuildError, StorageError
from p4perf.targets.base import BuildPlan, Job, JobResult, ending

BUILD_TIMEOUT_S = 300.0
"""How long one command of a build may take, in seconds, unless its plan says more."""

LONGEST_BUILD_S = 7200.0
"""The most that a plan may say, in seconds."""

FILE_NAME = re.compile(r"[A-Za-z0-9_+-][A-Za-z0-9._+-]{0,200}")
"""Names of files that are copied to a node or from it."""

_DISK_FULL = re.compile("No space left on device|Disk quota exceeded")


def says_disk_full(text: str) -> bool:
    """Whether a tool says that it cannot write because a disk is full."""
    return _DISK_FULL.search(text) is not None


def files_key(files: Mapping[str, bytes]) -> str:
    """A name for a set of files, equal for equal names and contents."""
    digest = hashlib.sha256()
    for name, data in sorted(files.items()):
        digest.update(f"{name} {len(data)}\n".encode() + data)
    return digest.hexdigest()[:32]


class Builder(ABC):
    """A place where builds are made: a folder for each that is finished, named by its key."""

    where: str = ""
    """The place, for messages: `` on node a``; nothing where that needs no word."""

    def build(self, plan: BuildPlan) -> Path:
        """Make sure that the product of a plan and of its parts is there; the folder that holds it."""
        if (final := self.finished(plan)) is not None:
            return final
        places = {name: str(self.build(part)) for name, part in plan.parts.items()}
        work = self.begin(plan)
        try:
            limit_s = min(plan.timeout_s or BUILD_TIMEOUT_S, LONGEST_BUILD_S)
            log = "".join(self._logged(command, work, limit_s) for command in plan.commands_with(places))
            return self.finish(plan, work, log)
        finally:
            self.discard(work)

    def _logged(self, command: tuple[str, ...], work: Path, limit_s: float) -> str:
        """Run one command; what it said. The sources and the log of a failed build are kept for the user to read."""
        result = self.step(command, work, limit_s)
        log = f"$ {' '.join(command)}\n{result.stdout}{result.stderr}"
        if result.returncode == 0 and not result.timed_out:
            return log
        if says_disk_full(result.stderr):
            raise StorageError(f"the build{self.where} failed: the disk is full", hint=f"make room for {work.parent}")
        kept = self.keep(work, log)
        said = result.stderr if result.stderr.strip() else f"no message, but a command {ending(result.returncode)}"
        raise build_failure(said, self.where, log=log, late=result.timed_out, hint=f"sources and log are in {kept}")

    @abstractmethod
    def finished(self, plan: BuildPlan) -> Path | None:
        """The folder of a build that was made before."""

    @abstractmethod
    def begin(self, plan: BuildPlan) -> Path:
        """A new folder with the files of a plan; nothing of it remains if this process is killed."""

    @abstractmethod
    def step(self, command: tuple[str, ...], work: Path, limit_s: float) -> JobResult:
        """Run a command in that folder, for at most ``limit_s`` seconds."""

    @abstractmethod
    def finish(self, plan: BuildPlan, work: Path, log: str) -> Path:
        """Give the folder the name of the plan, all at once, or drop it if another process was faster.

        Raises:
            BuildError: the product is not there.
        """

    @abstractmethod
    def keep(self, work: Path, log: str) -> Path:
        """Keep the folder of a failed build in the place of the last one."""

    @abstractmethod
    def discard(self, work: Path) -> None:
        """Remove a folder, if it is still there."""


def build_failure(
    said: str, where: str, *, log: str | None = None, late: bool = False, hint: str | None = None
) -> BuildError:
    """The failure of a build, which begins with its first error."""
    lines = [line for line in said.splitlines() if line.strip()]
    first = next(
        (line for line in lines if "error" in line or "not found" in line), lines[0] if lines else "no message"
    )
    what = "took too long" if late else "failed"
    return BuildError(f"the build{where} {what}: {first.strip()}", log=said if log is None else log, hint=hint)


def no_product(plan: BuildPlan, where: str) -> BuildError:
    """The failure of a build whose commands succeed and make nothing."""
    return BuildError(f"the build{where} made no {plan.product}")


def placed(job: Job, places: Mapping[str, str]) -> tuple[str, ...]:
    """The command of a job with places for ``{build}`` and ``{folder}``."""
    argv = []
    for argument in job.argv:
        for name, place in places.items():
            argument = argument.replace(f"{{{name}}}", place)
        argv.append(argument)
    return tuple(argv)
