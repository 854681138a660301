"""How robust are derived models: against values near zero, outliers, and few points?

zero       lines through y = 0, from the origin and with an offset, so that they change their sign: the share that gets
           one segment. Noise is relative (1 to 3 %), absolute (0.2 to 2 % of the largest value), or both
outliers   steps, lines and knees with noise of 1 to 3 %, of which every tenth sample is three times too high: the
           share with the right number of segments, and of those the share whose parameters are within 5 % of the truth:
           values at both ends of each segment, and the slope of a line. `clean` is the same without outliers
few        three points of a nearly straight line, extrapolated, beside the line of least squares; lines of 3 to 9
           points with noise of 1 to 3 %, extrapolated to one and a half times the range: the share within 30 % of the
           truth

Seeds are fixed, so the same version prints the same numbers.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

import p4perf
from p4perf.evaluation.fitting.component import DerivedModel

Array = npt.NDArray[np.float64]
ZERO_SHARE, OUTLIER_SHARE, PARAMETER_SHARE, PARAMETER_OFF = 0.95, 0.85, 0.85, 0.05
FEW_OFF = 0.3
THREE_POINTS = ((1.0, 33.13), (1024.0, 1083.39), (4096.0, 4540.15))
EXTRAPOLATED_X = 6000.0
OUTLIERS, FACTOR = 0.1, 3.0
ZERO_SEED, OUTLIER_SEED, FEW_SEED = 1000, 2000, 3000


@dataclass(frozen=True)
class Result:
    """One line of the report: hits of tries, and the share that is asked for, None if none is."""

    group: str
    name: str
    hits: int
    tries: int
    wanted: float | None = None

    @property
    def share(self) -> float:
        return self.hits / self.tries if self.tries else 0.0

    @property
    def holds(self) -> bool | None:
        return None if self.wanted is None else self.share >= self.wanted


@dataclass(frozen=True, eq=False)
class Truth:
    """A piecewise line: index of the first sample of each segment, values at its first sample, slopes by sample."""

    values: Array
    starts: tuple[int, ...]
    slopes: tuple[float, ...]


def fit(x: Array, y: Array, **options: object) -> DerivedModel:
    return p4perf.fit(x, y, resamples=0, threads=1, **options)  # type: ignore[arg-type]


# --- lines through zero


def zero_line(seed: int, offset: bool, noise: str) -> tuple[Array, Array]:
    """20 to 100 samples of a line from the origin, or through zero somewhere in the middle."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice([20, 40, 60, 100]))
    x = np.arange(n, dtype=np.float64)
    slope = float(rng.uniform(0.5, 20)) * (1 if rng.random() < 0.5 else -1)
    truth = slope * (x - (rng.uniform(0.1, 0.9) * n if offset else 0.0))
    relative = rng.uniform(0.01, 0.03) if noise != "absolute" else 0.0
    absolute = rng.uniform(0.002, 0.02) * np.abs(truth).max() if noise != "relative" else 0.0
    return x, truth * (1 + relative * rng.standard_normal(n)) + absolute * rng.standard_normal(n)


