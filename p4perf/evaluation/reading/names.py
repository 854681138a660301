"""Names as people write them: whole, or without the leading parts that they do not need."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from p4perf.errors import DataError, Location

_UNROLLED = re.compile(r"\[[\d,]+\]$")


def without_index(name: str) -> str:
    """The name of a parser state that was unrolled, as the program has it."""
    return _UNROLLED.sub("", name)


def match_name(wanted: str, known: Iterable[str], noun: str, where: Location | None, key: str | None = None) -> str:
    """The one of the names that is meant: that name, or the only one that ends with it behind a dot or slash.

    Raises:
        DataError: none is, or several are; the message names the nearest.
    """
    names = list(dict.fromkeys(known))
    if wanted in names:
        return wanted
    ends = [name for name in names if name.endswith((f".{wanted}", f"/{wanted}"))]
    if len(ends) == 1:
        return ends[0]
    if ends:
        listed = ", ".join(ends[:4])
        raise DataError(f"{wanted!r} could be several of {noun}", location=where, key=key, hint=f"one of {listed}")
    short = {name.replace("/", ".").rpartition(".")[2]: name for name in reversed(names)}
    near = difflib.get_close_matches(wanted, [*names, *short], n=1)
    if near:
        hint = f"did you mean {near[0]}?"
    else:
        hint = f"known: {', '.join(names[:8])}{', ...' if len(names) > 8 else ''}" if names else "the program has none"
    raise DataError(f"there is no {noun} {wanted!r}", location=where, key=key, hint=hint)
