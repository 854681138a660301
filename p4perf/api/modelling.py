"""Functions that model and judge: fit, predict, compare, gate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from p4perf.api import arguments as given
from p4perf.api.arguments import Changes, Count, PathLike, Paths, Runs, Share, Texts, checked
from p4perf.api.views import OpenRun
from p4perf.errors import UsageError
from p4perf.plugins import find_plugin
from p4perf.results import Run, find_run
from p4perf.results.names import FOLDER
from p4perf.specs.messages import nearest
from p4perf.specs.units import positive_quantity, ratio, share

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

    from p4perf.evaluation.fitting.component import DerivedModel
    from p4perf.evaluation.prediction.answer import PathName
    from p4perf.evaluation.prediction.programs import ProgramSubject
    from p4perf.evaluation.prediction.record import Answers
    from p4perf.experiment.compare import RunComparison
    from p4perf.experiment.gate import GateDocument
    from p4perf.experiment.many import FittedSeries
    from p4perf.experiment.subjects import ComparedModels
    from p4perf.models.component import Scale


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
    where: Changes = (),
    region: str | None = None,
    x_scale: Scale = "linear",
    working_set: str | None = None,
    caches: Texts = (),
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
    >>> fit.breakpoints, fit([20]).round().tolist()  # fit.estimate(20) gives the interval, too
    ((16.0,), [50.0])

    Args:
        data: abscissae, or a table with the columns ``x`` and ``y``, or a file of CSV or Extra-P (``-`` is the standard
            input), or a run, whose model and plots are written into it.
        y: samples for each abscissa, several for one as repetitions; of tables and files the name of their column.
        x: name of the column (Extra-P: parameter) of the abscissae; of a run, a swept variable.
        where: of a run over several variables: values of the others, such as ``{"frame": 64}``. The model and plots
            of such points are written to ``output`` only.
        region: region or callpath of a file of Extra-P.
        x_scale: how x is drawn, ``linear`` or ``log``; split finders look at it this way.
        working_set: bytes that grow with x, such as ``128+80``; with ``caches`` such as ``L2=256KiB``, breakpoints are
            compared with where they fill these.
        output: folder for model.json and plots of a file.
        options: fields of :class:`p4perf.api.FitOptions`, such as ``max_segments=3``, ``segments=2``, ``loss="l1"``;
            of numbers ``x_name``, ``y_name``, ``x_unit``, ``y_unit``, ``name``, ``target``, too.
        every_plot: draw a figure for every number of segments.
        progress: called with the share that is done, from 0 to 1.

    Raises:
        UsageError: there is no such option, column or run, or a value is wrong.
        DataError: the samples cannot be used, or the file cannot be read.
        NoVerdictError: no trial of the run was accepted.
    """
    if isinstance(data, Run | str | Path):
        run = data if isinstance(data, Run) else find_run(data)
        if isinstance(run, Path) and not run.is_dir():
            from p4perf.experiment.evaluate import evaluate_file

            return evaluate_file(
                run, y, x, region=region, x_scale=x_scale, working_set=working_set, caches=given.listed(caches),
                output=given.path(output), changes=options, every_plot=every_plot, progress=progress,
            )  # fmt: skip
        from p4perf.experiment.evaluate import evaluate_run

        opened = (OpenRun.open(run) if isinstance(run, Path) else run).at(dict(given.pairs(where, "--where")), x)
        place = None if opened.is_whole else given.path(output)
        found = evaluate_run(opened, changes=options, every_plot=every_plot, output=place, progress=progress)
        if found is None:
            raise UsageError(f"{opened.name} has no model: {opened.unmodelled}")
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


