"""THE DOOR for Python: what the commands do, as functions that return data.

>>> import p4perf
>>> fit = p4perf.fit([1, 2, 3, 4], [5.0, 7.0, 9.0, 11.0], y_name="cycles")
>>> fit
<DerivedModel cycles: 1 segment>
>>> fit.segments[0].text()
'y = 3 + 2 x'

Everything is imported when it is used, so that ``import p4perf`` takes no time.
"""

from __future__ import annotations

import importlib
import json
import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from p4perf.arguments import Changes, Count, Duration, PathLike, Paths, Share, Texts, checked
from p4perf.errors import DataError, NoVerdictError, TargetUnavailableError, UsageError
from p4perf.plugins import find_plugin
from p4perf.results import Run, all_run_folders, find_run, read_model
from p4perf.results.names import FOLDER, RunSummary
from p4perf.specs.messages import nearest
from p4perf.specs.units import seconds, share
from p4perf.views import LearntModel, LoadedModel, OpenRun, Reproduced, RunList

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

    from p4perf.evaluation.fitting.component import DerivedModel as DerivedModel
    from p4perf.evaluation.fitting.derivation import FitOptions as FitOptions
    from p4perf.evaluation.fitting.derivation import derive as derive
    from p4perf.evaluation.fitting.error_metrics import ErrorMetric as ErrorMetric
    from p4perf.evaluation.papers import Kind
    from p4perf.evaluation.plots.style import save_figure as save_figure
    from p4perf.evaluation.prediction.answer import PathName
    from p4perf.evaluation.prediction.programs import ProgramSubject
    from p4perf.evaluation.prediction.record import Answers
    from p4perf.experiment.compare import RunComparison
    from p4perf.experiment.gate import GateDocument
    from p4perf.experiment.many import FittedSeries
    from p4perf.experiment.recorder import Progress, SweepOutcome
    from p4perf.experiment.reproduction import Watcher
    from p4perf.experiment.subjects import ComparedModels
    from p4perf.models.component import Scale
    from p4perf.results.table import Samples as Samples
    from p4perf.testbeds.base import Testbed

DEFAULT_TARGET = "dpdk-c"


@checked
def open_run(name: PathLike = "latest", folder: PathLike = FOLDER) -> OpenRun:
    """A run by its path or by its name.

    Args:
        name: a path, ``latest``, ``latest~2``, or the beginning of the name or time of a run in ``folder`` or in a
            campaign there.

    Raises:
        UsageError: the name fits several runs.
        DataError: there is no such run, or it is damaged.
    """
    return OpenRun.open(find_run(name, Path(folder)))


@checked
def list_runs(folder: PathLike = FOLDER, *, told: Callable[[str], object] = warnings.warn) -> RunList:
    """The runs in a folder and in the campaigns in it; damaged ones are left out, and ``told`` hears why."""
    found = []
    for path in all_run_folders(Path(folder)):
        try:
            run = OpenRun.open(path)
            RunSummary.of(run)
        except DataError as error:
            told(str(error))
            continue
        found.append(run)
    return RunList(found)


@checked
def load_model(path: PathLike) -> LoadedModel:
    """The model in a file, or of a run that is given by its path or name.

    Raises:
        DataError: there is none, or it is damaged.
    """
    return LoadedModel.of(read_model(find_run(path)))


# fmt: off
@overload
def run(
    spec: PathLike, target: str = ..., *, testbed: str | Testbed = ..., settings: Changes = ...,
    points: Count | None = ..., accuracy: Share | None = ..., budget_s: None = ..., skip_impossible: bool = ...,
    output: PathLike = ..., progress: Progress | None = ...,
) -> OpenRun: ...


@overload
def run(
    spec: Paths, target: Texts = ..., *, testbed: str | Testbed = ...,
    settings: Changes = ..., points: Count | None = ..., accuracy: Share | None = ..., budget_s: Duration | None = ...,
    skip_impossible: bool = ..., output: PathLike = ..., progress: Progress | None = ...,
) -> OpenRun | RunList: ...
# fmt: on


