"""What the interactive figures show, as plain values: the script of the pages makes Plotly's traces of it.

Traces are made in the browser because the colours follow its dark mode, and because a few hundred numbers are a tenth
of the text of the traces.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from p4perf.evaluation.working_set import CacheMark
from p4perf.models.component import ComponentModel
from p4perf.models.fitting import Fitting

CURVE_POINTS = 40
"""Abscissae at which a part is drawn: so many at even distances and, of wide parts, so many at even ratios, as either
axis can be chosen."""
SILENCE = 1e-9
"""A curve below this fraction of the largest median is zero; there is no relative residual."""


def curves(model: ComponentModel) -> list[dict[str, Any]]:
    """The parts of a model: abscissae, values, band (None without intervals) and formula."""
    drawn = []
    for part, formula in zip(model.fitting.parts, model.formulas(), strict=True):
        x = _abscissae(model, part)
        estimate = model.estimate(x)
        whole = bool(np.isfinite(estimate.low).all() and np.isfinite(estimate.high).all())
        drawn.append(
            {
                "x": x.tolist(),
                "y": part.evaluate(x).tolist(),
                "low": estimate.low.tolist() if whole else None,
                "high": estimate.high.tolist() if whole else None,
                "formula": formula,
            }
        )
    return drawn


def _abscissae(model: ComponentModel, part: Fitting) -> np.ndarray[Any, np.dtype[np.float64]]:
    if part.start == part.end:
        return np.array([part.start])
    even = np.linspace(part.start, part.end, CURVE_POINTS)
    if part.start <= 0 or part.end <= 3 * part.start:
        return even
    grown = np.geomspace(part.start, part.end, CURVE_POINTS)
    return np.unique(np.clip(np.concatenate([even, grown]), part.start, part.end))


def splits(model: ComponentModel) -> list[dict[str, float | None]]:
    """Where parts begin, with the intervals of the splits."""
    known = model.uncertainty.splits if model.uncertainty is not None else ()
    ends: list[tuple[float | None, float | None]]
    ends = [(each.low, each.high) for each in known] or [(None, None)] * len(model.fitting.split_x)
    return [{"x": x, "low": low, "high": high} for x, (low, high) in zip(model.fitting.split_x, ends, strict=True)]


def residuals(model: ComponentModel, points: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Distance of the medians from the curve, in % of the curve, with those of the ends of their intervals."""
    kept = [p for p in points if p["n"] and isinstance(p["x"], int | float)]
    largest = max((abs(p["median"]) for p in kept), default=0.0)
    found = []
    for point, curve in zip(kept, model.evaluate([p["x"] for p in kept]).tolist(), strict=True):
        if abs(curve) > SILENCE * largest:
            ends = {key: 100 * (point[key] - curve) / abs(curve) for key in ("median", "low", "high")}
            found.append({"x": point["x"], **ends})
    return found


def marks(found: Sequence[CacheMark]) -> list[dict[str, Any]]:
    """Cache sizes, such as ``L2, 2 MiB``."""
    return [{"x": mark.x, "text": f"{mark.level}, {bytes_text(mark.size_bytes)}"} for mark in found]


def bytes_text(size: float) -> str:
    """Such as ``2 MiB``."""
    for unit, step in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= step:
            return f"{size / step:.3g} {unit}"
    return f"{size:.0f} B"


def run_figure(
    points: Sequence[Mapping[str, Any]],
    trials: Sequence[Sequence[Any]],
    model: ComponentModel | None,
    found_marks: Sequence[CacheMark],
    *,
    labels: Mapping[str, str],
    x_scale: str,
) -> dict[str, Any]:
    """The figure of a run.

    Args:
        points: ``x`` (number or text), ``median``, ``low``, ``high``, ``n``.
        trials: ``x``, value, repetition, accepted (0 or 1) and flags of every repetition.
        model: the curve, or None.
        found_marks: cache sizes.
        labels: ``x`` and ``y``: what the axes show; ``title``.
        x_scale: ``linear`` or ``log``.
    """
    numeric = all(isinstance(p["x"], int | float) for p in points)
    return {
        "kind": "run",
        **labels,
        "scale": x_scale if numeric else "category",
        "points": [[p[key] for key in ("x", "median", "low", "high", "n")] for p in points if p["n"]],
        "trials": [list(trial) for trial in trials],
        "parts": curves(model) if model else [],
        "splits": splits(model) if model else [],
        "marks": marks(found_marks),
        "residuals": [list(r.values()) for r in residuals(model, points)] if model else [],
    }
