"""Component models with segments and bands as tests want them."""

import numpy as np

from p4perf.models import ComponentModel, Fitting, PiecewiseFitting
from p4perf.models.component import ConfidenceInterval, Quantity, Uncertainty
from p4perf.models.templates import find_template


def line_model(*segments, band=None, scale="linear", split_reach=0.0):
    """A model of lines.

    Args:
        segments: intercept, slope, start, end (abscissae are the whole numbers between).
        band: half-width of the band as a share of the curve; None for no uncertainty.
        scale: of x.
        split_reach: half-width of the interval of each breakpoint.
    """
    fittings = tuple(
        Fitting(find_template("poly1"), (float(a), float(b)), float(start), float(end), 0.0, int(end - start) + 1)
        for a, b, start, end in segments
    )
    fitting = PiecewiseFitting.join(fittings)
    uncertainty = None
    if band is not None:
        x = np.concatenate([np.arange(start, end + 1.0) for _, _, start, end in segments])
        y = fitting.evaluate(x)
        none = tuple(tuple(ConfidenceInterval(p, p) for p in segment.parameters) for segment in fittings)
        breakpoints = tuple(ConfidenceInterval(s - split_reach, s + split_reach) for s in fitting.breakpoint_x)
        low, high = y - band * np.abs(y), y + band * np.abs(y)
        uncertainty = Uncertainty(0.95, none, breakpoints, tuple(x), tuple(low), tuple(high), 200, 1)
    return ComponentModel("m", "t", Quantity("x", "", scale), Quantity("y"), fitting, uncertainty=uncertainty)
