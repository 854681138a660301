"""How many trials does a sweep need that chooses its next point? Dense recorded sweeps are measured again, on paper.

    p4perf run mat/hit-ratio -t dpdk-c -o dense         # each run is a sweep: all points, several starts
    python benchmarks/adaptive.py dense [--half tune]
    python benchmarks/adaptive.py dense --against campaigns/catalogue-*/runs thinned

With ``--against``, nothing is replayed: for every dense sweep stand the errors of other runs of the same experiment,
from these folders, and how many seconds their trials and builds took.

Every start of a place of the replay is one that was recorded there, in an order drawn from the seed. The truth is the
median of all recorded starts. All methods get the same estimate between measured points, and their error is the
largest relative distance from the truth over the grid, beyond the 90 % band that the scatter of its starts leaves.
Even thinning measures as `--points` does, with all repetitions.

The sweeps are halved by name: constants are chosen on the half `tune`, the half `report` is for reporting.

Columns: points; trials of the full sweep; error of even thinning at a third of these trials, trials until the median
error of the adaptive design stays below that, and their share of those of even thinning; trials until it stays within
the accuracy; trials, stated and true error when it stops by itself; how often the truth lies within the stated error;
share of the time of the full sweep; share of that which decisions take; sharp breakpoints of the model of the full
sweep, how many of them the model of the chosen points has within one step of the grid, and how many that of another
full sweep has; how many breakpoints can be repeated, and how many of those the model of the chosen points has. A
breakpoint is sharp if another place, two points to either side, would cost four standard deviations. Another full sweep
draws the starts of all points with replacement. A breakpoint can be repeated if nine of ten of these have it.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from p4perf.evaluation.fitting.derivation import derive
from p4perf.evaluation.fitting.working_set import run_marks
from p4perf.experiment.adaptive import Chooser, GridPoint, Start, nearest
from p4perf.models.component import PiecewiseFitting
from p4perf.results import Run

NO_DIFFERENCE = 0.01
"""Errors below this count as that: no trial tells them apart."""

DRAWS, REPEATED = 40, 0.9
"""Draws of a full sweep, and the share of them that has a breakpoint which can be repeated."""

SHARP = 16.0
"""Squared standard deviations that a breakpoint at another place has to cost."""


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
        """Half of the 90 % band of the truth at all points together, relative."""
        return statistics.NormalDist().inv_cdf(1 - 0.05 / len(self.x)) * self.deviation

    @property
    def deviation(self) -> np.ndarray:
        """Relative standard deviation of the truth. That of a median is 1.25 times the one of a mean."""
        deviations = [np.array(s) / statistics.fmean(s) - 1 for s in self.starts]
        pooled = sum(float(d @ d) for d in deviations) / sum(len(d) - 1 for d in deviations)
        own = [(2 * pooled + float(d @ d)) / (2 + len(d) - 1) / len(d) for d in deviations]
        return 1.25 * np.sqrt(np.array(own))

    @property
    def repetitions(self) -> int:
        return min(len(s) for s in self.starts)


def recorded(folder: Path) -> Iterator[Sweep]:
    """The sweeps of one number of a folder of runs, those with enough points and starts."""
    for path in sorted(folder.glob("*--*")):
        run = Run.open(path)
        if run.variable is None or not run.directory.state().complete:
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
    starts: dict[int, list[float]]
    """Values of the places that were measured when it stopped."""


def replay(sweep: Sweep, accuracy: float, seed: int) -> Replay:
    """Measure a sweep with the adaptive design: to the accuracy, and then on to the end."""
    drawn = random.Random(f"{seed} {sweep.name}")  # noqa: S311 - a replay
    queue = [drawn.sample(s, sweep.repetitions) for s in sweep.starts]
    keys = [f"{x:g}" for x in sweep.x]
    grid = zip(keys, sweep.x, sweep.programs, sweep.marked, strict=True)
    places = [GridPoint(key, x, program=p, marked=m) for key, x, p, m in grid]
    designs = [Chooser(places, accuracy=a, seed=seed) for a in (accuracy, 0.0)]
    trials: list[Start] = []
    built: set[str] = set()
    true, stated, seconds = [], [], []
    stopped, spent = 0, 0.0
    starts: dict[int, list[float]] = {}
    while True:
        begun = time.process_time()
        judgement = designs[bool(stopped)].judge(trials)
        among = [key for key, left in zip(keys, queue, strict=True) if left]
        chosen_key = judgement.choose(among)
        spent += 0.0 if stopped else time.process_time() - begun
        if trials:
            true.append(error(np.array(judgement.values), sweep))
            stated.append(judgement.error)
        if chosen_key is None:
            if stopped:
                break
            stopped = len(trials)
            for trial in trials:
                starts.setdefault(keys.index(trial.key), []).append(float(trial.value or 0.0))
            true.pop(), stated.pop()
            continue
        place = keys.index(chosen_key)
        build_s = 0.0 if sweep.programs[place] in built else sweep.build_s
        built.add(sweep.programs[place])
        trials.append(Start(chosen_key, queue[place].pop(), sweep.seconds[place], build_s))
        seconds.append(sweep.seconds[place] + build_s)
    return Replay(tuple(true), tuple(stated), tuple(seconds), stopped, spent, starts)


def error(values: np.ndarray, sweep: Sweep) -> float:
    """Largest relative distance beyond the truth's own 90 % band; infinite while there is no estimate somewhere."""
    if np.isnan(values).any():
        return float("inf")
    return float(np.max(np.maximum(np.abs(values / sweep.truth - 1) - sweep.margin, 0.0)))


