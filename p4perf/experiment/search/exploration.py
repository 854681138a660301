"""What all searches share: trials with their repeats and limits, and the bounds that follow from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from p4perf.errors import MeasurementError, UsageError
from p4perf.experiment.search.base import Bounds, End, Flag, Goal, LoadTrial, Measure, SearchLimits, SearchResult


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

    Args:
        goal: what the load meets. Trials that are missing from its duration sum count as the worst.
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
