"""Rows as text and numbers as JSON has them: what files with results are written with."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from typing import Any


def json_number(value: float | None) -> float | None:
    """A number that JSON has, or None."""
    return None if value is None or not math.isfinite(value) else float(value)


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
