"""The contract of a testbed that works in batches: nobody answers between the trials.

Such a testbed gets all jobs at once, as an experiment folder of ordinary text. It runs that folder, or lets somebody
run it, and reads what came of each job.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from p4perf.errors import TestbedError
from p4perf.targets.base import BuildPlan, Job, JobResult, NodeFacts
from p4perf.testbeds.base import Testbed

Note = Callable[[str], None]
"""Is told what the user should know."""


@dataclass(frozen=True, slots=True)
class BatchJob:
    """A job and its name: lower-case letters, digits and hyphens, at most 64 of them.

    ``about`` is what it measures, for people.
    """

    name: str
    job: Job
    about: str = ""


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """What became of a job of a batch.

    ``started`` is when, in UTC, as ``2026-06-06T12:00:00+00:00``; ``build_log`` what the compiler said if its program
    was not built (there was no job then), else None.
    """

    result: JobResult
    started: str
    build_log: str | None = None


@dataclass(frozen=True, slots=True)
class BatchResults:
    """What is known of a batch by now.

    Args:
        outcomes: by the name of the job.
        missing: why other jobs have no result, by name.
        facts: of the node, when the batch began there; None if it did not yet.
        facts_after: when it ended.
        waiting: what has to be done before there are further results; empty if there will be none.
        place: where the results lie, for people.
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
    def provisional(self) -> bool:
        """Whether :meth:`facts` are only those of a machine like the node, whose own come with the results."""
        return False

    def require_free(self) -> None:
        """Check that a new run may begin here.

        Raises:
            TestbedError: it belongs to another run.
        """

    @abstractmethod
    def write_batch(self, jobs: Sequence[BatchJob], folder: Path, title: str) -> None:
        """Write the experiment folder of a batch; nothing is run.

        Args:
            jobs: in the order in which they are to be run.
            folder: an empty folder that the batch has for itself; not every testbed uses it.
            title: what is measured, for people.

        Raises:
            TestbedError: a name or a job is not fit for it.
            StorageError: it cannot be written.
        """

    @abstractmethod
    def run_batch(self, names: Sequence[str], folder: Path, note: Note) -> BatchResults:
        """Run the batch that was written, or go on with it, and read its results.

        What was begun or finished by an earlier call for the same folder is not begun again.

        Raises:
            TestbedError: it cannot be run; node and step are named.
            StorageError: the disk of the node is full.
            DataError: results are damaged.
        """

    def build(self, plan: BuildPlan) -> Path:
        """Not possible by itself: programs are built where and when the batch is run."""
        self._refuse("builds nothing by itself")

    def run(self, job: Job, folder: Path) -> JobResult:
        """Not possible by itself."""
        self._refuse("runs no single command")

    def _refuse(self, what: str) -> NoReturn:
        raise TestbedError(
            f"testbed {self.label} works in batches and {what}",
            hint="p4perf run SPEC works with it; programs of your own, campaigns and load generators do not",
        )
