"""How often does the gate say what it should? On simulated runs, and with --real on runs of this machine.

Simulated: starts scatter as measured on a shared virtual machine, with heavy tails (Student's t with 3 degrees of
freedom; a median deviation of 0.6 % from the median of the others where tables fit into the L2 cache, of 2.7 % beyond
it), 1 start in 300 takes half as long again or up to three times as long and looks clean, every run has an offset of
its own (0.5 %), and beyond the L2 cache another one (4 %). A gate compares 30 components with 3 starts a point; in 3 of
them a quarter of the points lies beyond the L2 cache, as in a tenth of the experiments of the catalogue.

Then ten components while runs drift: every run has an offset of 0 to 4 % (standard deviation), of which all components
have nothing, half of the variance, or all in common. Gates of a run against one other, which assume a drift and may
fail beyond it, against three others, and interleaved gates during which the machine drifts as far. Then interleaved
gates of starts that scatter by 1.5 to 2.5 % (standard deviation).

Real: pairs of runs of dpdk-c, one after the other; then the second of each pair with 5 % added to every start, and runs
of a program with additions that the first does not have. With --real-interleaved, interleaved gates beside a busy loop
that comes and goes. Exits with 1 if a share is missed, 3 if nothing can be measured here.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from p4perf.errors import P4PerfError
from p4perf.evaluation.comparison.drift import ASSUMED, drift_of, run_levels, with_assumed_drift, with_drift
from p4perf.evaluation.comparison.gate import ComponentShifts, GateVerdict, judge
from p4perf.evaluation.comparison.ratios import ComparisonOutcome, measured_ratios
from p4perf.evaluation.comparison.shifts import paired_shifts, point_shifts
from p4perf.experiment import new_run, open_target, open_testbed
from p4perf.experiment.conductor import Conductor
from p4perf.experiment.gate import GateRow, gate_runs
from p4perf.experiment.interleaved import GatedSide, measure_in_turns, new_pair
from p4perf.models.templates import FloatArray
from p4perf.results import RunDirectory
from p4perf.results.table import Samples
from p4perf.specs import load_experiment

METRIC = "cycles_per_packet"
QUIET, LOUD = 0.006 / 0.765, 0.027 / 0.765
"""Scales of t with 3 degrees of freedom (its median deviation is 0.765) for the measured median deviations."""
RUN_OFFSET, LOUD_RUN_OFFSET = 0.005, 0.04
WILD_SHARE = 1 / 300
SLOWDOWN = 1.05
LOUD_SHARE = 0.1
OFFSETS = (0.0, 0.005, 0.01, 0.02, 0.04)
DRIFTING, POINTS, PAIRS, BASELINES = 10, 4, 6, 3
SHORT_POINTS, SCATTERS = 3, (0.015, 0.02, 0.025)
LABELS = tuple(map(str, range(POINTS)))
TABLES = """\
name: mat/exact-entries
extends: mat/exact-entries
sweep: {entries: {log: [1, 1e4], points_per_decade: 2}}
"""
SWEEP, FEW = "{log: [1, 1e4], points_per_decade: 2}", "[1, 100, 1000]"
SHORT = TABLES.replace(SWEEP, FEW)
SLOWER = """\
name: mat/exact-entries
extends: base/common
traffic: {flows: {distribution: uniform, over: entries}}
program:
  component: [match_action_table, arithmetic]
  parameters:
    match_action_table:
      {match_kind: exact, entries: $entries, key_bits: 128, action_data_bytes: 64, hit_ratio: 1.0}
    arithmetic: {operations: %d, operator: "+", width_bits: 32}
