"""What pages of a site show besides text: interactive figures, source text as HTML, and the files that all pages share.

Figures are plain values, of which :mod:`p4perf.evaluation.report.drawing` makes a still drawing and the script of the
pages Plotly's traces: colours follow the dark mode of the browser, and a few hundred numbers are a tenth of the text of
the traces.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, ClassVar

import numpy as np
from markupsafe import Markup, escape
from pygments.lexer import Lexer, RegexLexer, words
from pygments.lexers.c_cpp import CLexer
from pygments.lexers.data import JsonLexer, YamlLexer
from pygments.lexers.scripting import LuaLexer
from pygments.lexers.special import TextLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Whitespace

from p4perf.evaluation.fitting.working_set import CacheMark
from p4perf.models.component import ComponentModel, Fitting
from p4perf.models.notation import size_text

DIGITS = 5
"""Significant digits of the numbers of a figure: less than a pixel of any screen."""
_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def rounded(value: Any, digits: int = DIGITS) -> Any:
    """JSON values with floats rounded to significant digits; a float that is not finite becomes None."""
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


def script_json(value: Any) -> Markup:
    """JSON for an element ``script``: ``<``, ``>`` and ``&`` are escaped, so no text in it can close the element."""
    text = json.dumps(rounded(value), allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    return Markup(text.translate(_ESCAPES))  # noqa: S704 - nothing in it is markup


CURVE_POINTS = 40
"""Abscissae at which a segment is drawn, at even distances; wide segments have as many at even ratios, since either
axis can be chosen."""
SILENCE = 1e-9
"""A curve below this fraction of the largest median is zero; there is no relative residual."""


def _lines(model: ComponentModel, keys: Sequence[str]) -> list[dict[str, Any]]:
    """The segments of a model: abscissae, values and band (None without intervals)."""
    drawn = []
    for segment, key in zip(model.fitting.segments, keys, strict=True):
        x = _abscissae(model, segment)
        estimate = model.estimate(x)
        whole = bool(np.isfinite(estimate.low).all() and np.isfinite(estimate.high).all())
        low, high = (estimate.low.tolist(), estimate.high.tolist()) if whole else (None, None)
        drawn.append({"key": key, "x": x.tolist(), "y": segment.evaluate(x).tolist(), "low": low, "high": high})
    return drawn


def _abscissae(model: ComponentModel, segment: Fitting) -> np.ndarray[Any, np.dtype[np.float64]]:
    if segment.start == segment.end:
        return np.array([segment.start])
    even = np.linspace(segment.start, segment.end, CURVE_POINTS)
    if segment.start <= 0 or segment.end <= 3 * segment.start:
        return even
    grown = np.geomspace(segment.start, segment.end, CURVE_POINTS)
    return np.unique(np.clip(np.concatenate([even, grown]), segment.start, segment.end))


def _breakpoints(model: ComponentModel, below: Sequence[bool]) -> list[dict[str, float | str | None]]:
    """Where segments begin, with the intervals of the breakpoints, and the sides of their labels."""
    places = model.fitting.breakpoint_x
    ends = (
        [(b.low, b.high) for b in model.uncertainty.breakpoints] if model.uncertainty else [(None, None)] * len(below)
    )
    return [
        {"x": x, "text": f"{x:g}", "low": low, "high": high, "below": at}
        for x, (low, high), at in zip(places, ends, below, strict=True)
    ]


def residuals(model: ComponentModel, points: Sequence[Mapping[str, Any]]) -> list[list[float]]:
    """For each x the distances of median, lower and upper end from the curve, in % of the curve."""
    kept = [p for p in points if p["n"] and isinstance(p["x"], int | float)]
    silence = SILENCE * max((abs(p["median"]) for p in kept), default=0.0)
    curve = model.evaluate([p["x"] for p in kept]).tolist()
    return [
        [p["x"], *(100 * (p[key] - y) / abs(y) for key in ("median", "low", "high"))]
        for p, y in zip(kept, curve, strict=True)
        if abs(y) > silence
    ]


COLOURS, SYMBOLS, DASHES = 6, 8, 6
"""How many of each the style sheet and the script of the pages know; a series has one of each by its number."""


def _entry(key: str, text: str, number: int, *, marks: bool = True, line: bool = True) -> dict[str, Any]:
    """An entry of the legend, with the colour, mark and dash of what it names; None of what it does not have."""
    symbol, dash = (number % SYMBOLS if marks else None), (number % DASHES if line else None)
    return {"key": key, "text": text, "colour": number % COLOURS, "symbol": symbol, "dash": dash}


def run_figure(
    points: Sequence[Mapping[str, Any]],
    trials: Sequence[Sequence[Any]],
    model: ComponentModel | None,
    marks: Sequence[CacheMark],
    *,
    labels: Mapping[str, str],
    x_scale: str,
) -> dict[str, Any]:
    """The figure of a run.

    Args:
        points: ``x`` (number or text), ``median``, ``low``, ``high``, ``n``.
        trials: ``x``, value, repetition, accepted (0 or 1) and flags of every repetition.
        labels: ``x`` and ``y``: what the axes show; ``title``.
    """
    numeric = all(isinstance(p["x"], int | float) for p in points)
    uprights = [*(mark.x for mark in marks), *(model.fitting.breakpoint_x if model else ())]
    below = _labels_below(uprights, [(p["x"], p["median"]) for p in points if p["n"]], x_scale) if numeric else []
    formulas = [text.removeprefix(f"{model.y.name} = ") for text in model.formulas()] if model else []
    keys = [f"segment {n}" for n in range(1, len(formulas) + 1)]
    return {
        **labels,
        "scale": x_scale if numeric else "category",
        "legend": [
            _entry("medians", "median, 95 % interval", 0, line=False),
            *(_entry(k, f, n, marks=False) for n, (k, f) in enumerate(zip(keys, formulas, strict=True), 1)),
            *(
                {"key": key, "text": text, "colour": None, "symbol": None, "dash": None}
                for key, text, kept in (("repetitions", "repetitions", 1), ("rejected", "rejected repetitions", 0))
                if any(trial[3] == kept for trial in trials)
            ),
        ],
        "lines": _lines(model, keys) if model else [],
        "points": [{"key": "medians", "rows": _rows(points)}],
        "trials": [list(trial) for trial in trials],
        "breakpoints": _breakpoints(model, below[len(marks) :]) if model and numeric else [],
        "marks": [
            {"x": mark.x, "text": f"{mark.level}, {size_text(mark.size_bytes)}", "below": at}
            for mark, at in zip(marks, below, strict=False)  # none on an axis of words
        ],
        "lower": lower_panel("residual [%]", 0, [("medians", residuals(model, points))] if model else []),
    }


_BESIDE, _HIGH = 0.08, 0.4
"""Shares of width and height that the label of an upright line takes on a narrow screen, to the left of its line."""


def _labels_below(uprights: Sequence[float], points: Sequence[tuple[float, float]], scale: str) -> list[bool]:
    """Whether each label of an upright line stands at its lower end: where it hides fewer points and no other label."""

    def place(x: float) -> float:
        return math.log10(x) if scale == "log" and x > 0 else x

    known = [(place(x), y) for x, y in points if scale != "log" or x > 0]
    (xs, ys) = ([point[axis] for point in known] or [0.0] for axis in (0, 1))
    bottom, width, height = min(ys), max(xs) - min(xs) or 1.0, max(ys) - min(ys) or 1.0
    found: list[tuple[float, bool]] = []
    for x in map(place, uprights):
        near = [(y - bottom) / height for at, y in known if -_BESIDE <= (at - x) / width <= _BESIDE / 4]
        hidden = {False: sum(y > 1 - _HIGH for y in near), True: sum(y < _HIGH for y in near)}
        for other, below in found:
            hidden[below] += len(points) * (abs(other - x) < _BESIDE / 2 * width)
        found.append((x, hidden[True] < hidden[False]))
    return [below for _, below in found]


def _rows(points: Iterable[Mapping[str, Any]]) -> list[list[Any]]:
    return [[p[key] for key in ("x", "median", "low", "high", "n")] for p in points if p["n"]]


def lower_panel(y: str, base: float, groups: Sequence[tuple[str, Sequence[Sequence[Any]]]]) -> dict[str, Any] | None:
    """What a figure shows below: values and their intervals around a base; None if there are no values."""
    points = [{"key": key, "rows": [list(row) for row in rows]} for key, rows in groups if rows]
    return {"y": y, "base": base, "points": points} if points else None


@dataclass(frozen=True)
class DrawnSeries:
    """A series of a figure of several: rows as those of :func:`run_figure`, lines by x and y."""

    name: str
    model: str
    points: Sequence[Mapping[str, Any]]
    lines: Sequence[Mapping[str, Any]] = ()


def series_figure(
    series: Sequence[DrawnSeries], lower: Mapping[str, Any] | None, *, labels: Mapping[str, str], scale: str
) -> dict[str, Any]:
    """The figure of several series, each with a colour, mark and line of its own; the legend has their models."""
    return {
        **labels,
        "scale": scale,
        "legend": [
            _entry(s.name, f"{s.name}: {s.model}" if s.model else s.name, n, line=bool(s.lines))
            for n, s in enumerate(series)
        ],
        "lines": [{**line, "key": s.name} for s in series for line in s.lines],
        "points": [{"key": s.name, "rows": _rows(s.points)} for s in series],
        "trials": [],
        "breakpoints": [],
        "marks": [],
        "lower": lower,
    }


_OWN = ("site.css", "tables.js", "figures.js")
PLOTLY = "plotly.min.js"


def assets() -> dict[str, bytes]:
    """Content by file name. Plotly's script (MIT licence) is the one that its Python package ships."""
    folder = files("p4perf.evaluation.report") / "site"
    found = {name: (folder / name).read_bytes() for name in _OWN}
    return found | {PLOTLY: (files("plotly") / "package_data" / PLOTLY).read_bytes()}


