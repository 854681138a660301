"""From run directories to comparisons: which runs belong together, what differs between them, and the files of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from typing_extensions import override

from p4perf.errors import DataError, NoVerdictError, P4PerfError, UsageError
from p4perf.evaluation.comparison import (
    ComparedPair,
    ComparedSamples,
    ExperimentComparison,
    RankPair,
    compare_subjects,
    rank_pairs,
)
from p4perf.evaluation.comparison.ratios import MARGIN, UNSWEPT
from p4perf.evaluation.comparison.subjects import COST_METRIC
from p4perf.evaluation.fitting.component import derive_model
from p4perf.evaluation.papers.ren2025.costs import OPERATOR
from p4perf.evaluation.plots.style import write_outputs
from p4perf.experiment.evaluate import fit_options, plain
from p4perf.models.component import ComponentModel, Quantity, Scale
from p4perf.plugins import load_plugin, plugin_names
from p4perf.records import Document, Interval, Record, as_rows, counted, doc, interval
from p4perf.results import Manifest, Run
from p4perf.results.campaign import CampaignDirectory
from p4perf.results.files import csv_text, file_word, json_text, real
from p4perf.results.table import LEVEL, RESAMPLES, SEED, Samples, summarise
from p4perf.specs import ExperimentSpec
from p4perf.specs.schema import IMPORTED

if TYPE_CHECKING:
    from matplotlib.figure import Figure


COSMETIC = {"title", "description", "source", "extends", "spec_version"}
"""Keys of a spec that influence no measurement."""


LONG = 80
"""Characters of a value that are shown where runs differ."""


EFFECTS = {
    **dict.fromkeys(("cpu_model", "cpu_id", "machine"), "ratios compare the processors as much as the programs"),
    **dict.fromkeys(("cc_version", "dpdk_version"), "the same program may become other machine code"),
    "microcode": "instructions may take other times",
    "virtual_machine": "other guests may disturb one of them more",
    "kernel": "code of it runs in measurements on xdp and af-packet",
    "hugepages": "without them, lookups in large tables cost more",
    "testbed": "ratios compare the testbeds as much as the programs",
    "p4perf": "another version may generate another program",
}
"""What follows for a comparison from a difference between machines."""


class KeyDifference(Record):
    """Something in which runs or models differ."""

    kind: str = doc("`spec` or `machine`; of models `subject`")
    key: str = doc("key of the spec, or fact of the machine or model")
    values: dict[str, str] = doc("its value, as text, by label; of a gate by `baseline` and `new`")

    def text(self) -> str:
        """Such as ``trials.repetitions is 3 (a), 5 (b)``; long values, such as whole programs, are cut."""
        short = {label: value if len(value) <= LONG else f"{value[:LONG]}..." for label, value in self.values.items()}
        effect = f": {EFFECTS[self.key]}" if self.kind == "machine" and self.key in EFFECTS else ""
        return f"{self.key} is {', '.join(f'{value} ({label})' for label, value in short.items())}{effect}"


def target_cautions(labels: Iterable[str]) -> tuple[str, ...]:
    """What to know of targets before their numbers are compared, once for each; labels may have variants."""
    names = dict.fromkeys(label.partition(":")[0] for label in labels)
    known = set(plugin_names("p4perf.targets"))
    cautions = [load_plugin("p4perf.targets", name).caution for name in names if name in known]
    return tuple(caution for caution in cautions if caution)


def run_labels(groups: Sequence[Sequence[Manifest]]) -> list[list[str]]:
    """Short names, unique within each group, and of the same kind in all groups.

    The target; where a group has several runs of a target, with the testbed; or else with the processor; or else with
    a number, in the order in which they are given.
    """
    kinds: tuple[Callable[[Manifest], str], ...] = (
        lambda m: m.target,
        lambda m: f"{m.target}@{m.testbed}",
        lambda m: f"{m.target} on {m.node.text('cpu_model') or 'unknown processor'}",
    )
    for kind in kinds:
        named = [[kind(manifest) for manifest in group] for group in groups]
        if all(len(set(names)) == len(names) for names in named):
            return named
    return [numbered([manifest.target for manifest in group]) for group in groups]


def numbered(names: list[str]) -> list[str]:
    """Names, with a number behind each that occurs several times: ``a #1``, ``b``, ``a #2``."""
    return [
        f"{name} #{names[: at + 1].count(name)}" if names.count(name) > 1 else name for at, name in enumerate(names)
    ]