def evenly(sweep: Sweep, points: int, seed: int) -> float:
    """The error of even thinning to a number of points, with all repetitions."""
    kept = {round(float(n)) for n in np.linspace(0, len(sweep.x) - 1, points)}
    design = Chooser([GridPoint(str(n), x) for n, x in enumerate(sweep.x)], accuracy=0.0)
    drawn = random.Random(f"{seed} {sweep.name}")  # noqa: S311 - a replay
    starts = [drawn.sample(s, sweep.repetitions) for s in sweep.starts]
    judgement = design.judge([Start(str(n), v, 1.0) for n in kept for v in starts[n]])
    return error(np.array(judgement.values), sweep)


def until(errors: Sequence[float], wanted: float) -> int:
    """Trials after which no error is larger than that."""
    worse = [n for n, e in enumerate(errors, 1) if e > wanted]
    return worse[-1] + 1 if worse else 1


def model(sweep: Sweep, starts: Mapping[int, Sequence[float]]) -> tuple[PiecewiseFitting, list[tuple[int, int]]]:
    """The model of some places of a sweep, and the places to either side of its breakpoints."""
    places = sorted(starts)
    values = [starts[p] for p in places]
    found = derive([sweep.x[p] for p in places], [statistics.median(v) for v in values], repetitions=values)
    counted = [p for p in places if sweep.x[p] not in found.outliers]
    return found.best, [(counted[last], counted[last + 1]) for last in found.best.breakpoints]


def repeated(sweep: Sweep) -> dict[int, float]:
    """How often other full sweeps have a breakpoint, by the last points of the segments of the full sweep."""
    drawn = random.Random(sweep.name)  # noqa: S311 - a bootstrap
    draws = [
        model(sweep, {p: drawn.choices(s, k=sweep.repetitions) for p, s in enumerate(sweep.starts)})[1]
        for _ in range(DRAWS)
    ]
    _, gaps = model(sweep, dict(enumerate(sweep.starts)))
    return {last: statistics.fmean(has(found, last) for found in draws) for last, _ in gaps}


def has(gaps: Sequence[tuple[int, int]], last: int) -> bool:
    """Whether one of these breakpoints is within one step of that behind a point."""
    return any(abs((left + right) / 2 - (last + 0.5)) <= 1 for left, right in gaps)


def sharp_breakpoints(sweep: Sweep) -> list[int]:
    """The last points of the segments of the full sweep that end at a sharp breakpoint."""
    found, gaps = model(sweep, dict(enumerate(sweep.starts)))
    x, deviation = np.array(sweep.x), np.maximum(sweep.deviation, NO_DIFFERENCE / 2) * np.abs(sweep.truth)

    def off(segment: int, places: np.ndarray) -> float:
        distances = (found.segments[segment].evaluate(x[places]) - sweep.truth[places]) / deviation[places]
        return float(distances @ distances)

    sharp = []
    for number, (last, first) in enumerate(gaps):
        before, after = np.arange(max(0, last - 1), last + 1), np.arange(first, min(first + 2, len(x)))
        later, earlier = off(number, after) - off(number + 1, after), off(number + 1, before) - off(number, before)
        if min(later, earlier) > SHARP:
            sharp.append(last)
    return sharp