@checked
def run(
    spec: Paths,
    target: Texts = DEFAULT_TARGET,
    *,
    testbed: str | Testbed = "local",
    settings: Changes = (),
    points: Count | None = None,
    accuracy: Share | None = None,
    budget_s: Duration | None = None,
    skip_impossible: bool = False,
    output: PathLike = FOLDER,
    progress: Progress | None = None,
) -> OpenRun | RunList:
    """Measure an experiment on a target and derive its model: the run, with its plots on disk.

    Several experiments or targets, or a budget, make a campaign: the list of its runs.

    Args:
        spec: name of an experiment of the catalogue or path of a spec, or several.
        target: name of a target with its variants, or several.
        settings: changes of the spec, such as ``{"entries": 1000, "trials.repetitions": 5}``.
        points: most values that are kept of every swept variable.
        accuracy: measure only the points that are needed for this relative error, such as 0.03 or ``"3%"``.
        budget_s: time for everything, in seconds or such as ``"30m"``.
        skip_impossible: leave out the points that the target cannot do, with a warning.
        output: folder that gets the run directory, or that of the campaign.

    Raises:
        SpecError, CapabilityError: the spec is wrong, or beyond what the target can do.
        TestbedError, TargetUnavailableError: the testbed or the target cannot be used.
        MeasurementError: the target computes something wrong.
    """
    from p4perf.experiment import measure_anew, open_target, open_testbed
    from p4perf.experiment.evaluate import evaluate_run
    from p4perf.programs.component import component_parameters
    from p4perf.specs import load_experiment

    changes, wanted = _pairs(settings), _share(accuracy, "--accuracy")
    if skip_impossible:
        changes.append(("sweep.skip_impossible", "true"))
    if not (isinstance(spec, PathLike) and isinstance(target, str) and budget_s is None):
        from p4perf.experiment.campaign import measure_campaign, new_campaign

        if not isinstance(testbed, str):
            raise UsageError("several experiments or targets take the address of a testbed")
        folder = new_campaign(
            _listed(spec), _listed(target), testbed, Path(output),
            budget_s=_seconds(budget_s), accuracy=wanted, overrides=changes, points=points,
        )  # fmt: skip
        measure_campaign(folder, lambda line: None)
        return list_runs(folder.path)
    experiment = load_experiment(str(spec), overrides=changes, points=points, parameters_of=component_parameters)
    place = open_testbed(testbed) if isinstance(testbed, str) else testbed
    chosen = open_target(target)
    directory, plan, outcome = measure_anew(experiment, chosen, place, Path(output), progress, accuracy=wanted)
    _warn(f"{point.label} is left out: {point.reason}" for point in plan.refused)
    _conclude(outcome)
    measured = OpenRun(directory)
    with suppress(NoVerdictError):
        evaluate_run(measured)
    return measured


def _texts(given: Changes) -> list[str]:
    if not isinstance(given, Mapping):
        return _listed(given)
    return [f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in given.items()]


def _pairs(given: Changes) -> list[tuple[str, str]]:
    found = [(key.strip(), equals, value.strip()) for key, equals, value in (t.partition("=") for t in _texts(given))]
    if wrong := [key for key, equals, _ in found if not (key and equals)]:
        raise UsageError(f"settings: expected a mapping or key=value, got {wrong[0]!r}", hint="such as entries=1000")
    return [(key, value) for key, _, value in found]


def _share(given: Share | None, name: str) -> float | None:
    return None if given is None else share(given, name)


def _seconds(given: Duration | None) -> float | None:
    return seconds(given, "--budget") if isinstance(given, str) else given


def _warn(texts: Iterable[str]) -> None:
    for text in texts:
        warnings.warn(text, stacklevel=3)


def _conclude(outcome: SweepOutcome) -> None:
    """Warn of what a run lacks."""
    _warn(f"{label} failed: {reason}" for label, reason in outcome.failed)
    _warn(f"{label} has no accepted trial" for label in outcome.starved)
    if outcome.waiting:
        _warn([f"waiting: {outcome.waiting}"])


