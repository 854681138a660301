"""From trials to bounds: which loads meet a goal, which exceed it (draft-ietf-bmwg-mlrsearch, load classification)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from p4perf.experiment.search.base import Goal, Trial


def meets(trials: Sequence[Trial], goal: Goal) -> bool | None:
    """Whether a load meets a goal; None while further trials can still decide it one way or the other.

    Trials shorter than those of the goal count only against the load, and only as far as they exceed the goal more
    often than the exceed ratio allows.

    Args:
        trials: of this load, in order.
        goal: what they are held against. Trials weigh by their intended duration.
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


def relevant_bounds(loads: Mapping[float, Sequence[Trial]], goal: Goal) -> tuple[float | None, float | None]:
    """The lowest load that exceeds the goal, and the highest below it that meets the goal.

    What higher loads show is ignored, however good it is.

    Args:
        loads: trials by load in packets per second.
        goal: what they are held against.

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


def conditional_throughput(load_pps: float, trials: Sequence[Trial], goal: Goal) -> float:
    """What comes back at a load, in packets per second, in the worst trial that the exceed ratio does not excuse.

    Args:
        load_pps: a load that meets the goal, in packets per second.
        trials: those of this load.
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
