"""Which trial of a sweep tells most: decided from the trials so far, without a fit.

A *line* is a sweep of one number; a sweep over words or over several variables has a line for each combination of the
others. Between two measured points of a line the curve is taken as straight, on the axes (linear, logarithmic in x, or in
both) on which measured points lie best on the straight between their neighbours. How wrong that can be follows from
these same deviations ``d`` at both ends of a gap, less what noise explains:

* of one sign, the curve bends: two straights that meet in the gap leave its chord by ``d0 d1 / (d0 + d1)`` at most;
* of different signs, it steps: by up to the larger of them.

The standard error of the points is added. The noise of a start is pooled over the line, and weighs as much as two starts
of :data:`NOISE` before there is any other evidence. The largest bound over the grid, relative to the curve, is the
error of the sweep; the next trial is the one that removes the largest bounds for the least time: a new point in a gap, or
another start of a noisy point, or of one that lies off its neighbours on both sides.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median

import numpy as np

from p4perf.evaluation.fitting.polyline import Array, polyline

FIRST_POINTS = 5
"""Points of a line that are measured before its shape counts, with its ends."""


@dataclass(frozen=True, slots=True)
class Place:
    """A point of the grid. ``x`` is None if it is a word; ``line`` names the values of all other variables.

    ``program`` names what has to be built for it; ``marked`` places, where a breakpoint is expected, come early.
    """

    x: float | None = None
    line: str = ""
    program: str = ""
    marked: bool = False


@dataclass(frozen=True, slots=True)
class Start:
    """A trial: the number of its place, its value (None if it was not accepted), and what it took in seconds."""

    place: int
    value: float | None
    trial_s: float
    build_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Sight:
    """What is known of a sweep: estimate and relative error bound of every place (NaN and infinite if none yet).

    ``error`` is the largest bound, at 90 %; ``place`` has it.
    """

    values: tuple[float, ...]
    bounds: tuple[float, ...]

    @property
    def error(self) -> float:
        return max(self.bounds, default=0.0)

    @property
    def place(self) -> int:
        return self.bounds.index(self.error)


@dataclass(frozen=True, slots=True)
class _Option:
    """A trial that may be next, and the largest bound that it reduces."""

    place: int
    bound: float
    gain: float


class Design:
    """Chooses the trials of a sweep; the same trials give the same choice.

    Args:
        places: the grid.
        accuracy: relative error at which the sweep is done; None measures the whole grid.
        starts: most accepted starts of a place.
        attempts: most starts of a place, rejected ones too.
    """

    def __init__(
        self, places: Sequence[Place], *, accuracy: float | None, starts: int, attempts: int, seed: int = 0
    ) -> None:
        self._places, self._accuracy = places, accuracy or 0.0
        self._starts, self._attempts, self._seed = starts, attempts, seed
        lines: dict[str, list[int]] = {}
        for number, place in enumerate(places):
            lines.setdefault(place.line if place.x is not None else f"word {number}", []).append(number)
        self._lines = [sorted(line, key=lambda n: places[n].x or 0.0) for line in lines.values()]
        self._first = [_first(line, [places[n].marked for n in line]) for line in self._lines]

    def sight(self, trials: Sequence[Start]) -> Sight:
        """What the trials say of the sweep."""
        values, bounds = np.full(len(self._places), np.nan), np.full(len(self._places), np.inf)
        for places, found, limits, _ in self._judged(trials):
            values[places], bounds[places] = found, limits
        return Sight(tuple(values.tolist()), tuple(bounds.tolist()))

    def choose(self, trials: Sequence[Start], busy: Collection[int] = (), closed: Collection[int] = ()) -> int | None:
        """The place of the next trial; None if the sweep is as accurate as asked, or there is nothing left to measure.

        Args:
            busy: places that are being measured at the moment.
            closed: places that cannot be measured.
        """
        begun = Counter(t.place for t in trials)
        accepted = Counter(t.place for t in trials if t.value is not None)
        options = [
            option
            for *_, found in self._judged(trials)
            for option in found
            if option.place not in busy
            and option.place not in closed
            and accepted[option.place] < self._starts
            and begun[option.place] < self._attempts
            and option.bound > self._accuracy
        ]
        if not options:
            return None
        largest = max(option.bound for option in options)
        urgent = [option for option in options if option.bound >= largest / 2]
        cost_s = self._costs_s(trials)
        rank = random.Random(f"{self._seed}:{len(trials)}")  # noqa: S311 - the order of points is no secret
        drawn = {option: rank.random() for option in sorted(urgent, key=lambda o: o.place)}
        if math.isinf(largest):
            # A round over all places comes before the next one, in random order: a drift is no trend then.
            return min(urgent, key=lambda o: (begun[o.place], drawn[o])).place
        return max(urgent, key=lambda o: (o.gain / cost_s(o.place), drawn[o])).place

    def _costs_s(self, trials: Sequence[Start]) -> Callable[[int], float]:
        """What a trial of a place will take in seconds: as those of the nearest place of its line, or of all."""
        durations: dict[int, list[float]] = {}
        for trial in trials:
            durations.setdefault(trial.place, []).append(trial.trial_s)
        typical_s = fmean(t.trial_s for t in trials) if trials else 1.0
        builds = [t.build_s for t in trials if t.build_s > 0]
        build_s = fmean(builds) if builds else 0.0
        built = {self._places[t.place].program for t in trials} | {""}
        neighbours = {n: line for line in self._lines for n in line}

        def cost_s(place: int) -> float:
            line = neighbours[place]
            here = line.index(place)
            known = [n for n in line if n in durations]
            near = min(known, key=lambda n: abs(line.index(n) - here), default=None)
            trial_s = typical_s if near is None else fmean(durations[near])
            return trial_s + (0.0 if self._places[place].program in built else build_s)

        return cost_s

    def _judged(self, trials: Sequence[Start]) -> Iterator[tuple[list[int], Array, Array, list[_Option]]]:
        """For every line its places, the estimates and bounds there, and the trials that may be next."""
        found: dict[int, list[float]] = {}
        for trial in trials:
            if trial.value is not None:
                found.setdefault(trial.place, []).append(trial.value)
        for places, first in zip(self._lines, self._first, strict=True):
            starts = [found.get(n, []) for n in places]
            line = polyline([self._places[n].x or 0.0 for n in places], starts)
            missing = [places[n] for n in first if not starts[n]]
            if missing:
                yield (
                    places,
                    line.values,
                    np.full(len(places), np.inf),
                    [_Option(n, math.inf, math.inf) for n in missing],
                )
            else:
                yield places, line.values, line.bounds, _options(places, starts, line.bounds)


def _options(places: Sequence[int], starts: Sequence[Sequence[float]], bounds: Array) -> list[_Option]:
    """The worst place of every gap, which a new point may halve, and another start of every point."""
    known = [n for n, values in enumerate(starts) if values]
    options = []
    for left, right in pairwise(known):
        inner = range(left + 1, right)
        if inner:
            worst = max(inner, key=lambda n: (bounds[n] * min(n - left, right - n), n))
            largest = float(max(bounds[left + 1 : right]))
            options.append(_Option(places[worst], largest, largest / 2))
    for n in known:
        bound, count = float(bounds[n]), len(starts[n])
        options.append(_Option(places[n], bound, bound * (1 - math.sqrt(count / (count + 1)))))
    return options


def _first(line: Sequence[int], marked: Sequence[bool]) -> tuple[int, ...]:
    """Positions in a line that are measured first: the ends, what is marked, and some between."""
    even = np.linspace(0, len(line) - 1, min(FIRST_POINTS, len(line)))
    return tuple(sorted({round(float(e)) for e in even} | {n for n, mark in enumerate(marked) if mark}))
