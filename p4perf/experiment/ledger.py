"""What has been measured of each point so far, and what is still needed."""

from __future__ import annotations

import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from p4perf.errors import MeasurementError
from p4perf.evaluation.load.records import summarise_load
from p4perf.experiment.load import LoadPlan
from p4perf.experiment.planning import PlannedPoint
from p4perf.results.table import TESTBED, TRIAL_COLUMNS, VALUE_COLUMNS
from p4perf.specs.schema import TrialsSpec
from p4perf.targets.base import MetricValue, Target, TrialSummary
from p4perf.targets.roles import measuring

DISAGREEMENT = 0.10
"""Starts of a point whose costs differ by more than this share of their median call for further starts."""

DISAGREEMENT_CYCLES = 2.0
"""Costs over the baseline that are not further apart than this, in cycles per packet, agree all the same."""

EXTRA_STARTS = 2
"""Most further starts."""

MAX_FAILURES = 2
"""Most starts of a point that may die or hang before the point fails."""

SIMULATION = "simulation"

MOVED = "moved"
"""Flag of a trial whose point was measured anew elsewhere."""

TrialEntry = Mapping[str, Any]
"""One line of a journal: ``trial``, and ``record``, ``load`` or both, or ``failure``; or ``simulation``, its counts.

``testbed`` is the name of the testbed where a run has several.
"""


@dataclass(frozen=True, slots=True)
class PointStatus:
    """Where a point stands. ``failure`` is why it can never be measured, None if it can."""

    attempts: int
    accepted: int
    needed: int
    failure: str | None

    @property
    def open(self) -> bool:
        return self.needed > 0 and self.failure is None


