"""What a throughput search is: it asks for trials at loads of its choice and says which load a device still carries.

The terms are those of RFC 2544 and of the draft draft-ietf-bmwg-mlrsearch. A *load* is offered for a *trial*; the loss
ratio of the trial meets a *goal* or exceeds it. A load is a *lower bound* of a goal when enough of its trials meet the
goal, an *upper bound* when too many exceed it. The non-drop rate (NDR) is the lower bound of the goal without any loss,
the partial drop rate (PDR) that of a goal with some.

Another package adds a search with an entry point of the group ``p4perf.searches`` that names a subclass of
:class:`Search`; its options are the fields of that (frozen) dataclass.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, ClassVar

from p4perf.errors import MeasurementError, UsageError
from p4perf.plugins import open_plugin

GROUP = "p4perf.searches"

NDR = "ndr"
PDR = "pdr"
PDR_LOSS_RATIO = 0.005
"""Share of packets that a PDR may lose, as in FD.io CSIT."""

TRIALS_PER_LOAD = 12
EXCEED_RATIO = 0.75
"""Of the goals of :func:`ndr_and_pdr`: with both, single lost packets in every third trial do not move the NDR."""

UNSENT_PACKETS, UNSENT_RATIO = 64, 0.001
"""Packets, and share of all packets, that may be neither sent nor lost: generators send whole bursts."""


@dataclass(frozen=True, slots=True)
class LoadTrial:
    """Traffic of one load for some time, and what came back.

    Args:
        lost: packets that should have come back and did not: those that were not forwarded, and those that the
            generator could not send because the device did not take them.
        duration_s: the time that it took, everything around the traffic included, in seconds.
        valid: False if something disturbed it, so that the device is not to blame for its loss.
        counted_s: time of the traffic whose packets are counted, if only a part of it was undisturbed, in seconds.

    Raises:
        MeasurementError: these are not numbers of a trial: no packet at all, more lost than intended, or packets that
            were not sent and are not among the lost ones.
    """

    intended_load_pps: float
    intended_duration_s: float
    sent: int
    lost: int
    duration_s: float
    valid: bool = True
    counted_s: float | None = None

    def __post_init__(self) -> None:
        if not all(map(_positive, (self.intended_load_pps, self.intended_duration_s))):
            raise MeasurementError(
                f"a trial has a load and a duration, not {self.intended_load_pps} pps and {self.intended_duration_s} s"
            )
        if not (math.isfinite(self.duration_s) and self.duration_s >= 0):
            raise MeasurementError(f"a trial cannot have taken {self.duration_s} s")
        if self.sent < 0 or not 0 <= self.lost <= self.intended:
            raise MeasurementError(f"of {self.intended} packets, {self.sent} cannot be sent and {self.lost} lost")
        if self.sent == 0 and self.lost == 0:
            raise MeasurementError(
                f"no packet was sent at {self.intended_load_pps:g} pps in {self.intended_duration_s:g} s",
                hint="a trial that sends nothing has lost what it should have sent",
            )
        if self.sent + self.lost < self.intended * (1 - UNSENT_RATIO) - UNSENT_PACKETS:
            raise MeasurementError(
                f"of {self.intended} packets only {self.sent} were sent, and {self.lost} are said to be lost",
                hint="packets that could not be sent are lost",
            )

    @property
    def intended(self) -> int:
        """Packets that should have come back."""
        return max(self.sent, round(self.intended_load_pps * self._counted_s))

    @property
    def received(self) -> int:
        return self.intended - self.lost

    @property
    def loss_ratio(self) -> float:
        """Share of the intended packets that did not come back."""
        return self.lost / self.intended

    @property
    def receive_rate_pps(self) -> float:
        """Packets that came back, per second of intended traffic."""
        return self.received / self._counted_s

    @property
    def _counted_s(self) -> float:
        return self.intended_duration_s if self.counted_s is None else self.counted_s


Measure = Callable[[float, float], LoadTrial]
"""Carries out a trial of a load in packets per second for a duration in seconds, both of which the trial repeats."""


@dataclass(frozen=True, slots=True)
class Goal:
    """What is searched: the highest load with at most this loss.

    Args:
        loss_ratio: share of its packets that a trial may lose.
        exceed_ratio: share of the duration of all trials of a load that may lose more. The default is the draft's.
        width: the bounds may differ by this share of the upper bound.
        final_trial_duration_s: of the trials that decide, in seconds.
        duration_sum_s: of the trials that decide on one load together, in seconds. Trials are left out when they cannot
            change the decision any more.
        initial_trial_duration_s: of the shortest trials at the begin of the search, in seconds. A queue hides more loss
            from shorter trials.

    Raises:
        UsageError: a number is out of its range.
    """

    name: str
    loss_ratio: float = 0.0
    exceed_ratio: float = 0.5
    width: float = 0.005
    final_trial_duration_s: float = 0.2
    duration_sum_s: float = 2.4
    initial_trial_duration_s: float = 0.2

    def __post_init__(self) -> None:
        if not self.name:
            raise UsageError("a goal needs a name")
        for key in ("loss_ratio", "exceed_ratio"):
            if not 0 <= getattr(self, key) < 1:
                raise UsageError(f"must be at least 0 and below 1, not {getattr(self, key)}", key=f"{self.name}.{key}")
        if not 0 < self.width < 1:
            raise UsageError(f"must lie between 0 and 1, not {self.width}", key=f"{self.name}.width")
        durations = (self.initial_trial_duration_s, self.final_trial_duration_s, self.duration_sum_s)
        if not all(map(_positive, durations)) or sorted(durations) != list(durations):
            raise UsageError(
                f"initial duration, final duration and duration sum must be positive and ascending, not {durations}",
                key=self.name,
            )


def ndr_and_pdr(
    trial_duration_s: float = 0.2,
    *,
    trials_per_load: int = TRIALS_PER_LOAD,
    exceed_ratio: float = EXCEED_RATIO,
    width: float = 0.005,
    pdr_loss_ratio: float = PDR_LOSS_RATIO,
    initial_trial_duration_s: float | None = None,
) -> tuple[Goal, Goal]:
    """The two goals that are usual, ``ndr`` without loss and ``pdr`` with a loss of 0.5 %.

    Args:
        trials_per_load: number of trials that decide on a load; with 1 the goals are those of RFC 2544.
    """
    if trials_per_load < 1:
        raise UsageError(f"a load needs one trial at least, not {trials_per_load}")

    def goal(name: str, loss_ratio: float) -> Goal:
        initial_s = trial_duration_s if initial_trial_duration_s is None else initial_trial_duration_s
        duration_sum_s = trials_per_load * trial_duration_s
        return Goal(name, loss_ratio, exceed_ratio, width, trial_duration_s, duration_sum_s, initial_s)

    return goal(NDR, 0.0), goal(PDR, pdr_loss_ratio)


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """Where a search has to stay.

    Args:
        max_trials: no more trials than that, those that were repeated included.
        max_duration_s: no trial begins whose traffic would end after this time, in seconds of trials.
    """

    min_load_pps: float
    max_load_pps: float
    max_trials: int = 500
    max_duration_s: float = 600.0

    def __post_init__(self) -> None:
        ends = self.min_load_pps, self.max_load_pps
        if not all(map(_positive, ends)) or ends[0] >= ends[1]:
            raise UsageError(f"the lowest load must be positive and below the highest, not {ends[0]} and {ends[1]} pps")
        if self.max_trials < 1 or not self.max_duration_s > 0:
            raise UsageError(f"nothing is found in {self.max_trials} trials and {self.max_duration_s} s")


class End(StrEnum):
    """Why a search ended."""

    CONVERGED = "converged"
    MAX_TRIALS = "max_trials"
    TIME_LIMIT = "time_limit"


class Flag(StrEnum):
    """What to know about the bounds of a goal."""

    AT_MAXIMUM = "at_maximum"
    """The highest load meets the goal: there is no upper bound, the generator may be the limit."""
    BELOW_MINIMUM = "below_minimum"
    """Even the lowest load exceeds the goal: the lower bound is 0."""
    NOT_CONVERGED = "not_converged"
    """The search was stopped before the bounds were close enough."""
    NO_LOWER_BOUND = "no_lower_bound"
    """The search was stopped before any load was found that meets the goal: the lower bound is 0."""
    DISTURBED = "disturbed"
    """A load was held against the device because of a trial that was disturbed each time it was repeated."""
    NDR_FAR_BELOW_PDR = "ndr_far_below_pdr"
    """Without any loss there is far less than with a little: something loses packets at all loads."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What was found for one goal.

    Args:
        lower_pps: highest load below the upper bound that meets the goal, in packets per second; 0 if there is none:
            a bound, and no measurement of the throughput.
        upper_pps: lowest load that exceeds the goal, in packets per second; None if there is none.
        throughput_pps: the conditional throughput of the draft, in packets per second: what came back at the lower
            bound in the worst trial that the exceed ratio does not excuse. Without loss it is the lower bound.
    """

    goal: str
    lower_pps: float
    upper_pps: float | None
    throughput_pps: float
    flags: tuple[Flag, ...] = ()

    @property
    def width(self) -> float | None:
        """Distance of the bounds as a share of the upper bound; None without upper bound."""
        if self.upper_pps is None:
            return None
        return (self.upper_pps - self.lower_pps) / self.upper_pps if self.upper_pps > self.lower_pps else 0.0


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search found and all it saw; trials at ``discarded`` were disturbed and repeated, and decided nothing."""

    method: str
    bounds: Mapping[str, Bounds]
    trials: tuple[LoadTrial, ...]
    discarded: tuple[int, ...]
    end: End

    @property
    def duration_s(self) -> float:
        """What all trials took together, in seconds."""
        return math.fsum(trial.duration_s for trial in self.trials)


