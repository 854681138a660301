"""Derives one series in a process of its own, and says what that took.

Called with the kind of the series, its number of samples, the search and the number of threads. Prints ``ready`` when
everything is imported and drawn, waits for a line, derives, and prints one JSON object: ``cpu_s``, ``wall_s``,
``rss_mb`` (peak), ``import_rss_mb`` (peak before the derivation) and ``errors`` (combined error by number of segments).
"""

from __future__ import annotations

import json
import resource
import sys
import time

import numpy as np
import numpy.typing as npt

from p4perf.evaluation.fitting.derivation import FitOptions, derive
from p4perf.evaluation.fitting.synthetic import piecewise_series

MAX_SEGMENTS = 6
KINDS = {
    "segments": "three segments, noise 1 %",
    "noise": "no pattern, values over decades",
}
"""``noise`` is what took longest of forty kinds of series that were tried: log-normal values, sigma 2, on a
logarithmic axis. No template comes near, so none can be left out early."""

Array = npt.NDArray[np.float64]


def draw(kind: str, n: int) -> tuple[Array, Array]:
    """A series of one of :data:`KINDS`."""
    if kind == "segments":
        series = piecewise_series(1, n, 3, noise=0.01)
        return series.x, series.y
    rng = np.random.default_rng(1)
    return np.geomspace(1.0, 1e6, n), np.exp(2 * rng.standard_normal(n))


def peak_mb() -> float:
    """Largest resident set of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Derive and print."""
    kind, n, search, threads = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    assert search in ("exact", "coarse")
    x, y = draw(kind, n)
    derive(x[:12], y[:12], FitOptions(max_segments=1, threads=threads))
    imports = peak_mb()
    print("ready", flush=True)
    sys.stdin.readline()
    cpu, wall = time.process_time(), time.perf_counter()
    found = derive(x, y, FitOptions(max_segments=MAX_SEGMENTS, search=search, threads=threads))  # type: ignore[arg-type]
    record = {
        "cpu_s": time.process_time() - cpu,
        "wall_s": time.perf_counter() - wall,
        "rss_mb": peak_mb(),
        "import_rss_mb": imports,
        "errors": {len(fitting.segments): fitting.error for fitting in found.fittings},
    }
    print(json.dumps(record))


if __name__ == "__main__":
    main()