@checked
def measure(
    program: PathLike,
    target: str = DEFAULT_TARGET,
    *,
    entries: PathLike | None = None,
    p4info: PathLike | None = None,
    arch: str | None = None,
    std: str | None = None,
    defines: Changes = (),
    includes: Paths = (),
    fill: Changes = (),
    default_fill: int = 64,
    miss: Changes = (),
    zipf: float = 0.0,
    probabilities: PathLike | None = None,
    packets: Count = 256,
    capture: PathLike | None = None,
    port: int = 0,
    frame_size_bytes: Count = 128,
    sizes: Sequence[int] = (),
    repetitions: Count = 3,
    testbed: str | Testbed = "local",
    output: PathLike = FOLDER,
    progress: Progress | None = None,
) -> OpenRun:
    """Measure a program of your own on a target: a run with one point, or of an operator in C one for each size.

    Programs are verified packet by packet before they are measured: what the target does with packets that take all
    paths of the program is compared with the reference interpreter.

    Args:
        program: JSON of p4c-bm2-ss, a specification of SWX, P4 where p4c is installed, or an operator in C.
        fill: entries that are made up, such as ``{"ipv4_lpm": 1000}``.
        probabilities: YAML file of branch probabilities and traffic shares.
        sizes: packet sizes of an operator in C [bytes]; by default some from 64 to 1500.
        repetitions: starts of the process.

    Raises:
        DataError: a file cannot be read, or the program uses what is not supported; with the place.
        CapabilityError: the target cannot run the program.
        TestbedError, TargetUnavailableError: the testbed or the target cannot be used.
        MeasurementError: the target computes something wrong.
    """
    from p4perf.experiment import open_target, open_testbed
    from p4perf.experiment.own import measure_own, own_experiment

    path, place = Path(program), open_testbed(testbed) if isinstance(testbed, str) else testbed
    experiment = own_experiment(
        path, entries=_path(entries), p4info=_path(p4info), arch=arch, std=std, defines=_texts(defines),
        includes=list(map(Path, _listed(includes))), fill=_texts(fill), default_fill=default_fill, miss=_texts(miss),
        zipf=zipf, shares=_path(probabilities), packets=packets, capture=_path(capture), port=port,
        frame_size_bytes=frame_size_bytes, repetitions=repetitions, sizes=sizes,
    )  # fmt: skip
    measured, outcome = measure_own(path, experiment, open_target(target), place, Path(output), progress)
    _conclude(outcome)
    return OpenRun(measured)


def _path(given: PathLike | None) -> Path | None:
    return None if given is None else Path(given)


@overload
def fit(data: PathLike | Run | pd.DataFrame, y: str | None = ..., **options: Any) -> DerivedModel: ...


@overload
def fit(data: npt.ArrayLike, y: npt.ArrayLike, **options: Any) -> DerivedModel: ...