def require_distinct(paths: Sequence[Path]) -> None:
    seen: set[Path] = set()
    for path in paths:
        if real(path) in seen:
            raise UsageError(f"{path} is given twice", hint="name each run once")
        seen.add(real(path))


def spec_differences(specs: Mapping[str, ExperimentSpec]) -> tuple[KeyDifference, ...]:
    """Keys in which the specs of runs differ, cosmetic ones left out. What the spec of an import omits is unknown."""
    leaves = {label: _leaves(spec.model_dump(mode="json", exclude=COSMETIC)) for label, spec in specs.items()}
    keys = {key for known in leaves.values() for key in known}
    for label, spec in specs.items():
        if spec.program.component == IMPORTED:
            said = _leaves(spec.model_dump(mode="json", exclude=COSMETIC, exclude_unset=True))
            leaves[label] = dict.fromkeys(sorted(keys), "unknown") | said
    return differences("spec", leaves)


def differences(kind: str, leaves: Mapping[str, Mapping[str, str]]) -> tuple[KeyDifference, ...]:
    """Keys whose values differ between the labels, or are absent for some."""
    keys = list(dict.fromkeys(key for values in leaves.values() for key in values))
    found = []
    for key in keys:
        values = {label: known.get(key, "absent") for label, known in leaves.items()}
        if len(set(values.values())) > 1:
            found.append(KeyDifference(kind=kind, key=key, values=values))
    return tuple(found)


def _leaves(value: Any, key: str = "") -> dict[str, str]:
    """Dotted keys of a tree, with their values as text; lists are values."""
    if isinstance(value, dict) and value:
        return {
            name: leaf
            for child, inner in value.items()
            for name, leaf in _leaves(inner, f"{key}.{child}" if key else child).items()
        }
    return {key: json.dumps(value)}


@dataclass(frozen=True)
class ComparedRun:
    """A run that takes part; ``points`` are rows of :func:`p4perf.results.table.summarise`."""

    label: str
    path: Path
    manifest: Manifest
    planned: int
    points: tuple[Mapping[str, Any], ...]
    subject: ComparedSamples


@dataclass(frozen=True)
class ComparedExperiment:
    comparison: ExperimentComparison
    runs: tuple[ComparedRun, ...]
    differences: tuple[KeyDifference, ...]


@dataclass(frozen=True, repr=False)
class RunComparison:
    """What a comparison says; ``ranks``, the order of components on pairs of labels, are empty for one experiment."""

    experiments: tuple[ComparedExperiment, ...]
    ranks: tuple[RankPair, ...]
    margin: float
    warnings: tuple[str, ...]

    @override
    def __repr__(self) -> str:
        said = [f"{p.run}: {p.verdict.outcome}" for e in self.experiments for p in e.comparison.pairs]
        return f"<RunComparison with {self.experiments[0].comparison.reference}: {', '.join(said)}>"

    def to_frame(self) -> pd.DataFrame:
        """A row for each run at each point, with its ratio to the reference."""
        return pd.DataFrame(as_rows(comparison_document(self).rows))

    def plot(self) -> Figure:
        """The runs of one experiment with their ratios; of several experiments, all their ratios."""
        return list(_figures(self))[-1][1]

    def _repr_html_(self) -> str:
        from p4perf.evaluation.plots.style import picture

        verdicts = [
            {"experiment": e.comparison.experiment, "run": p.run, "verdict": p.verdict.outcome, "why": p.verdict.reason}
            for e in self.experiments
            for p in e.comparison.pairs
        ]
        return picture(self.plot()) + pd.DataFrame(verdicts).to_html(index=False)


