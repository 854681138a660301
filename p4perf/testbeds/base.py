"""The contract of a testbed: the place where the device under test runs.

A testbed carries out what targets ask for: it reports facts of its node, builds a program once, and runs jobs. It knows
nothing of programs, metrics or specs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import ClassVar, Literal, Self

from p4perf.errors import TestbedError, UsageError
from p4perf.targets.base import BuildPlan, Job, JobResult, NodeFacts, Problem

Role = Literal["dut", "loadgen"]
"""What a node is for: device under test, load generator."""


class Testbed(ABC):
    """An environment. A new one is a module with a subclass and an entry point in the group ``p4perf.testbeds``."""

    __test__ = False  # not a test class, whatever its name looks like
    name: ClassVar[str]
    summary: ClassVar[str]

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

    def at_frequency(self, frequency_ghz: float) -> AbstractContextManager[None]:
        """Hold the cores of the node at a frequency for a body, and set them back.

        Raises:
            TestbedError: this testbed or node cannot.
        """
        raise TestbedError(f"testbed {self.name} cannot set the frequency of its cores ({frequency_ghz:g} GHz)")

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