def zero_lines(draws: int) -> Iterator[Result]:
    """Lines that get one segment."""
    for offset in (False, True):
        for number, noise in enumerate(("relative", "absolute", "both")):
            first = ZERO_SEED + 10_000 * (3 * offset + number)
            found = [
                len(fit(*zero_line(first + k, offset, noise)).model.fitting.segments) == 1 for k in range(draws // 6)
            ]
            name = f"{'with' if offset else 'without'} offset, {noise} noise"
            yield Result("zero", name, int(sum(found)), len(found), ZERO_SHARE)


# --- outliers


def steps(rng: np.random.Generator, n: int) -> Truth:
    """Two or three levels that differ by a factor of 1.3 to 2.5."""
    k = int(rng.integers(2, 4))
    bounds = _bounds(rng, n, k)
    level, values = float(rng.uniform(50, 500)), []
    for a, b in pairwise(bounds):
        values.append(np.full(b - a, level))
        level *= float(rng.uniform(1.3, 2.5)) ** (1 if rng.random() < 0.7 else -1)
    return Truth(np.concatenate(values), tuple(bounds[:-1]), (0.0,) * k)


def line(rng: np.random.Generator, n: int) -> Truth:
    """A line that rises or falls by a factor of 2 to 5."""
    begin, factor = float(rng.uniform(50, 500)), float(rng.uniform(2, 5))
    ends = (begin, begin * factor) if rng.random() < 0.7 else (begin * factor, begin)
    return Truth(np.linspace(*ends, n), (0,), ((ends[1] - ends[0]) / (n - 1),))


def knee(rng: np.random.Generator, n: int) -> Truth:
    """Two joined lines whose slopes differ by a factor of 5 to 20; the curve rises by a factor of 3 to 6."""
    at = _bounds(rng, n, 2)[1]
    ratio, begin, factor = float(rng.uniform(5, 20)), float(rng.uniform(50, 500)), float(rng.uniform(3, 6))
    first, second = (1.0, ratio) if rng.random() < 0.5 else (ratio, 1.0)
    shape = np.concatenate([first * np.arange(at), first * at + second * np.arange(n - at)])
    slope = begin * (factor - 1) / shape[-1]
    return Truth(begin + slope * shape, (0, at), (slope * first, slope * second))


def _bounds(rng: np.random.Generator, n: int, segments: int) -> list[int]:
    """Where segments of at least a fifth of the samples begin, and n."""
    room = n - segments * (n // 5)
    cuts = np.sort(rng.integers(0, room + 1, segments - 1))
    return [0, *(int(c) + (k + 1) * (n // 5) for k, c in enumerate(cuts)), n]


def with_outliers(rng: np.random.Generator, y: Array) -> Array:
    out = y.copy()
    out[rng.choice(len(y), max(1, round(OUTLIERS * len(y))), replace=False)] *= FACTOR
    return out


SHAPES: dict[str, Callable[[np.random.Generator, int], Truth]] = {"steps": steps, "lines": line, "knees": knee}


def outlier_series(shape: str, seed: int) -> tuple[Array, Array, Array, Truth]:
    """Abscissae, clean samples, the same with outliers, and the truth."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice([40, 60, 100]))
    truth = SHAPES[shape](rng, n)
    clean = truth.values * (1 + rng.uniform(0.01, 0.03) * rng.standard_normal(n))
    return np.arange(n, dtype=np.float64), clean, with_outliers(rng, clean), truth


def parameters_hold(model: DerivedModel, truth: Truth) -> bool:
    """Whether values at the ends of segments, and the slope of a line, are within 5 % of the truth.

    The numbers of segments must be the same.
    """
    ends = [*truth.starts[1:], len(truth.values)]
    for segment, first, last, slope in zip(model.model.fitting.segments, truth.starts, ends, truth.slopes, strict=True):
        inside = np.array([first, last - 1], dtype=np.float64)
        if (np.abs(segment.evaluate(inside) / truth.values[[first, last - 1]] - 1) > PARAMETER_OFF).any():
            return False
        found = float(np.subtract(*segment.evaluate(inside[::-1]))) / (last - 1 - first)
        if len(truth.starts) == 1 and abs(found / slope - 1) > PARAMETER_OFF:
            return False
    return True


def outliers(draws: int, *, clean: bool = True) -> Iterator[Result]:
    """Series whose number of segments and parameters are found."""
    for number, shape in enumerate(SHAPES):
        for without_them in (True, False) if clean else (False,):
            right, close = [], []
            for k in range(draws):
                x, without, disturbed, truth = outlier_series(shape, OUTLIER_SEED + 10_000 * number + k)
                model = fit(x, without if without_them else disturbed)
                right.append(len(model.model.fitting.segments) == len(truth.starts))
                if right[-1]:
                    close.append(parameters_hold(model, truth))
            name = f"{shape}, clean" if without_them else f"{shape}, {OUTLIERS:.0%} outliers"
            wanted = (None, None) if without_them else (OUTLIER_SHARE, PARAMETER_SHARE)
            yield Result("outliers", f"{name}: segments", int(sum(right)), len(right), wanted[0])
            yield Result("outliers", f"{name}: parameters", int(sum(close)), len(close), wanted[1])


# --- few points


def three_points() -> tuple[float, float]:
    """What the model of the three points says at the extrapolated x, and what their line says."""
    x, y = np.array(THREE_POINTS).T
    slope, base = np.polyfit(x, y, 1)
    return float(fit(x, y)(EXTRAPOLATED_X)), float(base + slope * EXTRAPOLATED_X)


def few_points(draws: int) -> Iterator[Result]:
    """Extrapolations within 30 % of the truth."""
    found, line_of_squares = three_points()
    close = abs(found / line_of_squares - 1) <= FEW_OFF
    yield Result("few", f"three points: {found:.0f}, their line: {line_of_squares:.0f}", int(close), 1, 1.0)
    for scale in ("linear", "geometric"):
        near = []
        for k in range(draws):
            rng = np.random.default_rng(FEW_SEED + k)
            n = int(rng.integers(3, 10))
            x = np.arange(1.0, n + 1) * 8 if scale == "linear" else 4.0 ** np.arange(n)
            base, slope = rng.uniform(10, 200), rng.uniform(0.2, 5)
            y = (base + slope * x) * (1 + rng.uniform(0.01, 0.03) * rng.standard_normal(n))
            at = x[-1] * 1.5
            near.append(abs(float(fit(x, y)(at)) / (base + slope * at) - 1) <= FEW_OFF)
        yield Result("few", f"lines of 3 to 9 points, {scale} x", int(sum(near)), draws)


def results(lines: int, shapes: int, few: int) -> Iterator[Result]:
    yield from zero_lines(lines) if lines else ()
    yield from outliers(shapes) if shapes else ()
    yield from few_points(few) if few else ()


WIDTH = 42
"""Of the names in the table."""


def line_of(row: Result) -> str:
    """A result as plain text."""
    limit = "" if row.wanted is None else f"  >= {100 * row.wanted:.0f} %  {'holds' if row.holds else 'FAILS'}"
    return f"{row.group:<9} {row.name:<{WIDTH}}  {row.hits:>4}/{row.tries:<4} {100 * row.share:5.1f} %{limit}"


def main() -> None:
    """Draw, fit, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", type=int, default=1000, help="lines through zero; 0: none")
    parser.add_argument("--shapes", type=int, default=200, help="series of each shape with outliers")
    parser.add_argument("--few", type=int, default=300, help="short series of each kind")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the table as JSON as well")
    options = parser.parse_args()
    rows = []
    for row in results(options.lines, options.shapes, options.few):
        print(line_of(row), flush=True)
        rows.append(row)
    failed = [row for row in rows if row.holds is False]
    print(f"\n{sum(row.holds is True for row in rows)} limits hold, {len(failed)} do not")
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