def half_of(name: str) -> str:
    return "tune" if hashlib.sha256(name.encode()).digest()[0] % 2 else "report"


@dataclass(frozen=True)
class Row:
    """What the replays of one sweep come to; trials and seconds are medians over the seeds."""

    sweep: Sweep
    even: float
    trials: int
    accurate: int
    stopped: float
    stated: float
    true: float
    time_share: float
    held: float
    decisions: float
    sharp: int
    found: float
    again: float
    repeatable: int
    found_again: float

    @property
    def full(self) -> int:
        return len(self.sweep.x) * self.sweep.repetitions

    @property
    def of_even(self) -> float:
        """Trials over those of even thinning at a third."""
        return self.trials / (thinned(self.sweep) * self.sweep.repetitions)

    def __str__(self) -> str:
        return (
            f"{self.sweep.name:36s} {len(self.sweep.x):3d} {self.full:4d}  {self.even:6.1%} {self.trials:4d} "
            f"{self.of_even:5.2f}  {self.accurate:4d}  {self.stopped:4.0f} {self.stated:6.1%} {self.true:6.1%} "
            f"{self.held:5.0%} {self.time_share:5.0%} {self.decisions:5.1%} {self.sharp:5d} {self.found:5.1f} "
            f"{self.again:5.1f} {self.repeatable:4d} {self.found_again:5.1f}"
        )


HEAD = (
    f"{'sweep':36s} {'n':>3s} {'full':>4s}  {'third':>6s} {'tri.':>4s} {'of it':>5s}  {'acc.':>4s}  {'stop':>4s} "
    f"{'said':>6s} {'true':>6s} {'held':>5s} {'time':>5s} {'fits':>5s} {'sharp':>5s} {'found':>5s} "
    f"{'again':>5s} {'rep.':>4s} {'found':>5s}"
)


def thinned(sweep: Sweep) -> int:
    return max(2, round(len(sweep.x) / 3))


def judged(sweep: Sweep, accuracy: float, seeds: range) -> Row:
    found = [replay(sweep, accuracy, seed) for seed in seeds]
    even = statistics.median(evenly(sweep, thinned(sweep), seed) for seed in seeds)
    errors = np.median(np.array([f.true for f in found]), axis=0).tolist()
    at, sharp, shares = [f.stopped - 1 for f in found], sharp_breakpoints(sweep), repeated(sweep)
    repeatable = [last for last, share in shares.items() if share >= REPEATED]
    gaps = [model(sweep, f.starts)[1] for f in found]
    whole_s = sum(s * sweep.repetitions + sweep.build_s for s in sweep.seconds)
    return Row(
        sweep=sweep,
        even=even,
        trials=until(errors, max(even, NO_DIFFERENCE)),
        accurate=until(errors, accuracy),
        stopped=statistics.median(f.stopped for f in found),
        stated=statistics.median(f.stated[n] for f, n in zip(found, at, strict=True)),
        true=statistics.median(f.true[n] for f, n in zip(found, at, strict=True)),
        time_share=statistics.median(sum(f.seconds[: f.stopped]) for f in found) / whole_s,
        held=statistics.fmean(f.true[n] <= f.stated[n] for f, n in zip(found, at, strict=True)),
        decisions=statistics.median(f.decision_s / sum(f.seconds[: f.stopped]) for f in found),
        sharp=len(sharp),
        found=sum(has(g, last) for g in gaps for last in sharp) / len(seeds),
        again=sum(shares[last] for last in sharp),
        repeatable=len(repeatable),
        found_again=sum(has(g, last) for g in gaps for last in repeatable) / len(seeds),
    )