@checked
def fit(
    data: Any,
    y: Any = None,
    *,
    x: str | None = None,
    region: str | None = None,
    x_scale: Scale = "linear",
    working_set: str | None = None,
    caches: Sequence[str] = (),
    output: PathLike | None = None,
    every_plot: bool = False,
    progress: Callable[[float], object] | None = None,
    **options: Any,
) -> DerivedModel:
    """Derive a piecewise model from two columns of numbers, from a file or table, or from a run.

    >>> import p4perf
    >>> entries = list(range(1, 41))
    >>> fit = p4perf.fit(entries, [40 if n <= 15 else 40 + 2 * (n - 15) for n in entries])
    >>> print(fit)
    1 .. 15: y = 40 (sMAPE < 0.0001 %)
    16 .. 40: y = 10 + 2 x (sMAPE < 0.0001 %)
    >>> fit.breakpoints
    (16.0,)

    Args:
        data: abscissae, or a table with the columns ``x`` and ``y``, or a file of CSV or Extra-P (``-`` is the standard
            input), or a run, whose model and plots are written into it.
        y: samples for each abscissa, several for one as repetitions; of tables and files the name of their column.
        x: name of the column (Extra-P: parameter) of the abscissae.
        region: region or callpath of a file of Extra-P.
        x_scale: how x is drawn; split finders look at it this way.
        working_set: bytes that grow with x, such as ``128+80``; with ``caches`` such as ``L2=256KiB``, breakpoints are
            compared with where they fill these.
        output: folder for model.json and plots of a file.
        options: fields of :class:`p4perf.api.FitOptions`, such as ``max_segments=3``, ``segments=2``, ``loss="l1"``;
            of numbers ``x_name``, ``y_name``, ``x_unit``, ``y_unit``, ``name``, ``target``, too.

    Raises:
        UsageError: there is no such option, column or run, or a value is wrong.
        DataError: the samples cannot be used.
    """
    if isinstance(data, Run | str | Path):
        run = data if isinstance(data, Run) else find_run(data)
        if isinstance(run, Path) and not run.is_dir():
            from p4perf.experiment.evaluate import evaluate_file

            return evaluate_file(
                run, y, x, region=region, x_scale=x_scale, working_set=working_set, caches=caches,
                output=_path(output), changes=options, every_plot=every_plot, progress=progress,
            )  # fmt: skip
        from p4perf.experiment.evaluate import evaluate_run

        opened = OpenRun.open(run) if isinstance(run, Path) else run
        found = evaluate_run(opened, changes=options, every_plot=every_plot, progress=progress)
        if found is None:
            raise UsageError(f"{opened.name}: its spec asks for no model, or sweeps several variables")
        return found
    from p4perf.evaluation.fitting.component import fit as fit_columns

    if y is None or (isinstance(y, str) and x is None):
        raise UsageError("name the columns of the table: x and y" if y else "there are no samples: give y")
    if not isinstance(y, str):
        return fit_columns(data, y, x_scale=x_scale, **options)
    for wanted in (x, y):
        if wanted not in data:
            raise UsageError(f"there is no column {wanted!r}", hint=nearest(str(wanted), list(data), "columns"))
    return fit_columns(data[x], data[y], x_scale=x_scale, **{"x_name": x, "y_name": y, **options})


def fit_many(
    data: Sequence[PathLike],
    y: str | None = None,
    *,
    x: str | None = None,
    by: Sequence[str] = (),
    x_scale: Scale | None = None,
    output: PathLike | None = None,
    options: Mapping[str, Any] | None = None,
    **how: Any,
) -> FittedSeries:
    """Derive the models of many series: of files, of runs, and of folders that hold runs.

    Args:
        data: files and runs; all runs of other folders.
        y: column of the samples; of files of Extra-P and of runs the metric.
        by: columns that tell the series of a CSV file apart.
        options: fields of :class:`p4perf.api.FitOptions`.
        how: keyword arguments of :func:`p4perf.experiment.many.fit_all`, such as ``processes=2``.

    Raises:
        UsageError: there is no such path or column, or an option is wrong.
        DataError: a file cannot be read.
    """
    from p4perf.evaluation.fitting.component import known_options
    from p4perf.experiment.many import fit_all, open_sources

    sources = open_sources(list(map(find_run, data)), x, y, by, x_scale, options or {})
    return fit_all(sources, known_options(options or {}), _path(output), **how)