class Search(ABC):
    """A method to find a throughput. Subclasses are frozen dataclasses whose fields are their options with defaults."""

    name: ClassVar[str]
    """That of the entry point."""
    summary: ClassVar[str]
    """One line for lists."""
    finds: ClassVar[str | None] = None
    """The one bound that it finds; None: one for each goal, under the name of the goal."""

    @abstractmethod
    def find(self, measure: Measure, goals: Sequence[Goal], limits: SearchLimits) -> SearchResult:
        """Search the throughput of a device for all goals at once.

        Whatever the device does, there is a result; what is wrong with it is in the flags of the bounds.

        Raises:
            UsageError: there is no goal, or two have the same name.
            MeasurementError: ``measure`` did not do what it was asked for.
        """


def open_search(name: str, **options: Any) -> Search:
    """The registered search of that name.

    Raises:
        UsageError: there is no search or no option of that name, or a value is wrong.
    """
    search: Search = open_plugin(GROUP, name, **options)
    return search


def _positive(number: float) -> bool:
    return math.isfinite(number) and number > 0


def meets(trials: Sequence[LoadTrial], goal: Goal) -> bool | None:
    """Whether a load meets a goal; None while further trials can still decide it one way or the other.

    Trials weigh by their intended duration. Those shorter than those of the goal count only against the load, and only
    as far as they exceed the goal more often than the exceed ratio allows.
    """
    good_long_s = bad_long_s = good_short_s = bad_short_s = 0.0
    for trial in trials:
        good, seconds = trial.loss_ratio <= goal.loss_ratio, trial.intended_duration_s
        if trial.intended_duration_s >= goal.final_trial_duration_s:
            good_long_s, bad_long_s = good_long_s + good * seconds, bad_long_s + (not good) * seconds
        else:
            good_short_s, bad_short_s = good_short_s + good * seconds, bad_short_s + (not good) * seconds
    excused_s = good_short_s * goal.exceed_ratio / (1 - goal.exceed_ratio)
    bad_s = bad_long_s + max(0.0, bad_short_s - excused_s)
    sum_s = max(good_long_s + bad_s, goal.duration_sum_s)
    allowed_s = sum_s * goal.exceed_ratio
    if bad_s > allowed_s:
        return False
    return True if sum_s - good_long_s <= allowed_s else None


