"""What whole programs that were measured say of a sum of prices: how far it is off for programs like them.

A program has *features*: how often a packet meets each construct, ``log(1 + times)``, the bytes of its headers, and the
logarithm of the sum of its prices. Programs with nearby features err alike. The logarithm of measured over predicted
cycles is a Gaussian process (Rasmussen and Williams 2006, chapter 2) with the kernel

    k(x, y) = a^2 exp(-|x - y| / l) + b^2 exp(-|m(x) - m(y)| / 4),

plus noise; m is the memory that tables touch, which matters more than all else where caches end, and b is zero where
that is in the prices. What scatters from start to start in programs with about as much memory is noise, too. A program
among known ones has the error that these have and a narrow interval; one unlike all has the error zero and the widest
interval. Intervals are as wide as they have to be to hold 90 % of the known programs, each one predicted without
itself; those with tables and those without for themselves, and of the machine at hand, if they are enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, Self

import numpy as np

from p4perf.models.component import Reader
from p4perf.models.program.graph import Construct
from p4perf.models.program.prices import HIT, price_key
from p4perf.models.templates import FloatArray

NORMAL_90 = 1.6448536269514722
"""Half width of the 90 % interval of a normal distribution, in standard deviations."""

UNIT_BYTES = 16.0
FEWEST = 20
"""With fewer known programs nothing is said, and fewer of a group have the width of all."""

JUDGES = 12
"""Fewest programs of a machine by whose errors intervals are as wide as they are."""

MANY = 60
"""Fewer may be more alike than others are: by them, intervals become wider than the process says, but not narrower."""

LENGTHS, SLOPES, NOISES = (1.0, 2.0, 4.0, 8.0), (0.0125, 0.025, 0.05, 0.1), (0.03, 0.05, 0.1, 0.2)
"""Values of l, of a / sqrt(l), by which nearby programs differ, and of the noise that are tried out."""

FARTHEST = 0.4
"""Larger errors of known programs count as this: what they have is no matter of nearby programs."""

FREEDOM = 4.0
"""Degrees of freedom of the Student distribution by which these are judged, so that single programs do not decide."""

NEARBY, FAR_AWAY = 0.3, 4.0
"""How far the scatter of starts, and errors by memory alone, reach: in the logarithm of memory."""

SUM, MEMORY = "sum", "memory"

TAIL, VECTOR_BYTES = "hash crc32 tail", 16.0
"""Feature of a CRC-32 over bytes that are no multiple of ``VECTOR_BYTES``: on dpdk-c, its last part waits for what was
written just before. A process whose programs do not have it is not told of it."""

ELSEWHERE, UNLIKE = "elsewhere", 1.0
"""Feature of programs of another machine, and its value: how unlike those of this one they are."""

Features = Mapping[str, float]


def features(met: Sequence[tuple[Construct, float]], cycles: float) -> dict[str, float]:
    """The features of a program with that sum of prices."""
    times: dict[str, float] = {}

    def add(name: str, number: float) -> None:
        times[name] = times.get(name, 0.0) + number

    for what, number in met:
        if what.kind == "reuse":  # of few programs, and in their prices
            continue
        key = what.kind if what.kind in ("component", "unknown") else price_key(what)
        if what.kind == "lookup":
            add(key, number * what.number(HIT))
            add(f"{key} miss", number * (1 - what.number(HIT)))
        else:
            add(key, number)
        if key == "hash crc32" and what.number("bytes") % VECTOR_BYTES:
            add(TAIL, number)
        if what.kind in ("extract", "emit", "add header", "remove header"):
            add(f"{key} bytes", number * what.number("bytes") / UNIT_BYTES)
    found = {name: math.copysign(math.log1p(abs(n)), n) for name, n in times.items() if n}
    return {**found, SUM: math.log(max(cycles, 1.0))}


@dataclass(frozen=True, slots=True)
class KnownProgram:
    """A measured program.

    Args:
        ratio: the logarithm of measured over predicted cycles, by prices without it.
        scatter: standard deviation of the logarithm of its cycles, from start to start.
        source: where it is from: programs of one source are left out together; empty: it is alone.
        judges: whether it says how wide intervals are.
    """

    features: Features
    ratio: float
    scatter: float = 0.0
    source: str = field(default="", compare=False)
    judges: bool = field(default=True, compare=False)

    @property
    def has_tables(self) -> bool:
        return any(name.startswith("lookup ") for name in self.features)


@dataclass(frozen=True)
class Experience:
    """What known programs say of others.

    Args:
        length, amplitude, noise: of the process.
        widths: by which standard deviations are multiplied, of programs without tables and with them.
        beyond: amplitude of what depends on memory alone.
    """

    programs: tuple[KnownProgram, ...]
    length: float
    amplitude: float
    noise: float
    widths: tuple[float, float] = (1.0, 1.0)
    beyond: float = 0.0

    def error(self, program: Features) -> tuple[float, float]:
        """The logarithm of measured over predicted cycles, and the half width of its 90 % interval."""
        mean, half = self.errors([program])
        return float(mean[0]), float(half[0])

    def errors(self, programs: Sequence[Features]) -> tuple[FloatArray, FloatArray]:
        """The same of several programs."""
        asked = self._matrix(programs)
        near = self._root @ self._kernel(self._known, asked)
        left = np.maximum(self.amplitude**2 + self.beyond**2 - np.sum(near**2, axis=0), 0.0)
        widths = [self.widths[any(name.startswith("lookup ") for name in program)] for program in programs]
        return self._ratios @ near, NORMAL_90 * np.array(widths) * np.sqrt(left + self._noise(asked))

    @property
    def scatters(self) -> bool:
        """Whether intervals hold what scatters from start to start."""
        return any(program.scatter for program in self.programs)

    @cached_property
    def _names(self) -> list[str]:
        return sorted({name for program in self.programs for name in program.features})

    @cached_property
    def _known(self) -> FloatArray:
        return self._matrix([program.features for program in self.programs])

    @cached_property
    def _root(self) -> FloatArray:
        """A triangle R; R'R is the inverse of the kernel of the known programs, which the noise keeps regular."""
        kernel = self._kernel(self._known, self._known) + np.diag(self._noise(self._known))
        return _inverse_triangle(np.asarray(np.linalg.cholesky(kernel), dtype=np.float64))

    @cached_property
    def _ratios(self) -> FloatArray:
        found: FloatArray = self._root @ np.array([program.ratio for program in self.programs])
        return found

    def _matrix(self, programs: Sequence[Features]) -> FloatArray:
        """Features as rows; what no known program has counts as one feature more."""
        rows = []
        for program in programs:
            unknown = program.keys() - {TAIL, *self._names}
            strange = math.hypot(*(program[name] for name in unknown), 0.0)
            rows.append([*(program.get(name, 0.0) for name in self._names), strange])
        return np.array(rows)

    def _kernel(self, one: FloatArray, other: FloatArray) -> FloatArray:
        squares = np.sum(one**2, axis=1)[:, None] + np.sum(other**2, axis=1) - 2 * one @ other.T
        found: FloatArray = self.amplitude**2 * np.exp(-np.sqrt(np.maximum(squares, 0.0)) / self.length)
        if self.beyond:
            found += self.beyond**2 * np.exp(-self._apart(one, other) / FAR_AWAY)
        return found

    def _apart(self, one: FloatArray, other: FloatArray) -> FloatArray:
        """How far programs are from others in the memory of their tables."""
        if MEMORY not in self._names:
            return np.zeros((len(one), len(other)))
        memory = self._names.index(MEMORY)
        return np.abs(one[:, memory, None] - other[:, memory])

    def _noise(self, programs: FloatArray) -> FloatArray:
        """The variance of the noise of programs."""
        if not self.scatters:
            return np.full(len(programs), self.noise**2)
        scatter = np.array([program.scatter for program in self.programs])
        near = np.exp(-self._apart(programs, self._known) / NEARBY)
        found: FloatArray = self.noise**2 + near @ scatter**2 / near.sum(axis=1)
        return found

    def elsewhere(self) -> tuple[KnownProgram, ...]:
        """The known programs, for a machine that is not theirs."""
        far = {ELSEWHERE: UNLIKE}
        return tuple(replace(p, features={**p.features, **far}, judges=False) for p in self.programs)

    def joined(self, programs: Sequence[KnownProgram]) -> Experience:
        """The same, with more programs of the same processor."""
        return replace(self, programs=(*self.programs, *programs))

    def left_out(self) -> tuple[FloatArray, FloatArray]:
        """What is predicted of every known program without its source, and the standard deviation (equation 5.12)."""
        ratios = np.array([program.ratio for program in self.programs])
        weights = self._ratios @ self._root
        spread = 1 / np.sum(self._root**2, axis=0)
        mean = ratios - weights * spread
        for several in _places(self.programs):
            own = self._root[:, several]
            variance = np.linalg.inv(own.T @ own)
            mean[several], spread[several] = ratios[several] - variance @ weights[several], np.diag(variance)
        return mean, np.sqrt(spread)

    def likelihood(self) -> float:
        """The logarithm of how likely the known programs are, each one predicted without its source."""
        mean, spread = self.left_out()
        errors = (np.array([program.ratio for program in self.programs]) - mean) / spread
        return float(np.sum(-np.log(spread) - (FREEDOM + 1) / 2 * np.log1p(errors**2 / FREEDOM)))

    @staticmethod
    def learn(
        programs: Sequence[KnownProgram],
        noises: Sequence[float] = NOISES,
        *,
        beyonds: Sequence[float] = (0.0,),
        farthest: float = FARTHEST,
    ) -> Experience | None:
        """The process that predicts known programs best, each without its source; None if there are too few.

        Args:
            noises: that are tried out, as ``beyonds``, amplitudes of what depends on memory alone.
            farthest: larger errors count as this.
        """
        if len(programs) < FEWEST:
            return None
        programs = tuple(replace(p, ratio=min(max(p.ratio, -farthest), farthest)) for p in programs)

        def process(numbers: tuple[float, ...]) -> Experience:
            length, slope, noise, beyond = numbers
            return Experience(programs, length, slope * math.sqrt(length), noise, beyond=beyond)

        @cache
        def likelihood(numbers: tuple[float, ...]) -> float:
            return process(numbers).likelihood()

        best = process(_highest((LENGTHS, SLOPES, noises, beyonds), likelihood))
        mean, spread = best.left_out()
        ratios = np.array([program.ratio for program in programs])
        judges = np.array([program.judges for program in programs])
        judged = judges if judges.sum() >= JUDGES else np.ones_like(judges)
        errors = (np.abs(ratios - mean) / spread / NORMAL_90)[judged]
        tables = np.array([program.has_tables for program in programs])[judged]
        groups = [errors[~tables], errors[tables]]
        least = 1.0 if JUDGES <= judges.sum() < min(MANY, len(judges)) else 0.0
        widths = tuple(max(_covering(group if len(group) >= FEWEST else errors), least) for group in groups)
        return replace(best, widths=(widths[0], widths[1]))

    def record(self) -> dict[str, Any]:
        """As JSON values."""
        programs = [
            {"features": {name: round(value, 4) for name, value in p.features.items()}, "ratio": round(p.ratio, 5)}
            | ({"scatter": round(p.scatter, 5)} if p.scatter else {})
            for p in self.programs
        ]
        numbers = {"length": self.length, "amplitude": self.amplitude, "noise": self.noise}
        if self.beyond:
            numbers["beyond"] = self.beyond
        return {**numbers, "widths": list(self.widths), "programs": programs}

    @classmethod
    def from_reader(cls, reader: Reader) -> Self:
        """Read a record.

        Raises:
            DataError: it is damaged.
        """
        programs = tuple(
            each.read(KnownProgram, "scatter", features=each.child("features").numbers(), source="", judges=True)
            for each in reader.children("programs")
        )
        found = reader.read(cls, "beyond", programs=programs)
        if not programs or min(found.length, found.amplitude, found.noise, *found.widths) <= 0:
            reader.fail("length", "length, amplitude, noise and widths are above zero, and there are programs")
        if min(found.beyond, *(program.scatter for program in programs)) < 0:
            reader.fail("beyond", "beyond and the scatter of programs are not below zero")
        return found


