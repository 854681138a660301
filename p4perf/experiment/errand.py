"""What a worker of a cluster does for a run that is kept elsewhere: errands that come as bytes, and go as bytes.

A worker keeps nothing but its testbed. Everything is pickled here and by nobody else, so that nothing depends on how a
cluster serialises.
"""

from __future__ import annotations

import pickle
import socket
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from p4perf.errors import BuildError, P4PerfError, TestbedError, UsageError
from p4perf.experiment.bench import Bench, TrialDone, TrialOrder
from p4perf.experiment.opening import open_target, open_testbed
from p4perf.experiment.planning import PlannedPoint
from p4perf.targets.base import BuildPlan, Job, JobResult, NodeFacts, TrialOptions
from p4perf.testbeds.base import Testbed
from p4perf.testbeds.batch.base import BatchTestbed
from p4perf.version import __version__

RESOURCE = "dut"
"""The resource of Dask that a worker has one of: its device under test."""

MAX_FILES_BYTES = 64 << 20
"""So much of what a trial leaves in its folder is kept, in bytes."""


class Errand(Protocol):
    """Something to do with the testbed of a worker. It holds the device for as long as it takes."""

    def do(self, testbed: Testbed) -> Any:
        """Do it; what comes of it can be pickled, and so can its errors."""
        ...


@dataclass(frozen=True, slots=True)
class Introduction:
    """What a worker says of itself: facts of its node, the record of its testbed, and the name of its own machine."""

    facts: NodeFacts
    label: str
    record: Mapping[str, str]
    host: str


@dataclass(frozen=True, slots=True)
class Introduce:
    """Tell which device this is."""

    def do(self, testbed: Testbed) -> Introduction:
        """Look at the node.

        Raises:
            UsageError: the testbed works in batches.
            TestbedError: it cannot be used.
        """
        if isinstance(testbed, BatchTestbed):
            raise UsageError(f"testbed {testbed.label} works in batches, and a cluster decides between trials")
        if fatal := [p for p in testbed.problems() if p.fatal]:
            what = "; ".join(p.what for p in fatal)
            raise TestbedError(f"testbed {testbed.label} cannot be used: {what}", hint="; ".join(p.hint for p in fatal))
        return Introduction(testbed.facts(), testbed.label, dict(testbed.record), socket.gethostname())


@dataclass(frozen=True, slots=True)
class Prepare:
    """Build programs, then calibrate. Compilers disturb measurements, so this comes before the first trial."""

    plans: Sequence[BuildPlan]
    calibration: Job | None

    def do(self, testbed: Testbed) -> tuple[dict[str, BuildError], JobResult | None]:
        """Failures of builds by the key of the plan, and what the calibration printed."""
        failures: dict[str, BuildError] = {}
        for plan in self.plans:
            try:
                testbed.build(plan)
            except BuildError as error:
                failures[plan.key] = error
        return failures, None if self.calibration is None else RunJob(self.calibration).do(testbed)


@dataclass(frozen=True, slots=True)
class Build:
    """Build one program."""

    plan: BuildPlan

    def do(self, testbed: Testbed) -> Path:
        """The folder of its product, on the node."""
        return testbed.build(self.plan)


@dataclass(frozen=True, slots=True)
class RunJob:
    """Run a job in a folder of its own."""

    job: Job

    def do(self, testbed: Testbed) -> JobResult:
        """What became of it."""
        with tempfile.TemporaryDirectory(prefix="p4perf-") as folder:
            return testbed.run(self.job, Path(folder))


@dataclass(frozen=True, slots=True)
class Try:
    """Run one trial. ``facts`` are those of the node."""

    target: str
    facts: NodeFacts
    order: TrialOrder

    def do(self, testbed: Testbed) -> tuple[TrialDone, dict[str, bytes]]:
        """What became of it, and of the first trial of a point the files that it left."""
        with tempfile.TemporaryDirectory(prefix="p4perf-") as folder:
            done = Bench(open_target(self.target), testbed, self.facts).trial(self.order, Path(folder))
            return done, _files(Path(folder)) if self.order.attempt == 0 else {}


@dataclass(frozen=True, slots=True)
class Simulate:
    """Count by simulation what a point does."""

    target: str
    facts: NodeFacts
    planned: PlannedPoint
    options: TrialOptions

    def do(self, testbed: Testbed) -> dict[str, Any] | None:
        """See :meth:`~p4perf.experiment.bench.Bench.simulate`."""
        with tempfile.TemporaryDirectory(prefix="p4perf-") as folder:
            bench = Bench(open_target(self.target), testbed, self.facts)
            return bench.simulate(self.planned, self.options, Path(folder))


def _files(folder: Path) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    left = MAX_FILES_BYTES
    for path in sorted(folder.iterdir()):
        if path.is_file() and not path.is_symlink() and path.stat().st_size <= left:
            found[path.name] = path.read_bytes()
            left -= len(found[path.name])
    return found


@lru_cache(maxsize=1)
def _opened(address: str) -> Testbed:
    """The testbed of this worker, which may hold a connection."""
    return open_testbed(address)


def pack(testbed: str, errand: Errand) -> bytes:
    """An errand for a worker with a testbed at that address; what :func:`run_errand` takes."""
    return pickle.dumps((__version__, testbed, pickle.dumps(errand)))


def run_errand(request: bytes) -> bytes:
    """Do an errand; runs in a worker. Failures of p4perf are answers like others; what is none is raised."""
    version, address, packed = pickle.loads(request)  # noqa: S301 - from the process that we work for
    try:
        if version != __version__:
            raise TestbedError(f"it has p4perf {__version__}, but {version} is used by the run")
        answer = _read(packed).do(_opened(address))
    except P4PerfError as error:
        answer = error
    return pickle.dumps(answer)


def _read(packed: bytes) -> Errand:
    try:
        errand: Errand = pickle.loads(packed)  # noqa: S301
    except Exception as error:
        raise TestbedError(
            f"it cannot read what it shall do: {type(error).__name__}: {error}",
            hint="install the same plug-ins on all workers",
        ) from error
    return errand


def unpack(answer: bytes) -> Any:
    """Read what :func:`run_errand` gave back. A failure is raised as it was."""
    found = pickle.loads(answer)  # noqa: S301 - from our own workers
    if isinstance(found, P4PerfError):
        raise found
    return found