@checked
def predict(
    program: PathLike,
    targets: Texts = (),
    *,
    models: Paths = (),
    frame_size: Count | None = None,
    cores: Count = 1,
    line_rate: str | float = "10Gbit/s",
    frequency: str | float | None = None,
    load: float | None = None,
    rate: str | float | None = None,
    probabilities: PathLike | None = None,
    capture: PathLike | None = None,
    traffic: bool = False,
    arch: str | None = None,
    defines: Changes = (),
    entries: PathLike | None = None,
    fill: Changes = (),
    settings: Changes = (),
    without: Texts = (),
    points: Count | None = None,
    path: PathName = "expected",
    measure: bool = False,
    testbed: str = "local",
    runs: PathLike = FOLDER,
    told: Callable[[str], object] = lambda text: None,
) -> Answers:
    """Predict what a program costs on targets: cycles, packet rate, latency and loss, with the cost breakdown.

    >>> import p4perf
    >>> found = p4perf.predict("mat/exact-entries", "dpdk-c", points=1)
    >>> list(found.to_frame()[["program", "target"]].loc[0])
    ['mat/exact-entries', 'dpdk-c']

    Args:
        program: name or file of an experiment, JSON of p4c-bm2-ss, a specification of SWX, or a .p4 where p4c is there.
        targets: only models of these targets; without any, of all.
        models: files of cost models, or ``TARGET@MACHINE``.
        line_rate, frequency, rate: with their units, or as numbers in bit/s, Hz and Mpps.
        load: share of the possible rate, for latency and loss; or ``rate``, such as ``1Mpps``.
        probabilities: YAML file of branch probabilities and traffic shares, or ``uniform``.
        traffic: with the entries and packets that :func:`measure` gives the program.
        settings: what if, such as ``{"ipv4_lpm.entries": 1e6}``; of an experiment, changes of the spec.
        without: what if these tables or steps were not there.
        path: by whose cost differences are sorted.
        measure: measure it as well, with the packets of ``traffic`` if it is a program of your own.

    Raises:
        UsageError: an option is wrong, or there is no such model.
        DataError: a file cannot be read.
        CapabilityError: no target can do the program.
    """
    from p4perf.evaluation.prediction.answer import conditions_of
    from p4perf.evaluation.prediction.library import open_models
    from p4perf.evaluation.prediction.programs import Pair, Wanted, fill_counts, open_subjects
    from p4perf.evaluation.prediction.reading import ReadOptions
    from p4perf.evaluation.prediction.record import answer

    of_packets = traffic or (measure and Path(program).suffix in (".json", ".spec", ".p4"))
    options = ReadOptions(commands=_path(entries), arch=arch, defines=tuple(_texts(defines)))
    counts = {} if of_packets else fill_counts(_texts(fill))
    shares = None if probabilities is None else str(probabilities)
    changes = tuple(_texts(settings)), tuple(_listed(without))
    wanted = Wanted(str(program), *changes, counts, shares, _path(capture), points, options)
    conditions = conditions_of(frame_size, cores, line_rate, frequency, load, rate)
    try:
        chosen = open_models(_listed(models), _listed(targets))
    except TargetUnavailableError:
        for target in _listed(targets):
            find_plugin("p4perf.targets", target.partition(":")[0])
        raise
    if of_packets:
        from p4perf.experiment.prediction import sent

        pairs: tuple[Pair, ...] = (Pair(sent(wanted, _texts(fill), frame_size)),)
    else:
        pairs = open_subjects(wanted)
    found = answer(pairs, chosen, conditions, path=path, check=_check_capability)
    if not measure:
        return found
    from p4perf.experiment.prediction import measure as measure_programs

    if len({model.target for model in chosen}) < len(chosen):
        raise UsageError("--measure needs one model for each target", hint="--model chooses one")
    subjects = [pair.subject for pair in pairs]
    beside = [(s, p) for s in subjects for p in found.changed if (p.changes, p.values) == (s.changes, s.values)]
    return replace(found, measured=measure_programs(beside, testbed, Path(runs), told))


def _listed(given: Paths) -> list[str]:
    return [str(given)] if isinstance(given, str | Path) else list(map(str, given))


def _check_capability(subject: ProgramSubject, target: str) -> None:
    if subject.experiment is not None and subject.point is not None:
        from p4perf.experiment.bench import check_capability

        check_capability(subject.experiment, subject.point, target)


# fmt: off
@overload
def compare(
    subjects: Sequence[PathLike | Run], *, component: None = ..., folder: PathLike = ..., reference: str | None = ...,
    metric: str | None = ..., margin: Share = ...,
) -> RunComparison: ...


@overload
def compare(
    subjects: Sequence[PathLike | Run], *, component: str, at: Sequence[float] = ..., folder: PathLike = ...,
    reference: str | None = ..., metric: str | None = ...,
) -> ComparedModels: ...
# fmt: on