def _places(programs: Sequence[KnownProgram]) -> list[list[int]]:
    """Where the programs of each source are that has several."""
    found: dict[str, list[int]] = {}
    for place, program in enumerate(programs):
        if program.source:
            found.setdefault(program.source, []).append(place)
    return [places for places in found.values() if len(places) > 1]


def _highest(grid: Sequence[Sequence[float]], height: Callable[[tuple[float, ...]], float]) -> tuple[float, ...]:
    """Where a grid is highest, looked for along one axis after the other from its middle; not all of it is tried."""
    here = tuple(axis[len(axis) // 2] for axis in grid)
    while True:
        before = here
        for n, axis in enumerate(grid):
            here = max(((*here[:n], value, *here[n + 1 :]) for value in axis), key=height)
        if here == before:
            return here


def _inverse_triangle(lower: FloatArray) -> FloatArray:
    """The inverse of a lower triangle, by halves: several times as fast as that of any matrix."""
    half = len(lower) // 2
    if half < 32:
        return np.asarray(np.linalg.inv(lower), dtype=np.float64)
    found = np.zeros_like(lower)
    found[:half, :half] = _inverse_triangle(lower[:half, :half])
    found[half:, half:] = _inverse_triangle(lower[half:, half:])
    found[half:, :half] = -found[half:, half:] @ (lower[half:, :half] @ found[:half, :half])
    return found


def _covering(errors: FloatArray) -> float:
    """What holds 90 % of new errors like these (split conformal prediction, Lei et al. 2018)."""
    ordered = np.sort(errors)
    rank = min(math.ceil(0.9 * (len(ordered) + 1)), len(ordered))
    return max(float(ordered[rank - 1]), 0.1)
