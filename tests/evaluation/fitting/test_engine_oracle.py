"""The fit engine beside two others: plain numpy, and scipy on the forms of the code of Scholz et al. 2021."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pytest
from scipy.optimize import curve_fit
from support.fit_oracle import Batch, fit_template, fitted_values
from support.fit_segments import Series, noisy_series, random_segments, squares

from p4perf.models import standard_templates
from p4perf.models.templates import Logarithm, Polynomial, find_template

TEMPLATES = standard_templates()
LINEAR = [t.name for t in TEMPLATES if isinstance(t.basis, Polynomial | Logarithm) and not t.inverse]
CLOSE = 1 + 1e-3
SHARE = 0.98
PERFECT = 1e-20
"""Share of the squares of the samples below which a sum of squares is rounding."""

PUBLISHED: dict[str, tuple[Callable[..., np.ndarray], int]] = {
    "log_shift": (lambda x, a, b, c, d: a * np.log(b * x + c) + d, 4),
    "power": (lambda x, a, b: a * x**b, 2),
    "exp": (lambda x, a, b, c, d, e: a * b ** (c * x + d) + e, 5),
    "inv_log": (lambda x, a, b, c, d: a / (b * np.log(c * x) + d), 4),
    "inv_log_shift": (lambda x, a, b, c, d, e: a / (b * np.log(c * x + d) + e), 5),
    "inv_exp": (lambda x, a, b, c, d, e, f: a / (b * c ** (d * x + e) + f), 6),
    **{f"inv_poly{degree}": ((lambda x, a, *c: a / np.polyval(c[::-1], x)), degree + 2) for degree in range(1, 6)},
}
"""Functions as the published code writes them (the power is not there), and their number of parameters."""


@dataclass
class Tally:
    """How often the engine was close to a rival, for each template."""

    ratios: dict[str, list[float]] = field(default_factory=lambda: {t.name: [] for t in TEMPLATES})

    def add(self, name: str, ours: float, theirs: float, y: np.ndarray) -> None:
        floor = PERFECT * float((y**2).sum())
        self.ratios[name].append(max(ours, floor) / max(theirs, floor))

    def share(self, name: str, close: float = CLOSE) -> float:
        return float(np.mean(np.array(self.ratios[name]) <= close))


@pytest.fixture(scope="module")
def tried() -> list[tuple[Series, np.ndarray, np.ndarray, np.ndarray]]:
    """Series, starts and ends of segments, and the sums of squares of the engine."""
    rng = np.random.default_rng(5)
    out = []
    for x, y in noisy_series(14):
        starts, ends = random_segments(rng, len(x), 20)
        out.append(((x, y), starts, ends, squares(x, y, starts, ends, TEMPLATES)))
    return out


def samples(tried) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """x, y and the sums of squares of one segment after the other."""
    for (x, y), starts, ends, found in tried:
        for row, (a, b) in enumerate(zip(starts, ends, strict=True)):
            yield x[a : b + 1], y[a : b + 1], found[row]


@pytest.mark.parametrize("name", LINEAR)
def test_linear_templates_are_the_least_squares_solution(tried, name: str) -> None:
    column, template = [t.name for t in TEMPLATES].index(name), find_template(name)
    tally = Tally()
    for x, y, found in samples(tried):
        if len(x) <= len(template.parameter_names):
            continue
        if isinstance(template.basis, Polynomial):
            u = 2 * (x - x[0]) / (x[-1] - x[0]) - 1
            design = np.polynomial.legendre.legvander(u, template.basis.degree)
        else:
            design = np.stack([np.ones_like(x), np.log(x)], axis=1)
        best = design @ np.linalg.lstsq(design, y, rcond=None)[0]
        tally.add(name, found[column], float(((best - y) ** 2).sum()), y)
    assert len(tally.ratios[name]) > 200
    assert tally.share(name, 1 + 1e-6) == 1


def beside_numpy(tally: Tally, x, y, starts, ends, found) -> None:
    batch = Batch.of_intervals(x, y, starts, ends)
    for column, template in enumerate(TEMPLATES):
        values = fitted_values(batch, template, fit_template(batch, template))
        theirs = np.where(batch.mask, (values - batch.y) ** 2, 0.0).sum(axis=1)
        for row in np.flatnonzero(np.isfinite(theirs)):
            tally.add(template.name, found[row, column], theirs[row], y[starts[row] : ends[row] + 1])


def test_not_worse_than_plain_numpy(tried) -> None:
    tally = Tally()
    for (x, y), starts, ends, found in tried:
        beside_numpy(tally, x, y, starts, ends, found)
    assert min(len(ratios) for ratios in tally.ratios.values()) > 200
    assert {name: tally.share(name) for name in tally.ratios if tally.share(name) < SHARE} == {}


@pytest.mark.thorough
def test_not_worse_than_the_solver_of_the_published_code(tried) -> None:
    tally = Tally()
    for number, (x, y, found) in enumerate(samples(tried)):
        for column, template in enumerate(TEMPLATES):
            if template.name in PUBLISHED and number % 3 == 0 and np.isfinite(found[column]):
                function, count = PUBLISHED[template.name]
                parameters = converged(function, x, y, count)
                if parameters is not None and within_our_domain(template.name, parameters, x):
                    theirs = float(((function(x, *parameters) - y) ** 2).sum())
                    tally.add(template.name, found[column], theirs, y)
    compared = {name: tally.ratios[name] for name in PUBLISHED}
    assert min(len(ratios) for ratios in compared.values()) >= 20
    assert {name: tally.share(name) for name in compared if tally.share(name) < SHARE} == {}


def converged(function, x: np.ndarray, y: np.ndarray, count: int) -> np.ndarray | None:
    """What Levenberg-Marquardt finds from ones, as the published code starts it; None where it fails."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return curve_fit(function, x, y, p0=np.ones(count))[0]
        except (RuntimeError, TypeError, ValueError):
            return None


def within_our_domain(name: str, p: np.ndarray, x: np.ndarray) -> bool:
    """Whether a published form stands for a curve that the engine considers: no pole, and a shape that samples show."""
    at = np.concatenate([x, (x[1:] + x[:-1]) / 2])
    with np.errstate(all="ignore"):
        values = PUBLISHED[name][0](at, *p)
    if not np.isfinite(values).all() or (name.startswith("inv") and not ((values > 0).all() or (values < 0).all())):
        return False
    span, first_gap, last_gap = x[-1] - x[0], x[1] - x[0], x[-1] - x[-2]
    base, slope = p[2:4] if name in ("inv_exp", "inv_log_shift") else p[[1, min(2, len(p) - 1)]]
    if name.endswith("exp"):
        rate = slope * np.log(base) if base > 0 else 0.0
        return bool(0.1 / span <= abs(rate) <= 1 / (last_gap if rate > 0 else first_gap))
    if name.endswith("log_shift"):
        return bool(base > 0 and first_gap / 4 <= x[0] + slope / base <= 10 * span)
    return True


def test_the_cases_of_the_paper(fitcases) -> None:
    tally = Tally()
    rng = np.random.default_rng(6)
    for name in ("a0_fig2", "a1_fig2", "d60_05_k4", "d60_10_k3", "c_exp_5pct"):
        _, x, y = fitcases.load(name)
        starts, ends = random_segments(rng, len(x), 40)
        beside_numpy(tally, x, y, starts, ends, squares(x, y, starts, ends, TEMPLATES))
    assert {name: tally.share(name) for name in tally.ratios if tally.share(name) < SHARE} == {}
