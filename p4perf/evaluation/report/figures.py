"""What the interactive figures show, as plain values: the script of the pages makes Plotly's traces of it.

Traces are made in the browser because the colours follow its dark mode, and because a few hundred numbers are a tenth
of the text of the traces.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from p4perf.evaluation.fitting.working_set import CacheMark, size_text
from p4perf.models.component import ComponentModel, Fitting

DIGITS = 5
"""Significant digits of the numbers of a figure: less than a pixel of any screen."""
_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def rounded(value: Any, digits: int = DIGITS) -> Any:
    """JSON values with floats rounded to significant digits; a float that is not finite becomes None."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        short = float(f"{value:.{digits}g}")
        return int(short) if short.is_integer() and abs(short) < 1e15 else short
    if isinstance(value, Mapping):
        return {str(key): rounded(item, digits) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(item, digits) for item in value]
    return value


def script_json(value: Any, digits: int = DIGITS) -> Markup:
    """JSON for an element ``script``: ``<``, ``>`` and ``&`` are escaped, so no text in it can close the element."""
    text = json.dumps(rounded(value, digits), allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    return Markup(text.translate(_ESCAPES))  # noqa: S704 - nothing in it is markup


EXPLANATIONS = {
    "few_windows": "Too few windows count. The trial is rejected; wait for a quieter time, or free CPUs.",
    "low_acceptance": "Less than 20 % of the windows count. The trial is rejected; see who else uses the machine.",
    "high_spread": "The counted windows are spread by 15 % or more. The trial is rejected; repeat it.",
    "timed_out": "The time was over before all wanted windows were there. The trial can be accepted all the same.",
    "hopped": "The harness moved to another CPU during the trial.",
    "no_realtime": "Real-time scheduling was not granted: run as root or grant CAP_SYS_NICE.",
    "no_hugepages": "Memory is in 4 KiB pages; compare large tables with care.",
    "ungated": "Plain mode: the calibrators did not decide which windows count. Make sure that the core is isolated.",
    "moved": "The device was lost, and the point was measured anew on another one. The trial is not accepted.",
    "no_accepted_rows": "The point has no accepted trial at all; its flags are those of the rejected ones.",
    "preempted": "Another thread had the core of generator or device: loss may not be the device's.",
    "disturbed_core": "Another thread shared the core of the device with it.",
    "drift": "The clock of a core changed by more than 5 % during the traffic.",
    "clock_unknown": "The processor does not say that its TSC has a constant rate: rates and latencies can be off.",
    "few_samples": "p99 of an offered load is left out: fewer than ten latencies lie beyond it.",
    "rate_off_target": "A constant rate was missed by more than 0.1 %, or packets were left over.",
    "foreign_packets": "Packets came back without a stamp of their segment.",
    "generator_bound": "The result is near to what the generator can do without a device: it is a lower bound.",
    "lost_at_offered_load": "Packets were lost at an offered load; latencies are those of the others.",
    "latency_overflow": "Packets took longer than 10 s and are in no percentile.",
    "at_maximum": "The highest load of the search meets the goal: there is no upper bound.",
    "below_minimum": "Even the lowest load exceeds the goal. The trial is rejected.",
    "not_converged": "The search ended before its bounds were close enough; they hold all the same.",
    "no_lower_bound": "The search ended before any load met the goal. The trial is rejected.",
    "disturbed": "Without the loss of disturbed trials the bounds would be others: repeat at a quieter time.",
    "ndr_far_below_pdr": "Without any loss there is far less than with a little: something loses packets at all loads.",
}


def explanation(flag: str) -> str:
    """The meaning of a flag; a plug-in may have others, which are unknown here."""
    return EXPLANATIONS.get(flag, "Not a flag of p4perf itself: see the documentation of the target or testbed.")


CURVE_POINTS = 40
"""Abscissae at which a segment is drawn, at even distances; wide segments have as many at even ratios, since either
axis can be chosen."""
SILENCE = 1e-9
"""A curve below this fraction of the largest median is zero; there is no relative residual."""


def curves(model: ComponentModel) -> list[dict[str, Any]]:
    """The segments of a model: abscissae, values, band (None without intervals) and formula."""
    drawn = []
    for segment, formula in zip(model.fitting.segments, model.formulas(), strict=True):
        x = _abscissae(model, segment)
        estimate = model.estimate(x)
        whole = bool(np.isfinite(estimate.low).all() and np.isfinite(estimate.high).all())
        drawn.append(
            {
                "x": x.tolist(),
                "y": segment.evaluate(x).tolist(),
                "low": estimate.low.tolist() if whole else None,
                "high": estimate.high.tolist() if whole else None,
                "formula": formula,
            }
        )
    return drawn


def _abscissae(model: ComponentModel, segment: Fitting) -> np.ndarray[Any, np.dtype[np.float64]]:
    if segment.start == segment.end:
        return np.array([segment.start])
    even = np.linspace(segment.start, segment.end, CURVE_POINTS)
    if segment.start <= 0 or segment.end <= 3 * segment.start:
        return even
    grown = np.geomspace(segment.start, segment.end, CURVE_POINTS)
    return np.unique(np.clip(np.concatenate([even, grown]), segment.start, segment.end))


def breakpoints(model: ComponentModel) -> list[dict[str, float | None]]:
    """Where segments begin, with the intervals of the breakpoints."""
    known = model.uncertainty.breakpoints if model.uncertainty is not None else ()
    ends: list[tuple[float | None, float | None]]
    ends = [(each.low, each.high) for each in known] or [(None, None)] * len(model.fitting.breakpoint_x)
    return [{"x": x, "low": low, "high": high} for x, (low, high) in zip(model.fitting.breakpoint_x, ends, strict=True)]


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
    return [{"x": mark.x, "text": f"{mark.level}, {size_text(mark.size_bytes)}"} for mark in found]


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
        labels: ``x`` and ``y``: what the axes show; ``title``.
    """
    numeric = all(isinstance(p["x"], int | float) for p in points)
    return {
        "kind": "run",
        **labels,
        "scale": x_scale if numeric else "category",
        "points": [[p[key] for key in ("x", "median", "low", "high", "n")] for p in points if p["n"]],
        "trials": [list(trial) for trial in trials],
        "segments": curves(model) if model else [],
        "breakpoints": breakpoints(model) if model else [],
        "marks": marks(found_marks),
        "residuals": [list(r.values()) for r in residuals(model, points)] if model else [],
    }