def compare_runs(
    paths: Sequence[Path],
    *,
    reference: str | None = None,
    metric: str | None = None,
    margin: float = MARGIN,
    where: Mapping[str, str] | None = None,
) -> RunComparison:
    """Compare runs, grouped by experiment.

    Args:
        where: values of swept variables, as text: only the points at these are compared.
        reference: what the others are compared with: a label (such as a target) or one of the paths; by default the
            first of each experiment, or its run with the label of the very first.

    Raises:
        UsageError: a run is given twice or is the only one of its experiment, there is no such reference, or runs of
            one experiment sweep or model different things.
        DataError: a run cannot be read, has no measurements, or none of that metric.
    """
    if not paths:
        raise UsageError("no run is named", hint="give two runs or more of the same experiment")
    require_distinct(paths)
    runs = [Run.open(path).at(where or {}) for path in paths]
    for run in runs:  # a damaged one is refused before anything is compared
        _ = run.measured, run.manifest, run.spec
    groups = _grouped(runs)
    labels = run_labels([[run.manifest for run in group] for group in groups])
    first = _reference_label(reference, groups, labels)
    warnings = list(target_cautions(run.manifest.target for run in runs))
    experiments = []
    for group, names in zip(groups, labels, strict=True):
        base = first if first in names else names[0]
        if base != first:
            warnings.append(f"{group[0].spec.name} has no run of {first}: the reference is {base}")
        experiments.append(_experiment(group, names, base, metric, margin, warnings))
    ranks = rank_pairs([e.comparison for e in experiments]) if len(experiments) > 1 else ()
    return RunComparison(tuple(experiments), ranks, margin, tuple(warnings))


def _grouped(runs: Sequence[Run]) -> list[list[Run]]:
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(run.spec.name, []).append(run)
    for name, group in groups.items():
        if len(group) < 2:
            campaign = group[0].path.parents[1]
            hint = "give two runs or more of the same experiment"
            if CampaignDirectory.is_one(campaign):
                hint = f"p4perf compare {campaign}/ compares the runs of its campaign"
            known = f"; the other runs are of {', '.join(n for n in groups if n != name)}" if len(groups) > 1 else ""
            raise UsageError(
                f"{group[0].name} is the only run of {name} among those given: "
                f"there is nothing to compare it with{known}",
                hint=hint,
            )
    return list(groups.values())


def _reference_label(wanted: str | None, groups: Sequence[Sequence[Run]], labels: Sequence[Sequence[str]]) -> str:
    if wanted is None:
        return labels[0][0]
    for group, names in zip(groups, labels, strict=True):
        for run, name in zip(group, names, strict=True):
            if wanted == name or real(Path(wanted)) == real(run.path):
                return name
    known = ", ".join(dict.fromkeys(name for names in labels for name in names))
    raise UsageError(f"--reference {wanted} is not one of the runs", hint=f"there are {known}")


def _experiment(
    group: Sequence[Run], labels: Sequence[str], reference: str, metric: str | None, margin: float, warnings: list[str]
) -> ComparedExperiment:
    name = group[0].title
    variable, chosen = _variable(group), _metric(group, metric)
    runs = tuple(_compared(run, label, variable, chosen, warnings) for run, label in zip(group, labels, strict=True))
    specs = spec_differences({label: run.spec for run, label in zip(group, labels, strict=True)})
    hashes = {run.manifest.spec_hash for run in group}
    if len(hashes) > 1:
        what = "; ".join(d.text() for d in specs) or "only what an older version of p4perf did not know"
        warnings.append(f"{name}: the specs of the runs differ: {what}")
    machine = differences("machine", {label: run.manifest.machine for run, label in zip(group, labels, strict=True)})
    base = group[labels.index(reference)].spec
    scale: Scale = base.model.x_scale if base.model is not None else "linear"
    comparison = compare_subjects(
        name,
        [run.subject for run in runs],
        reference=reference,
        x=Quantity(variable, "", scale),
        title=base.title,
        margin=margin,
    )
    return ComparedExperiment(comparison, runs, (*specs, *machine))


def _variable(group: Sequence[Run]) -> str:
    if not any(run.spec.sweep.variables for run in group):
        return UNSWEPT
    found = [run.variable for run in group]
    for run, variable in zip(group, found, strict=True):
        if variable is None:
            raise UsageError(
                f"{run.name} sweeps {', '.join(run.swept)}, and curves over one variable are compared",
                hint=f"choose values of the others, such as {run.choice}",
            )
    if len(set(found)) > 1:
        said = ", ".join(f"{run.name} over {variable}" for run, variable in zip(group, found, strict=True))
        raise UsageError(f"the runs of {group[0].spec.name} cannot be compared, they sweep different variables: {said}")
    return str(found[0])