def relevant_bounds(loads: Mapping[float, Sequence[LoadTrial]], goal: Goal) -> tuple[float | None, float | None]:
    """The lowest load that exceeds the goal, and the highest below it that meets the goal.

    What higher loads show is ignored, however good it is.

    Returns:
        Lower and upper bound in packets per second; None where no load is one.
    """
    lower = None
    for load in sorted(loads):
        verdict = meets(loads[load], goal)
        if verdict is False:
            return lower, load
        if verdict:
            lower = load
    return lower, None


def conditional_throughput(load_pps: float, trials: Sequence[LoadTrial], goal: Goal) -> float:
    """What comes back at a load, in packets per second, in the worst trial that the exceed ratio does not excuse.

    Trials that are missing from the duration sum of the goal, which the load meets, count as the worst.
    """
    long = [t for t in trials if t.intended_duration_s >= goal.final_trial_duration_s]
    missing_s = goal.duration_sum_s - math.fsum(t.intended_duration_s for t in long)
    left_s = (max(0.0, missing_s) + math.fsum(t.intended_duration_s for t in long)) * (1 - goal.exceed_ratio)
    worst = 0.0
    for trial in sorted(long, key=lambda t: t.loss_ratio):
        if left_s <= _ROUNDING_S:
            break
        worst, left_s = trial.loss_ratio, left_s - trial.intended_duration_s
    return load_pps * (1 - min(worst, goal.loss_ratio))


_ROUNDING_S = 1e-9


REPEATS = 3
"""Most repetitions in a row of a disturbed trial that lost packets; then its loss counts."""

NDR_FAR_BELOW_PDR = 0.5
"""A throughput without loss below this share of one with some loss is hardly that of the device."""


class LimitReachedError(Exception):
    """The search has to end; never leaves this package."""

    def __init__(self, end: End) -> None:
        super().__init__(end)
        self.end = end


