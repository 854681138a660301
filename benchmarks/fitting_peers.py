"""How good and how fast is the derivation of models, beside other people's packages, on series with known segments?

Every method gets the same series, in a process of its own with a single thread; the number of segments is given, except
to those that choose it. Printed for each group of series and each method:

segments     series with the right number of segments, of methods that choose it
sharp     true breakpoints found to within a sample, of those that the noise lets be found
breakpoints    the same of all true breakpoints
family    segments with the right function, of methods that choose one; where the number of segments is wrong, none is
right error     error of the curve (sMAPE) as a multiple of that of the truth, which the noise causes: median and
largest CPU s     CPU seconds for a series, median over series of the median of three

Extra-P 4 fits one function, its segmented modeler one or two; pwlf joined lines; ruptures (Dynp) constants or lines.
Methods that cannot breakpoint are not judged by breakpoints and functions of several segments, nor by errors of those.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from _fitting_cases import Case, cases, smape
from _peers import peer_python

WORKER = Path(__file__).with_name("_fitting_worker.py")
SINGLE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMEXPR")}
METHODS = {
    "p4perf": "p4perf",
    "p4perf-auto": "p4perf, chooses segments",
    "extrap": "Extra-P",
    "extrap-segmented": "Extra-P segmented",
    "pwlf": "pwlf",
    "ruptures-l2": "ruptures, constants",
    "ruptures-linear": "ruptures, lines",
}
CHOOSING = ("p4perf-auto", "extrap-segmented")
UNSPLIT = ("extrap",)
NO_NOISE = 1e-6
"""Series whose truth has a smaller error have no noise to compare an error with."""


@dataclass(frozen=True)
class Row:
    """One method on one group; fractions as (right, all)."""

    group: str
    method: str
    series: int
    failed: int
    segments: tuple[int, int]
    sharp: tuple[int, int]
    breakpoints: tuple[int, int]
    families: tuple[int, int]
    error_median: float | None
    error_max: float | None
    cpu_s: float | None


def fit(method: str, series: Sequence[Case]) -> dict[str, Any]:
    """Answers of one method to all series, from a process of its own."""
    ours = method.startswith("p4perf")
    task = [{"name": c.name, "x": c.x.tolist(), "y": c.y.tolist(), "segments": len(c.families)} for c in series]
    command = (sys.executable if ours else str(peer_python()), str(WORKER), method)
    done = subprocess.run(
        command, input=json.dumps(task), env=os.environ | SINGLE_THREAD, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"{METHODS[method]} failed: {done.stderr.strip().splitlines()[-1]}")
    answers: dict[str, Any] = json.loads(done.stdout)
    return answers


def judge(group: str, method: str, series: Sequence[Case], answers: dict[str, Any]) -> Row:
    """Compare answers with the truth."""
    segments, sharp, breakpoints, families = [], [], [], []
    errors, seconds = [], []
    for case in series:
        answer = answers[case.name]
        if "error" in answer:
            continue
        seconds.append(answer["cpu_s"])
        same_segments = len(answer["breakpoints"]) == len(case.breakpoints)
        if method in CHOOSING:
            segments.append(same_segments)
        if method in UNSPLIT and case.breakpoints:
            continue
        found = [any(abs(s - true) <= 1 for s in answer["breakpoints"]) for true in case.breakpoints]
        breakpoints += found
        sharp += [hit for hit, is_sharp in zip(found, case.sharp, strict=True) if is_sharp]
        if answer["families"] is not None:
            named = answer["families"] if same_segments else [None] * len(case.families)
            families += [name == true for name, true in zip(named, case.families, strict=True)]
        if case.floor > NO_NOISE:
            errors.append(smape(case.y, np.array(answer["values"])) / case.floor)
    return Row(
        group,
        method,
        len(series),
        len(series) - len(seconds),
        *((sum(hits), len(hits)) for hits in (segments, sharp, breakpoints, families)),
        statistics.median(errors) if errors else None,
        max(errors) if errors else None,
        statistics.median(seconds) if seconds else None,
    )


def print_table(rows: Sequence[Row]) -> None:
    """Plain text, one line per group and method."""
    head = ("group", "method", "series", "segments", "sharp", "breakpoints", "family", "error", "largest", "CPU s")
    lines = [head]
    for row in rows:
        fractions = (
            f"{right}/{all_}" if all_ else "-"
            for right, all_ in (row.segments, row.sharp, row.breakpoints, row.families)
        )
        errors = ("-" if e is None else f"{e:.2f}" for e in (row.error_median, row.error_max))
        seconds = "-" if row.cpu_s is None else f"{row.cpu_s:.3g}"
        lines.append((row.group, METHODS[row.method], str(row.series), *fractions, *errors, seconds))
    widths = [max(len(line[k]) for line in lines) for k in range(len(head))]
    for before, line in zip([None, *lines], lines, strict=False):
        if before and before[0] != line[0]:
            print()
        cells = (
            f"{cell:<{w}}" if k < 2 else f"{cell:>{w}}" for k, (cell, w) in enumerate(zip(line, widths, strict=True))
        )
        print("  ".join(cells).rstrip())


def main() -> None:
    """Fit, judge, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--groups", help="only these groups, separated by commas")
    parser.add_argument("--methods", help=f"only these methods, separated by commas: {', '.join(METHODS)}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the table as JSON as well")
    options = parser.parse_args()
    series = cases()
    groups = options.groups.split(",") if options.groups else list(dict.fromkeys(c.group for c in series))
    methods = options.methods.split(",") if options.methods else list(METHODS)
    if unknown := [m for m in methods if m not in METHODS]:
        raise SystemExit(f"there is no method {unknown[0]}; known: {', '.join(METHODS)}")
    if unknown := [g for g in groups if g not in {c.group for c in series}]:
        raise SystemExit(f"there is no group {unknown[0]}; known: {', '.join(dict.fromkeys(c.group for c in series))}")
    series = [c for c in series if c.group in groups]
    answers = {method: fit(method, series) for method in methods}
    by_group = {group: [c for c in series if c.group == group] for group in groups}
    rows = [judge(g, m, of_group, answers[m]["results"]) for g, of_group in by_group.items() for m in methods]
    print_table(rows)
    versions = {METHODS[m].split()[0].strip(","): answers[m]["version"] for m in methods}
    print("\n" + ", ".join(f"{name} {version}" for name, version in versions.items()))
    for row in rows:
        if row.failed:
            print(f"{METHODS[row.method]} failed on {row.failed} of the {row.series} series of {row.group}")
    if options.json:
        options.json.write_text(json.dumps({"versions": versions, "rows": [asdict(r) for r in rows]}, indent=1) + "\n")


if __name__ == "__main__":
    main()