_KEYWORDS = (
    *("abstract", "action", "actions", "apply", "const", "control", "default", "default_action", "else", "entries"),
    *("enum", "error", "exit", "extern", "header", "header_union", "if", "in", "inout", "key", "match_kind", "out"),
    *("package", "parser", "pragma", "return", "select", "size", "state", "struct", "switch", "table", "transition"),
    *("tuple", "typedef", "type", "value_set", "exact", "lpm", "ternary", "range", "accept", "reject"),
)
_TYPES = ("bit", "bool", "int", "string", "varbit", "void", "packet_in", "packet_out")
_SWX = (
    *("instanceof", "args", "metadata", "pipeline", "regarray", "metarray", "initval", "rx", "tx", "extract", "emit"),
    *("mov", "add", "sub", "and", "or", "xor", "shl", "shr", "jmp", "jmpv", "jmpnv", "jmpeq", "jmpneq", "jmplt"),
    *("jmpgt", "jmph", "jmpnh", "jmpa", "jmpna", "validate", "invalidate", "ckadd", "cksub", "regrd", "regwr"),
    *("regadd", "regprefetch", "meter", "metprefetch", "learn", "forget", "recirculate", "mirror", "hash", "rss"),
    "drop",
)


class P4Lexer(RegexLexer):  # type: ignore[misc]
    """P4-16 (words of the language specification, version 1.2.4), and the text of DPDK's SWX pipelines."""

    name = "P4"
    tokens: ClassVar[dict[str, Any]] = {
        "root": [
            (r"\s+", Whitespace),
            (r"//[^\n]*", Comment.Single),
            (r"/\*(?:[^*]|\*(?!/))*\*/", Comment.Multiline),
            (r"[#;][^\n]*(?=\n)(?<=[^;])", Comment.Preproc),
            (r"@\w+", Name.Decorator),
            (r'"[^"\n]*"', String),
            (words(_KEYWORDS, prefix=r"\b", suffix=r"\b"), Keyword),
            (words(_TYPES, prefix=r"\b", suffix=r"\b"), Keyword.Type),
            (words(_SWX, prefix=r"\b", suffix=r"\b"), Name.Builtin),
            (r"\b(?:true|false)\b", Keyword.Constant),
            (r"(?:\d+[ws])?0[xX][0-9a-fA-F_]+|(?:\d+[ws])?0[bB][01_]+|(?:\d+[ws])?\d[\d_]*", Number),
            (r"[A-Za-z_]\w*", Name),
            (r"[-+*/%&|^~!<>=?]+", Operator),
            (r"[{}()\[\];:,.]", Punctuation),
        ]
    }


