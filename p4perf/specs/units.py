"""Quantities with units, as people write them in specs: ``10 Gbit/s``, ``64 B``, ``1 KiB``, ``0.5 Mpps``, ``200 ms``.

A quantity is a number, optional space and a unit. Decimal prefixes are powers of ten (k = 10**3, M = 10**6, G = 10**9,
T = 10**12); binary prefixes are powers of two (Ki = 2**10, Mi = 2**20, Gi = 2**30, Ti = 2**40). Inside p4perf every
number is in the one unit that its name carries; this table is only for the border. Calculations are exact.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Literal

from p4perf.errors import SpecError, UsageError
from p4perf.specs.messages import quoted

Dimension = Literal["data size", "data rate", "packet rate", "time", "frequency", "cycles"]


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit: what it measures and its size in the base unit of that dimension."""

    dimension: Dimension
    factor: Fraction


BASE_UNITS: MappingProxyType[str, str] = MappingProxyType(
    {"data size": "B", "data rate": "bit/s", "packet rate": "pps", "time": "s", "frequency": "Hz", "cycles": "cycles"}
)
"""The unit of factor one of every dimension."""

_DECIMAL = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_FINE = {"": Fraction(1), "m": Fraction(1, 10**3), "u": Fraction(1, 10**6), "µ": Fraction(1, 10**6)}
_FINE |= {"μ": Fraction(1, 10**6), "n": Fraction(1, 10**9)}


def _table() -> dict[str, Unit]:
    units: dict[str, Unit] = {}
    for prefix, factor in (_DECIMAL | _BINARY).items():
        units[f"{prefix}B"] = Unit("data size", Fraction(factor))
        units[f"{prefix}bit"] = Unit("data size", Fraction(factor, 8))
        units[f"{prefix}bit/s"] = Unit("data rate", Fraction(factor))
        units[f"{prefix}B/s"] = Unit("data rate", Fraction(factor * 8))
    for prefix, factor in _DECIMAL.items():
        units[f"{prefix}bps"] = Unit("data rate", Fraction(factor))
        units[f"{prefix}pps"] = Unit("packet rate", Fraction(factor))
        units[f"{prefix}Hz"] = Unit("frequency", Fraction(factor))
    for prefix, fine in _FINE.items():
        units[f"{prefix}s"] = Unit("time", fine)
    units["min"] = Unit("time", Fraction(60))
    for name in ("cycle", "cycles"):
        units[name] = Unit("cycles", Fraction(1))
    return units


UNITS: MappingProxyType[str, Unit] = MappingProxyType(_table())
"""Every unit that is understood, by symbol (upper and lower case differ: ``Mbit``, not ``mbit``)."""

_QUANTITY = re.compile(
    r"\s*([-+]?[0-9][0-9_]{0,30}(?:\.[0-9]{0,30})?(?:[eE][-+]?[0-9]{1,2})?)\s*([A-Za-zµμ/]{1,12})\s*"
)


def parse_quantity(text: str, dimension: Dimension, unit: str | None = None) -> Fraction:
    """Read a quantity.

    Args:
        unit: unit of the result; the base unit of the dimension if not given.

    Returns:
        The exact value in that unit.

    Raises:
        SpecError: no number with a unit, an unknown unit, or a unit of another dimension; the message names the
            dimension and units that are expected.
    """
    expected = f"expected a {dimension} such as {_EXAMPLES[dimension]}"
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise SpecError(f"{quoted(text)} is not a number with a unit", hint=expected)
    number, symbol = match.groups()
    found = UNITS.get(symbol)
    if found is None:
        raise SpecError(f"there is no unit {symbol!r}", hint=f"{expected}{_respelt(symbol, dimension)}")
    if found.dimension != dimension:
        raise SpecError(f"{quoted(text)} is a {found.dimension}, not a {dimension}", hint=expected)
    value = Fraction(number.replace("_", "")) * found.factor
    return value / UNITS[unit or BASE_UNITS[dimension]].factor


_PACKET_RATE = re.compile(r"(.*?)\s*([kmg]?)pps", re.IGNORECASE)


def positive_quantity(given: str | float, dimension: Dimension, unit: str, option: str) -> float:
    """The value of an option that is a number above zero with a unit, in that unit; in Python a number alone, too.

    Unlike in specs, ``mpps`` is understood as well: there are no millipackets.

    Raises:
        UsageError: it is none; the message names the option.
    """
    text = given if isinstance(given, str) else f"{given} {unit}"
    if found := _PACKET_RATE.fullmatch(text.strip()):
        text = f"{found[1]} {found[2].lower().replace('m', 'M').replace('g', 'G')}pps"
    try:
        value = float(parse_quantity(text, dimension, unit))
    except SpecError as error:
        raise UsageError(f"{option}: {error.message}", hint=error.hint) from error
    if value <= 0:
        raise UsageError(f"{option}: {text} is not more than zero")
    return value


def ratio(given: str | float) -> float:
    """A number such as ``0.7``, which may be written as ``70%``; a ValueError if it is none."""
    text = str(given).strip()
    return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)


def share(given: str | float, option: str) -> float:
    """A share above 0 and below 1 from ``5%``, ``0.05`` or a number.

    Raises:
        UsageError: it is none; the message names the option.
    """
    try:
        value = ratio(given)
    except ValueError:
        value = math.nan
    if not 0 < value < 1:
        raise UsageError(f"{option} {given}: expected a share below 1", hint="for example 5% or 0.05")
    return value


_DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)\s*h)?\s*(?:(\d+(?:\.\d+)?)\s*(?:m|min))?\s*(?:(\d+(?:\.\d+)?)\s*s)?")


def seconds(text: str, option: str) -> float:
    """The seconds of a time such as ``90s``, ``30m``, ``1h30m`` or ``2 h``.

    Raises:
        UsageError: it is none; the message names the option.
    """
    match = _DURATION.fullmatch(text.strip())
    parts = [float(p) if p else 0.0 for p in match.groups()] if match else []
    found = sum(p * unit for p, unit in zip(parts, (3600, 60, 1), strict=False))
    if not found:
        raise UsageError(f"{option} {text}: expected a time", hint="for example 90s, 30m or 1h30m")
    return found


_EXAMPLES: dict[Dimension, str] = {
    "data size": "64 B or 1 KiB",
    "data rate": "10 Gbit/s",
    "packet rate": "0.5 Mpps",
    "time": "200 ms",
    "frequency": "2.0 GHz",
    "cycles": "100 cycles",
}


def _respelt(symbol: str, dimension: Dimension) -> str:
    for name, unit in UNITS.items():
        if unit.dimension == dimension and name.lower() == symbol.lower():
            return f"; did you mean {name}?"
    return ""
