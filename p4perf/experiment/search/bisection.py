"""Bisection, the binary search of RFC 2544, and the receive rate under overload (Scholz et al. 2021)."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from typing_extensions import override

from p4perf.errors import UsageError
from p4perf.experiment.search import Bounds, Exploration, Flag, Goal, Measure, Search, SearchLimits, SearchResult


@dataclass(frozen=True, slots=True)
class Bisection(Search):
    """Halves the interval between a load that meets the goal and one that exceeds it, until it is narrow enough.

    It begins with the highest load and tries the lowest only when nothing else has met the goal. Trials that were made
    for one goal count for the others. Every load that is tried gets as many trials as the goal wants, so a goal of many
    trials takes many at each of some twelve loads.

    A decision is never looked at again. With one trial per load (as in RFC 2544), a single packet that is lost by
    chance cuts off all higher loads: such a search does not resist it. With more trials per load it resists as far as
    every single decision does.

    Args:
        midpoint: ``geometric`` halves the ratio of the bounds, so that low rates are found as fast as high ones;
            ``arithmetic`` halves their difference.
    """

    name: ClassVar[str] = "bisection"
    summary: ClassVar[str] = "binary search between the lowest and the highest load (RFC 2544)"

    midpoint: Literal["geometric", "arithmetic"] = "geometric"

    def __post_init__(self) -> None:
        if self.midpoint not in ("geometric", "arithmetic"):
            raise UsageError(f"a midpoint is geometric or arithmetic, not {self.midpoint!r}")

    @override
    def find(self, measure: Measure, goals: Sequence[Goal], limits: SearchLimits) -> SearchResult:
        exploration = Exploration(measure, goals, limits)

        def explore() -> None:
            seen = -1
            while seen < len(exploration.trials):  # trials of one goal can make a decision for another open again
                seen = len(exploration.trials)
                for goal in goals:
                    self._narrow(exploration, goal)

        return exploration.conclude(self.name, explore)

    def _narrow(self, exploration: Exploration, goal: Goal) -> None:
        lowest, highest = exploration.limits.min_load_pps, exploration.limits.max_load_pps
        known = exploration.bounds(goal)
        if known.upper_pps is None and exploration.decide(goal, highest):
            return
        floor, upper = known.lower_pps or lowest, known.upper_pps or highest
        while upper - floor > goal.width * upper:
            middle = math.sqrt(floor * upper) if self.midpoint == "geometric" else (floor + upper) / 2
            if not floor < middle < upper:
                break
            if exploration.decide(goal, middle):
                floor = middle
            else:
                upper = middle
        if floor < upper:
            exploration.decide(goal, floor)


@dataclass(frozen=True, slots=True)
class Overload(Search):
    """What comes back at the highest load, in packets per second: the median of several trials.

    This is no throughput: it says nothing about loss at lower loads, and a device that works less well under overload
    can carry more than this. The result is called ``overload`` and none of the goals; they only say how many trials
    there are and how long they take. Its lower and upper bound are both the median. With the flag ``at_maximum``
    nothing was lost, so it is the rate of the generator; with ``not_converged`` a limit left no time for all trials.

    A queue that is emptied after the traffic counts as received: it adds its packets to each trial.
    """

    name: ClassVar[str] = "overload"
    summary: ClassVar[str] = "receive rate at the highest load, whatever is lost (Scholz et al. 2021)"
    finds: ClassVar[str | None] = "overload"

    @override
    def find(self, measure: Measure, goals: Sequence[Goal], limits: SearchLimits) -> SearchResult:
        exploration = Exploration(measure, goals, limits)
        load, duration_s = limits.max_load_pps, max(goal.final_trial_duration_s for goal in goals)
        wanted = max(1, math.ceil(max(goal.duration_sum_s for goal in goals) / duration_s - 1e-9))

        def explore() -> None:
            for _ in range(wanted):
                exploration.trial(load, duration_s)

        return exploration.conclude(self.name, explore, lambda: [self._bounds(exploration, wanted)])

    def _bounds(self, exploration: Exploration, wanted: int) -> Bounds:
        trials = exploration.loads.get(exploration.limits.max_load_pps, [])
        flags = [Flag.DISTURBED] if any(not t.valid and t.lost for t in trials) else []
        if len(trials) < wanted:
            flags.append(Flag.NOT_CONVERGED)
        if not trials:
            return Bounds(self.name, 0.0, None, 0.0, tuple(sorted([*flags, Flag.NO_LOWER_BOUND])))
        if not any(t.lost for t in trials):
            flags.append(Flag.AT_MAXIMUM)
        median = statistics.median(t.receive_rate_pps for t in trials)
        return Bounds(self.name, median, median, median, tuple(sorted(flags)))
