"""MLRsearch: several goals at once, with loads that are tried again (the package MLRsearch of FD.io CSIT)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from typing_extensions import override

from p4perf.errors import UsageError
from p4perf.experiment.search import Exploration, Goal, Measure, Search, SearchLimits, SearchResult


@dataclass(frozen=True, slots=True)
class MLRSearch(Search):
    """Multiple loss ratio search (draft-ietf-bmwg-mlrsearch).

    It begins with the rate that comes back at the highest load, looks at first with few trials for wide bounds, then
    with more trials for narrower ones, and corrects what the first trials got wrong. So single lost packets cost
    trials, but do not move the result as long as the trials per load and the exceed ratio of the goal can bear them.

    The package chooses the loads. The bounds are those of all trials by the same rules as for the other searches, so
    that there are bounds as well when a limit ends the search.

    Args:
        preceding_targets: steps with wider bounds and fewer trials per load before the last one.
        expansion: when a bound turns out to be wrong, the distance to the next load grows by this factor.
    """

    name: ClassVar[str] = "mlrsearch"
    summary: ClassVar[str] = "several goals at once, robust against single bad trials (MLRsearch)"

    preceding_targets: int = 2
    expansion: int = 4

    def __post_init__(self) -> None:
        if self.preceding_targets < 1 or self.expansion < 2:
            raise UsageError(
                f"a search needs 1 preceding target and an expansion of 2 at least, "
                f"not {self.preceding_targets} and {self.expansion}"
            )

    @override
    def find(self, measure: Measure, goals: Sequence[Goal], limits: SearchLimits) -> SearchResult:
        import MLRsearch  # type: ignore[import-untyped]  # slow to load, and seldom needed

        exploration = Exploration(measure, goals, limits)
        config = MLRsearch.Config(
            # The package refuses goals that differ in their names only.
            goals=list(dict.fromkeys(self._search_goal(goal) for goal in goals)),
            min_load=limits.min_load_pps,
            max_load=limits.max_load_pps,
            search_duration_max=float("inf"),  # the exploration ends it
            warmup_duration=0.0,
        )

        def explore() -> None:
            MLRsearch.MultipleLossRatioSearch(config=config).search(_measurer(exploration), debug=lambda text: None)

        return exploration.conclude(self.name, explore)

    def _search_goal(self, goal: Goal) -> Any:
        import MLRsearch

        return MLRsearch.SearchGoal(
            loss_ratio=goal.loss_ratio,
            exceed_ratio=goal.exceed_ratio,
            relative_width=goal.width,
            initial_trial_duration=goal.initial_trial_duration_s,
            final_trial_duration=goal.final_trial_duration_s,
            duration_sum=goal.duration_sum_s,
            preceding_targets=self.preceding_targets,
            expansion_coefficient=self.expansion,
            fail_fast=False,  # a device that loses at the lowest load is a result, not an exception
        )


def _measurer(exploration: Exploration) -> Any:
    import MLRsearch

    class Measurer(MLRsearch.AbstractMeasurer):  # type: ignore[misc]
        """The exploration as the package calls it."""

        def measure(self, intended_duration: float, intended_load: float) -> Any:
            trial = exploration.trial(intended_load, intended_duration)
            return MLRsearch.MeasurementResult(
                intended_duration=intended_duration,
                intended_load=intended_load,
                offered_count=trial.intended,
                loss_count=trial.lost,
                # Trials weigh by their traffic: what starting a process takes is no evidence.
                duration_with_overheads=intended_duration,
            )

    return Measurer()