def _metric(group: Sequence[Run], wanted: str | None) -> str:
    modelled = [run.headline for run in group]
    measured = [{str(m) for m in run.table["metric"].unique()} for run in group]
    common = ", ".join(sorted(set.intersection(*measured))) or "none"
    hint = f"metrics of all of them, for --metric: {common}"
    if wanted is None and len(set(modelled)) > 1:
        said = ", ".join(f"{run.name} models {y}" for run, y in zip(group, modelled, strict=True))
        raise UsageError(f"the runs of {group[0].spec.name} model different metrics: {said}", hint=hint)
    chosen = wanted or modelled[0]
    for run, known in zip(group, measured, strict=True):
        if chosen not in known:
            raise DataError(f"{run.name} has no measurements of {chosen!r}", hint=hint)
    return chosen


def _compared(run: Run, label: str, variable: str, metric: str, warnings: list[str]) -> ComparedRun:
    rows = summarise(run.table, metric, [variable]).to_dict("records")
    points = tuple({str(k): plain(v) for k, v in row.items()} for row in rows)
    try:
        samples = _samples(run.table, metric, variable)
    except UsageError as error:
        hint = error.hint
        if OPERATOR in run.table.columns:
            hint = f"{hint}; p4perf analyse opq RUN RUN --agree compares operators"
        raise UsageError(f"{run.name}: {error.message}", hint=hint) from error
    manifest, planned = run.manifest, run.planned
    if missing := planned - len(samples.x):
        warnings.append(f"{run.name}: {missing} of {planned} points have no accepted start")
    if manifest.origin:
        warnings.append(f"{run.name} is {manifest.origin}")
    if manifest.refused:
        warnings.append(f"{run.name}: {manifest.target} cannot do {counted(len(manifest.refused), 'point')}")
    model = _model(run, metric, variable, samples, warnings) if samples.x and variable != UNSWEPT else None
    has_cost = COST_METRIC in set(run.table["metric"])
    cost = _samples(run.table, COST_METRIC, variable) if has_cost else None
    return ComparedRun(label, run.path, manifest, planned, points, ComparedSamples(label, samples, model, cost))


def _samples(table: pd.DataFrame, metric: str, variable: str) -> Samples:
    """Accepted starts; none at all if nothing was accepted."""
    try:
        return Samples.from_measurements(table, metric, variable)
    except NoVerdictError:
        rows = table[table["metric"] == metric]
        x = tuple(sorted({float(v) for v in rows[variable]}))
        return Samples((), (), variable, metric, str(rows["unit"].iloc[0]), x)


def _model(run: Run, metric: str, variable: str, samples: Samples, warnings: list[str]) -> ComponentModel | None:
    """The model of the run directory if it is one of that metric, else one derived by what the spec says."""
    spec = run.spec.model
    modelled = spec is not None and spec.y == metric
    if modelled and run.has_model:
        model = run.model
        if (model.x.name, model.y.name) == (variable, metric):
            return model
    try:
        return derive_model(
            samples,
            name=run.spec.name,
            target=run.manifest.target,
            x_scale="linear" if spec is None else spec.x_scale,
            options=fit_options(run.spec, len(samples.x) if modelled else None),
        ).model
    except P4PerfError as error:
        warnings.append(f"{run.name} has no model: {error.message}")
        return None


def write_comparison(found: RunComparison, folder: Path, now: datetime) -> tuple[Path, tuple[Path, ...]]:
    """Write document, rows and plots.

    Folder, result and errors are those of :func:`~p4perf.evaluation.plots.style.write_outputs`.
    """
    document = comparison_document(found)
    texts = {"comparison.json": json_text(document.as_dict()), "comparison.csv": csv_text(as_rows(document.rows))}
    return write_outputs(texts, dict(_figures(found, now)), folder, folder)


