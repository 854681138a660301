"""In which order changes pay best: gains of single changes, of the last one, and the greedy ladder."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from p4perf.evaluation.factors.cells import Combination, Factorial


@dataclass(frozen=True, slots=True)
class Gain:
    """How much better one cell is than another, as a factor; above 1 is better.

    ``low`` and ``high`` are the interval from repetitions, None without any.
    """

    ratio: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Rung:
    """One step of a ladder: the factor that is added, the metric that is reached, and the gain over the step before."""

    factor: str
    value: float
    gain: float


@dataclass(frozen=True, slots=True)
class Ladder:
    """Factors in the order in which each is the best of those that are left.

    Args:
        base: metric of the base.
        rungs: the steps.
        unmeasured: factors that could not be placed, since no combination of the next step was measured.
        untried: for each step the factors that could not compete, since their combination was not measured.
    """

    base: float
    rungs: tuple[Rung, ...]
    unmeasured: tuple[str, ...]
    untried: tuple[tuple[str, ...], ...]


def greedy_ladder(factorial: Factorial) -> Ladder | None:
    """The greedy order: always the factor that makes it best next; None if the base was not measured."""
    base = factorial.value(())
    if base is None:
        return None
    present: Combination = frozenset()
    rungs: list[Rung] = []
    untried: list[tuple[str, ...]] = []
    while left := [name for name in factorial.factors if name not in present]:
        gains = {name: factorial.gain({*present, name}, present) for name in left}
        known = {name: gain for name, gain in gains.items() if gain is not None}
        if not known:
            break
        best = max(known, key=lambda name: known[name])
        untried.append(tuple(name for name in left if name not in known))
        present |= {best}
        rungs.append(Rung(best, factorial.value(present) or 0.0, known[best]))
    return Ladder(base, tuple(rungs), tuple(n for n in factorial.factors if n not in present), tuple(untried))


def single_pair(factor: str) -> tuple[Iterable[str], Iterable[str]]:
    """The cells of a single gain: the factor alone, and the base."""
    return (factor,), ()


def last_pair(factorial: Factorial, factor: str) -> tuple[Iterable[str], Iterable[str]]:
    """The cells of a leave-one-out ratio: all factors, and all but this."""
    return factorial.factors, [name for name in factorial.factors if name != factor]
