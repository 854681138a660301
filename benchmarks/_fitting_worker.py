"""Fits series with one method, in the interpreter that has its packages.

Called with the name of the method; reads ``[{"name", "x", "y", "segments"}, ...]`` from standard input and prints, for
each name, the breakpoints, the families of the segments (null where the method has none), the values at x, and CPU
seconds. A series that a method fails on has an ``error`` instead.
"""

from __future__ import annotations

import contextlib
import json
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

REPEATS = 3
PATIENCE_S = 5.0
"""What takes longer is not repeated."""

Answer = tuple[list[int], list[str] | None, Any]
"""Breakpoints, families and values."""


def p4perf(x: Any, y: Any, segments: int) -> Answer:
    """Ours, the number of segments given."""
    from p4perf.evaluation.fitting.derivation import FitOptions, derive

    return _ours(derive(x, y, FitOptions(segments=segments, max_segments=segments, threads=1)).best, x)


def p4perf_auto(x: Any, y: Any, segments: int) -> Answer:
    """Ours, with up to six segments to choose from."""
    from p4perf.evaluation.fitting.derivation import FitOptions, derive

    return _ours(derive(x, y, FitOptions(max_segments=6, threads=1)).best, x)


def _ours(best: Any, x: Any) -> Answer:
    same = {"log_shift": "log"}
    families = [same.get(segment.template.name, segment.template.name) for segment in best.segments]
    breakpoints = [int(np.searchsorted(x, at)) - 1 for at in best.breakpoint_x]  # outliers do not count in its own
    return breakpoints, families, best.evaluate(x)


def extrap(x: Any, y: Any, segments: int) -> Answer:
    """Extra-P's basic modeler: one function for all samples."""
    from extrap.modelers.single_parameter.basic import SingleParameterModeler

    model = SingleParameterModeler().create_model(_measurements(x, y))
    return [], [_pmnf_family(model)], model.hypothesis.function.evaluate(x)


def extrap_segmented(x: Any, y: Any, segments: int) -> Answer:
    """Extra-P's segmented modeler: one function or two, as it decides."""
    from extrap.modelers.single_parameter.segmented import SegmentedModeler

    model = SegmentedModeler().create_model(_measurements(x, y))
    models = getattr(model, "segment_models", [model])
    points = getattr(model, "changing_points", [])[:1]
    breakpoints = [int(np.searchsorted(x, p.coordinate[0])) for p in points]
    return breakpoints, [_pmnf_family(m) for m in models], model.hypothesis.function.evaluate(x)


def _measurements(x: Any, y: Any) -> list[Any]:
    from extrap.entities.callpath import Callpath
    from extrap.entities.coordinate import Coordinate
    from extrap.entities.measurement import Measurement
    from extrap.entities.metric import Metric

    where, what = Callpath("component"), Metric("cost")
    return [Measurement(Coordinate(float(a)), where, what, float(b)) for a, b in zip(x, y, strict=True)]


def _pmnf_family(model: Any) -> str:
    terms = [(t.term_type, float(t.exponent)) for c in model.hypothesis.function.compound_terms for t in c.simple_terms]
    names = {("polynomial", 1.0): "poly1", ("polynomial", 2.0): "poly2", ("logarithm", 1.0): "log"}
    return "const" if not terms else names.get(terms[0], "other") if len(terms) == 1 else "other"


def pwlf(x: Any, y: Any, segments: int) -> Answer:
    """pwlf: joined lines, number of segments given."""
    import pwlf as package

    fit = package.PiecewiseLinFit(x, y, seed=1)
    breaks = fit.fitfast(segments)[1:-1]
    return [int(np.searchsorted(x, b, side="right")) - 1 for b in breaks], None, fit.predict(x)


def ruptures_l2(x: Any, y: Any, segments: int) -> Answer:
    """ruptures: constants, number of segments given, exact."""
    return _ruptures("l2", y[:, None], np.ones((len(x), 1)), segments)


def ruptures_linear(x: Any, y: Any, segments: int) -> Answer:
    """ruptures: separate lines, number of segments given, exact."""
    columns = np.column_stack([(x - x[0]) / (x[-1] - x[0]), np.ones_like(x)])
    return _ruptures("linear", np.column_stack([y, columns]), columns, segments)


def _ruptures(model: str, signal: Any, columns: Any, segments: int) -> Answer:
    from ruptures import Dynp

    n, y = len(signal), signal[:, 0]
    ends = [n]
    if segments > 1:
        ends = Dynp(model=model, min_size=min(5, n // segments), jump=1).fit(signal).predict(n_bkps=segments - 1)
    values = np.empty(n)
    for a, b in zip([0, *ends], ends, strict=False):
        values[a:b] = columns[a:b] @ np.linalg.lstsq(columns[a:b], y[a:b], rcond=None)[0]
    return [end - 1 for end in ends[:-1]], None, values


METHODS: dict[str, tuple[str, Callable[[Any, Any, int], Answer]]] = {
    "p4perf": ("p4perf", p4perf),
    "p4perf-auto": ("p4perf", p4perf_auto),
    "extrap": ("extrap", extrap),
    "extrap-segmented": ("extrap", extrap_segmented),
    "pwlf": ("pwlf", pwlf),
    "ruptures-l2": ("ruptures", ruptures_l2),
    "ruptures-linear": ("ruptures", ruptures_linear),
}
"""For every method its package and its function."""


def timed(function: Callable[[], Answer]) -> tuple[Answer, float]:
    """The answer and the median of CPU seconds."""
    seconds: list[float] = []
    while len(seconds) < REPEATS and sum(seconds) < PATIENCE_S:
        began = time.process_time()
        answer = function()
        seconds.append(time.process_time() - began)
    return answer, statistics.median(seconds)


def main() -> None:
    """Read, fit, print."""
    from importlib.metadata import version

    package, function = METHODS[sys.argv[1]]
    results: dict[str, Any] = {}
    warnings.simplefilter("ignore")
    with contextlib.redirect_stdout(sys.stderr):
        warm_x = np.arange(1.0, 21.0)
        function(warm_x, 3 * warm_x, 1)
        for case in json.load(sys.stdin):
            x, y = np.array(case["x"]), np.array(case["y"])
            try:
                (breakpoints, families, values), seconds = timed(lambda x=x, y=y, k=case["segments"]: function(x, y, k))
            except Exception as error:
                results[case["name"]] = {"error": f"{type(error).__name__}: {error}"}
                continue
            results[case["name"]] = {
                "breakpoints": breakpoints,
                "families": families,
                "values": np.asarray(values, dtype=float).tolist(),
                "cpu_s": seconds,
            }
    json.dump({"version": version(package), "results": results}, sys.stdout)


if __name__ == "__main__":
    main()
