"""What has been measured of each point so far, and what is still needed."""

from __future__ import annotations

import math
import random
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from p4perf.errors import MeasurementError
from p4perf.evaluation.load.records import summarise_load
from p4perf.experiment.adaptive import Chooser, Judgement, Start
from p4perf.experiment.load import LoadPlan
from p4perf.experiment.planning import PlannedPoint
from p4perf.models.templates import FloatArray
from p4perf.results.table import STARTS_DISAGREE, TESTBED, TRIAL_COLUMNS, VALUE_COLUMNS
from p4perf.specs.schema import TrialsSpec
from p4perf.targets.base import MetricValue, Target, TrialRecord, TrialSummary
from p4perf.targets.roles import measuring
from p4perf.targets.windows import GateRatios, Undisturbed

if TYPE_CHECKING:
    import pandas as pd

DOUBT = 0.05
"""Chance with which starts of the same cost are said to disagree."""

ORDINARY_SCATTER = 0.01
"""Standard deviation of starts beyond that of their windows, relative to the cycles of the whole program: no two lie at
the same place in memory."""

UNKNOWN_SCATTER = 0.033
"""The same where windows do not show the errors of starts: three of them may be 10 % apart."""

MOST_STARTS = 2
"""Starts that disagree are made up to this many times the repetitions."""

STRONG = 6.0
"""Difference of criteria that counts as strong evidence (Raftery 1995, Sociological Methodology 25, 139)."""

FEWEST_OF_STATES = 4
"""Of fewer starts nothing is said of two states."""

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


def disagree(values: Sequence[float], errors: Sequence[float]) -> bool:
    """Whether starts are further apart than their errors explain: the machine or the program had several states.

    For n starts with values ``v_i`` and standard errors ``e_i`` the statistic (Cochran 1954, The Combination of
    Estimates from Different Experiments, Biometrics 10, 101)

        Q = sum(w_i (v_i - m)^2),  w_i = 1 / e_i^2,  m = sum(w_i v_i) / sum(w_i)

    is distributed as chi-squared with n - 1 degrees of freedom if all starts have the same cost. They disagree if Q
    exceeds what has a chance of :data:`DOUBT`.
    """
    v, e = np.asarray(values, dtype=np.float64), np.asarray(errors, dtype=np.float64)
    if v.size < 2 or not (np.isfinite(v).all() and (e > 0).all()):
        return False
    w = 1 / e**2
    q = float(np.sum(w * (v - np.average(v, weights=w)) ** 2))
    from scipy.special import chdtrc  # slow to load

    return bool(chdtrc(v.size - 1, q) < DOUBT)


def two_states(values: Sequence[float]) -> tuple[FloatArray, FloatArray] | None:
    """Starts in two states, the faster first; None if one state describes them as well.

    Of all cuts of the ascending values that is the one with the least variance of their logarithms within both parts
    (Fisher 1958, On Grouping for Maximum Homogeneity, JASA 53, 789). Two normal distributions with one spread, at least
    :data:`ORDINARY_SCATTER`, describe the starts better than one if their criterion of Schwarz is lower by
    :data:`STRONG`.
    """
    ascending = np.sort(np.asarray(values, dtype=np.float64))
    n = ascending.size
    if n < FEWEST_OF_STATES or ascending[0] <= 0:
        return None

    def criterion(*groups: FloatArray) -> float:
        within = sum(float(np.sum((np.log(g) - np.log(g).mean()) ** 2)) for g in groups) / n
        variance = max(within, ORDINARY_SCATTER**2)
        mixed = -2 * sum(g.size * math.log(g.size / n) for g in groups)
        return n * math.log(variance) + n * within / variance + mixed + 2 * len(groups) * math.log(n)

    best = min((np.split(ascending, [cut]) for cut in range(1, n)), key=lambda groups: criterion(*groups))
    return (best[0], best[1]) if criterion(*best) < criterion(ascending) - STRONG else None


