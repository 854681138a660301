"""How many trials does a sweep need that chooses its next point? Dense recorded sweeps are measured again, on paper.

    p4perf run mat/hit-ratio -t dpdk-c -o dense         # each run is a sweep: all points, several starts
    python benchmarks/adaptive.py dense [--half tune]

Every start of a place of the replay is one that was recorded there, in an order drawn from the seed. The truth is the
median of all recorded starts. All methods get the same estimate between measured points, and their error is the
largest relative distance from the truth over the grid. Even thinning measures as `--points` does, with all repetitions.

The sweeps are halved by name: constants are chosen on the half `tune`, the half `report` is for reporting.

Columns: points; trials of the full sweep; error of even thinning at a third of these trials, and trials until the
adaptive design is that accurate for good; trials until it is within 3 % for good; trials, stated and true error when it
stops by itself at the accuracy; milliseconds for a decision.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from p4perf.evaluation.fitting.working_set import run_marks
from p4perf.experiment.adaptive import Design, Place, Start, nearest
from p4perf.results import Run


@dataclass(frozen=True)
class Sweep:
    """A recorded sweep: x, and the values of all accepted starts and the seconds of one at every point."""

    name: str
    x: tuple[float, ...]
    starts: tuple[tuple[float, ...], ...]
    seconds: tuple[float, ...]
    build_s: float
    programs: tuple[str, ...]
    marked: tuple[bool, ...]

    @property
    def truth(self) -> np.ndarray:
        return np.array([statistics.median(s) for s in self.starts])

    @property
    def margin(self) -> np.ndarray:
        """Half of the 90 % interval of the truth, relative: a median has 1.25 times the standard error of a mean."""
        deviations = [np.array(s) / statistics.fmean(s) - 1 for s in self.starts]
        pooled = sum(float(d @ d) for d in deviations) / sum(len(d) - 1 for d in deviations)
        own = [(2 * pooled + float(d @ d)) / (2 + len(d) - 1) / len(d) for d in deviations]
        return 1.645 * 1.25 * np.sqrt(np.array(own))

    @property
    def repetitions(self) -> int:
        return min(len(s) for s in self.starts)


def recorded(folder: Path) -> Iterator[Sweep]:
    """The sweeps of one number of a folder of runs, those with enough points and starts."""
    for path in sorted(folder.glob("*--*")):
        run = Run.open(path)
        if run.variable is None or not run.directory.state().trials:
            continue
        table = run.table
        rows = table[(table["metric"] == run.headline) & table["accepted"].astype(bool)]
        if rows.empty:
            continue
        groups = {float(x): g for x, g in rows.groupby(run.variable)}
        points = {x: str(g["point"].iloc[0]) for x, g in groups.items()}
        trials = {x: run.directory.trials(p) for x, p in points.items()}
        complete = {x for x, g in groups.items() if len(g) >= run.spec.trials.repetitions}
        x = sorted(complete)
        if len(x) < 8:
            continue
        seconds = [statistics.fmean(t["duration_s"] for t in trials[v] if "duration_s" in t) for v in x]
        sessions = run.directory.manifest().get("sessions", [])
        build_s = sum(float(s["built_s"]) for s in sessions) / len(x)
        near = {nearest(mark.x, x) for mark in run_marks(run)}
        yield Sweep(
            f"{run.spec.name} {run.manifest.target}",
            tuple(x),
            tuple(tuple(map(float, groups[v].sort_values("attempt")["value"])) for v in x),
            tuple(seconds),
            build_s,
            tuple(points[v] for v in x),
            tuple(v in near for v in x),
        )


@dataclass(frozen=True)
class Replay:
    """Error after every trial, and the error that was stated."""

    true: tuple[float, ...]
    stated: tuple[float, ...]
    seconds: tuple[float, ...]
    stopped: int
    decision_s: float
    measured: tuple[int, ...]


def replay(sweep: Sweep, accuracy: float, seed: int) -> Replay:
    """Measure a sweep with the adaptive design: to the accuracy, and then on to the end."""
    drawn = random.Random(f"{seed} {sweep.name}")
    queue = [drawn.sample(s, sweep.repetitions) for s in sweep.starts]
    keys = [f"{x:g}" for x in sweep.x]
    grid = zip(keys, sweep.x, sweep.programs, sweep.marked, strict=True)
    places = [Place(key, x, program=p, marked=m) for key, x, p, m in grid]
    designs = [Design(places, accuracy=a, seed=seed) for a in (accuracy, 0.0)]
    trials: list[Start] = []
    built: set[str] = set()
    true, stated, seconds = [], [], []
    stopped, spent, chosen = 0, 0.0, 0
    measured: tuple[int, ...] = ()
    while True:
        begun = time.perf_counter()
        judgement = designs[bool(stopped)].judge(trials)
        among = [key for key, left in zip(keys, queue, strict=True) if left]
        chosen_key = judgement.choose(among)
        spent += time.perf_counter() - begun
        chosen += 1
        if trials:
            true.append(error(np.array(judgement.values), sweep))
            stated.append(judgement.error)
        if chosen_key is None:
            if stopped:
                break
            stopped = len(trials)
            measured = tuple(sorted({keys.index(t.key) for t in trials}))
            true.pop(), stated.pop()
            continue
        place = keys.index(chosen_key)
        build_s = 0.0 if sweep.programs[place] in built else sweep.build_s
        built.add(sweep.programs[place])
        trials.append(Start(chosen_key, queue[place].pop(), sweep.seconds[place], build_s))
        seconds.append(sweep.seconds[place] + build_s)
    return Replay(tuple(true), tuple(stated), tuple(seconds), stopped, spent / chosen, measured)


def error(values: np.ndarray, sweep: Sweep) -> float:
    """Largest relative distance beyond the truth's own 90 % interval; infinite while there is no estimate somewhere."""
    if np.isnan(values).any():
        return float("inf")
    return float(np.max(np.maximum(np.abs(values / sweep.truth - 1) - sweep.margin, 0.0)))


