"""The devices of a cluster: a worker of a Dask scheduler for each, and the errands that they run.

A worker keeps nothing but its testbed. Everything is pickled here, so that nothing depends on how a cluster serialises.

Dask carries errands to workers, lists the workers, and reserves a device for one errand at a time, whoever sends it:
every errand needs the resource ``dut``, of which each worker has one.
"""

from __future__ import annotations

import fnmatch
import pickle
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, wait
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from operator import methodcaller
from pathlib import Path
from typing import Any

from typing_extensions import override

from p4perf.errors import BuildError, P4PerfError, TestbedError, UsageError
from p4perf.evaluation.fitting.cluster import Scheduler, Task, WorkerInfo
from p4perf.experiment import bench
from p4perf.experiment.planning import PlannedPoint
from p4perf.plugins import load_plugin
from p4perf.results.files import temporary_folder
from p4perf.results.manifest import IDENTITY_FACTS
from p4perf.targets.base import BuildPlan, Job, JobResult, NodeFacts, Problem, TrialOptions
from p4perf.testbeds.base import Testbed
from p4perf.version import __version__

RESOURCE = "dut"
"""The resource of Dask that a worker has one of: its device under test."""

MAX_FILES_BYTES = 64 << 20
"""Most bytes that are kept of the files of a trial."""


Errand = Callable[[Testbed], Any]
"""Something to do with the testbed of a worker, which holds the device as long; it, its answer and its errors can be
pickled: a partial of one of the functions below."""


@dataclass(frozen=True, slots=True)
class DeviceOfCrew:
    """A device that can be measured on, as its worker introduces it.

    Args:
        name: of the device; that of the machine of its worker where the worker has none.
        host: name of that machine.
        label, record: of the testbed.
        worker: address of its worker, which changes when that starts again.
        testbed: address of its testbed, as its worker opens it.
    """

    name: str
    host: str
    label: str
    record: Mapping[str, str]
    facts: NodeFacts
    worker: str = ""
    testbed: str = ""

    @property
    def place(self) -> dict[str, Any]:
        return {"host": self.host, **self.record, "facts": dict(self.facts.values)}


def introduce(testbed: Testbed) -> DeviceOfCrew:
    bench.refuse_batches(testbed, "a cluster decides between trials")
    bench.refuse_fatal(testbed.problems(), TestbedError, f"testbed {testbed.label} cannot be used")
    host = socket.gethostname()
    return DeviceOfCrew(host, host, testbed.label, dict(testbed.record), testbed.facts())


def prepare(
    testbed: Testbed, plans: Sequence[BuildPlan], calibration: Job | None
) -> tuple[dict[str, BuildError], JobResult | None]:
    """Build programs, then calibrate; compilers disturb measurements, so this comes before the first trial.

    Returns:
        Failures of builds by the key of the plan, and what the calibration printed.
    """
    failures: dict[str, BuildError] = {}
    for plan in plans:
        try:
            testbed.build(plan)
        except BuildError as error:
            failures[plan.key] = error
    return failures, None if calibration is None else run_job(testbed, calibration)


def run_job(testbed: Testbed, job: Job) -> JobResult:
    with temporary_folder() as folder:
        return testbed.run(job, folder)


def run_trial(
    testbed: Testbed, target: str, facts: NodeFacts, order: bench.TrialOrder
) -> tuple[bench.TrialDone, dict[str, bytes]]:
    """Run one trial; with the first of a point the files that it left."""
    with temporary_folder() as folder:
        done = bench.Bench(bench.open_target(target), testbed, facts).trial(order, folder)
        return done, _files(folder) if order.attempt == 0 else {}


def simulate(
    testbed: Testbed, target: str, facts: NodeFacts, planned: PlannedPoint, options: TrialOptions
) -> dict[str, Any] | None:
    with temporary_folder() as folder:
        return bench.Bench(bench.open_target(target), testbed, facts).simulate(planned, options, folder)


def _files(folder: Path) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    left = MAX_FILES_BYTES
    for path in sorted(folder.iterdir()):
        if path.is_file() and not path.is_symlink() and path.stat().st_size <= left:
            found[path.name] = path.read_bytes()
            left -= len(found[path.name])
    return found


_opened = lru_cache(maxsize=1)(bench.open_testbed)
"""The testbed of this worker, which may hold a connection."""


def run_errand(request: bytes) -> bytes:
    """Do an errand; runs in a worker. Failures of p4perf are answers like others; what is none is raised.

    The request holds the version of p4perf, the address of the testbed, and the errand, pickled.
    """
    version, address, packed = pickle.loads(request)  # noqa: S301 - from the process that we work for
    try:
        if version != __version__:
            raise TestbedError(f"it has p4perf {__version__}, but {version} is used by the run")
        try:
            errand: Errand = pickle.loads(packed)  # noqa: S301
        except Exception as error:
            what = f"it cannot read its task: {type(error).__name__}: {error}"
            raise TestbedError(what, hint="install the same plug-ins on all workers") from error
        answer = errand(_opened(address))
    except P4PerfError as error:
        answer = error
    return pickle.dumps(answer)