@checked
def fit_many(
    data: Paths,
    y: str | None = None,
    *,
    x: str | None = None,
    by: Texts = (),
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

    sources = open_sources(
        [find_run(path) for path in given.listed(data)], x, y, given.listed(by), x_scale, options or {}
    )
    return fit_all(sources, known_options(options or {}), given.path(output), **how)


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
    load: Share | None = None,
    rate: str | float | None = None,
    probabilities: PathLike | None = None,
    capture: PathLike | None = None,
    traffic: bool = False,
    arch: str | None = None,
    std: str | None = None,
    includes: Paths = (),
    defines: Changes = (),
    entries: PathLike | None = None,
    p4info: PathLike | None = None,
    fill: Changes = (),
    default_fill: int | None = None,
    miss: Changes = (),
    zipf: float | None = None,
    packets: Count | None = None,
    port: int | None = None,
    set: Changes = (),
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

    Its ``to_frame()`` has a row for each program and target: cycles per packet, Mpps and Gbit/s with intervals.

    Args:
        program: name or file of an experiment, JSON of p4c-bm2-ss, a specification of SWX, or a .p4 where p4c is there.
        targets: only models of these targets; without any, of all.
        models: files of cost models, or ``TARGET@MACHINE``.
        frame_size: with FCS [bytes]; by default that of the program, or 64.
        cores: number of cores that run the program.
        line_rate, frequency, rate: with their units, or as numbers in bit/s, Hz and Mpps.
        load: share of the possible rate, for latency and loss; or ``rate``, such as ``1Mpps``.
        probabilities: YAML file of branch probabilities and traffic shares, or ``uniform``.
        traffic: with the entries and packets that :func:`measure` gives the program.
        capture: pcap file; the paths that its packets take are counted.
        arch, std, includes, defines: of a .p4, as for :func:`measure`.
        entries, p4info, fill: entries of the tables, as for :func:`measure`.
        default_fill, miss, zipf, packets, port: with ``traffic``, as for :func:`measure`.
        set: what if, such as ``{"ipv4_lpm.entries": 1e6}``; of an experiment, changes of the spec.
        without: what if these tables or steps were not there.
        points: most values of every swept variable of an experiment.
        path: by whose cost differences are sorted: ``expected``, ``lowest-cost`` or ``highest-cost``.
        measure: measure it as well on ``testbed``, with the packets of ``traffic`` if it is a program of your own;
            its runs are written to ``runs``.
        told: called with each line of progress.

    Raises:
        UsageError: an option is wrong, or there is no such model.
        DataError: a file cannot be read.
        CapabilityError: no target can do the program.
    """
    from p4perf.evaluation.prediction.answer import Conditions, Offered
    from p4perf.evaluation.prediction.library import open_models
    from p4perf.evaluation.prediction.programs import Pair, Wanted, fill_counts, open_subjects
    from p4perf.evaluation.prediction.reading import ReadOptions
    from p4perf.evaluation.prediction.record import answer

    of_packets = traffic or (measure and Path(program).suffix in (".json", ".spec", ".p4"))
    options = ReadOptions(
        commands=given.path(entries), p4info=given.path(p4info), arch=arch, std=std,
        defines=tuple(given.texts(defines)), includes=tuple(map(Path, given.listed(includes))),
    )  # fmt: skip
    shape = {
        "default_fill": default_fill, "miss": given.texts(miss) or None, "zipf": zipf, "packets": packets, "port": port
    }  # fmt: skip
    shape = {name: value for name, value in shape.items() if value is not None}
    if shape and not of_packets:
        option = f"--{next(iter(shape)).replace('_', '-')}"
        raise UsageError(
            f"{option} is for --traffic: without it, no entries and packets are made", hint="add --traffic"
        )
    counts = {} if of_packets else fill_counts(given.texts(fill))
    shares = None if probabilities is None else str(probabilities)
    for name, changes_of in (("--set", set), ("--fill", fill)):
        given.require_once([text.partition("=")[0].strip() for text in given.texts(changes_of)], name)
    changes = tuple(given.texts(set)), tuple(given.listed(without))
    wanted = Wanted(str(program), *changes, counts, shares, given.path(capture), points, options)
    if load is not None and rate is not None:
        raise UsageError("--load and --rate both say how much is offered", hint="give one of them")
    offered = Offered() if load is None else Offered(ratio(load))
    if rate is not None:
        offered = Offered(None, positive_quantity(rate, "packet rate", "Mpps", "--rate"))
    clock_hz = None if frequency is None else positive_quantity(frequency, "frequency", "Hz", "--frequency")
    line_bps = positive_quantity(line_rate, "data rate", "bit/s", "--line-rate")
    conditions = Conditions(frame_size, cores, line_bps, offered, clock_hz)
    chosen = open_models(given.listed(models), given.listed(targets), limit=_learning_limit)
    if of_packets:
        from p4perf.experiment.prediction import sent

        pairs: tuple[Pair, ...] = (Pair(sent(wanted, given.texts(fill), frame_size, **shape)),)
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


def _learning_limit(target: str) -> str:
    from p4perf.experiment.learning import learning_limit

    find_plugin("p4perf.targets", target.partition(":")[0])
    return learning_limit(target)


def _check_capability(subject: ProgramSubject, target: str) -> None:
    if subject.experiment is not None and subject.point is not None:
        from p4perf.experiment.bench import check_capability

        check_capability(subject.experiment, subject.point, target)


# fmt: off
@overload
def compare(
    runs: Runs, *, component: None = ..., folder: PathLike = ..., reference: str | None = ...,
    metric: str | None = ..., margin: Share = ..., where: Changes = ...,
) -> RunComparison: ...


@overload
def compare(
    runs: Runs, *, component: str, at: Sequence[float] = ..., folder: PathLike = ...,
    reference: str | None = ..., metric: str | None = ...,
) -> ComparedModels: ...
# fmt: on


@checked
def compare(
    runs: Runs,
    *,
    component: str | None = None,
    at: Sequence[float] = (),
    folder: PathLike = FOLDER,
    reference: str | None = None,
    metric: str | None = None,
    margin: Share = 0.05,
    where: Changes = (),
) -> RunComparison | ComparedModels:
    """Compare runs of the same experiments, or models of one component. Nothing is written.

    >>> import p4perf
    >>> found = p4perf.compare(["latest~1", "latest"])  # doctest: +SKIP
    >>> found.to_frame(), found.plot()  # doctest: +SKIP

    Args:
        runs: campaigns, or two or more runs of each experiment, by path or name; with ``component`` what has a model:
            published ones (``t4p4s@scholz2021``), model files, runs, or targets, whose newest run in ``folder`` counts.
        at: with ``component``, abscissae at which to compare.
        reference: what the others are compared with: a target or a run; by default the first.
        folder: where runs are looked up by name.
        metric: by default the modelled one.
        margin: smallest difference that matters, such as 0.05 or ``"5%"``.
        where: values of swept variables, such as ``{"frame": 64}``: runs over several are compared there.

    Raises:
        UsageError: the subjects cannot be compared, or there is no such reference.
        DataError: a run or file cannot be read.
        NoVerdictError: no run of a target has a model.
    """
    names, smallest = given.runs(runs), share(margin, "margin")
    if component is not None:
        from p4perf.experiment.subjects import compare_component

        return compare_component(component, names, folder=Path(folder), reference=reference, metric=metric, at=at)
    if at:
        raise UsageError("at goes with component")
    from p4perf.experiment.campaign_report import compared_runs
    from p4perf.experiment.compare import compare_runs

    values = dict(given.pairs(where, "--where"))
    paths = compared_runs([find_run(name, Path(folder)) for name in names], values)
    chosen = reference if reference is None else str(find_run(reference, Path(folder)))
    return compare_runs(paths, reference=chosen, metric=metric, margin=smallest, where=values)


@checked
def gate(
    runs: Runs,
    baseline: Runs,
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

    if not (old := given.runs(baseline)):
        raise UsageError("baseline: names nothing", hint="a run, a campaign or the file of a model")
    before, after = ([find_run(name, Path(folder)) for name in names] for names in (old, given.runs(runs)))
    chosen = share(margin, "margin"), given.share(drift, "drift")
    return gate_runs(before, after, metric=metric, relative=relative, margin=chosen[0], drift=chosen[1])
