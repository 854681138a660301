"""What was measured at a load, to set beside what a queue model says of it."""

from __future__ import annotations

import csv
import io
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from p4perf.errors import DataError, Location, UsageError
from p4perf.models.queue.simulation import Estimated
from p4perf.results import RunDirectory
from p4perf.results.files import read_text

METRICS = {"latency_mean": "mean_us", "latency_p50": "p50_us", "latency_p99": "p99_us", "loss_ratio": "loss"}
"""Metrics of a run, and what they are called here."""
NAMES = tuple(METRICS.values())


@dataclass(frozen=True)
class Measured:
    """One offered load.

    Args:
        rate_mpps: mean of the achieved rates [Mpps].
        values: ``mean_us``, ``p50_us``, ``p99_us`` and ``loss``, as far as they are known, with 95 % intervals over the
            repetitions.
    """

    rate_mpps: float
    values: dict[str, Estimated]

    def row(self) -> dict[str, Any]:
        """Plain values for tables and JSON."""
        out: dict[str, Any] = {}
        for name, found in self.values.items():
            out[f"measured_{name}"] = found.value
            out[f"measured_{name}_ci"] = found.half_width if math.isfinite(found.half_width) else None
        return out


def read_measured(path: Path) -> tuple[Measured, ...]:
    """The measurements of a run whose points have one offered load each, or of a CSV file.

    A CSV file has a column ``rate_mpps`` or ``interarrival_us``, and columns of ``mean_us``, ``p50_us``, ``p99_us``
    and ``loss`` as far as they are known. Several lines with the same rate are repetitions.

    Raises:
        UsageError: there is no such file or run, or the run has no latency at loads.
        DataError: it is damaged.
    """
    if not path.exists():
        raise UsageError(f"there is no run directory or file {path}")
    return _of_run(path) if path.is_dir() else _of_csv(path)


def _of_run(path: Path) -> tuple[Measured, ...]:
    table = RunDirectory.open(path).read_measurements()
    table = table[table["accepted"]]
    found = []
    for _, rows in table.groupby("point_index", sort=True):
        rates = rows[rows["metric"] == "offered_rate"]["value"].astype(float).tolist()
        values = {
            name: Estimated.of([float(v) for v in rows[rows["metric"] == metric]["value"]])
            for metric, name in METRICS.items()
            if (rows["metric"] == metric).any()
        }
        if rates and any(name != "loss" for name in values):
            found.append(Measured(sum(rates) / len(rates), values))
    if not found:
        raise UsageError(
            f"the run {path} has no latency at offered loads",
            hint="a run of load/rate has, or any with one load a point",
        )
    return tuple(sorted(found, key=lambda m: m.rate_mpps))


def _of_csv(path: Path) -> tuple[Measured, ...]:
    reader = csv.DictReader(io.StringIO(read_text(path).removeprefix("\ufeff")))
    names = [str(name).strip() for name in reader.fieldnames or ()]
    where = Location(str(path), 1)
    rate = next((name for name in ("rate_mpps", "interarrival_us") if name in names), None)
    known = [name for name in NAMES if name in names]
    if rate is None or not known:
        raise DataError("needs a column rate_mpps or interarrival_us, and one of " + ", ".join(NAMES), location=where)
    groups: dict[float, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in reader:
        cells = {str(k).strip(): str(v or "").strip() for k, v in row.items() if k is not None}
        place = Location(str(path), reader.line_num)
        at = _number(cells, rate, place)
        if at <= 0:
            raise DataError(f"{rate} is not more than zero", location=place)
        for name in known:
            groups[at if rate == "rate_mpps" else 1 / at][name].append(_number(cells, name, place))
    if not groups:
        raise DataError("has a header but no rows", location=where)
    return tuple(
        Measured(at, {name: Estimated.of(values) for name, values in groups[at].items()}) for at in sorted(groups)
    )


def _number(cells: dict[str, str], name: str, where: Location) -> float:
    try:
        value = float(cells.get(name, ""))
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise DataError(f"column {name!r}: {cells.get(name, '')!r:.40} is no number of zero or more", location=where)
    return value


def nearest(measured: Sequence[Measured], rate_mpps: float, *, within: float = 1e-3) -> Measured | None:
    """The measurement at that load, None if there is none."""
    close = [m for m in measured if abs(m.rate_mpps / rate_mpps - 1) <= within]
    return min(close, key=lambda m: abs(m.rate_mpps - rate_mpps), default=None)
