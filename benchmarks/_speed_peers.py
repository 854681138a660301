"""The fit engine beside others: the same templates on the same segments, CPU seconds for all segments of a series."""

from __future__ import annotations

import importlib
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.optimize import curve_fit

from p4perf.evaluation.fitting import engine
from p4perf.models.templates import BasisTemplate, registered_templates

SUPPORT = Path(__file__).resolve().parents[1] / "tests" / "support"
MIN_POINTS = 7
"""Every template can be fitted to segments of so many samples."""
WORSE = 1.01
"""A residual sum of squares is worse if it is above this multiple of the other."""

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]


@dataclass(frozen=True)
class PeerRow:
    """One way to fit every template to every segment.

    Args:
        method: name.
        segments: segments that were fitted.
        cpu_s: CPU seconds for them.
        whole_cpu_s: the same for all segments of the series, extrapolated if not all were fitted.
        failed: share of fits without a result where the engine has one.
        worse: share of fits with a larger residual sum of squares than the engine's (by more than 1 %), failed
            ones included.
        better: share of fits with a smaller one, those included where the engine has none.
    """

    method: str
    segments: int
    cpu_s: float
    whole_cpu_s: float
    failed: float
    worse: float
    better: float


def compare(x: Array, y: Array, *, sample: int, seed: int = 1) -> list[PeerRow]:
    """The engine, scipy's curve_fit on a sample of the segments, and the numpy oracle of the tests if it is there."""
    n = len(x)
    starts, ends = (a.astype(np.int64) for a in np.triu_indices(n, MIN_POINTS - 1))
    templates = [t for t in registered_templates() if isinstance(t, BasisTemplate) and engine.knows(t)]
    some = np.sort(np.random.default_rng(seed).choice(len(starts), min(sample, len(starts)), replace=False))
    few = starts[some], ends[some]
    began = time.process_time()
    fits = engine.fitted_templates(x, y, starts, ends, templates, threads=1)
    whole = time.process_time() - began
    ours = np.full((len(some), len(templates)), np.inf)
    for k, template in enumerate(templates):
        fit = fits.of(k)
        for row, segment in enumerate(some):
            at = slice(starts[segment], ends[segment] + 1)
            values = template.evaluate(x[at], fit.parameters[segment], fit.origin[segment])
            ours[row, k] = _rss(y[at], values)
    rows = [PeerRow("p4perf's engine, one thread", len(starts), whole, whole, 0.0, 0.0, 0.0)]
    peers: list[tuple[str, Callable[..., Array] | None]] = [
        ("scipy's curve_fit", _scipy), ("numpy oracle of the tests", _oracle()),
    ]  # fmt: skip
    for name, method in peers:
        if method is None:
            continue
        began = time.process_time()
        theirs = method(x, y, few, templates)
        seconds = time.process_time() - began
        rows.append(PeerRow(name, len(some), seconds, seconds * len(starts) / len(some), *_judge(ours, theirs)))
    return rows


def _judge(ours: Array, theirs: Array) -> tuple[float, float, float]:
    tiny = 1e-20 * np.nanmax(np.where(np.isfinite(ours), ours, 0.0))
    failed = ~np.isfinite(theirs) & np.isfinite(ours)
    return (
        float(failed.mean()),
        float((failed | (theirs > WORSE * ours + tiny)).mean()),
        float((ours > WORSE * np.where(np.isfinite(theirs), theirs, np.inf) + tiny).mean()),
    )


def _rss(y: Array, values: Array) -> float:
    rss = float(np.sum((y - values) ** 2))
    return rss if np.isfinite(rss) else np.inf


def _scipy(x: Array, y: Array, segments: tuple[Indices, Indices], templates: Sequence[BasisTemplate]) -> Array:
    """Residual sums of squares; both axes scaled to the segment, all parameters started at 1."""
    out = np.full((len(segments[0]), len(templates)), np.inf)
    scale = float(np.abs(y).max())
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for row, (start, end) in enumerate(zip(*segments, strict=True)):
            at = slice(start, end + 1)
            u, v = x[at] / x[end], y[at] / scale
            for k, template in enumerate(templates):
                ones = np.ones(len(template.parameter_names))

                def curve(u: Array, *p: float, template: BasisTemplate = template) -> Array:
                    return template.evaluate(u, np.asarray(p))

                try:
                    found, _ = curve_fit(curve, u, v, p0=ones)
                except (RuntimeError, ValueError, TypeError):
                    continue
                out[row, k] = scale**2 * _rss(v, template.evaluate(u, found))
    return out


def _oracle() -> Callable[..., Array] | None:
    """The numpy oracle of the tests, if there is one."""
    if not (SUPPORT / "fit_oracle.py").exists():
        return None
    sys.path.insert(0, str(SUPPORT))
    try:
        module = importlib.import_module("fit_oracle")
    finally:
        sys.path.remove(str(SUPPORT))

    def run(x: Array, y: Array, segments: tuple[Indices, Indices], templates: Sequence[BasisTemplate]) -> Array:
        batch = module.Batch.of_intervals(x, y, *segments)
        out = np.full((len(segments[0]), len(templates)), np.inf)
        with np.errstate(all="ignore"):
            for k, template in enumerate(templates):
                values = module.fitted_values(batch, template, module.fit_template(batch, template))
                rss = np.sum(np.where(batch.mask, batch.y - values, 0.0) ** 2, axis=1)
                out[:, k] = np.where(np.isfinite(rss), rss, np.inf)
        return out

    return run
