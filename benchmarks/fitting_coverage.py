"""Do the intervals of derived models hold the truth as often as they say?

Piecewise curves of random shape with relative noise (p4perf/evaluation/fitting/synthetic.py) are derived as `p4perf
fit` does
it, the number of segments chosen, with 90 % intervals. Series differ in noise (0.3, 1, 2 % of a repetition),
repetitions (1, 3), segments (1, 2, 3), points (40, 65, 100) and the scale of x (linear, logarithmic). Printed for each
group:

band          share of the abscissae at which the band holds the true curve
width         width of the band in percent of the truth; median over abscissae, then over series
x oracle      the same as a multiple of the width for somebody who knows functions, breakpoints and noise
sharp         sharp true breakpoints that are covered, of all. A breakpoint is sharp if a boundary two samples off costs
more than
              four standard deviations of the noise. The true boundary lies between the samples `breakpoint` and
              `breakpoint + 1`; an interval covers it if it overlaps the gap between them. Each breakpoint has its own
              interval; where the number of segments is wrong, any interval will do
found         sharp true breakpoints that were found exactly
samples       mean width of the intervals of sharp breakpoints in samples; 1 is the least, so an interval always covers
a
              breakpoint that was found exactly, and coverage lies above the level where most are
blunt         the other true breakpoints that are covered
all samples   median width of the intervals of all breakpoints that were found, of invented ones too
parameters    intervals of parameters that hold the true one, of segments whose function and breakpoints are the true
ones segments, curve  series with the right number of segments; and with all functions and breakpoints right as well

Shares have Monte Carlo standard errors, with series as the unit. The same options give the same numbers.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from _coverage_figure import coverage_figure
from _coverage_study import NORMAL, Design, Record, study
from _coverage_summary import Row, rows, table

from p4perf.evaluation.plots.style import save_figure

ACCEPTED = {"band": (87.0, 93.0), "sharp breakpoints": (85.0, 100.0)}
"""Coverage of 90 % intervals in percent, over all series, that is called good."""


def verdicts(all_rows: Sequence[Row]) -> list[tuple[str, bool]]:
    """For everything that has a limit, a sentence and whether it holds over all series."""
    first = all_rows[0]
    out = []
    for (name, (least, most)), share in zip(ACCEPTED.items(), (first.band, first.sharp), strict=True):
        wanted = f"{least:g} to {most:g} %" if most < 100 else f"{least:g} % at least"
        out.append((f"{name}: {share.text()} %, wanted {wanted}", least <= share.percent <= most))
    return out


def outside(all_rows: Sequence[Row]) -> list[str]:
    """Groups whose band is out of the limits."""
    least, most = ACCEPTED["band"]
    return [f"{row.group} ({row.band.text()} %)" for row in all_rows if not least <= row.band.percent <= most]


def as_json(design: Design, first_seed: int, all_rows: Sequence[Row], records: Sequence[Record]) -> dict[str, Any]:
    """Everything that was asked and counted, as JSON values; what could not be counted is null."""
    whole = {
        "design": asdict(design),
        "series": len(records),
        "first_seed": first_seed,
        "rows": [asdict(row) for row in all_rows],
        "records": [asdict(record) for record in records],
    }
    cleaned: dict[str, Any] = json.loads(json.dumps(whole), parse_constant=lambda _: None)
    return cleaned


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(float(word) for word in text.split(","))


def _counts(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.split(","))


def arguments() -> argparse.Namespace:
    """The options of the command line."""
    standard = Design()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=int, default=1000, help="number of series; default %(default)s")
    parser.add_argument("--first-seed", type=int, default=0, help="seed of the first; default %(default)s")
    parser.add_argument("--processes", type=int, default=None, help="default: one for each processor")
    parser.add_argument("--level", type=float, default=standard.level, choices=sorted(NORMAL))
    parser.add_argument("--noises", type=_numbers, default=standard.noises, help="as fractions, such as 0.01,0.02")
    parser.add_argument("--repetitions", type=_counts, default=standard.repetitions, help="such as 1,3")
    parser.add_argument("--segments", type=_counts, default=standard.segments, help="such as 1,2,3")
    parser.add_argument("--points", type=_counts, default=standard.points, help="such as 40,65,100")
    parser.add_argument("--families", type=lambda text: tuple(text.split(",")), help="such as const,poly1")
    parser.add_argument(
        "--noisy-segment", type=float, default=1.0, metavar="X", help="one segment has X times the noise"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write tables and every series as JSON")
    parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw the figure")
    return parser.parse_args()


def main() -> None:
    """Draw, derive, compare, print."""
    options = arguments()
    design = Design(
        noises=options.noises,
        repetitions=options.repetitions,
        segments=options.segments,
        points=options.points,
        families=options.families,
        noisy_segment=options.noisy_segment,
        level=options.level,
    )
    processes = options.processes or len(os.sched_getaffinity(0))
    began = time.monotonic()
    records = []
    for record in study(design, design.cases(options.series, options.first_seed), processes):
        records.append(record)
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{len(records)} of {options.series}")
    all_rows = rows(records)
    print(table(all_rows))
    print(f"\n{len(records)} series in {time.monotonic() - began:.0f} s, {processes} processes")
    if options.level == Design().level:
        for sentence, holds in verdicts(all_rows):
            print(f"{sentence}: {'holds' if holds else 'FAILS'}")
        if names := outside(all_rows):
            print(f"groups whose band is outside: {', '.join(names)}")
    if options.json:
        whole = as_json(design, options.first_seed, all_rows, records)
        options.json.write_text(json.dumps(whole, indent=1) + "\n")
    if options.plot:
        save_figure(coverage_figure(all_rows, level=design.level, accepted=ACCEPTED["band"]), options.plot)


if __name__ == "__main__":
    main()
