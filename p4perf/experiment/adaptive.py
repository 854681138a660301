"""Which trial of a sweep tells most: decided from the trials so far and a seed, and from nothing else.

Every line of a sweep begins with few points: its ends, the places where a working set fills a cache, and some between.
Then the error bounds of a polyline (:mod:`p4perf.evaluation.fitting.polyline`) say what is known least, and the
next trial is the one that lowers one of the largest bounds most per second: a new point in a gap, which about halves
the bound there, or another start of a noisy point. Builds count as time. A sweep is done when the largest bound does
not exceed the accuracy that was asked for, and the measured points settle the breakpoints of its model
(:func:`unsettled`) and say everywhere how far starts scatter (:func:`unrepeated`).
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from statistics import median

import numpy as np

from p4perf.evaluation.fitting.derivation import derive
from p4perf.evaluation.fitting.error_metrics import error_metric
from p4perf.evaluation.fitting.polyline import AROUND, Array, polyline
from p4perf.evaluation.fitting.selection import l1_bic
from p4perf.evaluation.fitting.working_set import run_marks
from p4perf.experiment.planning import PlannedPoint
from p4perf.results import Run

FIRST_POINTS = 7
"""Points of a line that are measured before its shape counts, with its ends."""

URGENT = 0.5
"""Trials that lower a bound of at least this share of the largest one compete by what they gain per second."""

LONG_FILL_S = 2.0
"""Longest time in which a table of the first model is filled, in seconds: larger ones are measured later."""

EXPENSIVE = 4.0
"""An end that takes longer than this many typical trials gets a second start only if its bound asks for it."""

NEIGHBOURS = 2
"""Places to either side of a breakpoint that are measured, too: with them it may turn out to be at another one."""


@dataclass(frozen=True, slots=True)
class GridPoint:
    """A point of the grid. ``x`` is None if it is a word; ``line`` names the values of all other variables.

    ``program`` names what has to be built for it, if anything; ``setup_s`` is the time in which its tables are filled,
    roughly. ``marked`` places, where a breakpoint is expected, are among the first.
    """

    key: str
    x: float | None = None
    line: str = ""
    program: str = ""
    setup_s: float = 0.0
    marked: bool = False


@dataclass(frozen=True, slots=True)
class Start:
    """A trial of the place with that key: its value, None if it was not accepted, and what it took in seconds."""

    key: str
    value: float | None
    trial_s: float
    build_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Option:
    """A trial that may be next: the bound that it lowers, by how much, and roughly how long it takes in seconds.

    ``steps`` of the kind are expected until that bound is as low as asked for. A trial is ``needed`` however low the
    bound is, if a breakpoint of the model may depend on it, or if only it says how far starts scatter there.
    """

    key: str
    bound: float
    gain: float
    cost_s: float
    steps: float
    needed: bool = False


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is known of a sweep: estimates and relative error bounds at 90 % of all places, and what may be next."""

    keys: tuple[str, ...]
    values: tuple[float, ...]
    bounds: tuple[float, ...]
    accuracy: float
    options: tuple[Option, ...]
    seed: str
    open_ends: frozenset[str]
    """The first and the last place that is soon filled, if they have no value yet: with them there is a first model."""

    @property
    def error(self) -> float:
        """The largest bound."""
        return max(self.bounds, default=0.0)

    @property
    def worst(self) -> str:
        """The key of the place that has it."""
        return self.keys[self.bounds.index(self.error)]

    @property
    def left(self) -> int:
        """Roughly how many trials there are until the accuracy is reached."""
        return math.ceil(sum(o.steps for o in self.options))

    @property
    def left_s(self) -> float:
        """Roughly how long it takes until the accuracy is reached, in seconds."""
        return sum(o.steps * o.cost_s for o in self.options)

    def wanted(self, among: Collection[str]) -> list[Option]:
        """The trials of these places that are still needed."""
        return [o for o in self.options if (o.bound > self.accuracy or o.needed) and o.key in among]

    def due(self, among: Collection[str]) -> list[Option]:
        """The first trials of the first points, of these places: they come before all others."""
        return [o for o in self.options if math.isinf(o.bound) and o.key in among]

    def choose(self, among: Collection[str]) -> str | None:
        """The key of the next trial of these places; None if none of them needs one."""
        options = self.wanted(among)
        if not options:
            return None
        order = random.Random(self.seed)  # noqa: S311 - a drift shall be no trend; it is no secret
        drawn = {key: order.random() for key in self.keys}
        if first := self.due(among):
            return min(first, key=lambda o: (-o.gain, drawn[o.key])).key
        least = URGENT * max(o.bound for o in options)
        return max((o for o in options if o.bound >= least), key=lambda o: (o.gain / o.cost_s, drawn[o.key])).key