def evenly(sweep: Sweep, points: int, seed: int) -> float:
    """The error of even thinning to a number of points, with all repetitions."""
    kept = {round(float(n)) for n in np.linspace(0, len(sweep.x) - 1, points)}
    design = Design([Place(str(n), x) for n, x in enumerate(sweep.x)], accuracy=0.0)
    drawn = random.Random(f"{seed} {sweep.name}")
    starts = [drawn.sample(s, sweep.repetitions) for s in sweep.starts]
    judgement = design.judge([Start(str(n), v, 1.0) for n in kept for v in starts[n]])
    return error(np.array(judgement.values), sweep)


def until(errors: Sequence[float], wanted: float) -> int:
    """Trials after which no error is larger than that."""
    worse = [n for n, e in enumerate(errors, 1) if e > wanted]
    return worse[-1] + 1 if worse else 1


def half_of(name: str) -> str:
    return "tune" if hashlib.sha256(name.encode()).digest()[0] % 2 else "report"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, help="folder of run directories")
    parser.add_argument("--half", choices=["tune", "report", "both"], default="both")
    parser.add_argument("--accuracy", type=float, default=0.03)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    sweeps = [s for s in recorded(options.runs) if options.half in ("both", half_of(s.name))]
    if not sweeps:
        raise SystemExit(f"skipped: {options.runs} has no dense sweeps")
    thirds, quarters, covered, shares, stops, decisions, times = [], [], [], [], [], [], []
    print(
        f"{'sweep':40s} {'n':>3s} {'full':>4s}  {'third':>6s} {'trials':>6s}  {'3 %':>4s}  {'stop':>4s} {'stated':>7s} {'true':>7s} {'time':>5s} {'ms':>5s}"
    )
    for sweep in sweeps:
        full = len(sweep.x) * sweep.repetitions
        third = max(2, round(len(sweep.x) / 3))
        rows = []
        for seed in range(options.seeds):
            found = replay(sweep, options.accuracy, seed)
            even = evenly(sweep, third, seed)
            at = found.stopped - 1
            whole_s = sum(s * sweep.repetitions + sweep.build_s for s in sweep.seconds)
            rows.append(
                (
                    even,
                    until(found.true, even),
                    until(found.true, options.accuracy),
                    found.stopped,
                    found.stated[at],
                    found.true[at],
                    sum(found.seconds[: at + 1]) / whole_s,
                    1000 * found.decision_s,
                )
            )
            covered.append(found.true[at] <= found.stated[at])
        middle = [statistics.median(column) for column in zip(*rows, strict=True)]
        thirds.append(middle[1] / (third * sweep.repetitions))
        quarters.append(middle[2] / full)
        stops.append(middle[3] / full)
        times.append(middle[6])
        print(
            f"{sweep.name:40s} {len(sweep.x):3d} {full:4d}  {middle[0]:6.1%} {middle[1]:6.0f}  {middle[2]:4.0f}  "
            f"{middle[3]:4.0f} {middle[4]:7.1%} {middle[5]:7.1%} {middle[6]:5.0%} {middle[7]:5.1f}"
        )
    print(f"\n{len(sweeps)} sweeps, {options.seeds} seeds each ({options.half})")
    print(
        f"trials for the error of even thinning at a third: {statistics.median(thirds):.2f} of them, at most {max(thirds):.2f}"
    )
    print(f"trials until within {options.accuracy:.0%} for good: {statistics.median(quarters):.2f} of the full sweep")
    print(
        f"trials when it stops: {statistics.median(stops):.2f} of the full sweep; time {statistics.median(times):.2f}"
    )
    print(f"the truth lies within the stated error in {statistics.fmean(covered):.1%}")


if __name__ == "__main__":
    main()
