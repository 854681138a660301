"""Tables of a coverage study: shares with their standard errors, by group."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from _coverage_study import Record, SplitRecord

GROUPS: dict[str, Callable[[Record], str]] = {
    "": lambda r: "all series",
    "noise": lambda r: f"noise {100 * r.case.noise:g} %",
    "repetitions": lambda r: "1 repetition" if r.case.repetitions == 1 else f"{r.case.repetitions} repetitions",
    "segments": lambda r: "1 segment" if r.case.segments == 1 else f"{r.case.segments} segments",
    "points": lambda r: f"{r.case.points} points",
    "x": lambda r: {"lin": "linear x", "log": "logarithmic x"}[r.case.x_scale],
    "number of segments": lambda r: (
        "number of segments " + ("right" if r.found_segments == r.case.segments else "wrong")
    ),
}
"""What series are grouped by, and the name of the group that one belongs to."""


@dataclass(frozen=True)
class Share:
    """A share in percent, with its Monte Carlo standard error; both NaN if there was nothing to count.

    What belongs to one series is not independent; the standard error takes series as the unit of the sample.
    """

    percent: float
    error: float
    count: int

    @classmethod
    def of(cls, series: Iterable[tuple[float, float]]) -> Share:
        """From what hit and what there was, for every series."""
        pairs = [(hits, all_) for hits, all_ in series if all_]
        total = sum(all_ for _, all_ in pairs)
        if not total:
            return cls(math.nan, math.nan, 0)
        share = sum(hits for hits, _ in pairs) / total
        variance = sum((hits - share * all_) ** 2 for hits, all_ in pairs) / total**2
        return cls(100 * share, 100 * math.sqrt(variance * len(pairs) / max(len(pairs) - 1, 1)), int(total))

    def text(self) -> str:
        """Such as ``90.6 ± 0.5``."""
        return f"{self.percent:.1f} ± {self.error:.1f}" if self.count else "-"


@dataclass(frozen=True)
class Row:
    """One group of series.

    Args:
        factor: what the series are grouped by, a key of :data:`GROUPS`.
        group: name of the group.
        series: number of series.
        band: abscissae at which the band holds the truth.
        width_percent: width of the band in percent of the truth, median over abscissae, then over series.
        width_ratio: the same as a multiple of the width that is needed if functions, breakpoints and noise are known.
        sharp: sharp true breakpoints that an interval covers.
        sharp_found: sharp true breakpoints that were found exactly.
        sharp_width: mean width of the intervals of sharp breakpoints, in samples; 1 is the least.
        blunt: the other true breakpoints that an interval covers.
        split_width: median width of the intervals of all breakpoints that were found, right or wrong, in samples.
        parameters: intervals that hold the parameter, where function and breakpoints are right.
        right_segments: series with the right number of segments.
        right_curve: series with the right number of segments, functions and breakpoints.
    """

    factor: str
    group: str
    series: int
    band: Share
    width_percent: float
    width_ratio: float
    sharp: Share
    sharp_found: Share
    sharp_width: float
    blunt: Share
    split_width: float
    parameters: Share
    right_segments: Share
    right_curve: Share


def rows(records: Sequence[Record]) -> list[Row]:
    """All groups in order; factors with a single group are left out."""
    out = []
    for factor, name in GROUPS.items():
        names = sorted(dict.fromkeys(map(name, records)), key=_natural)
        if factor == "" or len(names) > 1:
            out += [_row(factor, group, [r for r in records if name(r) == group]) for group in names]
    return out


def _natural(name: str) -> tuple[float, str]:
    numbers = [float(word) for word in name.split() if word.replace(".", "", 1).isdigit()]
    return (numbers[0] if numbers else 0.0, name)


def _row(factor: str, group: str, records: Sequence[Record]) -> Row:
    def breakpoints(count: Callable[[SplitRecord], bool], *, sharp: bool) -> Share:
        mine = [[count(s) for s in r.breakpoints if s.sharp == sharp] for r in records]
        return Share.of((sum(hits), len(hits)) for hits in mine)

    sharp_widths = [s.width for r in records for s in r.breakpoints if s.sharp and s.width is not None]
    widths = [w for r in records for w in r.split_widths]
    return Row(
        factor=factor,
        group=group,
        series=len(records),
        band=Share.of((r.inside, 1) for r in records),
        width_percent=100 * statistics.median(r.width for r in records),
        width_ratio=statistics.median(r.width / r.oracle_width for r in records),
        sharp=breakpoints(lambda s: s.covered, sharp=True),
        sharp_found=breakpoints(lambda s: s.found, sharp=True),
        sharp_width=statistics.fmean(sharp_widths) if sharp_widths else math.nan,
        blunt=breakpoints(lambda s: s.covered, sharp=False),
        split_width=statistics.median(widths) if widths else math.nan,
        parameters=Share.of(r.parameters for r in records),
        right_segments=Share.of((r.found_segments == r.case.segments, 1) for r in records),
        right_curve=Share.of((r.curve, 1) for r in records),
    )


COLUMNS: dict[str, Callable[[Row], str]] = {
    "group": lambda row: row.group,
    "series": lambda row: str(row.series),
    "band %": lambda row: row.band.text(),
    "width %": lambda row: f"{row.width_percent:.2f}",
    "x oracle": lambda row: f"{row.width_ratio:.2f}",
    "sharp %": lambda row: row.sharp.text(),
    "found %": lambda row: row.sharp_found.text(),
    "samples": lambda row: _number(row.sharp_width),
    "blunt %": lambda row: row.blunt.text(),
    "all samples": lambda row: _number(row.split_width),
    "parameters %": lambda row: row.parameters.text(),
    "segments %": lambda row: row.right_segments.text(),
    "curve %": lambda row: row.right_curve.text(),
}
"""Columns of the table; the page that prints it says what they are."""


def _number(value: float) -> str:
    return f"{value:.1f}" if math.isfinite(value) else "-"


def table(all_rows: Sequence[Row]) -> str:
    """Plain text, an empty line between factors."""
    cells = [list(COLUMNS), *([column(row) for column in COLUMNS.values()] for row in all_rows)]
    widths = [max(len(line[k]) for line in cells) for k in range(len(COLUMNS))]
    lines: list[str] = []
    factors = ["", *(row.factor for row in all_rows)]
    for before, factor, line in zip([None, *factors], factors, cells, strict=False):
        if before is not None and factor != before:
            lines.append("")
        padded = (f"{c:<{w}}" if k == 0 else f"{c:>{w}}" for k, (c, w) in enumerate(zip(line, widths, strict=True)))
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)