@checked
def compare(
    subjects: Sequence[PathLike | Run],
    *,
    component: str | None = None,
    at: Sequence[float] = (),
    folder: PathLike = FOLDER,
    reference: str | None = None,
    metric: str | None = None,
    margin: Share = 0.05,
) -> RunComparison | ComparedModels:
    """Compare runs of the same experiments, or models of one component. Nothing is written.

    >>> import p4perf
    >>> p4perf.compare(["latest~1", "latest"]).plot()  # doctest: +SKIP

    Args:
        subjects: runs by path or name, two or more of each experiment; with ``component`` what has a model: published
            ones (``t4p4s@scholz2021``), model files, runs, or targets, whose newest run in ``folder`` counts.
        at: with ``component``, abscissae at which to compare.
        reference: what the others are compared with: a target or a run; by default the first.
        metric: by default the modelled one.
        margin: smallest difference that matters.

    Raises:
        UsageError: the subjects cannot be compared, or there is no such reference.
        DataError: a run or file cannot be read.
        NoVerdictError: no run of a target has a model.
    """
    names, smallest = _names(subjects), share(margin, "--margin")
    if component is not None:
        from p4perf.experiment.subjects import compare_component

        return compare_component(component, names, folder=Path(folder), reference=reference, metric=metric, at=at)
    if at:
        raise UsageError("--at goes with --component")
    from p4perf.experiment.compare import compare_runs

    paths = [find_run(name, Path(folder)) for name in names]
    chosen = reference if reference is None else str(find_run(reference, Path(folder)))
    return compare_runs(paths, reference=chosen, metric=metric, margin=smallest)


@checked
def gate(
    runs: PathLike | Run | Sequence[PathLike | Run],
    baseline: PathLike | Run | Sequence[PathLike | Run],
    *,
    folder: PathLike = FOLDER,
    metric: str | None = None,
    relative: bool = False,
    margin: Share = 0.05,
    drift: Share | None = None,
) -> GateDocument:
    """Judge whether new runs are slower than a baseline: a verdict for each experiment on each target.

    Args:
        runs: new runs or campaigns by path or name; of :func:`p4perf.api.measure_sides`, the new run.
        baseline: runs, campaigns or files of models.
        relative: in units of the baseline program, which each start measures.
        margin: smallest change that matters.
        drift: standard deviation between runs; by default what several runs show.

    Raises:
        UsageError: nothing of the runs is in the baseline, or a run is its own baseline.
        DataError: something is damaged.
    """
    from p4perf.experiment.gate import gate_runs

    if not (old := _names(baseline)):
        raise UsageError("there is no --baseline", hint="name a run directory, a campaign or a model.json")
    before, after = ([find_run(name, Path(folder)) for name in names] for names in (old, _names(runs)))
    chosen = share(margin, "--margin"), _share(drift, "--drift")
    return gate_runs(before, after, metric=metric, relative=relative, margin=chosen[0], drift=chosen[1])


def _names(given: PathLike | Run | Sequence[PathLike | Run]) -> list[str]:
    several = [given] if isinstance(given, str | Path | Run) else given
    return [str(each.path) if isinstance(each, Run) else str(each) for each in several]


@checked
def measure_sides(
    spec: PathLike,
    baseline: PathLike | None = None,
    *,
    target: str = DEFAULT_TARGET,
    baseline_target: str | None = None,
    settings: Changes = (),
    baseline_settings: Changes = (),
    baseline_environment: Mapping[str, str] | None = None,
    baseline_tree: PathLike | None = None,
    points: Count | None = None,
    pairs: Count = 6,
    testbed: str | Testbed = "local",
    output: PathLike = FOLDER,
    progress: Progress | None = None,
) -> tuple[OpenRun, OpenRun]:
    """Measure a spec or program in turns with its baseline, for a gate without drift: the baseline and the new run.

    >>> import p4perf
    >>> old, new = p4perf.api.measure_sides("demo/exact-entries", baseline_target="dpdk-c:acl")  # doctest: +SKIP
    >>> p4perf.gate(new, old).verdict  # doctest: +SKIP

    Args:
        baseline: another spec or program.
        settings: changes of the spec on both sides; ``baseline_settings`` only on that of the baseline.
        baseline_environment: variables such as ``{"CC": "gcc-12"}``.
        baseline_tree: checkout of p4perf that generates the baseline.
        pairs: pairs of starts of each point.

    Raises:
        As :func:`run`.
    """
    from p4perf.experiment import open_testbed
    from p4perf.experiment.interleaved import measure_sides as measure_both

    place = open_testbed(testbed) if isinstance(testbed, str) else testbed
    (old, first), (new, second) = measure_both(
        str(spec), None if baseline is None else str(baseline), target, baseline_target, place, Path(output),
        overrides=_pairs(settings), baseline_overrides=_pairs(baseline_settings),
        baseline_environment=baseline_environment, baseline_tree=_path(baseline_tree), points=points, pairs=pairs,
        progress=progress,
    )  # fmt: skip
    for outcome in (first, second):
        _conclude(outcome)
    return OpenRun(old), OpenRun(new)