class Ledger:
    """The trials of all points, judged with the gate ratio of their testbed that is known by now.

    All trials of a point that count are of one testbed, that of the last: a point that was measured anew elsewhere
    leaves behind what it had, which then has the flag :data:`MOVED`.

    With a ``design`` only the trials are wanted that it chooses, of those that a full sweep has.
    """

    def __init__(
        self,
        target: Target,
        trials: TrialsSpec,
        headline: str,
        loads: Mapping[str, LoadPlan] | None = None,
        own: str = "",
        design: Chooser | None = None,
    ) -> None:
        self._target, self._loads, self._spec, self._headline = target, loads or {}, trials, headline
        self._entries: dict[str, list[TrialEntry]] = {}
        self._summaries: dict[str, list[TrialSummary | None]] = {}
        self._simulations: dict[str, tuple[MetricValue, ...]] = {}
        self.own = own
        self._design = design
        self._judged: Judgement | None = None
        self._gate_ratios: dict[str, GateRatios] = defaultdict(GateRatios)

    def gate_ratio(self, testbed: str | None = None) -> float | None:
        """The gate ratio of a testbed at its last clock, None if not known yet; default: that of trials without one."""
        return self._gate_ratios[self.own if testbed is None else testbed].at()

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

        A trial that saw a less disturbed core than all before at its clock lowers the gate ratio, and all trials are
        judged anew.
        """
        record = entry.get("record")
        if record is not None:
            self.observe(self._seen(record), self._testbed_of(entry))
        summary = self._summary(key, entry)
        # Summarising takes a while, and an interrupt may not leave an entry without its summary.
        self._entries[key].append(entry)
        self._summaries[key].append(summary)
        self._judged = None
        return summary

    def _seen(self, record: TrialRecord) -> Undisturbed | None:
        try:
            return measuring(self._target).undisturbed(record)
        except MeasurementError:
            return None

    def observe(self, seen: Undisturbed | None, testbed: str | None = None) -> None:
        """Learn what a trial or a calibration saw of the undisturbed core of a testbed."""
        if seen is not None and self._gate_ratios[self.own if testbed is None else testbed].observe(seen):
            self._judged = None
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
                seen = self._seen(record)
                ratios = self._gate_ratios[self._testbed_of(entry)]
                ratio = ratios.at() if seen is None else ratios.at(seen.chain_tsc)
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
        """All trials of a point with their summaries; those of a testbed that it has left are not accepted.

        If the accepted ones disagree, they have the flag :data:`~p4perf.results.table.STARTS_DISAGREE`.
        """
        here = self.testbed(key)
        found: list[tuple[TrialEntry, TrialSummary | None]] = []
        for entry, summary in zip(self._entries[key], self._summaries[key], strict=True):
            if summary is not None and self._testbed_of(entry) != here:
                summary = replace(_flagged(summary, MOVED), accepted=False)
            found.append((entry, summary))
        if not self._disagree([s for _, s in found if s is not None and s.accepted]):
            return found
        return [(e, s if s is None or not s.accepted else _flagged(s, STARTS_DISAGREE)) for e, s in found]

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
        import pandas as pd

        return pd.DataFrame(rows, columns=[*TRIAL_COLUMNS, TESTBED, *variables, *VALUE_COLUMNS])

    def status(self, key: str) -> PointStatus:
        testbed = self.testbed(key)
        here = [(e, s) for e, s in self.trials(key) if self._testbed_of(e) == testbed]
        failures = [e["failure"] for e, _ in here if "failure" in e]
        accepted = [s for _, s in here if s is not None and s.accepted]
        failure = next((f["message"] for f in failures if f.get("final")), None)
        needed = self._spec.repetitions - len(accepted)
        if needed <= 0 and any(STARTS_DISAGREE in s.flags for s in accepted):
            needed = MOST_STARTS * self._spec.repetitions - len(accepted)
        left = self._spec.repetitions * self._spec.max_attempts - len(here)
        if failure is None and (len(failures) > MAX_FAILURES or (left <= 0 and 0 < len(failures) == len(here))):
            failure = failures[-1]["message"]
        return PointStatus(len(here), len(accepted), max(0, min(needed, left)), failure)

    def _disagree(self, accepted: Sequence[TrialSummary]) -> bool:
        """Whether the starts of a point disagree in the headline metric."""
        known = [{m.metric: m for m in summary.metrics} for summary in accepted]
        starts = [metrics[self._headline] for metrics in known if self._headline in metrics]
        if len(starts) < 2:
            return False
        # A cost scatters with the program that it is a part of.
        whole = self._headline.removeprefix("cost_")
        sizes = [metrics[whole].value for metrics in known if whole in metrics] or [m.value for m in starts]
        size = abs(statistics.median(sizes))
        errors = [
            UNKNOWN_SCATTER * size if m.error is None else math.hypot(m.error, ORDINARY_SCATTER * size) for m in starts
        ]
        return disagree([m.value for m in starts], errors)

    def judgement(self) -> Judgement | None:
        """What the design makes of all trials so far; None without a design."""
        if self._design is not None and self._judged is None:
            statuses = {key: self.status(key) for key in self._entries}
            closed = [key for key, status in statuses.items() if not status.open and not status.accepted]
            self._judged = self._design.judge([s for key in self._entries for s in self._starts(key)], closed)
        return self._judged

    def _starts(self, key: str) -> Iterator[Start]:
        for entry, summary in self.trials(key):
            metrics = summary.metrics if summary is not None and summary.accepted else ()
            value = next((m.value for m in metrics if m.metric == self._headline), None)
            yield Start(key, value, float(entry.get("duration_s", 0.0)), float(entry.get("build_s", 0.0)))

    def waiting(self, points: Sequence[PlannedPoint]) -> list[PlannedPoint]:
        """Those of these points that may be measured next."""
        judgement, still = self.judgement(), [p for p in points if self.status(p.key).open]
        if judgement is None:
            return still
        wanted = {o.key for o in judgement.wanted({p.key for p in still})}
        return [p for p in still if p.key in wanted]

    def due(self, points: Sequence[PlannedPoint]) -> list[PlannedPoint]:
        """Those of these points that are measured whatever the trials before them say."""
        judgement, still = self.judgement(), [p for p in points if self.status(p.key).open]
        if judgement is None:
            return still
        first = {o.key for o in judgement.due({p.key for p in still})}
        return [p for p in still if p.key in first]

    def next_trial(self, points: Sequence[PlannedPoint]) -> PlannedPoint | None:
        """The point to measure next, None if all are done.

        Without a design, all points get their first trial before one gets its second; within such a round the order is
        random, from the seed of the spec, and the same after a resume.
        """
        waiting = {p.key: p for p in self.waiting(points)}
        if not waiting:
            return None
        if (judgement := self.judgement()) is not None:
            chosen = judgement.choose(waiting)
            return None if chosen is None else waiting[chosen]
        attempts = {key: self.status(key).attempts for key in waiting}
        round_number = min(attempts.values())
        candidates = [p for key, p in waiting.items() if attempts[key] == round_number]
        return self._in_order(points, candidates, round_number)[0]

    def next_trials(self, points: Sequence[PlannedPoint]) -> list[PlannedPoint]:
        """All trials that are needed, as far as is known by now: a point as often as it needs some, in that order.

        A design wants one more of each point that it may choose.
        """
        if self._design is not None:
            return self._in_order(
                points, self.due(points) or self.waiting(points), sum(map(len, self._entries.values()))
            )
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


def _flagged(summary: TrialSummary, flag: str) -> TrialSummary:
    return replace(summary, flags=tuple(sorted({*summary.flags, flag})))