class Exploration:
    """Carries out the trials of one search, and keeps them."""

    def __init__(self, measure: Measure, goals: Sequence[Goal], limits: SearchLimits) -> None:
        names = [goal.name for goal in goals]
        if not names or len(set(names)) < len(names):
            raise UsageError(f"a search needs goals with different names, not {', '.join(names) or 'none'}")
        self.goals, self.limits = tuple(goals), limits
        self.trials: list[LoadTrial] = []
        self.discarded: list[int] = []
        self.loads: dict[float, list[LoadTrial]] = {}
        self._measure, self._spent_s = measure, 0.0
        self._harmless = min(goal.loss_ratio for goal in goals)

    def trial(self, load_pps: float, duration_s: float) -> LoadTrial:
        """One trial that counts; disturbed ones are repeated before.

        Raises:
            LimitReachedError: there is no trial or no time left.
        """
        for repeats_left in reversed(range(REPEATS + 1)):
            trial = self._carry_out(load_pps, duration_s)
            if trial.valid or trial.loss_ratio <= self._harmless or not repeats_left:
                break
            self.discarded.append(len(self.trials) - 1)
        self.loads.setdefault(load_pps, []).append(trial)
        return trial

    def decide(self, goal: Goal, load_pps: float) -> bool:
        """Whether a load meets a goal, after as many trials as that takes."""
        while (verdict := meets(self.loads.get(load_pps, ()), goal)) is None:
            self.trial(load_pps, goal.final_trial_duration_s)
        return verdict

    def _carry_out(self, load_pps: float, duration_s: float) -> LoadTrial:
        if len(self.trials) >= self.limits.max_trials:
            raise LimitReachedError(End.MAX_TRIALS)
        if self._spent_s + duration_s > self.limits.max_duration_s:
            raise LimitReachedError(End.TIME_LIMIT)
        trial = self._measure(load_pps, duration_s)
        if (trial.intended_load_pps, trial.intended_duration_s) != (load_pps, duration_s):
            raise MeasurementError(
                f"a trial of {load_pps} pps and {duration_s} s was asked for, "
                f"not one of {trial.intended_load_pps} pps and {trial.intended_duration_s} s"
            )
        self.trials.append(trial)
        self._spent_s += trial.duration_s
        return trial

    def conclude(
        self, method: str, explore: Callable[[], None], bounds: Callable[[], Sequence[Bounds]] | None = None
    ) -> SearchResult:
        """Explore until nothing is left to explore or a limit is reached, and say what was found.

        ``bounds`` follow from the trials; by default they are those of the goals.
        """
        end = End.CONVERGED
        try:
            explore()
        except LimitReachedError as stop:
            end = stop.end
        found = judge_together(list(map(self.bounds, self.goals)), self.goals) if bounds is None else bounds()
        return SearchResult(method, {b.goal: b for b in found}, tuple(self.trials), tuple(self.discarded), end)

    def bounds(self, goal: Goal) -> Bounds:
        lower, upper = relevant_bounds(self.loads, goal)
        flags = set()
        if self.disturbed(goal):
            flags.add(Flag.DISTURBED)
        if upper is not None and upper <= self.limits.min_load_pps:
            flags.add(Flag.BELOW_MINIMUM)
        elif lower is None:
            flags |= {Flag.NOT_CONVERGED, Flag.NO_LOWER_BOUND}
        elif upper is None:
            flags.add(Flag.AT_MAXIMUM if lower >= self.limits.max_load_pps else Flag.NOT_CONVERGED)
        elif upper - lower > goal.width * upper:
            flags.add(Flag.NOT_CONVERGED)
        throughput = 0.0 if lower is None else conditional_throughput(lower, self.loads[lower], goal)
        return Bounds(goal.name, lower or 0.0, upper, throughput, tuple(sorted(flags)))

    def disturbed(self, goal: Goal) -> bool:
        """Whether the bounds would be others if disturbed trials had not lost anything."""
        if all(t.valid for trials in self.loads.values() for t in trials):
            return False
        innocent = {
            load: [t if t.valid else replace(t, lost=0, sent=t.intended) for t in trials]
            for load, trials in self.loads.items()
        }
        return relevant_bounds(innocent, goal) != relevant_bounds(self.loads, goal)


def judge_together(bounds: Sequence[Bounds], goals: Sequence[Goal]) -> list[Bounds]:
    """Flag bounds without loss that are far below others with some."""
    tolerant = max((b.throughput_pps for b, g in zip(bounds, goals, strict=True) if g.loss_ratio > 0), default=0.0)
    judged = []
    for one, goal in zip(bounds, goals, strict=True):
        far = goal.loss_ratio == 0 and one.throughput_pps < NDR_FAR_BELOW_PDR * tolerant
        flags = {*one.flags, Flag.NDR_FAR_BELOW_PDR} if far else one.flags
        judged.append(replace(one, flags=tuple(sorted(flags))))
    return judged
