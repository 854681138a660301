"""What an unquoted word of a spec means: the scalars of YAML, without the surprises of YAML 1.1.

========================  ==========================================================================================
written                   read as
========================  ==========================================================================================
``true`` ``false``        truth value (also ``True``, ``TRUE``, ...)
``null`` ``~`` (nothing)  null
``12`` ``2_000_000``      integer
``0x88B5`` ``0o17``       integer
``1e6`` ``2.5e6``         integer, since it is written with an exponent and is whole (up to 10**18)
``0.5`` ``1e-3`` ``1.``   floating point number
``yes`` ``no`` ``on``...  refused: YAML 1.1 reads truth values, YAML 1.2 reads words
``017``                   refused: YAML 1.1 reads octal, YAML 1.2 reads decimal
``.inf`` ``.nan`` 1e999   refused: a spec holds finite numbers only
``1:30`` ``2024-01-01``   a string (no base-60 numbers, no dates)
========================  ==========================================================================================

A quoted word is always a string.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal

Scalar = bool | int | float | str
"""A value that a parameter or a swept variable can have."""

MAX_NUMBER_LENGTH = 64
"""Longest number that is read, in characters."""

MAX_EXPONENT_INTEGER = 10**18
"""Largest magnitude up to which a whole number written with an exponent is an integer."""

_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_TRUTHS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_AMBIGUOUS = frozenset(f(w) for w in ("yes", "no", "on", "off") for f in (str.lower, str.title, str.upper))
_DECIMAL = re.compile(r"[-+]?[0-9][0-9_]*")
_PREFIXED = re.compile(r"[-+]?0(?:x[0-9A-Fa-f][0-9A-Fa-f_]*|o[0-7][0-7_]*)")
_NUMBER_LIKE = re.compile(r"[-+0-9._xoA-Fa-f]+")
_FLOAT = re.compile(r"[-+]?(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?")
_NON_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")


def read_plain(word: str) -> Scalar | None:
    """The value of an unquoted word.

    Raises:
        ValueError: the word is ambiguous, too long a number or not finite; the text says so in one sentence.
    """
    if word in _NULLS:
        return None
    if word in _TRUTHS:
        return _TRUTHS[word]
    if word in _AMBIGUOUS:
        raise ValueError(f"{word} is ambiguous in YAML; write true or false, or put the word in quotes")
    if _NON_FINITE.fullmatch(word):
        raise ValueError(f"{word} is not a finite number")
    if word[0] in "+-.0123456789" and (number := _read_number(word)) is not None:
        return number
    return word


def _read_number(word: str) -> int | float | None:
    if len(word) > MAX_NUMBER_LENGTH:
        if _NUMBER_LIKE.fullmatch(word):
            raise ValueError(f"a number of {len(word)} characters is too long (at most {MAX_NUMBER_LENGTH})")
        return None
    prefixed, decimal = _PREFIXED.fullmatch(word), _DECIMAL.fullmatch(word)
    if not (prefixed or decimal or _FLOAT.fullmatch(word)):
        return None
    digits = word.replace("_", "")
    if prefixed:
        return int(digits, 0)
    if decimal:
        bare = digits.lstrip("+-")
        if len(bare) > 1 and bare[0] == "0":
            raise ValueError(f"{word} starts with a zero, which YAML versions read differently; drop it or use quotes")
        return int(digits)
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{word} is too large for a finite number")
    if "e" in digits.lower() and 0 < abs(value) <= MAX_EXPONENT_INTEGER:
        exact = Decimal(digits)
        if exact == exact.to_integral_value():
            return int(exact)
    return value


_LINE_BREAKS = ("\x85", "\u2028", "\u2029")
"""Further line breaks of YAML 1.1, which PyYAML folds like others unless they are escaped."""


def needs_quotes(text: str) -> bool:
    """Whether a string has to be quoted so that it is read back as itself."""
    if any(line_break in text for line_break in _LINE_BREAKS):
        return True
    try:
        return read_plain(text) != text
    except ValueError:
        return True
