"""Rows as text and numbers as JSON has them: what files with results are written with."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol


def json_number(value: float | None) -> float | None:
    """A number that JSON has, or None."""
    return None if value is None or not math.isfinite(value) else float(value)


class Bounded(Protocol):
    """A number with its interval; both ends are None if nothing is known of the scatter."""

    @property
    def value(self) -> float:
        """The number."""

    @property
    def low(self) -> float | None:
        """Lower end of the interval."""

    @property
    def high(self) -> float | None:
        """Upper end of the interval."""


def interval_columns(name: str, found: Bounded | None) -> dict[str, float | None]:
    """A number and its interval as three columns: ``name``, ``name_low``, ``name_high``; all None without one."""
    if found is None:
        return {name: None, f"{name}_low": None, f"{name}_high": None}
    return {
        name: json_number(found.value),
        f"{name}_low": json_number(found.low),
        f"{name}_high": json_number(found.high),
    }


def csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as CSV, with the keys of the first one as columns; empty if there are none.

    Raises:
        ValueError: a row has a key that the first one has not.
    """
    if not rows:
        return ""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()
