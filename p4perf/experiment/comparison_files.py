"""A comparison as data and as files: ``comparison.json``, ``comparison.csv`` and plots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from p4perf.evaluation.comparison import ComparedPair, RankPair
from p4perf.experiment.compare import ComparedExperiment, ComparedRun, KeyDifference, RunComparison
from p4perf.experiment.outputs import write_outputs
from p4perf.records import Document, Interval, Record, Scalar, as_rows, doc, interval
from p4perf.results.files import csv_text, dated_name, file_word, json_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PARENT = Path("comparisons")


def write_comparison(found: RunComparison, folder: Path | None, now: datetime) -> tuple[Path, tuple[Path, ...]]:
    """Write document, rows and plots, by default into a new folder below ``comparisons``.

    Folder, result and errors are those of :func:`~p4perf.experiment.outputs.write_outputs`.
    """
    document = comparison_document(found)
    texts = {"comparison.json": json_text(document.as_dict()), "comparison.csv": csv_text(as_rows(document.rows))}
    return write_outputs(texts, dict(_figures(found, now)), folder, PARENT / _name(found, now))


def _name(found: RunComparison, now: datetime) -> str:
    experiments = [e.comparison.experiment for e in found.experiments]
    labels = list(dict.fromkeys(run.label for e in found.experiments for run in e.runs))
    what = experiments[0] if len(experiments) == 1 else f"{len(experiments)}-experiments"
    runs = "-vs-".join(file_word(label) for label in labels) if len(labels) <= 3 else f"{len(labels)}-runs"
    return dated_name((what, runs), now)


def _figures(found: RunComparison, now: datetime) -> Iterator[tuple[str, Figure]]:
    from p4perf.evaluation.plots import PlotInfo
    from p4perf.evaluation.plots.comparison import comparison_figure, overview_figure

    options, date = found.options, now.strftime("%Y-%m-%d")
    taken: set[str] = set()
    for experiment in found.experiments:
        info = PlotInfo(date=date, machine=_machine(experiment.runs))
        figure = comparison_figure(experiment.comparison, margin=options.margin, level=options.level, info=info)
        stem = file_word(experiment.comparison.experiment)
        while stem in taken or stem == "overview":
            stem += "-"
        taken.add(stem)
        yield stem, figure
    if len(found.experiments) > 1:
        every = [e.comparison for e in found.experiments]
        info = PlotInfo(date=date, machine=_machine([run for e in found.experiments for run in e.runs]))
        figure = overview_figure(every, margin=options.margin, level=options.level, info=info)
        yield "overview", figure


def _machine(runs: Sequence[ComparedRun]) -> str:
    models = list(dict.fromkeys(run.manifest.machine["cpu_model"] for run in runs))
    return models[0] if len(models) == 1 else f"{len(models)} kinds of processors"


# --- the document


class _Model(Record):
    domain: tuple[float, ...] = doc("first and last x of the model; `model` is null without one", "of x")
    error_metric: str = doc("[error metric](derivation.md#error-metrics)", of="error")
    error: float = doc("combined error", "of the metric", of="fitting.error")
    breakpoint_x: tuple[float, ...] = doc("first x of each segment but the first", "of x", of="fitting.breakpoint_x")
    formulas: tuple[str, ...] = doc("functions of the segments, for people", of="formulas()")


class _Run(Record):
    label: str = doc("short name of a run")
    run: str = doc("path of the run directory", of="path")
    target: str = doc("target", of="manifest.target")
    testbed: str = doc("testbed", of="manifest.testbed")
    created: str = doc("time of its beginning", of="manifest.created")
    spec_hash: str = doc("hash of the spec")
    planned_points: int = doc("points of the sweep")
    accepted_points: int = doc("points with accepted starts")
    machine: dict[str, Any] = doc("facts of the machine that are compared, as text")
    model: _Model | None = doc("", of="subject.model")


class _Ratio(Record):
    x: float = doc("a shared point", "of x")
    ratio: Interval = interval("ratio of the medians", "ratio")
    n: int = doc("accepted starts of the run", of="starts")
    n_reference: int = doc("accepted starts of the reference", of="reference_starts")


class _ModelRatio(Record):
    x: float = doc("a place in the shared domain; no items without two models", "of x")
    ratio: Interval | None = interval("ratio of the curves; null where one is not positive", "ratio")


class CrossingRecord(Record):
    x: float = doc("where the models cross; `crossings` is null without two models", "of x", of="x.value")
    low: float | None = doc("lower end of its interval; null if it is open", "of x", of="x.low")
    high: float | None = doc("upper end", "of x", of="x.high")
    above: bool = doc("whether the curve of the run is above that of the reference beyond x")
    sure: bool = doc("whether the bands exclude that the curves do not cross")
    step: bool = doc("whether a curve steps over the other at a breakpoint")


class _Pair(Record):
    run: str = doc("label of a run")
    reference: str = doc("label of the reference")
    verdict: str = doc("`faster`, `slower`, `lower`, `higher`, `same` or `no verdict`", of="verdict.outcome")
    reason: str = doc("one sentence, for people", of="verdict.reason")
    ratio: Interval | None = interval("geometric mean over the points that count", "ratio", of="verdict.ratio")
    detectable: float | None = doc("smallest difference that could be found", "ratio", of="verdict.detectable")
    points: int = doc("points that count", of="verdict.points")
    undefined_points: tuple[float, ...] = doc("shared points without a positive value", "of x", of="measured.undefined")
    ratios: tuple[_Ratio, ...] = doc("", of="measured.points")
    model_ratios: tuple[_ModelRatio, ...] = doc("")
    crossings: tuple[CrossingRecord, ...] | None = doc("")


class _Experiment(Record):
    experiment: str = doc("name of the experiment", of="comparison.experiment")
    variable: str = doc("swept variable", of="comparison.x.name")
    metric: str = doc("metric", of="comparison.y.name")
    unit: str = doc("its unit", of="comparison.y.unit")
    reference: str = doc("label of the run that the others are compared with", of="comparison.reference")
    shared_points: tuple[float, ...] = doc("x at which all runs have accepted starts", "of x", of="comparison.shared")
    runs: tuple[_Run, ...] = doc("")
    differences: tuple[KeyDifference, ...] = doc("")
    pairs: tuple[_Pair, ...] = doc("")


class _Cost(Record):
    experiment: str = doc("experiment of a component")
    a: float = doc("its cost on one target", "of the metric")
    b: float = doc("its cost on the other one", "of the metric")


class _RankCorrelation(Record):
    a: str = doc("label of one target; no items with one experiment")
    b: str = doc("label of the other one")
    cost: str = doc("what the cost of a component is", of="definition")
    components: int = doc("number of components", of="correlation.components")
    costs: tuple[_Cost, ...] = doc("")
    spearman: Interval | None = interval("Spearman's rho; null without a verdict", of="correlation.spearman.value")
    spearman_p_value: float | None = doc("its p-value", of="correlation.spearman.p_value")
    kendall: Interval | None = interval("Kendall's tau-b", of="correlation.kendall.value")
    kendall_p_value: float | None = doc("its p-value", of="correlation.kendall.p_value")
    verdict: str = doc("`same order`, `opposite order`, `no relation shown` or `no verdict`", of="correlation.verdict")
    reason: str = doc("one sentence, for people", of="correlation.reason")


class _ComparisonRow(Record):
    experiment: str = doc("name of the experiment")
    variable: str = doc("swept variable")
    x: Scalar = doc("its value", "of x")
    run: str = doc("label of the run")
    median: float | None = doc("median of the accepted starts; null without any", "of the metric")
    low: float | None = doc("lower end of its 95 % bootstrap interval", "of the metric")
    high: float | None = doc("upper end", "of the metric")
    unit: str = doc("unit of the metric")
    n: int = doc("accepted starts")
    rejected: int = doc("rejected starts")
    flags: str = doc("[flags](measuring.md#quality-flags), separated by commas")
    ratio: Interval | None = interval("ratio to the reference at this point", "ratio")


class ComparisonDocument(Document):
    """`p4perf compare RUN RUN...`: one row for each point of each run.

    `comparison.json` has the same keys, without `output` and `plots`. See [comparing](comparing.md).
    """

    KIND = "comparison"

    output: str = doc("folder of the files", optional=True)
    plots: tuple[str, ...] = doc("paths of the plots", optional=True)
    margin: float = doc("smallest difference that matters", "ratio", of="options.margin")
    level: float = doc("coverage that intervals aim at", "ratio", of="options.level")
    resamples: int = doc("bootstrap resamples", of="options.resamples")
    seed: int = doc("their seed", of="options.seed")
    warnings: tuple[str, ...] = doc("what the reader should know, for people")
    experiments: tuple[_Experiment, ...] = doc("")
    rank_correlations: tuple[_RankCorrelation, ...] = doc("")
    rows: tuple[_ComparisonRow, ...] = doc("")


def comparison_document(found: RunComparison, **files: Any) -> ComparisonDocument:
    """The comparison as ``comparison.json`` has it; ``files`` are ``output`` and ``plots``, if they are written."""
    return ComparisonDocument.read(
        found,
        experiments=tuple(
            _Experiment.read(e, runs=tuple(map(_run, e.runs)), pairs=tuple(map(_pair, e.comparison.pairs)))
            for e in found.experiments
        ),
        rank_correlations=tuple(_RankCorrelation.read(r, costs=_costs(r)) for r in found.ranks),
        rows=tuple(row for experiment in found.experiments for row in _rows(experiment)),
        **files,
    )


def _rows(experiment: ComparedExperiment) -> Iterator[_ComparisonRow]:
    """One row for each point of each run, with the ratio to the reference where both have the point."""
    comparison = experiment.comparison
    ratios = {pair.run: {p.x: p.ratio for p in pair.measured.points} for pair in comparison.pairs}
    by_x: dict[float, list[tuple[ComparedRun, Mapping[str, Any]]]] = {}
    for run in experiment.runs:
        for point in run.points:
            by_x.setdefault(float(point[comparison.x.name]), []).append((run, point))
    for x in sorted(by_x):
        for run, point in by_x[x]:
            yield _ComparisonRow.read(
                point,
                experiment=comparison.experiment,
                variable=comparison.x.name,
                x=point[comparison.x.name],
                run=run.label,
                unit=comparison.y.unit,
                ratio=ratios.get(run.label, {}).get(x),
            )


def _run(run: ComparedRun) -> _Run:
    return _Run.read(
        run,
        spec_hash=run.manifest.spec_hash or "",
        planned_points=len(run.manifest.planned_points),
        accepted_points=len(run.subject.samples.x),
        machine=run.manifest.machine,
    )


def _pair(pair: ComparedPair) -> _Pair:
    curve = pair.curve
    ratios = () if curve is None else zip(curve.x, curve.value, curve.low, curve.high, strict=True)
    model_ratios = tuple(
        _ModelRatio(x=float(x), ratio=Interval(value=float(value), low=float(low), high=float(high)))
        for x, value, low, high in ratios
    )
    return _Pair.read(pair, model_ratios=model_ratios)


def _costs(ranks: RankPair) -> tuple[_Cost, ...]:
    costs = zip(ranks.experiments, ranks.costs_a, ranks.costs_b, strict=True)
    return tuple(_Cost(experiment=name, a=a, b=b) for name, a, b in costs)
