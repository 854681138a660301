"""How well a cost model predicts programs of several components that it has not seen, on the local targets.

For every target the cost model of this machine is learnt (``p4perf learn``) or read from ``--models``; then random
programs are drawn and predicted, the predictions are written down, and only then are the programs built and measured.
The truth is the median over three accepted starts or more, each over the interleaved baseline of its own start; a
program without three accepted starts has no truth and is counted apart. Errors are relative to the truth. Beside them
stands how far the second half of its starts is from the first: no model is better than the programs repeat themselves.

With ``--lpm`` that share of the tables is lpm. Nothing is asked of xdp, nor of programs with lpm tables: what comes out
is printed.

``python benchmarks/composition.py [--quick] [--target dpdk-c] [--seed N] [--programs N] [--lpm SHARE] [--models DIR]
[--folder DIR]``
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from _drawn_programs import ComponentList, DrawnKinds, draw_programs

from p4perf.errors import P4PerfError
from p4perf.evaluation.prediction.library import parse_cost_model, reference_model
from p4perf.experiment import measure_run, new_run, open_target, open_testbed
from p4perf.experiment.evaluate import COST
from p4perf.experiment.learning import learn_from_runs, measure_fixtures
from p4perf.models.program.costs import CostModel
from p4perf.models.program.costs_storage import cost_model_json
from p4perf.models.program.graph import construct
from p4perf.results.files import read_text
from p4perf.specs import load_experiment
from p4perf.specs.experiment import spec_yaml

TARGETS = ("dpdk-c", "dpdk-swx", "dpdk-swx:interpreter", "xdp")
RESERVED_SEED = 31415
"""Seed of the evaluation. Nothing was developed with it."""

PROGRAMS, QUICK = 40, 10
STARTS = 3
"""A program with fewer accepted starts has no truth."""

TRIED_STARTS = 5
COVERAGE = (0.85, 0.95)


LARGE = 10_000
"""From this number of entries on, a table may exceed the second-level cache."""


@dataclass(frozen=True)
class Judged:
    """A program with its prediction, made before, and the truth. Cycles per packet."""

    components: ComponentList
    predicted: float
    low: float
    high: float
    truth: float = float("nan")
    halves: tuple[float, float] = (float("nan"), float("nan"))
    """The truth by the first half of the starts, and by the others."""

    @property
    def beyond(self) -> bool:
        """Whether a table may be beyond the second-level cache."""
        return any(int(parameters.get("entries", 0)) >= LARGE for _, parameters in self.components)


@dataclass(frozen=True)
class Bound:
    """Median and 90th percentile of the errors that are asked for, of some programs."""

    title: str
    median: float
    p90: float
    chosen: Callable[[Judged], bool] = lambda j: True


BOUNDS: dict[str, tuple[Bound, ...]] = {
    "dpdk-c": (
        Bound("all tables in the cache", 0.03, 0.08, lambda j: not j.beyond),
        Bound("a table beyond the cache", 0.08, 0.18, lambda j: j.beyond),
    ),
    "dpdk-swx": (Bound("all programs", 0.04, 0.08),),
    "dpdk-swx:interpreter": (Bound("all programs", 0.03, 0.07),),
}


def model_of(target: str, folder: Path, models: Path | None) -> CostModel:
    """The cost model of a target, read or learnt."""
    name = target.replace(":", "-") + ".json"
    if models is not None:
        return priced(read_text(models / name), str(models / name))
    began = time.monotonic()
    runs = measure_fixtures(target, "local", folder / "fixtures", told=lambda line: print(f"     {line}"))
    text = cost_model_json(learn_from_runs(runs, reference=reference_model(target)))
    (folder / name).write_text(text, encoding="utf-8")
    print(f"     learnt in {time.monotonic() - began:.0f} s: {folder / name}")
    return priced(text, name)


def priced(text: str, file: str) -> CostModel:
    """A model with its prices."""
    model = parse_cost_model(text, file).pricing
    assert isinstance(model, CostModel)
    return model


def predicted(model: CostModel, programs: Sequence[ComponentList]) -> list[Judged]:
    """Predictions, without truth."""
    found = []
    for components in programs:
        met = [(construct("component", "", name=name, **parameters), 1.0) for name, parameters in components]
        cycles = model.breakdown(met).cycles
        found.append(Judged(components, cycles.value, cycles.low, cycles.high))
    return found


def spec_of(programs: Sequence[ComponentList], seed: int, folder: Path) -> Path:
    """A spec of these programs, a point each."""
    names = [f"program_{n:02}" for n in range(1, len(programs) + 1)]
    content = {
        "extends": "base/composition",
        "name": f"composition/drawn-{seed}",
        "variants": {
            name: {"set": {"program.component": [{part: dict(parameters)} for part, parameters in components]}}
            for name, components in zip(names, programs, strict=True)
        },
        "sweep": {"multiplex": {"each_of": names}},
        "trials": {"seed": seed, "repetitions": TRIED_STARTS},
    }
    path = folder / f"drawn-{seed}.yaml"
    path.write_text(spec_yaml(content), encoding="utf-8")
    return path


def truths(target: str, spec: Path, folder: Path) -> dict[int, tuple[float, ...]]:
    """Cycles per packet of every program over its baseline in all of its starts, by its number."""
    experiment, device, testbed = load_experiment(str(spec)), open_target(target), open_testbed("local")
    run, plan = new_run(experiment, device, testbed, folder / "truth")
    began = time.monotonic()
    measure_run(experiment, plan.points, device, testbed, run)
    print(f"     {len(plan.points)} programs built and measured in {time.monotonic() - began:.0f} s: {run.path}")
    table = run.read_measurements()
    rows = table[table["accepted"].astype(bool)]
    found: dict[int, tuple[float, ...]] = {}
    for point in experiment.points:
        here = rows[rows["point_index"] == point.index].sort_values("attempt")
        costs = here.loc[here["metric"] == COST, "value"]
        if len(costs) >= STARTS:
            found[point.index] = tuple(float(cost) for cost in costs)
    return found


def with_truth(said: Judged, costs: Sequence[float], baseline: float) -> Judged:
    """A prediction with what was measured of its program."""
    half = len(costs) // 2
    first, second = (baseline + float(np.median(some)) for some in (costs[:half], costs[half:]))
    return replace(said, truth=baseline + float(np.median(costs)), halves=(first, second))


def errors_of(judged: Sequence[Judged]) -> npt.NDArray[np.float64]:
    """Relative errors, positive where a prediction is too high."""
    return np.array([j.predicted / j.truth - 1 for j in judged])


def covered(judged: Sequence[Judged]) -> float:
    """Share of programs inside of their intervals."""
    return float(np.mean([j.low <= j.truth <= j.high for j in judged]))


def report(judged: Sequence[Judged], without: int, target: str, bounds: Sequence[Bound]) -> int:
    """Print what came out; how many bounds are not met."""
    columns = ("median", "p90", "max", "bias", "covered", "width", "again", "p90")
    print(f"     {'':34}{'n':>4}" + "".join(f"{column:>8}" for column in columns) + "   (in %)")
    groups = (("all", judged), ("all tables in the cache", [j for j in judged if not j.beyond]))
    for title, group in (*groups, ("a table beyond the cache", [j for j in judged if j.beyond])):
        if group:
            errors, widths = errors_of(group), [(j.high - j.low) / j.predicted for j in group]
            again = np.quantile([abs(j.halves[1] / j.halves[0] - 1) for j in group], [0.5, 0.9])
            spread = (errors.mean(), covered(group), np.median(widths))
            found = (*np.quantile(np.abs(errors), [0.5, 0.9, 1.0]), *spread, *again)
            print(f"     {title:34}{len(group):4}" + "".join(f"{100 * f:8.1f}" for f in found))
    if without:
        print(f"     {without} programs have no {STARTS} accepted starts and are not judged")
    missed = 0
    for bound in bounds:
        group = [j for j in judged if bound.chosen(j)]
        if not group:
            continue
        median, p90 = np.quantile(np.abs(errors_of(group)), [0.5, 0.9])
        met = median <= bound.median and p90 <= bound.p90
        missed += not met
        print(
            f"{'yes' if met else 'NO '}  {target}, {bound.title}: median {100 * median:.1f} % "
            f"(asked {100 * bound.median:g}), 90th percentile {100 * p90:.1f} % (asked {100 * bound.p90:g})"
        )
    inside = COVERAGE[0] <= covered(judged) <= COVERAGE[1]
    print(
        f"{'yes' if inside else 'NO '}  {target}: 90 % intervals cover {100 * covered(judged):.0f} % (asked 85 to 95)"
    )
    return missed + (not inside)


def main() -> None:
    """Learn, predict, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", action="append", choices=TARGETS, help="only this one; repeatable")
    parser.add_argument("--quick", action="store_true", help=f"only {QUICK} programs")
    parser.add_argument("--seed", type=int, default=RESERVED_SEED)
    parser.add_argument("--programs", type=int, default=0)
    parser.add_argument("--lpm", type=float, default=0.0, help="share of lpm tables among tables")
    parser.add_argument("--models", type=Path, help="folder with cost models of p4perf learn, such as dpdk-c.json")
    parser.add_argument("--folder", type=Path, help="keeps runs, models and predictions; a temporary one without it")
    options = parser.parse_args()
    began, missed = time.monotonic(), 0
    folder = options.folder or Path(tempfile.mkdtemp(prefix="p4perf-composition-"))
    folder.mkdir(parents=True, exist_ok=True)
    count = options.programs or (QUICK if options.quick else PROGRAMS)
    programs = draw_programs(options.seed, count, DrawnKinds(prefixes=options.lpm))
    spec = spec_of(programs, options.seed, folder)
    for target in options.target or TARGETS:
        print(f"{target}, seed {options.seed}")
        try:
            model = model_of(target, folder, options.models)
            said = predicted(model, programs)
            note = [{"predicted": j.predicted, "low": j.low, "high": j.high} for j in said]
            name = f"predictions-{target.replace(':', '-')}-{options.seed}.json"
            (folder / name).write_text(json.dumps(note, indent=1) + "\n", encoding="utf-8")
            print(f"     predictions: {folder / name}")
            found = truths(target, spec, folder)
        except P4PerfError as error:
            print(f"     skipped: {error}")
            continue
        judged = [with_truth(j, found[n], model.baseline) for n, j in enumerate(said) if n in found]
        if judged:
            bounds = () if options.lpm else BOUNDS.get(target, ())
            missed += report(judged, len(said) - len(judged), target, bounds)
        else:
            print(f"     no program has {STARTS} accepted starts")
    print(f"{time.monotonic() - began:.0f} s")
    sys.exit(missed > 0)


if __name__ == "__main__":
    main()