sweep: {entries: {log: [1, 1e4], points_per_decade: 2}}
model: {x: entries, x_scale: log}
"""


def start_noise(generator: np.random.Generator, size: int, scale: float = QUIET) -> FloatArray:
    """Logarithms of what starts scatter by."""
    wild = np.where(generator.random(size) < WILD_SHARE, np.log(generator.uniform(1.5, 3, size)), 0.0)
    return np.asarray(scale * generator.standard_t(3, size) + wild)


def simulated_run(
    generator: np.random.Generator,
    points: int,
    loud: int,
    starts: int,
    factor: float = 1.0,
    offset: float | None = None,
) -> Samples:
    """A run whose last ``loud`` points are those of tables beyond the L2 cache."""
    offset = generator.normal(0, RUN_OFFSET) if offset is None else offset
    loud_offset = generator.normal(0, LOUD_RUN_OFFSET)
    values = []
    for index in range(points):
        beyond = index >= points - loud
        level = math.log(20 * (index + 1) * factor) + offset + (loud_offset if beyond else 0.0)
        noise = start_noise(generator, starts, LOUD if beyond else QUIET)
        values.append(tuple(float(v) for v in np.exp(level + noise)))
    return Samples(tuple(float(i) for i in range(points)), tuple(values))


def component(
    generator: np.random.Generator, *, points: int, loud: int, starts: int, factor: float = 1.0
) -> ComponentShifts:
    """Two simulated runs as a component, with the drift that is assumed; the new one takes ``factor`` as long."""
    old = simulated_run(generator, points, loud, starts)
    new = simulated_run(generator, points, loud, starts, factor)
    shifts = point_shifts(measured_ratios(new, old))
    if shifts is not None:
        shifts = with_assumed_drift(shifts, ASSUMED, 1, 1)
    return ComponentShifts(METRIC, shifts, tuple(str(i) for i in range(points)))


def share(found: Iterable[object]) -> str:
    """Outcomes with their shares, as text."""
    counts = Counter(map(str, found))
    total = sum(counts.values())
    return ", ".join(f"{name} {100 * count / total:.1f} %" for name, count in counts.most_common())


def told(row: GateRow) -> str:
    """A verdict with its numbers, as text."""
    ratio = row.ratio
    said = "" if ratio is None else f" {ratio.value:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]"
    return f"{row.verdict}{said}, detectable {100 * (row.detectable or math.inf):.2g} %"


def simulated(points: int, gates: int, components: int) -> bool:
    """Gates of one and of many components: nothing changed, and one of them changed. Whether all shares are met."""
    generator = np.random.default_rng(1)
    loud = max(1, points // 4)
    few = round(LOUD_SHARE * components)
    alone: list[GateVerdict] = []
    hurt: list[GateVerdict] = []
    said: list[GateVerdict] = []
    failed = found = undecided = 0
    for _ in range(gates):
        chosen = [component(generator, points=points, loud=0, starts=3) for _ in range(components - few)]
        chosen += [component(generator, points=points, loud=loud, starts=3) for _ in range(few)]
        changed = component(generator, points=points, loud=0, starts=3, factor=SLOWDOWN)
        alone += judge(chosen[:1])
        hurt += judge([changed])
        verdicts = judge(chosen)
        said += verdicts
        failed += any(v.worse for v in verdicts)
        verdict = judge([changed, *chosen[1:]])[0]
        found += verdict.worse
        undecided += verdict.outcome is ComparisonOutcome.NO_VERDICT
    same = sum(v.outcome is ComparisonOutcome.SAME for v in alone) / gates
    seen = sum(v.worse for v in hurt) / gates
    by = f"{100 * (SLOWDOWN - 1):.0f} %"
    print(f"simulated, {points} points, 3 starts, {gates} gates")
    print(f"  1 component, nothing changed: {share(v.outcome for v in alone)}")
    print(f"  1 component, {by} slower: {share(v.outcome for v in hurt)}")
    print(f"  {components} components, nothing changed: {share(v.outcome for v in said)}")
    print(f"    gates that fail (exit code 1): {failed} of {gates}")
    print(f"  {components} components, one of them {by} slower: found in {found} of {gates}, {undecided} no verdict")
    return same >= 0.95 and seen >= 0.9 and found >= 0.9 * gates and failed <= 0.05 * gates


def joined(runs: Sequence[Samples]) -> Samples:
    """The starts of several runs together."""
    return Samples(runs[0].x, tuple(sum(values, ()) for values in zip(*(run.values for run in runs), strict=True)))


def gate_at_other_times(
    generator: np.random.Generator, offset: float, share: float, factor: float, baselines: int = BASELINES
) -> list[GateVerdict]:
    """A gate of components with some baseline runs; ``share`` of the variance of offsets is that of all of them.

    The first component takes ``factor`` as long.
    """
    alike = math.sqrt(share) * offset * generator.standard_normal(baselines + 1)
    levels, known = [], []
    for number in range(DRIFTING):
        offsets = alike + math.sqrt(1 - share) * offset * generator.standard_normal(baselines + 1)
        runs = [simulated_run(generator, POINTS, 0, 3, offset=float(each)) for each in offsets[1:]]
        by = factor if number == 0 else 1.0
        new = simulated_run(generator, POINTS, 0, 3, by, offset=float(offsets[0]))
        shifts = point_shifts(measured_ratios(new, joined(runs)), 1, baselines)
        assert shifts is not None
        levels.append(run_levels(runs))
        known.append(shifts)
    drift = drift_of(levels)
    drifted = [
        with_assumed_drift(s, ASSUMED, 1, baselines) if drift is None else with_drift(s, drift, 1, baselines, own)
        for s, own in zip(known, levels, strict=True)
    ]
    return list(judge([ComponentShifts(METRIC, s, LABELS) for s in drifted]))


def gate_against_one(generator: np.random.Generator, offset: float, share: float, factor: float) -> list[GateVerdict]:
    """The same with one baseline run, and the drift that is assumed then."""
    return gate_at_other_times(generator, offset, share, factor, baselines=1)


def gate_in_turns(generator: np.random.Generator, offset: float, share: float, factor: float) -> list[GateVerdict]:
    """The same with one interleaved run of each component, while the machine drifts.

    Half of the variance of an offset is a walk from start to start, half a neighbour that comes and goes. Where
    there is no verdict and nothing is slower, there are twice as many pairs, and the gate is judged once more.
    """
    count = POINTS * 2 * PAIRS * 2
    alike, alone = math.sqrt(share) * offset, math.sqrt(1 - share) * offset
    walk = alike * machine(generator, DRIFTING * count)
    drifts = [
        walk[number * count : (number + 1) * count] + alone * machine(generator, count) for number in range(DRIFTING)
    ]
    return in_turns([drift + start_noise(generator, count) for drift in drifts], POINTS, factor)


def in_turns(starts: Sequence[FloatArray], points: int, factor: float) -> list[GateVerdict]:
    """A gate of logarithms of starts in pairs, twice :data:`PAIRS` a point; the first component is changed."""

    def judged(pairs: Sequence[int]) -> list[GateVerdict]:
        found = []
        for number, (values, some) in enumerate(zip(starts, pairs, strict=True)):
            levels = values.reshape(2 * PAIRS, points, 2)[:some]
            # The first of a pair is the baseline and the new one in turn.
            turns = (np.arange(some)[:, None] + np.arange(points)) % 2 * 2 - 1
            logs = turns * (levels[:, :, 1] - levels[:, :, 0]) + (math.log(factor) if number == 0 else 0.0)
            found.append(ComponentShifts(METRIC, paired_shifts(list(logs.T)), tuple(map(str, range(points)))))
        return list(judge(found))

    first = judged([PAIRS] * len(starts))
    if any(v.worse for v in first):
        return first
    return judged([PAIRS * (1 + (v.outcome is ComparisonOutcome.NO_VERDICT)) for v in first])


def noisy_starts(gates: int) -> bool:
    """Interleaved gates over what starts scatter by, which decides how many pairs they need. Whether shares are met."""
    generator, good = np.random.default_rng(5), True
    print(f"simulated: interleaved gates of {SHORT_POINTS} points, {PAIRS} or {2 * PAIRS} pairs, {gates} gates each")
    print("  starts, components: false, 5 % found")
    for scatter in SCATTERS:
        for components in (1, DRIFTING):

            def gate(factor: float, scatter: float = scatter, components: int = components) -> list[GateVerdict]:
                count = SHORT_POINTS * 2 * PAIRS * 2
                scale = scatter / math.sqrt(3)  # t with 3 degrees of freedom has a standard deviation of this
                starts = [start_noise(generator, count, scale) for _ in range(components)]
                return in_turns(starts, SHORT_POINTS, factor)

            failed = sum(any(v.worse for v in gate(1.0)) for _ in range(gates))
            found = sum(gate(SLOWDOWN)[0].worse for _ in range(gates))
            good = good and failed <= 0.05 * gates and found >= 0.9 * gates
            shares = f"{100 * failed / gates:4.1f} %, {100 * found / gates:5.1f} %"
            print(f"  {100 * scatter:4.1f} %, {components:2d}: {shares}", flush=True)
    return good


def machine(generator: np.random.Generator, size: int) -> FloatArray:
    """A drift over starts with a variance of about 1: a walk, and steps up and down about every twenty starts."""
    walk = np.cumsum(generator.standard_normal(size)) / math.sqrt(size)
    steps = np.cumsum(generator.random(size) < 1 / 20) % 2 * 2 - 1
    return np.asarray((walk * math.sqrt(2) + steps) / math.sqrt(2))


def drifting(gates: int) -> bool:
    """Gates of ten components while runs drift. Whether all shares are met."""
    generator, good = np.random.default_rng(3), True
    # What is promised to be found; with one run nothing is promised, and its draws leave the others as they are.
    kinds = (
        (gate_against_one, np.random.default_rng(4), None),
        (gate_at_other_times, generator, 0.0),
        (gate_in_turns, generator, 0.9),
    )
    print(f"simulated: {DRIFTING} components, {POINTS} points, offsets between runs, {gates} gates each")
    pairs = f"{PAIRS} or {2 * PAIRS} pairs"
    print(f"  at other times: 1 new run, 1 or {BASELINES} of the baseline, 3 starts a point; in turns: {pairs}")
    columns = "".join(f"   {name:25s}" for name in ("1 baseline run", f"{BASELINES} baseline runs", "in turns"))
    print(f"                  {columns}")
    print(f"  offset  shared  {'   false, found, no verdict ' * 3}")
    for offset in OFFSETS:
        for share in (0.0, 0.5, 1.0) if offset else (0.0,):
            texts = []
            for gate, drawn, promised in kinds:
                same = [gate(drawn, offset, share, 1.0) for _ in range(gates)]
                slow = [gate(drawn, offset, share, SLOWDOWN)[0] for _ in range(gates)]
                failed = sum(any(v.worse for v in verdicts) for verdicts in same)
                found = sum(v.worse for v in slow)
                without = sum(v.outcome is ComparisonOutcome.NO_VERDICT for vs in same for v in vs)
                if promised is not None:
                    good = good and failed <= 0.05 * gates and found >= promised * gates
                shares = (failed / gates, found / gates, without / gates / DRIFTING)
                texts.append(", ".join(f"{100 * each:5.1f} %" for each in shares))
            print(f"  {100 * offset:4.1f} %  {100 * share:4.0f} %   {'   '.join(texts)}", flush=True)
    return good


def resolution() -> None:
    """What could be found, over points and starts: median over simulated runs, for 1 and for 30 components."""
    generator = np.random.default_rng(2)
    print("simulated: detectable change (1 component / one of 30), median; beside it: tables beyond the L2 cache")
    print("  points  starts   in the L2 cache   beyond it")
    for points in (1, 2, 4, 8):
        for starts in (3, 5, 10):
            texts = []
            for loud in (0, points):
                found = [
                    (c.shifts.common().detectable(0.025 / 2), c.shifts.common().detectable(0.025 / 60))
                    for c in (component(generator, points=points, loud=loud, starts=starts) for _ in range(12))
                    if c.shifts is not None
                ]
                texts.append(
                    " / ".join(f"{100 * float(np.median(column)):5.1f} %" for column in zip(*found, strict=True))
                )
            print(f"  {points:6d}  {starts:6d}   {texts[0]}   {texts[1]}")


def measured(folder: Path, spec: Path, repetitions: int) -> Path:
    """A run of dpdk-c on this machine."""
    experiment = load_experiment(str(spec), overrides=[("trials.repetitions", str(repetitions))])
    run, plan = new_run(experiment, open_target("dpdk-c"), open_testbed("local"), folder)
    Conductor(experiment, plan.points, open_target("dpdk-c"), open_testbed("local"), run).measure()
    return run.path


def slowed(path: Path, folder: Path) -> Path:
    """A copy of a run in which every start took 5 % longer."""
    old = RunDirectory.open(path)
    about = old.manifest()
    manifest = {k: v for k, v in about.items() if k not in _OWN}
    table = old.read_measurements()
    table.loc[table["metric"] == METRIC, "value"] *= SLOWDOWN
    run = RunDirectory.create(
        folder,
        experiment_name=about["experiment"],
        target=about["target"],
        testbed=about["testbed"],
        resolved_spec=old.spec(),
        manifest=manifest,
        now=datetime.now(UTC),
    )
    run.write_measurements(table)
    return run.path


_OWN = ("schema_version", "experiment", "target", "testbed", "created")


def real(pairs: int, additions: int, repetitions: int) -> bool:
    """Pairs of runs of this machine. Whether all shares are met."""
    with tempfile.TemporaryDirectory(prefix="p4perf-bench-") as text:
        folder = Path(text)
        plain, slow = folder / "tables.yaml", folder / "slower.yaml"
        plain.write_text(TABLES)
        slow.write_text(SLOWER % additions)
        outcomes: dict[str, list[str]] = {"nothing changed": [], "5 % added to every start": [], "additions": []}
        for number in range(pairs):
            begin = time.monotonic()
            first, second = (measured(folder / f"{number}{side}", plain, repetitions) for side in "ab")
            third = measured(folder / f"{number}c", slow, repetitions)
            for name, path in zip(outcomes, (second, slowed(second, folder / f"{number}d"), third), strict=True):
                (found,) = gate_runs([first], [path]).rows
                outcomes[name].append(found.verdict)
                print(f"  pair {number + 1}, {name}: {told(found)}")
            print(f"  pair {number + 1}: {time.monotonic() - begin:.0f} s")
    for name, found_here in outcomes.items():
        print(f"real, {name}: {share(found_here)} of {len(found_here)}")
    slower = outcomes["5 % added to every start"] + outcomes["additions"]
    return outcomes["nothing changed"].count("same") >= 0.95 * pairs and slower.count("slower") >= 0.9 * len(slower)


@contextlib.contextmanager
def neighbour(seed: int) -> Iterator[None]:
    """A busy loop that runs beside the body now and then, for 2 to 8 seconds."""
    chance, ended = random.Random(seed), threading.Event()  # noqa: S311

    def disturb() -> None:
        while not ended.wait(chance.uniform(2, 8)):
            busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            ended.wait(chance.uniform(2, 8))
            busy.kill()
            busy.wait()

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def real_in_turns(gates: int, additions: int) -> bool:
    """Interleaved gates on this machine beside a busy loop: nothing changed, and half as many with additions."""
    same, added, slower = "nothing changed", "5 % added to every start", f"{additions} additions"
    found: dict[str, list[str]] = {same: [], added: [], slower: []}
    with tempfile.TemporaryDirectory(prefix="p4perf-bench-") as text:
        folder = Path(text)
        plain, slow = folder / "tables.yaml", folder / "slower.yaml"
        plain.write_text(SHORT)
        slow.write_text((SLOWER % additions).replace(SWEEP, FEW))
        repetitions = [("trials.repetitions", str(PAIRS))]
        one, other = (load_experiment(str(path), overrides=repetitions) for path in (plain, slow))
        target = open_target("dpdk-c")
        for number in range(gates + (gates + 1) // 2):
            name, new = (same, one) if number < gates else (slower, other)
            begin = time.monotonic()
            sides = new_pair(GatedSide(one, target), GatedSide(new, target), open_testbed("local"), folder / "runs")
            with neighbour(number):
                measure_in_turns(*sides, one)
            before, after = (side.run.path for side in sides)
            measured_s = time.monotonic() - begin
            copies = {name: after} | ({added: slowed(after, folder / "slowed")} if name == same else {})
            for what, run in copies.items():
                (row,) = gate_runs([before], [run]).rows
                found[what].append(row.verdict)
                print(f"  {what}: {told(row)}, {measured_s:.0f} s", flush=True)
    for name, verdicts in found.items():
        print(f"real, in turns, {name}: {share(verdicts)} of {len(verdicts)}")
    few = found[same].count("slower") <= max(1, gates // 20)
    return few and found[added].count("slower") >= 0.9 * gates and set(found[slower]) == {"slower"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gates", type=int, default=100, help="simulated gates")
    parser.add_argument("--components", type=int, default=30, help="components of a gate")
    parser.add_argument("--real", type=int, default=0, metavar="N", help="pairs of real runs on dpdk-c")
    parser.add_argument("--additions", type=int, default=3, help="additions that the slower real program makes")
    parser.add_argument("--repetitions", type=int, default=3, help="starts of a point of the real runs")
    parser.add_argument(
        "--real-interleaved", type=int, default=0, metavar="N", help="interleaved gates on dpdk-c beside a busy loop"
    )
    parser.add_argument("--only-real", action="store_true", help="simulate nothing")
    chosen = parser.parse_args(arguments)
    begin, good = time.monotonic(), True
    if not chosen.only_real:
        good = min([simulated(points, chosen.gates, chosen.components) for points in (8, 16)])
        good = drifting(2 * chosen.gates) and good
        good = noisy_starts(2 * chosen.gates) and good
        resolution()
        print(f"simulated in {time.monotonic() - begin:.0f} s")
    if chosen.real or chosen.real_interleaved:
        try:
            if chosen.real:
                good = real(chosen.real, chosen.additions, chosen.repetitions) and good
            if chosen.real_interleaved:
                good = real_in_turns(chosen.real_interleaved, chosen.additions) and good
        except P4PerfError as error:
            print(f"nothing real: {error}")
            return 3
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
