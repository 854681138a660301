"""Receive rate under overload: the way in which Scholz et al. (2021) measured what a target can do."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from p4perf.experiment.search.base import Bounds, End, Flag, Goal, Measure, Search, SearchLimits, SearchResult
from p4perf.experiment.search.exploration import Exploration, LimitReachedError


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

    def find(self, measure: Measure, goals: Sequence[Goal], limits: SearchLimits) -> SearchResult:
        """See :meth:`Search.find`."""
        exploration = Exploration(measure, goals, limits)
        load, duration_s = limits.max_load_pps, max(goal.final_trial_duration_s for goal in goals)
        wanted = max(1, math.ceil(max(goal.duration_sum_s for goal in goals) / duration_s - _ROUNDING))
        end = End.CONVERGED
        try:
            for _ in range(wanted):
                exploration.trial(load, duration_s)
        except LimitReachedError as stop:
            end = stop.end
        return exploration.result(self.name, [self._bounds(exploration, wanted)], end)

    def _bounds(self, exploration: Exploration, wanted: int) -> Bounds:
        trials = exploration.loads.get(exploration.limits.max_load_pps, [])
        flags = [Flag.DISTURBED] if any(not t.valid and t.lost for t in trials) else []
        if len(trials) < wanted:
            flags.append(Flag.NOT_CONVERGED)
        if not trials:
            return Bounds(self.name, 0.0, None, 0.0, tuple(sorted([*flags, Flag.NO_LOWER_BOUND])))
        if not any(t.lost for t in trials):
            flags.append(Flag.AT_MAXIMUM)
        rates = [t.receive_rate_pps for t in trials]
        median = statistics.median(rates)
        return Bounds(self.name, median, median, median, tuple(sorted(flags)), (min(rates), max(rates)))


_ROUNDING = 1e-9