_LEXERS: dict[str, type[Lexer]] = {
    "p4": P4Lexer, "spec": P4Lexer, "c": CLexer, "h": CLexer, "lua": LuaLexer, "yaml": YamlLexer, "json": JsonLexer,
}  # fmt: skip


@cache
def _lexer(kind: str) -> Lexer:
    return _LEXERS.get(kind, TextLexer)(stripnl=False)


_CLASSES: tuple[tuple[Any, str], ...] = (
    (Comment.Preproc, "d"),
    (Comment.PreprocFile, "s"),
    (Comment, "c"),
    (Keyword.Type, "t"),
    (Keyword, "k"),
    (Number, "m"),
    (String, "s"),
    (Name.Builtin, "b"),
    (Name.Decorator, "d"),
    (Name.Tag, "t"),
    (Name.Function, "b"),
)
"""The classes that the style sheet knows; the other words stand as they are, which halves the pages."""


@cache
def _class(kind: Any) -> str:
    return next((name for parent, name in _CLASSES if kind in parent), "")


def highlighted(text: str, file_name: str) -> Markup:
    """A text as escaped HTML, its words in elements ``i`` with classes. The suffix of the name decides the language."""
    lexer = _lexer(file_name.rsplit(".", 1)[-1].lower())
    pieces = []
    for kind, value in lexer.get_tokens(text):
        name, shown = _class(kind), escape(value)
        pieces.append(f"<i class={name}>{shown}</i>" if name and not value.isspace() else str(shown))
    return Markup("".join(pieces))  # noqa: S704 - every value is escaped
