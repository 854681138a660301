"""Units at the border: numbers of a source in the unit of a metric."""

from __future__ import annotations

from fractions import Fraction

from p4perf.errors import UsageError
from p4perf.specs.metrics import metric_named
from p4perf.specs.units import UNITS

_RATIOS = {"%": Fraction(1, 100), "ratio": Fraction(1)}
_SPELT = {"usec": "us", "nsec": "ns", "msec": "ms", "sec": "s", "pkts/s": "pps", "packets/s": "pps", "bps": "bit/s"}
"""Other spellings of units, as MoonGen, TRex and CSIT write them."""


def unit_of_metric(metric: str) -> str:
    """The unit of a metric.

    Raises:
        UsageError: there is no such metric.
    """
    found = metric_named(metric)
    if found is None:
        raise UsageError(f"there is no metric {metric!r}")
    return found.unit


def needs_unit(metric: str) -> bool:
    """Whether numbers of a metric come in several units, and their name does not say in which."""
    return unit_of_metric(metric) in UNITS and not metric.endswith("_bytes")


def convert(value: float, unit: str, metric: str) -> float:
    """A number in the unit of a metric.

    Args:
        value: the number.
        unit: its unit; empty: that of the metric.
        metric: name of the metric.

    Raises:
        UsageError: the unit is not known, or of something else than the metric.
    """
    wanted = unit_of_metric(metric)
    given = _SPELT.get(unit, unit) or wanted
    if given == wanted:
        return value
    if wanted == "lost/sent" and given in _RATIOS:
        return float(Fraction(value) * _RATIOS[given])
    if given in UNITS and wanted in UNITS and UNITS[given].dimension == UNITS[wanted].dimension:
        return float(Fraction(value) * UNITS[given].factor / UNITS[wanted].factor)
    if given in UNITS and wanted in UNITS:
        raise UsageError(f"{unit} is a {UNITS[given].dimension}, but {metric} is a {UNITS[wanted].dimension}")
    if wanted in UNITS:
        same = [name for name, known in UNITS.items() if known.dimension == UNITS[wanted].dimension]
        raise UsageError(f"there is no unit {unit!r} for {metric}", hint=f"units of it: {', '.join(same)}")
    raise UsageError(f"{metric} is in {wanted}, not in {unit!r}")