OPTIONS = f" --nthreads 1 --resources {RESOURCE}=1"
"""Options that ``dask worker`` needs."""

LOOK_S = 1.0
"""Interval at which workers that come and go are looked for."""

MEET_S = 20.0
"""Delay after which a note names the workers that are waited for."""


class Crew(Testbed):
    """All devices of a scheduler, as one place: what one of them does is done by any.

    Args:
        address: testbed of the workers that name none, on the machine of each.
        pattern: only workers with names that match.

    Raises:
        UsageError: workers have the same name or node, or offer not one device each.
        TestbedError: no worker has a device, one cannot be used, or they are different machines.
    """

    name = "cluster"
    summary = "workers of a Dask scheduler, each with a device"

    def __init__(
        self,
        scheduler: Scheduler,
        address: str = "local",
        pattern: str = "*",
        note: Callable[[str], Any] = lambda text: None,
    ) -> None:
        self.scheduler, self._address, self._pattern, self.note = scheduler, address, pattern, note
        self.devices: dict[str, DeviceOfCrew] = {}
        self._coming: dict[str, tuple[WorkerInfo, Task]] = {}
        self._refused: set[str] = set()
        self._first: DeviceOfCrew | None = None
        self._seen_s = time.monotonic()
        self._meet()

    # --- who is there

    def _meet(self) -> None:
        """Wait until all workers that are there have introduced themselves."""
        found = self._look_for_new()
        if not found:
            which = "" if self._pattern == "*" else f" and matches {self._pattern!r}"
            raise TestbedError(
                f"no worker of the Dask scheduler at {self.scheduler.address} has the resource {RESOURCE}{which}",
                hint=self.scheduler.hint,
            )
        note_s = time.monotonic() + MEET_S
        introduced: list[DeviceOfCrew] = []
        while self._coming:
            introduced += [self._introduced(*pair) for pair in self._arrived()]
            self._forget(self.scheduler.workers())
            if self._coming and time.monotonic() > note_s:
                note_s = float("inf")
                names = ", ".join(worker.name for worker, _ in self._coming.values())
                self.note(f"waiting for {names}: busy with another run, or slow to reach")
        for device in sorted(introduced, key=lambda d: d.name):
            self._admit(device)
        if not self.devices:
            raise TestbedError(f"all workers of the Dask scheduler at {self.scheduler.address} have gone")

    def look(self) -> set[str]:
        """Learn which devices came and which have gone; the names of those that have gone."""
        workers = self.scheduler.workers()
        self._forget(workers)
        if self.devices:
            self._seen_s = time.monotonic()
        gone = {name for name, device in self.devices.items() if device.worker not in workers}
        for name in gone:
            del self.devices[name]
        self._look_for_new(workers)
        for worker, task in self._arrived(0):
            try:
                device = self._introduced(worker, task)
                self._admit(device)
            except P4PerfError as error:
                self._refused.add(worker.address)
                self.note(f"worker {worker.name} came and is left out: {error.message}")
            else:
                self.note(f"{device.name} takes part")
        return gone

    @property
    def alone_s(self) -> float:
        """Time without any device, in seconds."""
        return 0.0 if self.devices else time.monotonic() - self._seen_s

    def dismiss(self, name: str) -> None:
        """Give a device no more work, until its worker starts again."""
        self._refused.add(self.devices.pop(name).worker)

    def _admit(self, device: DeviceOfCrew) -> None:
        if said := self._objection(device):
            raise said
        self.devices[device.name] = device
        self._first = self._first or device

    def _look_for_new(self, workers: Mapping[str, WorkerInfo] | None = None) -> int:
        """Ask new workers for their introduction. Returns the number of introductions that are awaited."""
        known = {device.worker for device in self.devices.values()} | self._refused
        for address, worker in (self.scheduler.workers() if workers is None else workers).items():
            if address in known or address in self._coming or RESOURCE not in worker.resources:
                continue
            if fnmatch.fnmatchcase(worker.name, self._pattern):
                self._coming[address] = worker, self._send(address, self._testbed_of(worker), introduce)
        return len(self._coming)

    def _arrived(self, timeout_s: float = LOOK_S) -> list[tuple[WorkerInfo, Task]]:
        wait([task.future for _, task in self._coming.values()], timeout_s)
        done = [address for address, (_, task) in self._coming.items() if task.future.done()]
        return [self._coming.pop(address) for address in done]

    def _forget(self, workers: Mapping[str, WorkerInfo]) -> None:
        """Stop waiting for workers that left before they introduced themselves."""
        for address in [a for a in self._coming if a not in workers]:
            self._coming.pop(address)[1].drop()
        self._refused &= set(workers)

    def _testbed_of(self, worker: WorkerInfo) -> str:
        """The testbed that the name of a worker says behind ``=``, or that of all."""
        return worker.name.partition("=")[2] or self._address

    def _introduced(self, worker: WorkerInfo, task: Task) -> DeviceOfCrew:
        try:
            said: DeviceOfCrew = self.answer(task)
        except P4PerfError as error:
            raise type(error)(f"worker {worker.name}: {error.message}", hint=error.hint) from error
        name = worker.name.partition("=")[0] if worker.name != worker.address else said.host
        if worker.resources[RESOURCE] != 1:
            raise UsageError(
                f"worker {worker.name} has {worker.resources[RESOURCE]:g} of the resource {RESOURCE}, and two points "
                "would share its device",
                hint=self.scheduler.hint,
            )
        return replace(said, name=name, worker=worker.address, testbed=self._testbed_of(worker))

    def _objection(self, device: DeviceOfCrew) -> P4PerfError | None:
        """Why a device cannot join those that are there already."""
        if device.name in self.devices:
            return UsageError(
                f"two workers are called {device.name}", hint="give each a name of its own: dask worker --name NAME"
            )
        for other in self.devices.values():
            places = [(d.host, d.record.get("node"), d.record.get("host")) for d in (device, other)]
            # Of other machines, other nodes may have the same names and addresses, in networks of their own.
            if places[0][1] is not None and places[0] == places[1]:
                return UsageError(
                    f"workers {other.name} and {device.name} both measure on node {places[0][1]} at {places[0][2]}",
                    hint="one worker for each device; nodes that are not the same get different names",
                )
        if self._first is None:
            return None
        pairs = {f: (self._first.facts.text(f), device.facts.text(f)) for f in IDENTITY_FACTS}
        changed = "; ".join(f"{f} is {a!r} and {b!r}" for f, (a, b) in pairs.items() if a != b)
        if not changed:
            return None
        return TestbedError(
            f"{self._first.name} and {device.name} are different machines, whose numbers do not mix: {changed}",
            hint="choose workers of one kind with --workers PATTERN, make a run for each kind, and p4perf compare them",
        )

    # --- work

    def send(self, device: DeviceOfCrew, errand: Errand) -> Task:
        return self._send(device.worker, device.testbed, errand)

    def _send(self, worker: str, testbed: str, errand: Errand) -> Task:
        where = {"workers": [worker], "allow_other_workers": False, "resources": {RESOURCE: 1}}
        request = pickle.dumps((__version__, testbed, pickle.dumps(errand)))
        return self.scheduler.submit(run_errand, request, **where)

    def answer(self, task: Task) -> Any:
        """What came of a finished errand; a failure of p4perf is raised as it was."""
        from distributed import KilledWorker

        try:
            packed = task.future.result()
        except (CancelledError, OSError) as error:
            raise self.scheduler.lost() from error
        except KilledWorker as error:
            raise TestbedError("its worker died again and again", hint="see the logs of the workers") from error
        found = pickle.loads(packed)  # noqa: S301 - from our own workers
        if isinstance(found, P4PerfError):
            raise found
        return found

    def close(self) -> None:
        self.scheduler.close()

    # --- as a testbed

    @property
    @override
    def label(self) -> str:
        labels = sorted({device.label for device in self._known})
        kinds = sorted({label.partition(":")[0] for label in labels})
        return labels[0] if len(labels) == 1 else "+".join(kinds)

    @property
    def _known(self) -> list[DeviceOfCrew]:
        known = {d.name: d for d in (self._first, *self.devices.values()) if d is not None}
        return list(known.values())

    @property
    @override
    def record(self) -> Mapping[str, str]:
        return {"address": self._address, "scheduler": self.scheduler.address}

    @override
    def problems(self) -> tuple[Problem, ...]:
        return ()

    @override
    def facts(self) -> NodeFacts:
        known = self._known
        free = [pages for d in known if (pages := d.facts.number("hugepages_free")) is not None]
        facts = dict(known[0].facts.values)
        return NodeFacts({**facts, "hugepages_free": str(min(free))} if free else facts)

    @override
    def build(self, plan: BuildPlan) -> Path:
        path: Path = self._ask(methodcaller("build", plan))
        return path

    @override
    def run(self, job: Job, folder: Path) -> JobResult:
        result: JobResult = self._ask(partial(run_job, job=job))
        return result

    def _ask(self, errand: Errand) -> Any:
        self.look()
        if not self.devices:
            raise TestbedError(f"all workers of the Dask scheduler at {self.scheduler.address} have gone")
        device = next(iter(self.devices.values()))
        task = self.send(device, errand)
        while not task.future.done():
            wait([task.future], LOOK_S)
            if device.name in self.look():
                task.drop()
                raise TestbedError(f"worker {device.name} has gone")
        return self.answer(task)


def open_crew(
    scheduler: str,
    address: str,
    pattern: str | None = None,
    note: Callable[[str], Any] = lambda text: None,
    tls: Path | None = None,
) -> Crew:
    """The devices of the scheduler at that address; ``tls`` is a folder of certificates."""
    load_plugin("p4perf.testbeds", address.partition(":")[0])
    connection = Scheduler(scheduler, OPTIONS, tls)
    try:
        return Crew(connection, address, pattern or "*", note)
    except BaseException:
        connection.close()
        raise