def other_runs(sweep: Sweep, folder: Path) -> Iterator[tuple[float, float, int]]:
    """Error of each run of the same sweep in a folder, its seconds, and how many of its points were measured."""
    design = Chooser([GridPoint(f"{x:g}", x) for x in sweep.x], accuracy=0.0)
    for path in sorted(folder.glob("*--*")):
        run = Run.open(path)
        if run.variable is None or f"{run.spec.name} {run.manifest.target}" != sweep.name:
            continue
        table = run.table
        table = table[(table["metric"] == run.headline) & table["accepted"].astype(bool)]
        place = {f"{x:g}" for x in sweep.x}
        found = [Start(f"{x:g}", float(v), 1.0) for x, v in zip(table[run.variable], table["value"], strict=True)]
        found = [start for start in found if start.key in place]
        sessions = run.directory.manifest().get("sessions", [])
        tried = [t for point in run.directory.points() for t in run.directory.trials(point)]
        spent = sum(float(t.get("duration_s", 0.0)) for t in tried) + sum(float(s["built_s"]) for s in sessions)
        values = np.array(design.judge(found).values)
        yield error(values, sweep), spent, len({start.key for start in found})


def compare(sweeps: Sequence[Sweep], folders: Sequence[Path]) -> None:
    """Print the errors of other runs beside each sweep, and what they come to."""
    errors: dict[Path, list[float]] = {folder: [] for folder in folders}
    for sweep in sweeps:
        cells = []
        for folder, of_folder in errors.items():
            rows = list(other_runs(sweep, folder))
            of_folder += [e for e, _, _ in rows]
            cells += [f"{e:7.1%} {points:3d} of {len(sweep.x)} in {spent:4.0f} s" for e, spent, points in rows]
        print(f"{sweep.name:36s} " + " | ".join(cells or ["no other run"]), flush=True)
    for folder, of_folder in errors.items():
        if of_folder:
            print(f"{folder}: median error {statistics.median(of_folder):.1%}, ", end="")
            ninetieth = np.percentile(of_folder, 90, method="higher")  # an error may be infinite
            print(f"90th percentile {ninetieth:.1%}, {len(of_folder)} runs")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="?", default=Path("dense"), help="folder of run directories")
    parser.add_argument("--half", choices=["tune", "report", "both"], default="both")
    parser.add_argument("--accuracy", type=float, default=0.03)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--against", type=Path, nargs="+", default=[], help="folders of other runs of these sweeps")
    options = parser.parse_args()
    sweeps = [s for s in recorded(options.runs) if options.half in ("both", half_of(s.name))]
    if not sweeps:
        print(f"skipped: {options.runs} has no dense sweeps")
        return
    if options.against:
        compare(sweeps, options.against)
        return
    print(HEAD)
    rows, seeds = [], range(options.first_seed, options.first_seed + options.seeds)
    for sweep in sweeps:
        rows.append(judged(sweep, options.accuracy, seeds))
        print(rows[-1], flush=True)
    ratios = [r.of_even for r in rows]
    print(f"\n{len(rows)} sweeps ({options.half}), {len(seeds)} seeds each")
    print(f"trials for the error of even thinning at a third: {statistics.median(ratios):.2f} of those, ", end="")
    print(f"at most {max(ratios):.2f}, above 1.2 in {sum(r > 1.2 for r in ratios)} sweeps")
    accurate = statistics.median(r.accurate / r.full for r in rows)
    print(f"trials until within {options.accuracy:.0%}: {accurate:.2f} of the full sweep in the median")
    stopped = statistics.median(r.stopped / r.full for r in rows)
    print(f"trials when it stops: {stopped:.2f} of the full sweep in the median; ", end="")
    print(f"time {statistics.median(r.time_share for r in rows):.2f}")
    print(f"the truth lies within the stated error in {statistics.fmean(r.held for r in rows):.1%}")
    print(f"decisions take {statistics.median(r.decisions for r in rows):.1%} of the time of trials, ", end="")
    print(f"at most {max(r.decisions for r in rows):.1%}")
    found, sharp = sum(r.found for r in rows), sum(r.sharp for r in rows)
    again, repeatable = sum(r.found_again for r in rows), sum(r.repeatable for r in rows)
    print(f"within one step of the grid: {found:.1f} of {sharp} sharp breakpoints, ", end="")
    print(f"of which another full sweep has {sum(r.again for r in rows):.1f}; ", end="")
    print(f"{again:.1f} of {repeatable} that can be repeated")


if __name__ == "__main__":
    main()
