"""The contract of a testbed: the place where the device under test runs.

A testbed carries out what targets ask for: it reports facts of its node, builds a program once, and runs jobs. It knows
nothing of programs, metrics or specs. :class:`Builder` has the order of a build, wherever that is: once for equal
plans, and never half.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from importlib.resources import files as package_files
from pathlib import Path
from typing import ClassVar, Literal, Self

from p4perf.errors import BuildError, MeasurementError, P4PerfError, StorageError, TestbedError, UsageError
from p4perf.results.files import temporary_folder
from p4perf.targets.base import BuildPlan, Job, JobResult, NodeFacts, Problem, ending

Role = Literal["dut", "loadgen"]
"""What a node is for: device under test, load generator."""

CPUS = Path("/sys/devices/system/cpu")
HOLD, HOLD_S = "hold.sh", 30.0
"""The script that holds cores at a frequency, and how long it may take for all of them, in seconds."""

TOLERANCE = 0.01
"""Share by which the frequency that the kernel takes may differ from the one that was asked for."""


class Testbed(ABC):
    """An environment. A new one is a module with a subclass and an entry point in the group ``p4perf.testbeds``."""

    __test__ = False  # not a test class, whatever its name looks like
    name: ClassVar[str]
    summary: ClassVar[str]
    note: Callable[[str], object] = staticmethod(lambda text: None)
    """Takes what a user may want to know meanwhile."""

    @classmethod
    def at(cls, place: str) -> Self:
        """The testbed at a place, which users write behind a colon: ``ssh:nodes.yaml``. By default there is but one.

        Raises:
            UsageError: there is no such place, or it is not said.
            DataError: what describes the place is damaged.
        """
        if place:
            raise UsageError(f"testbed {cls.name} takes no {place!r}", hint=f"write {cls.name} alone")
        return cls()

    @property
    def label(self) -> str:
        """What runs and messages call it: the name, and where that does not say which node, the node: ``ssh:dut``."""
        return self.name

    @property
    def provisional(self) -> bool:
        """Whether :meth:`facts` are only those of a machine like the node, whose own come with the results."""
        return False

    @property
    def record(self) -> Mapping[str, str]:
        """What a run notes of it; ``address`` is how it is opened again, from any folder. No secrets are in it."""
        return {"address": self.name}

    def node(self, role: Role) -> Testbed:
        """The node with another role; by default one node has all of them.

        Raises:
            TestbedError: there is none.
        """
        return self

    @abstractmethod
    def problems(self) -> tuple[Problem, ...]:
        """What is missing to use this testbed from here."""

    @abstractmethod
    def facts(self) -> NodeFacts:
        """Facts of the node that runs the device under test, as they are now.

        Raises:
            TestbedError: the node cannot be reached or answers nonsense.
        """

    @abstractmethod
    def build(self, plan: BuildPlan) -> Path:
        """Make sure that the product of a plan exists on the node; the folder that holds it.

        An equal plan is built once. A build that is interrupted leaves nothing behind.

        Raises:
            BuildError: a command failed; the message holds its first error and the path of the whole log.
            TestbedError: a command cannot be started, or the connection to the node is lost.
        """

    @contextlib.contextmanager
    def at_frequency(self, frequency_ghz: float, cpus: Path = CPUS) -> Iterator[None]:
        """Hold the cores of the node at a frequency for a body, and set them back.

        Raises:
            TestbedError: there is no cpufreq, it cannot be written (no root), it does not take that frequency, or
                somebody else set another one meanwhile.
        """
        khz, script = round(frequency_ghz * 1e6), (package_files("p4perf.testbeds") / HOLD).read_bytes()
        words = (str(cpus), str(khz), str(round(TOLERANCE * khz)))
        job = Job(("sh", f"{{folder}}/{HOLD}", *words), HOLD_S, None, {HOLD: script})
        with temporary_folder() as folder, self.converse(job, folder) as held:
            try:
                held.answer(HOLD_S)
            except MeasurementError as error:
                what = error.message.partition(": ")[2] or error.message
                raise TestbedError(f"{self.label}, setting the frequency: {what}") from error
            changed = False
            try:
                yield
            finally:
                with contextlib.suppress(P4PerfError):  # what ended it has set them back
                    changed = json.loads(held.ask("release", HOLD_S))["changed"]
            if changed:
                what = "somebody else changed the frequency of its cores while they were measured"
                raise TestbedError(f"{self.label}: {what}", hint="stop what manages frequencies, and run again")

    @abstractmethod
    def run(self, job: Job, folder: Path) -> JobResult:
        """Build what the job needs, put its files into ``folder``, run it, and wait for its end.

        A job that takes longer than its time limit is killed; the result says so. If this process is killed, the job
        dies too.

        Raises:
            TestbedError: the command cannot be started, or the connection to the node is lost.
        """

    def artifact_path(self, folder: Path, name: str) -> Path:
        """Where a file is that a job in this folder left on its node; it need not exist."""
        return folder / name

    def converse(self, job: Job, folder: Path) -> AbstractContextManager[Conversation]:
        """Start a job that answers lines with lines, and end it with the body, whatever happens there.

        Raises:
            TestbedError: the command cannot be started, or this testbed has no way to converse.
        """
        raise TestbedError(f"testbed {self.name} cannot converse with a program")


class Conversation(ABC):
    """A running command that answers every line with a line."""

    def ask(self, line: str, timeout_s: float) -> str:
        """Send a line and wait for the answer; errors as in :meth:`tell` and :meth:`answer`."""
        self.tell(line)
        return self.answer(timeout_s)

    @abstractmethod
    def tell(self, line: str) -> None:
        """Send a line. If the command no longer reads, :meth:`answer` raises."""

    @abstractmethod
    def answer(self, timeout_s: float) -> str:
        """The next line that is JSON.

        Raises:
            MeasurementError: the command died, or is silent for so long; it is ended then.
            TestbedError: the connection to its node is lost.
        """


BUILD_TIMEOUT_S = 300.0
"""How long one command of a build may take, in seconds, unless its plan says more."""

LONGEST_BUILD_S = 7200.0
"""The most that a plan may say, in seconds."""

SUM = "product.sha256"
"""File of a build with the checksum of its product: a crash of the machine may leave a product that is none."""

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
            if (final := self.finished(plan)) is not None:
                return final  # another process built it meanwhile
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
        ended = f"was stopped after {limit_s:g} s" if result.timed_out else ending(result.returncode)
        said = result.stderr if result.stderr.strip() else f"no message, but a command {ended}"
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