class Ledger:
    """The trials of all points, judged with the gate ratio of their testbed that is known by now.

    All trials of a point that count are of one testbed, that of the last: a point that was measured anew elsewhere
    leaves behind what it had, which then has the flag :data:`MOVED`.
    """

    def __init__(
        self,
        target: Target,
        trials: TrialsSpec,
        headline: str,
        loads: Mapping[str, LoadPlan] | None = None,
        own: str = "",
    ) -> None:
        self._target, self._loads, self._spec, self._headline = target, loads or {}, trials, headline
        self._entries: dict[str, list[TrialEntry]] = {}
        self._summaries: dict[str, list[TrialSummary | None]] = {}
        self._simulations: dict[str, tuple[MetricValue, ...]] = {}
        self.own = own
        self._gate_ratios: dict[str, float] = {}

    def gate_ratio(self, testbed: str | None = None) -> float | None:
        """The gate ratio of a testbed, by default that of trials that do not name theirs; None if not known yet."""
        return self._gate_ratios.get(self.own if testbed is None else testbed)

    def load(self, key: str, entries: Sequence[TrialEntry]) -> None:
        self._entries[key] = []
        self._summaries[key] = []
        for entry in entries:
            if SIMULATION in entry:
                self.simulated(key, entry)
            else:
                self.add(key, entry)

    def simulated(self, key: str, entry: TrialEntry) -> None:
        values = entry[SIMULATION].get("metrics", [])
        self._simulations[key] = tuple(MetricValue(str(m), float(v), str(u)) for m, v, u in values)

    def simulation(self, key: str) -> tuple[MetricValue, ...] | None:
        """What a simulation of a point counted: nothing if it failed, None if there was none yet."""
        return self._simulations.get(key)

    def add(self, key: str, entry: TrialEntry) -> TrialSummary | None:
        """Add a trial; its summary, or None if it failed.

        A trial that saw a less disturbed core than all before lowers the gate ratio, and all trials are judged anew.
        """
        record = entry.get("record")
        if record is not None:
            self.observe(measuring(self._target).gate_ratio(record), self._testbed_of(entry))
        summary = self._summary(key, entry)
        # Summarising takes a while, and an interrupt may not leave an entry without its summary.
        self._entries[key].append(entry)
        self._summaries[key].append(summary)
        return summary

    def observe(self, ratio: float | None, testbed: str | None = None) -> None:
        """Learn a gate ratio of a testbed, from a trial or a calibration."""
        name = self.own if testbed is None else testbed
        known = self._gate_ratios.get(name)
        if ratio is None or (known is not None and ratio >= known):
            return
        self._gate_ratios[name] = ratio
        # Below a tenth of a percent nothing changes, and every trial would be judged again and again.
        if known is not None and ratio < 0.999 * known:
            for key, entries in self._entries.items():
                self._summaries[key] = [self._summary(key, e) for e in entries[: len(self._summaries[key])]]

    def testbed(self, key: str) -> str | None:
        """The testbed of a point, which is that of its last trial; None if it has no trial yet."""
        entries = self._entries[key]
        return self._testbed_of(entries[-1]) if entries else None

    def _testbed_of(self, entry: TrialEntry) -> str:
        return str(entry.get("testbed", self.own))

    def _summary(self, key: str, entry: TrialEntry) -> TrialSummary | None:
        record, offered = entry.get("record"), entry.get("load")
        parts = []
        try:
            if record is not None:
                ratio = self.gate_ratio(self._testbed_of(entry))
                parts.append(measuring(self._target).summarise(record, ratio))
            if offered is not None:
                plan = self._loads[key]
                parts.append(summarise_load(offered, plan.metrics, single=plan.single))
        except MeasurementError:
            return None
        if not parts or "failure" in entry:
            return None
        flags = {flag for part in parts for flag in part.flags}
        metrics = tuple(metric for part in parts for metric in part.metrics)
        return TrialSummary(metrics, all(part.accepted for part in parts), tuple(sorted(flags)))

    def trials(self, key: str) -> list[tuple[TrialEntry, TrialSummary | None]]:
        """All trials of a point with their summaries; those of a testbed that it has left are not accepted."""
        here = self.testbed(key)
        found: list[tuple[TrialEntry, TrialSummary | None]] = []
        for entry, summary in zip(self._entries[key], self._summaries[key], strict=True):
            if summary is not None and self._testbed_of(entry) != here:
                summary = TrialSummary(summary.metrics, False, tuple(sorted({*summary.flags, MOVED})))
            found.append((entry, summary))
        return found

    def flags(self, key: str) -> tuple[str, ...]:
        return tuple(sorted({flag for _, s in self.trials(key) if s is not None for flag in s.flags}))

    def table(self, points: Sequence[PlannedPoint], testbed: str) -> pd.DataFrame:
        """The tidy table: all metric values of all trials that ran to their end, in the order of points and trials.

        Columns: ``point`` (hash), ``point_index``, ``repetition``, ``attempt``, ``testbed``, one per swept variable,
        ``metric``, ``value``, ``unit``, ``accepted`` and ``flags`` (comma-separated).
        """
        variables = list(points[0].point.values) if points else []
        rows: list[tuple[Any, ...]] = []
        for planned in points:
            point, swept = (planned.key, planned.point.index), tuple(planned.point.values[v] for v in variables)
            for entry, summary in self.trials(planned.key):
                if summary is None:
                    continue
                trial, flags = entry["trial"], ",".join(summary.flags)
                head = (*point, trial["repetition"], trial["attempt"], str(entry.get(TESTBED, testbed)), *swept)
                rows += [(*head, m.metric, m.value, m.unit, summary.accepted, flags) for m in summary.metrics]
            head = (*point, 0, 0, self.testbed(planned.key) or testbed, *swept)
            counted = self.simulation(planned.key) or ()
            rows += [(*head, m.metric, m.value, m.unit, True, "simulated") for m in counted]
        return pd.DataFrame(rows, columns=[*TRIAL_COLUMNS, TESTBED, *variables, *VALUE_COLUMNS])

    def status(self, key: str) -> PointStatus:
        testbed = self.testbed(key)
        here = [(e, s) for e, s in self.trials(key) if self._testbed_of(e) == testbed]
        failures = [e["failure"] for e, _ in here if "failure" in e]
        accepted = [s for _, s in here if s is not None and s.accepted]
        failure = next((f["message"] for f in failures if f.get("final")), None)
        needed = self._spec.repetitions - len(accepted)
        if needed <= 0 and self._disagree(accepted):
            needed = self._spec.repetitions + EXTRA_STARTS - len(accepted)
        left = self._spec.repetitions * self._spec.max_attempts - len(here)
        if failure is None and (len(failures) > MAX_FAILURES or (left <= 0 and 0 < len(failures) == len(here))):
            failure = failures[-1]["message"]
        return PointStatus(len(here), len(accepted), max(0, min(needed, left)), failure)

    def _disagree(self, accepted: Sequence[TrialSummary]) -> bool:
        values = [m.value for s in accepted for m in s.metrics if m.metric == self._headline]
        if len(values) < 2:
            return False
        middle = statistics.median(values)
        least = DISAGREEMENT_CYCLES if self._headline.startswith("cost_") else 0.0
        return max(values) - min(values) > max(DISAGREEMENT * abs(middle), least)

    def next_trial(self, points: Sequence[PlannedPoint]) -> PlannedPoint | None:
        """The point to measure next, None if all are done.

        All points get their first trial before one gets its second; within such a round the order is random, from the
        seed of the spec, and the same after a resume.
        """
        waiting = [(self.status(p.key).attempts, p) for p in points if self.status(p.key).open]
        if not waiting:
            return None
        round_number = min(attempts for attempts, _ in waiting)
        return self._in_order(points, [p for attempts, p in waiting if attempts == round_number], round_number)[0]

    def next_trials(self, points: Sequence[PlannedPoint]) -> list[PlannedPoint]:
        """All trials that are needed, as far as is known by now: a point as often as it needs some, in that order."""
        needed = {p.key: status.needed for p in points if (status := self.status(p.key)).open}
        begun = min((self.status(key).attempts for key in needed), default=0)
        found = []
        for number in range(max(needed.values(), default=0)):
            candidates = [p for p in points if needed.get(p.key, 0) > number]
            found += self._in_order(points, candidates, begun + number)
        return found

    def next_attempt(self, key: str) -> int:
        return max((int(entry["trial"]["attempt"]) + 1 for entry in self._entries[key]), default=0)

    def accepted_attempts(self, key: str) -> set[int]:
        return {int(entry["trial"]["attempt"]) for entry, s in self.trials(key) if s is not None and s.accepted}

    def has_attempt(self, key: str, attempt: int) -> bool:
        return any(entry["trial"]["attempt"] == attempt for entry in self._entries[key])

    def _in_order(
        self, points: Sequence[PlannedPoint], candidates: list[PlannedPoint], round_number: int
    ) -> list[PlannedPoint]:
        if self._spec.order == "sequential":
            return candidates
        rank = [p.key for p in points]
        random.Random(f"{self._spec.seed}:{round_number}").shuffle(rank)  # noqa: S311
        position = {key: n for n, key in enumerate(rank)}
        return sorted(candidates, key=lambda p: position[p.key])
