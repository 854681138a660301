"""The contract of a testbed that works in batches, without dialogue between trials.

Such a testbed gets all jobs at once, as an experiment folder of ordinary text. It runs that folder, or lets somebody
run it, and reads what came of each job.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from typing_extensions import override

from p4perf.errors import TestbedError
from p4perf.targets.base import BuildPlan, Job, JobResult, NodeFacts
from p4perf.targets.roles import Service
from p4perf.testbeds.base import Role, Testbed
from p4perf.testbeds.loadgen.base import Offer

Note = Callable[[str], None]
"""Takes messages for the user."""


@dataclass(frozen=True, slots=True)
class LoadPart:
    """What a device does in a trial between coming up and going down: it is offered some loads, one after the other."""

    service: Service
    offers: tuple[Offer, ...]


@dataclass(frozen=True, slots=True)
class BatchJob:
    """A trial: a command on the node of the device, or ``parts`` of two nodes, which wait for each other.

    The name has lower-case letters, digits and hyphens, at most 64 of them. ``about`` is what is measured, for people.
    """

    name: str
    job: Job | None = None
    about: str = ""
    parts: tuple[LoadPart, ...] = ()


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """What became of a trial: what one node wrote down of it, or both together.

    Args:
        started: when, in UTC, as ``2026-06-06T12:00:00+00:00``.
        duration_s: what it took, in seconds.
        nodes: names of the nodes by their roles.
        results: of the commands that were run, by their names in :mod:`p4perf.testbeds.batch.folder`.
        said: what ``serve.sh`` said of the device, line by line, by the name of the part.
        left: texts of the files that the load generator left, by the name of the trial of it and theirs.
        build_log: what the compiler said if a program was not built; None if all were.
        lost: the meeting to which the other node did not come; empty if it came to all.
    """

    started: str
    duration_s: float
    nodes: dict[Role, str]
    results: dict[str, JobResult]
    said: dict[str, list[str]]
    left: dict[tuple[str, str], str]
    build_log: str | None = None
    lost: str = ""


@dataclass(frozen=True, slots=True)
class BatchResults:
    """What is known of a batch by now.

    Args:
        missing: why other jobs have no result, by name.
        facts: of the node, when the batch began there; None if it did not yet.
        facts_after: when it ended.
        waiting: what has to be done before there are further results; empty if there will be none.
    """

    outcomes: Mapping[str, JobOutcome] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    facts: NodeFacts | None = None
    facts_after: NodeFacts | None = None
    waiting: str = ""
    place: str = ""


class BatchTestbed(Testbed):
    """A testbed that is given all jobs at once."""

    @property
    def load_generator(self) -> str:
        """Name of the load generator beside the device; empty if there is none."""
        return ""

    def generator_facts(self) -> NodeFacts:
        """Facts of the node of the load generator."""
        self._refuse("has no load generator")

    def require_free(self) -> None:
        """Check that a new run may begin here.

        Raises:
            TestbedError: it belongs to another run.
        """

    def require_begun(self) -> None:
        """Check that a run that is resumed was begun here: what its manifest names may be a stranger's idea.

        Raises:
            TestbedError: it was not.
        """

    @abstractmethod
    def write_batch(self, jobs: Sequence[BatchJob], folder: Path, title: str) -> None:
        """Write the experiment folder of a batch; nothing is run.

        Args:
            folder: an empty folder that the batch has for itself; not every testbed uses it.

        Raises:
            TestbedError: a name or a job is not fit for it.
        """

    @abstractmethod
    def run_batch(self, names: Sequence[str], folder: Path, note: Note) -> BatchResults:
        """Run the batch that was written, or continue it, and read its results.

        What was begun or finished by an earlier call for the same folder is not begun again.

        Raises:
            TestbedError: it cannot be run; node and step are named.
            StorageError: the disk of the node is full.
            DataError: results are damaged.
        """

    @override
    def build(self, plan: BuildPlan) -> Path:
        self._refuse("builds nothing by itself")

    @override
    def run(self, job: Job, folder: Path) -> JobResult:
        self._refuse("runs no single command")

    def _refuse(self, what: str) -> NoReturn:
        raise TestbedError(
            f"testbed {self.label} works in batches and {what}",
            hint="p4perf run SPEC works with it; programs of your own and campaigns do not",
        )
