"""The conductor of a cluster: it measures on several devices at once, a worker of Dask for each.

This process alone keeps the run: its lock, its journals, its ledger. It gives each device that is free the trial that
comes next in the order of the ledger, and puts what comes back on disk. All trials of a point are made on one device,
so that they agree or disagree for its own reasons. If that does not come back in time, its points begin anew elsewhere.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, wait
from dataclasses import dataclass
from functools import partial
from typing import Any

from typing_extensions import override

from p4perf.errors import BuildError, DataError, MeasurementError, P4PerfError, StorageError, TestbedError
from p4perf.evaluation.fitting import cluster
from p4perf.evaluation.fitting.cluster import Task
from p4perf.experiment.bench import OWN, TrialDone, TrialOrder, begin, only_same
from p4perf.experiment.conductor import SweepConductor
from p4perf.experiment.crew import LOOK_S, Crew, DeviceOfCrew, Errand, prepare, run_trial, simulate
from p4perf.experiment.ledger import Ledger
from p4perf.experiment.planning import PlannedPoint, plan_sweep
from p4perf.experiment.recorder import BUILD_LOG
from p4perf.records import counted
from p4perf.results.rundir import RECORD_FILES

AWAY_S = 30.0
"""The points of a device whose worker is gone for so long begin anew on another, in seconds."""

DEATHS = 3
"""Number of workers that may die while they measure a point before the point fails."""


@dataclass(frozen=True, slots=True)
class _Work:
    """What a device does at the moment; with ``order`` a trial, with ``planned`` alone a simulation, else preparing."""

    task: Task
    planned: PlannedPoint | None = None
    order: TrialOrder | None = None


class ClusterConductor(SweepConductor):
    _testbed: Crew

    @override
    def _start(self) -> None:
        self._busy: dict[str, _Work] = {}
        self._unbuildable: dict[str, dict[str, BuildError]] = {}
        """Failures of builds of every device that is prepared, by the key of the plan."""
        self._checked: set[str] = set()
        self._holders: dict[str, str] = {}
        self._gone_since: dict[str, float] = {}
        self._deaths: Counter[str] = Counter()
        self._failure: P4PerfError | None = None
        self._simulating = True
        self._crew = self._testbed
        self._places()
        self._open_record()
        for planned in self._points:
            if (holder := self._ledger.testbed(planned.key)) is not None:
                self._holders[_group(planned)] = holder
        self._record.planned()

    @override
    def _sweep(self) -> str:
        try:
            self._work()
        except TestbedError as error:
            command = f"p4perf resume {self._run.path} --scheduler {self._crew.scheduler.address}"
            hint = error.hint or f"everything finished is on disk; continue with: {command}"
            raise TestbedError(error.message, hint=hint) from error
        return ""

    @override
    def _end(self) -> None:
        for work in self._busy.values():
            work.task.drop()
        self._places(self._ledger)

    def _work(self) -> None:
        looked_s = -math.inf
        while True:
            now = time.monotonic()
            if now >= looked_s + LOOK_S:
                self._mourn(self._crew.look())
                looked_s = now
            self._hand_out()
            if not self._busy and not self._waiting() and not self._to_simulate():
                return
            if not self._crew.devices and self._failure is not None:
                raise TestbedError(f"no device is left; the last: {self._failure.message}")
            if not self._crew.devices and self._crew.alone_s > cluster.ALONE_S:
                raise TestbedError(
                    f"all workers of the Dask scheduler at {self._crew.scheduler.address} have gone, and none came "
                    f"back within {cluster.ALONE_S:.0f} s"
                )
            self._collect()

    # --- what is next

    def _waiting(self) -> list[PlannedPoint]:
        """Points that need another trial, for which there still is time."""
        return [] if self._late() else self._ledger.waiting(self._points)

    def _to_simulate(self) -> list[PlannedPoint]:
        return self._record.unsimulated() if self._simulating and not self._late() else []

    def _hand_out(self) -> None:
        for device in list(self._crew.devices.values()):
            if device.name in self._busy:
                continue
            if device.name not in self._unbuildable:
                self._prepare(device)
                continue
            while device.name not in self._busy and (planned := self._choose(device.name)) is not None:
                self._try(device, planned)
            if device.name not in self._busy and not self._waiting():
                self._simulate(device)

    def _choose(self, name: str) -> PlannedPoint | None:
        """The point that a device measures next, None if there is none for it."""
        taken = {_group(work.planned) for work in self._busy.values() if work.planned is not None}
        candidates = [
            p
            for p in self._waiting()
            if (group := _group(p)) not in taken and self._may_have(name, self._holders.get(group))
        ]
        return self._ledger.next_trial(candidates)

    def _may_have(self, name: str, holder: str | None) -> bool:
        """Whether a device may measure points that another one holds."""
        if holder is None or holder == name:
            return True
        # A run that was begun without a cluster has trials of a testbed that never comes.
        away_s = time.monotonic() - self._gone_since.get(holder, self._began_s)
        return holder not in self._crew.devices and (holder == self._ledger.own or away_s > AWAY_S)

    # --- what devices do

    def _send(
        self, device: DeviceOfCrew, errand: Errand, planned: PlannedPoint | None = None, order: TrialOrder | None = None
    ) -> None:
        self._busy[device.name] = _Work(self._crew.send(device, errand), planned, order)

    def _prepare(self, device: DeviceOfCrew) -> None:
        self._check(device)
        wanted = self._record.open_builds(ends=self._limit.ends)
        if wanted:
            self._progress.note(f"building {counted(len(wanted), 'program')} on {device.name}, unless built before")
        self._send(device, partial(prepare, plans=wanted, calibration=self._record.calibration()))

    def _check(self, device: DeviceOfCrew) -> None:
        """Plan the sweep for a device, too: what it would measure has to be the same."""
        if device.name in self._checked:
            return
        found = [p.key for p in plan_sweep(self._experiment, self._target, device.facts).points]
        if found != [p.key for p in self._points]:
            raise DataError(
                f"on {device.name} other programs would be measured than on the machine that the run was planned for",
                hint="install the same tools on all machines, or leave it out with --workers PATTERN",
            )
        self._checked.add(device.name)

    def _try(self, device: DeviceOfCrew, planned: PlannedPoint) -> None:
        order = self._record.order(planned, device.name)
        self._record.begin(planned)
        self._holders[_group(planned)] = device.name
        self._built_s = self._built_s or time.monotonic() - self._began_s
        if (error := self._unbuildable[device.name].get(planned.plan.build.key)) is not None:
            self._record.take(planned, TrialDone(begin(order), error=error), device.name)
            return
        errand = partial(run_trial, target=self._target.label, facts=device.facts, order=order)
        self._send(device, errand, planned, order)

    def _simulate(self, device: DeviceOfCrew) -> None:
        taken = {work.planned.key for work in self._busy.values() if work.planned is not None}
        planned = next((p for p in self._to_simulate() if p.key not in taken), None)
        if planned is not None:
            options = self._record.options(self._experiment.spec.trials.seed, device.name)
            target, facts = self._target.label, device.facts
            errand = partial(simulate, target=target, facts=facts, planned=planned, options=options)
            self._send(device, errand, planned)

    # --- what comes back

    def _collect(self) -> None:
        """Take in what is finished, after a short wait for at least one device."""
        futures = [work.task.future for work in self._busy.values()]
        if not futures:
            time.sleep(LOOK_S)
            return
        wait(futures, LOOK_S, FIRST_COMPLETED)
        for name, work in list(self._busy.items()):
            if work.task.future.done():
                del self._busy[name]
                self._answered(name, work)

    def _answered(self, name: str, work: _Work) -> None:
        try:
            answer = self._crew.answer(work.task)
        except (TestbedError, StorageError) as error:
            # This says nothing about the point, and the other devices may continue.
            self._crew.scheduler.workers()
            self._failure = error
            if name in self._crew.devices:
                self._crew.dismiss(name)
            self._leave(name)
            self._progress.note(f"{name} is left out from now on: {error.message}")
            return
        except P4PerfError as error:
            raise type(error)(f"on {name}: {error.message}", key=error.key, hint=error.hint) from error
        if work.order is not None:
            self._tried(name, work.order, answer)
        elif work.planned is not None:
            self._simulating = answer is not None
            if answer is not None:
                self._record.simulated(work.planned, answer)
        else:
            self._unbuildable[name], calibration = answer
            if calibration is not None:
                self._record.calibrated(calibration, name)
            self._record.testbeds = len(self._unbuildable)

    def _tried(self, name: str, order: TrialOrder, answer: Any) -> None:
        done, files = answer
        for file, data in files.items():
            if "/" not in file and not file.startswith(".") and file not in (*RECORD_FILES, BUILD_LOG):
                self._run.write_point_file(order.planned.key, file, data)
        self._record.take(order.planned, done, name)

    def _mourn(self, gone: set[str]) -> None:
        """Repeat the work of devices whose worker has gone."""
        for name in gone:
            self._leave(name)
            work = self._busy.pop(name, None)
            if work is not None:
                work.task.drop()
            if work is None or work.order is None:
                self._progress.note(f"the worker of {name} has gone")
                continue
            planned = work.order.planned
            self._deaths[planned.key] += 1
            note = f"the worker of {name} has gone while it measured {planned.label}: it is measured again"
            self._progress.note(note)
            if self._deaths[planned.key] >= DEATHS:
                error = MeasurementError(f"{DEATHS} died while they measured it", key="workers")
                self._record.take(planned, TrialDone(begin(work.order), error=error), name)

    def _leave(self, name: str) -> None:
        self._gone_since[name] = time.monotonic()
        self._unbuildable.pop(name, None)
        self._record.testbeds = max(1, len(self._unbuildable))

    def _places(self, ledger: Ledger | None = None) -> None:
        """Note the devices in the manifest, with their gate ratios, and which of them is the one of the beginning."""
        manifest = self._run.record()
        places = {name: dict(place) for name, place in manifest.places.items()}
        for device in self._crew.devices.values():
            places[device.name] = {"gate_ratio": places.get(device.name, {}).get("gate_ratio"), **device.place}
        if ledger is not None:
            for name, place in places.items():
                place["gate_ratio"] = ledger.gate_ratio(name)
        own = manifest.place.get(OWN) or only_same(places, manifest.place)
        self._run.update_manifest({"places": places, "place": {**manifest.place, **({OWN: own} if own else {})}})


def _group(planned: PlannedPoint) -> str:
    """Points that share the search for a throughput are measured on one device, one after another."""
    return planned.search_key or planned.key