@checked
def learn(
    runs: Paths = (),
    target: str | None = None,
    *,
    testbed: str = "local",
    folder: PathLike = FOLDER,
    resume: bool = False,
    catalogue: PathLike | None = None,
    quick: bool = False,
    settings: Changes = (),
    output: PathLike | None = None,
    told: Callable[[str], object] = lambda text: None,
    reached: Callable[[str, float], object] = lambda what, left_s: None,
) -> LearntModel:
    """Learn what programs cost on a target of this machine: the cost model, for :func:`predict`.

    Args:
        runs: runs to learn from; without any, fixtures are measured on ``target`` for a few minutes.
        folder: gets the runs of the fixtures; with ``resume``, the newest ones there are continued.
        catalogue: folder with runs of the catalogue on that target, to learn prices anew.
        quick: measure few fixtures, and take the rest from the model that ships.
        output: file for the model.

    Raises:
        UsageError: there are neither runs nor a target, or no such target.
        NoVerdictError: the runs say too little.
    """
    from p4perf.experiment.learning import learn as learn_model

    paths = [find_run(path, Path(folder)) for path in _listed(runs)]
    model = LearntModel.of(
        learn_model(
            paths, target, testbed, Path(folder), resume=resume, catalogue=_path(catalogue), quick=quick,
            overrides=_pairs(settings), told=told, reached=reached,
        )
    )  # fmt: skip
    if output is not None:
        model.save(Path(output))
    return model


@checked
def reproduce(
    claims: Texts = (),
    *,
    quick: bool = False,
    only: Kind | Sequence[Kind] = (),
    testbed: str = "local",
    budget_s: Duration = math.inf,
    output: PathLike | None = None,
    watcher: Watcher | None = None,
) -> Reproduced:
    """Compute or measure again what published papers claim, and write a report.

    Args:
        claims: papers (``scholz2021``), their figures and tables (``scholz2021:fig2``), single claims, or files.
        quick: measure few points.
        only: kinds of claims, such as ``analytic``.
        budget_s: claims that do not fit are not run.
        output: folder of a new or an earlier reproduction; by default a new one.

    Raises:
        UsageError: there is no such claim, or the folder has something else in it.
        TestbedError: the testbed cannot be used.
    """
    from p4perf.evaluation.papers import chosen_claims
    from p4perf.experiment.recorder import Silent
    from p4perf.experiment.reproduction import Reproduction, ReproductionFolder, exit_code

    chosen, limit_s = chosen_claims(_listed(claims), _listed(only)), _seconds(budget_s)
    folder = ReproductionFolder.at(_path(output), datetime.now(UTC))
    session = Reproduction(
        folder, watcher or Silent(), testbed=testbed, quick=quick, budget_s=math.inf if limit_s is None else limit_s
    )
    findings = session.check(chosen)
    code = exit_code(findings)
    papers = tuple({paper.key: paper for paper, _ in chosen}.values())
    return Reproduced(findings, papers, folder.path, code, folder.report(findings, papers, code))


_MORE = {
    "FitOptions": "p4perf.evaluation.fitting.derivation",
    "derive": "p4perf.evaluation.fitting.derivation",
    "ErrorMetric": "p4perf.evaluation.fitting.error_metrics",
    "DerivedModel": "p4perf.evaluation.fitting.component",
    "Samples": "p4perf.results.table",
    "save_figure": "p4perf.evaluation.plots.style",
}
"""What programs that extend the derivation need besides, and where it is."""


def __getattr__(name: str) -> Any:
    if name in _MORE:
        return getattr(importlib.import_module(_MORE[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
