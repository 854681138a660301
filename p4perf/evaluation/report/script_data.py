"""Data that stands inside pages: small numbers, and JSON that cannot end its own element."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

DIGITS = 5
"""Significant digits of the numbers of a figure: less than a pixel of any screen."""
_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def rounded(value: Any, digits: int = DIGITS) -> Any:
    """JSON values with every float to so many significant digits; what is no number becomes None."""
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
