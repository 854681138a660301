"""Still drawings of figures: what a page shows until its script has drawn, without scripts, and on paper.

All places are in % of a panel, from its upper left corner. A drawing therefore fits every width, while its texts and
marks keep their size.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from matplotlib.ticker import LogLocator, MaxNLocator

from p4perf.models.notation import number

Place = tuple[float, float]
MOST_NAMES = 16
"""Most names on an axis of words; of more, every second, third, ... is written."""
_LOWER = 0.36
"""Share of the height from which a lower panel and the gap above it take the rest."""
_THUMB_PLACES = 12
_PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


@dataclass(frozen=True)
class DrawnTick:
    at: float
    text: str


@dataclass(frozen=True)
class DrawnLine:
    """A line with its band; ``dash`` is None for a single place, which is drawn as a bar."""

    colour: int
    dash: int | None
    places: tuple[Place, ...]
    band: tuple[Place, ...] = ()


@dataclass(frozen=True)
class DrawnMark:
    x: float
    y: float
    low: float | None
    high: float | None
    colour: int
    symbol: int


@dataclass(frozen=True)
class DrawnPanel:
    """A panel: its edges in % of the drawing, and all that is in it.

    Args:
        dots: accepted and rejected repetitions.
        base: where the line lies around which values of a lower panel are.
        uprights: marks of caches and breakpoints: place, label, and class in the style sheet.
        spans: intervals of breakpoints, from and to.
    """

    top: float
    height: float
    title: str
    x_ticks: tuple[DrawnTick, ...]
    y_ticks: tuple[DrawnTick, ...]
    lines: tuple[DrawnLine, ...]
    marks: tuple[DrawnMark, ...]
    dots: tuple[tuple[Place, ...], tuple[Place, ...]] = ((), ())
    base: float | None = None
    uprights: tuple[tuple[float, str, str], ...] = ()
    spans: tuple[tuple[float, float], ...] = ()


FARTHEST = 300.0
"""Decades from 1 beyond which a logarithmic axis has no ticks: such powers are no floating-point numbers."""


@dataclass(frozen=True)
class _Axis:
    low: float
    high: float
    log: bool = False
    names: tuple[str, ...] = ()

    @classmethod
    def over(cls, values: Iterable[Any], scale: str = "linear") -> _Axis:
        """The axis that holds these values, with some room at its ends; a logarithmic one only those above 0."""
        if scale == "category":
            names = tuple(dict.fromkeys(map(str, values)))
            return cls(-0.5, max(len(names), 1) - 0.5, names=names)
        log = scale == "log"
        kept = [_place(v, log) for v in values if v is not None and math.isfinite(v) and (v > 0 or not log)]
        low, high = (min(kept), max(kept)) if kept else (0.0, 1.0)
        room = 0.05 * (high - low) or 0.1 * abs(high) or 1.0
        return cls(low - room, high + room, log)

    def at(self, value: Any) -> float | None:
        """Where a value lies in % of the axis; None if it has no place on it."""
        if value is None:
            return None
        if self.names:
            place = float(self.names.index(str(value)))
        elif self.log and value <= 0:
            return None
        else:
            place = _place(value, self.log)
        return round(100 * (place - self.low) / (self.high - self.low), 2)

    def ticks(self, most: int) -> Iterator[DrawnTick]:
        found: list[tuple[Any, str]]
        if self.names:
            found = [(name, name) for name in self.names[:: -(-len(self.names) // MOST_NAMES)]]
        else:
            found = [(value, _short(value)) for value in self._values(most)]
        for value, text in found:
            at = self.at(value)
            if at is not None and 0 <= at <= 100:
                yield DrawnTick(at, text)

    def _values(self, most: int) -> list[float]:
        """Round numbers along the axis; decades where a logarithmic one has two or more of them."""
        low, high = (10 ** min(max(end, -FARTHEST), FARTHEST) if self.log else end for end in (self.low, self.high))
        decades = [float(v) for v in LogLocator(numticks=most + 3).tick_values(low, high)] if self.log else []
        if sum(low <= v <= high for v in decades) > 1:
            return decades
        return [float(v) for v in MaxNLocator(most, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)]


def _place(value: float, log: bool) -> float:
    return math.log10(value) if log else float(value)


def _short(value: float) -> str:
    """A number of an axis: 1500, 20k, 1M."""
    size = abs(value)
    divisor, prefix = next(((d, p) for d, p in _PREFIXES if size >= d and size >= 1e4), (1.0, ""))
    return f"{number(value / divisor, 6)}{prefix}".replace("-", "\N{MINUS SIGN}", 1)


def drawing(figure: Mapping[str, Any]) -> tuple[DrawnPanel, ...]:
    """The panels of a figure, as :mod:`p4perf.evaluation.report.figures` makes it: one, or two with a lower one."""
    lower, legend = figure["lower"], {entry["key"]: entry for entry in figure["legend"]}
    rows = [row for group in figure["points"] for row in group["rows"]]
    x_values = [row[0] for row in rows] + [x for line in figure["lines"] for x in line["x"]]
    x = _Axis.over(x_values, figure["scale"])
    trials = [trial for trial in figure["trials"] if x.at(trial[0]) is not None]
    known = [v for row in rows for v in row[1:4]] + [v for line in figure["lines"] for v in line["y"]]
    y = _Axis.over([*known, *(trial[1] for trial in trials)])
    ticks = tuple(x.ticks(6))
    upper = DrawnPanel(
        top=0,
        height=100 * (1 - _LOWER) if lower else 100,
        title=figure["y"],
        x_ticks=ticks,
        y_ticks=_upwards(y, 6),
        lines=tuple(_line(line, legend[line["key"]], x, y) for line in figure["lines"]),
        marks=tuple(_marks(figure["points"], legend, x, y)),
        dots=(_dots([t for t in trials if t[3]], x, y), _dots([t for t in trials if not t[3]], x, y)),
        uprights=tuple(_uprights(figure, x)),
        spans=tuple(_spans(figure["breakpoints"], x)),
    )
    if not lower:
        return (upper,)
    around = [v for group in lower["points"] for row in group["rows"] for v in row[1:4]]
    below = _Axis.over([*around, lower["base"]])
    marks = tuple(_marks(lower["points"], legend, x, below))
    base = _from_top(below.at(lower["base"]))
    bottom = 100 * (_LOWER - 0.1)
    return upper, DrawnPanel(100 - bottom, bottom, lower["y"], ticks, _upwards(below, 4), (), marks, base=base)


def thumbnail(figure: Mapping[str, Any]) -> DrawnPanel:
    """The upper panel of a figure with what can be seen at the size of a thumb: a few places of lines, and dots."""
    panel = drawing(figure)[0]
    lines = tuple(replace(line, places=_few(line.places), band=()) for line in panel.lines)
    return replace(panel, lines=lines, marks=(), dots=(tuple((m.x, m.y) for m in panel.marks), ()))


def _few(places: Sequence[Place]) -> tuple[Place, ...]:
    step = -(-len(places) // _THUMB_PLACES)
    kept = (*places[:-1:step], places[-1]) if places else ()
    return tuple((round(x, 1), round(y, 1)) for x, y in kept)


def _from_top(place: float | None) -> float | None:
    return None if place is None else round(100 - place, 2)


def _upwards(axis: _Axis, most: int) -> tuple[DrawnTick, ...]:
    return tuple(DrawnTick(round(100 - tick.at, 2), tick.text) for tick in axis.ticks(most))


def _uprights(figure: Mapping[str, Any], x: _Axis) -> Iterator[tuple[float, str, str]]:
    found = [(each, "own") for each in figure["breakpoints"]]
    for each, kind in (*found, *((mark, "") for mark in figure["marks"])):
        at = x.at(each["x"])
        if at is not None and 0 <= at <= 100:
            yield at, each["text"], f"{kind} below" if each["below"] else kind


def _line(line: Mapping[str, Any], entry: Mapping[str, Any], x: _Axis, y: _Axis) -> DrawnLine:
    places = _dots(zip(line["x"], line["y"], strict=True), x, y)
    if len(places) == 1:
        return DrawnLine(entry["colour"], None, places)
    band: tuple[Place, ...] = ()
    if line["low"] is not None:
        above, beneath = (_dots(zip(line["x"], line[end], strict=True), x, y) for end in ("high", "low"))
        band = (*above, *reversed(beneath))
    return DrawnLine(entry["colour"], entry["dash"], places, band)


def _dots(rows: Iterable[Sequence[Any]], x: _Axis, y: _Axis) -> tuple[Place, ...]:
    found = ((x.at(row[0]), _from_top(y.at(row[1]))) for row in rows)
    return tuple((across, up) for across, up in found if across is not None and up is not None)


def _marks(
    groups: Iterable[Mapping[str, Any]], legend: Mapping[str, Mapping[str, Any]], x: _Axis, y: _Axis
) -> Iterator[DrawnMark]:
    for group in groups:
        entry = legend[group["key"]]
        for row in group["rows"]:
            across, (up, low, high) = x.at(row[0]), (_from_top(y.at(value)) for value in row[1:4])
            if across is not None and up is not None:
                yield DrawnMark(across, up, low, high, entry["colour"], entry["symbol"])


def _spans(breakpoints: Iterable[Mapping[str, Any]], x: _Axis) -> Iterator[tuple[float, float]]:
    """Where the intervals of breakpoints begin, and how wide they are."""
    for each in breakpoints:
        low, high = x.at(each["low"]), x.at(each["high"])
        if low is not None and high is not None and low < high:
            yield max(low, 0.0), round(min(high, 100.0) - max(low, 0.0), 2)