def _figures(found: RunComparison, now: datetime | None = None) -> Iterator[tuple[str, Figure]]:
    from p4perf.evaluation.plots import PlotInfo
    from p4perf.evaluation.plots.comparison import comparison_figure, overview_figure

    date = now.strftime("%Y-%m-%d") if now else ""
    taken: set[str] = set()
    for experiment in found.experiments:
        info = PlotInfo(date=date, machine=_machine(experiment.runs))
        if experiment.comparison.x.name == UNSWEPT:
            continue
        figure = comparison_figure(experiment.comparison, margin=found.margin, info=info)
        stem = file_word(experiment.comparison.experiment)
        while stem in taken or stem == "overview":
            stem += "-"
        taken.add(stem)
        yield stem, figure
    if len(found.experiments) > 1 or found.experiments[0].comparison.x.name == UNSWEPT:
        every = [e.comparison for e in found.experiments]
        info = PlotInfo(date=date, machine=_machine([run for e in found.experiments for run in e.runs]))
        figure = overview_figure(every, margin=found.margin, info=info)
        yield "overview", figure


def _machine(runs: Sequence[ComparedRun]) -> str:
    models = list(dict.fromkeys(run.manifest.machine["cpu_model"] for run in runs))
    return models[0] if len(models) == 1 else f"{len(models)} kinds of processors"


# --- the document


class _Model(Record):
    domain: tuple[float, ...] = doc("first and last x of the model; `model` is null without one", "of x")
    error_metric: str = doc("[error metric](methods.md#error-metrics)", of="error")
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


class _ComparisonRow(Record):
    experiment: str = doc("name of the experiment")
    variable: str = doc("swept variable")
    x: float = doc("its value", "of x")
    run: str = doc("label of the run")
    median: float | None = doc("median of the accepted starts; null without any", "of the metric")
    low: float | None = doc("lower end of its 95 % interval", "of the metric")
    high: float | None = doc("upper end", "of the metric")
    unit: str = doc("unit of the metric")
    n: int = doc("accepted starts")
    rejected: int = doc("rejected starts")
    flags: str = doc("[flags](measuring.md#quality-flags), separated by commas")
    ratio: Interval | None = interval("ratio to the reference at this point", "ratio")


class ComparisonDocument(Document, kind="comparison"):
    """`p4perf compare RUN RUN...`: one row for each point of each run.

    `comparison.json` has the same keys, without `output` and `plots`. See [comparing](comparing.md).
    """

    output: str = doc("folder of the files", optional=True)
    plots: tuple[str, ...] = doc("paths of the plots", optional=True)
    margin: float = doc("smallest difference that matters", "ratio")
    level: float = doc("intended coverage of intervals", "ratio")
    resamples: int = doc("bootstrap resamples")
    seed: int = doc("their seed")
    warnings: tuple[str, ...] = doc("warnings, for people")
    experiments: tuple[_Experiment, ...] = doc("")
    rank_correlations: tuple[RankPair, ...] = doc("", of="ranks")
    rows: tuple[_ComparisonRow, ...] = doc("")


def comparison_document(found: RunComparison, **files: Any) -> ComparisonDocument:
    """The comparison as ``comparison.json`` has it; ``files`` are ``output`` and ``plots``, if they are written."""
    return ComparisonDocument.read(
        found,
        level=LEVEL,
        resamples=RESAMPLES,
        seed=SEED,
        experiments=tuple(
            _Experiment.read(e, runs=tuple(map(_run, e.runs)), pairs=tuple(map(_pair, e.comparison.pairs)))
            for e in found.experiments
        ),
        rows=tuple(row for experiment in found.experiments for row in _rows(experiment)),
        **files,
    )


def _rows(experiment: ComparedExperiment) -> Iterator[_ComparisonRow]:
    """One row for each point of each run, with the ratio to the reference where both have the point."""
    comparison = experiment.comparison
    ratios = {pair.run: {p.x: p.ratio for p in pair.measured.points} for pair in comparison.pairs}
    every = [(float(point[comparison.x.name]), run, point) for run in experiment.runs for point in run.points]
    for x, run, point in sorted(every, key=lambda each: each[0]):
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
        planned_points=run.planned,
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