class Chooser:
    """Judges the trials of a sweep.

    Args:
        places: the grid.
        accuracy: relative error at which it is done; 0 for never, before all is measured.
        seed: of the order of places that are worth the same.
    """

    def __init__(self, places: Sequence[GridPoint], *, accuracy: float, seed: int = 0) -> None:
        self.accuracy = accuracy
        self._places, self._seed = tuple(places), seed
        lines: dict[str, list[int]] = {}
        for number, place in enumerate(places):
            lines.setdefault(place.line if place.x is not None else f"word {number}", []).append(number)
        self._lines = [sorted(line, key=lambda n: places[n].x or 0.0) for line in lines.values()]

    def judge(self, trials: Sequence[Start], closed: Collection[str] = ()) -> Judgement:
        """What the trials say of the sweep without the ``closed`` places, which cannot be measured."""
        found: dict[str, list[Start]] = {}
        for trial in trials:
            found.setdefault(trial.key, []).append(trial)
        costs = _Costs.of(self._places, found)
        values, bounds = np.full(len(self._places), np.nan), np.zeros(len(self._places))
        options: list[Option] = []
        lines = [[n for n in line if self._places[n].key not in closed] for line in self._lines]
        lines = [line for line in lines if line]
        ends = frozenset(self._places[n].key for n in (lines[0][0], self._last(lines[-1]))) if lines else frozenset()
        for line in lines:
            values[line], bounds[line], more = self._line([self._places[n] for n in line], ends, found, costs)
            options += more
        return Judgement(
            keys=tuple(p.key for p in self._places),
            values=tuple(values.tolist()),
            bounds=tuple(bounds.tolist()),
            accuracy=self.accuracy,
            options=tuple(options),
            seed=f"{self._seed}:{len(trials)}",
            open_ends=ends - {t.key for t in trials if t.value is not None},
        )

    def _last(self, line: Sequence[int]) -> int:
        """The last place of a line whose tables are soon filled; the last of all if there is none."""
        return next((n for n in reversed(line) if self._places[n].setup_s <= LONG_FILL_S), line[-1])

    def _line(
        self, places: Sequence[GridPoint], ends: Collection[str], found: dict[str, list[Start]], costs: _Costs
    ) -> tuple[Array, Array, list[Option]]:
        """Estimates, bounds and possible trials of one line, whose places ascend."""
        starts = [[t.value for t in found.get(p.key, ()) if t.value is not None] for p in places]
        line = polyline([p.x or 0.0 for p in places], starts)
        even = np.linspace(0, len(places) - 1, min(FIRST_POINTS, len(places)))
        first = {round(float(e)) for e in even}
        first |= {n for n, place in enumerate(places) if place.marked or place.key in ends}
        first.add(len(places) // 2)
        # An end has neighbours on one side only: little but a second start shows that the first one is bad.
        twice = {n for n in (0, len(places) - 1) if costs.of_place(places[n]) <= EXPENSIVE * costs.trial_s}
        wanted = {n: 2 if n in twice and len(places) > 1 else 1 for n in first}
        if missing := [n for n in sorted(first) if len(starts[n]) < wanted[n]]:
            # A place that was tried waits until all others have their first trial. The ends come first; with their
            # values there is a model, so that they are tried again at once.
            due = [(places[n], len(found.get(places[n].key, ())), not starts[n]) for n in missing]
            options = [
                Option(p.key, math.inf, 4 / 2**tried if p.key in ends and new else 1 / 4**tried, costs.of_place(p), 1)
                for p, tried, new in due
            ]
            return line.values, np.full(len(places), np.inf), options
        options = [
            Option(places[n].key, bound, bound * lowered, costs.of_place(places[n]), self._steps(bound, lowered))
            for n, bound, lowered in _worthwhile(starts, line.bounds)
        ]
        if max(line.bounds) <= self.accuracy:
            n = unsettled(tuple(p.x or 0.0 for p in places), tuple(map(tuple, starts)))
            n = unrepeated(starts) if n is None else n
            if n is not None:
                bound = float(line.bounds[n])
                options.append(Option(places[n].key, bound, bound, costs.of_place(places[n]), 1, needed=True))
        return line.values, line.bounds, options

    def _steps(self, bound: float, lowered: float) -> float:
        if bound <= self.accuracy or not self.accuracy:
            return 0.0
        return math.ceil(math.log(bound / self.accuracy) / -math.log(1 - lowered))


def _worthwhile(starts: Sequence[Sequence[float]], bounds: Array) -> Iterator[tuple[int, float, float]]:
    """For a new point in every gap, and another start of every point, the bound and the share that it is lowered by."""
    known = [n for n, values in enumerate(starts) if values]
    for left, right in pairwise(known):
        if right > left + 1:
            # Not the very edge of a gap, unless most is to be found there.
            worst = max(range(left + 1, right), key=lambda n: (bounds[n] * min(n - left, right - n), n))
            yield worst, float(max(bounds[left + 1 : right])), 0.5
    for n in known:
        yield n, float(bounds[n]), 1 - math.sqrt(len(starts[n]) / (len(starts[n]) + 1))


@lru_cache
def unsettled(x: tuple[float, ...], starts: tuple[tuple[float, ...], ...]) -> int | None:
    """The place of an ascending grid on which the breakpoints of its model depend most; None if they are settled.

    They are not as long as there are places within the gap of a breakpoint or next to it (:data:`NEIGHBOURS`), or as
    all places together would allow more segments than the measured ones if errors stayed as they are.
    """
    if all(starts):
        return None
    known = [n for n, values in enumerate(starts) if values]
    found = derive([x[n] for n in known], [median(starts[n]) for n in known], repetitions=[starts[n] for n in known])
    known = [n for n in known if x[n] not in found.outliers]
    metric = error_metric(found.error).at_least(found.floor)
    likely = min(found.fittings, key=lambda f: l1_bic(f, metric, np.array(found.y), len(x)))
    gaps = [(known[last], known[last + 1]) for last in likely.breakpoints]
    more = len(likely.segments) > len(found.best.segments)
    near = {
        n: min(abs(n - (left + right) / 2) for left, right in gaps)
        for n in range(len(x))
        if not starts[n] and (more or any(left - NEIGHBOURS <= n <= right + NEIGHBOURS for left, right in gaps))
    }
    return min(near, key=near.__getitem__, default=None)


def unrepeated(starts: Sequence[Sequence[float]]) -> int | None:
    """The measured place that is furthest from one with two starts: how far starts scatter is not known there.

    None if there is one within :data:`AROUND` measured places of each.
    """
    known = [n for n, values in enumerate(starts) if values]
    repeated = [number for number, n in enumerate(known) if len(starts[n]) > 1]
    apart = [min((abs(number - r) for r in repeated), default=len(known)) for number in range(len(known))]
    furthest = max(range(len(known)), key=lambda number: (apart[number], -abs(number - len(known) // 2)), default=None)
    return known[furthest] if furthest is not None and apart[furthest] > AROUND else None


@dataclass(frozen=True, slots=True)
class _Costs:
    """What a trial takes without filling tables, and a build, in seconds; programs that are built."""

    trial_s: float
    build_s: float
    built: frozenset[str]

    @classmethod
    def of(cls, places: Sequence[GridPoint], found: dict[str, list[Start]]) -> _Costs:
        trials = [max(0.0, t.trial_s - p.setup_s) for p in places for t in found.get(p.key, ())]
        builds = [t.build_s for trials in found.values() for t in trials if t.build_s > 0]
        built = frozenset(p.program for p in places if p.key in found)
        return cls(median(trials) if trials else 1.0, median(builds) if builds else 0.0, built | {""})

    def of_place(self, place: GridPoint) -> float:
        """Roughly what a trial takes: to a power of two of the typical one, since durations wobble."""
        typical_s = max(self.trial_s, 1e-6)
        cost_s = typical_s + place.setup_s + (0.0 if place.program in self.built else self.build_s)
        return float(typical_s * 2 ** round(math.log2(cost_s / typical_s)))


def sweep_design(run: Run, points: Sequence[PlannedPoint]) -> Chooser | None:
    """How a run chooses among its points; None if it measures all of them."""
    design = run.manifest.design
    if design is None:
        return None
    variable = run.variable
    marks = [mark.x for mark in run_marks(run)]

    def place(planned: PlannedPoint) -> GridPoint:
        values = dict(planned.point.values)
        x = values.pop(variable, None) if variable is not None else None
        number = float(x) if isinstance(x, int | float) and not isinstance(x, bool) else None
        build = planned.plan.build
        return GridPoint(planned.key, number, repr(values), build.key if build.commands else "", planned.plan.setup_s)

    places = [place(p) for p in points]
    near = {nearest(mark, [p.x for p in places if p.x is not None]) for mark in marks}
    places = [replace(p, marked=p.x is not None and p.x in near) for p in places]
    return Chooser(places, accuracy=float(design["accuracy"]), seed=run.spec.trials.seed)


def nearest(mark: float, grid: Sequence[float]) -> float | None:
    """The place of a grid next to a mark by its ratio; None if the mark is outside."""
    inside = [x for x in grid if x > 0]
    if not inside or not min(inside) < mark < max(inside):
        return None
    return min(inside, key=lambda x: abs(math.log(x / mark)))
