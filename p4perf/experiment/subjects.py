"""Comparison by models: published ones, files, run directories, or the newest run of a target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from p4perf.errors import DataError, NoVerdictError, UsageError
from p4perf.evaluation.comparison.curves import CurveComparison, CurveSubject, compare_curves
from p4perf.experiment.compare import CrossingRecord, KeyDifference, differences, target_cautions
from p4perf.models.component import ComponentModel
from p4perf.models.published import SEPARATOR, find_published, is_published, papers, published_models, subject_of
from p4perf.plugins import find_plugin, plugin_names
from p4perf.records import Document, Interval, Record, as_rows, doc, interval
from p4perf.results import Run, find_run, is_run, read_model, readable_runs
from p4perf.results.manifest import mapping_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


class ComparedModels(CurveComparison):
    """The models of one component, compared with one of them, and how they look."""

    @override
    def __repr__(self) -> str:
        labels = ", ".join(subject.label for subject in self.subjects)
        return f"<ComparedModels of {self.component}: {labels}, with {self.reference}>"

    def to_frame(self) -> pd.DataFrame:
        """A row for each subject at each abscissa of interest, with its ratio to the reference."""
        import pandas as pd

        return pd.DataFrame(as_rows(list(_rows(self))))

    def plot(self) -> Figure:
        from p4perf.evaluation.plots.comparison import curves_figure

        return curves_figure(self)

    def _repr_html_(self) -> str:
        from p4perf.evaluation.plots.style import picture

        return picture(self.plot()) + self.to_frame().to_html(index=False)


def compare_component(
    component: str,
    names: Sequence[str],
    *,
    folder: Path,
    reference: str | None = None,
    metric: str | None = None,
    at: Sequence[float] = (),
) -> ComparedModels:
    """Compare the models of one component.

    Args:
        names: two subjects at least: ``target@paper``, a model file, a run directory, or the name of a target.

    Raises:
        UsageError: there are fewer than two subjects, one is given twice or is unknown, or they cannot be compared.
        DataError: a file or run cannot be read, or is of another component.
        NoVerdictError: no run of that component and target has a model.
    """
    if len(names) < 2:
        raise UsageError("--component compares two subjects or more", hint="such as dpdk-c t4p4s@scholz2021")
    if twice := [name for name in names if list(names).count(name) > 1]:
        raise UsageError(f"{twice[0]} is given twice", hint="name each subject once")
    subjects = _labelled([find_subject(component, name, folder=folder, metric=metric) for name in names], names)
    labels = [s.label for s in subjects]
    chosen = labels[0]
    if reference is not None:
        if reference not in (*names, *labels):
            raise UsageError(
                f"--reference {reference} is not one of the subjects", hint=f"there are {', '.join(labels)}"
            )
        chosen = reference if reference in labels else labels[list(names).index(reference)]
    return ComparedModels(**vars(compare_curves(component, subjects, reference=chosen, at=at)))


def find_subject(component: str, name: str, *, folder: Path, metric: str | None = None) -> CurveSubject:
    """The model that a user named; see :func:`compare_component`."""
    path = Path(name) if SEPARATOR in name or name in plugin_names("p4perf.targets") else find_run(name, folder)
    if path.is_file():
        model = _of_component(read_model(path), component, name, metric)
        label = subject_of(model) if is_published(model) else model.target
        return CurveSubject(label, f"file {path}", model)
    if is_run(path):
        model = _of_component(Run.open(path).model, component, name, metric)
        return CurveSubject(model.target, f"run {path}", model)
    if SEPARATOR in name:
        model = find_published(component, name, metric)
        known = model.provenance
        title = next((p.title for p in papers() if p.key == known.get("paper")), str(known.get("paper")))
        places = [f"{what} {known[what]}" for what in ("section", "figure", "equation") if known.get(what) is not None]
        return CurveSubject(name, f"published: {', '.join((title, *places))}", model)
    run = _newest(component, name, folder)
    model = _of_component(run.model, component, str(run.path), metric)
    return CurveSubject(name, f"run {run.path}", model)


def _of_component(model: ComponentModel, component: str, name: str, metric: str | None) -> ComponentModel:
    if model.name != component:
        raise DataError(f"{name} is a model of {model.name}, not of {component}")
    if metric is not None and metric not in (model.y.name, model.provenance.get("increase_of")):
        hint = f"without --component, --metric {metric} derives models of it from runs"
        raise DataError(f"{name} is a model of {model.y.name}, not of {metric}", hint=hint)
    return model


def _newest(component: str, target: str, folder: Path) -> Run:
    """The newest run of the component on the target that has a model."""
    runs = [r for r in readable_runs(folder) if (r.identity.experiment, r.identity.target) == (component, target)]
    if found := [run for run in runs if run.has_model]:
        return max(found, key=lambda run: run.identity.created)
    if not runs:
        find_plugin("p4perf.targets", target.partition(":")[0])
    published = ", ".join({s: None for m in published_models() if m.name == component and (s := subject_of(m))})
    hint = f"p4perf run {component} --target {target} makes one"
    hint += f"; published of {component}: {published}" if published else ""
    said = f"the {len(runs)} there have no model" if runs else f"there is none in {folder}"
    raise NoVerdictError(f"{target} has no run of {component} that could be compared: {said}", hint=hint)


def _labelled(subjects: Sequence[CurveSubject], names: Sequence[str]) -> tuple[CurveSubject, ...]:
    """Labels that are unique: where they are not, what the user gave."""
    labels = [s.label for s in subjects]
    return tuple(
        s if labels.count(s.label) == 1 else replace(s, label=name) for s, name in zip(subjects, names, strict=True)
    )


def _facts(model: ComponentModel) -> dict[str, str]:
    """What is known of the machine, the year and the conditions, as text."""
    known = model.provenance
    machine, node = mapping_of(known.get("machine")), mapping_of(known.get("node"))
    facts = {
        "processor": machine.get("cpu_model") or node.get("cpu_model"),
        "clock": machine.get("clock"),
        "card": machine.get("card") or machine.get("nic"),
        "year": known.get("year") or str(known.get("created") or "")[:4],
        "metric": model.y.label(),
    }
    return {key: str(value) if value else "unknown" for key, value in facts.items()}


def _cautions(subjects: Sequence[CurveSubject], facts: Mapping[str, Mapping[str, str]]) -> tuple[str, ...]:
    found = list(target_cautions(s.model.target for s in subjects))
    processors = {known["processor"] for known in facts.values()}
    if len(processors) > 1 and any("cycles" in s.model.y.unit for s in subjects):
        found.append("cycles of different processors: a ratio compares the machines as much as the targets")
    for s in subjects:
        if s.model.uncertainty is None:
            why = "the paper prints none" if s.published else "its model has none"
            found.append(f"{s.label} has no intervals ({why}): no verdict, and nothing is known of the scatter")
        if s.published and s.model.provenance.get("derived"):
            found.append(f"{s.label} is derived from printed numbers, not printed itself")
    return tuple(found)


# --- the document


class _Subject(Record):
    label: str = doc("name of the subject")
    source: str = doc("paper, file or run")
    target: str = doc("target", of="model.target")
    metric: str = doc("metric", of="model.y.name")
    unit: str = doc("its unit", of="model.y.unit")
    domain: tuple[float, ...] = doc("first and last x of the curve", of="model.domain")
    formulas: tuple[str, ...] = doc("one per segment", of="model.formulas()")
    published: bool = doc("whether it is from a paper")
    provenance: dict[str, Any] = doc("of a published model: machine, printed numbers, segments, remarks; else empty")


class _CurvePair(Record):
    subject: str = doc("a subject that is not the reference", of="run")
    reference: str = doc("the reference")
    compared: str | None = doc("metric whose ratio it is; null if there is none", of="compared.name")
    domain: tuple[float, ...] | None = doc("first and last x of the shared domain")
    increase_from: float | None = doc("x whose value is subtracted from both curves; null if compared directly")
    reason: str = doc("why there is no ratio, or only an extrapolated one; otherwise empty")
    crossings: tuple[CrossingRecord, ...] | None = doc("null without a shared domain")


class _CurvesRow(Record):
    x: float = doc("abscissa")
    subject: str = doc("subject")
    value: float | None = doc("value of its curve", "its unit")
    low: float | None = doc("lower end of its band", "its unit")
    high: float | None = doc("upper end of its band", "its unit")
    unit: str = doc("unit")
    extrapolated: bool = doc("whether x lies outside of the domain of the curve")
    ratio: Interval | None = interval("ratio to the reference", "ratio")
    ratio_extrapolated: bool = doc("whether x lies outside of the shared domain")


class CurvesDocument(Document, kind="curves"):
    """`p4perf compare --component NAME SUBJECT SUBJECT...`: one row for each subject at each x.

    `curves.json` has the same keys. See [comparing](comparing.md#compare-models-published-ones-too).
    """

    component: str = doc("component")
    variable: str = doc("scaled variable", of="x.name")
    reference: str = doc("subject that the others are compared with")
    subjects: tuple[_Subject, ...] = doc("")
    differences: tuple[KeyDifference, ...] = doc("")
    cautions: tuple[str, ...] = doc("what to know before trusting the comparison, for people")
    pairs: tuple[_CurvePair, ...] = doc("")
    rows: tuple[_CurvesRow, ...] = doc("")


def curves_document(found: CurveComparison) -> CurvesDocument:
    facts = {s.label: _facts(s.model) for s in found.subjects}
    return CurvesDocument.read(
        found,
        subjects=tuple(_Subject.read(s, provenance=s.model.provenance if s.published else {}) for s in found.subjects),
        differences=differences("subject", facts),
        cautions=_cautions(found.subjects, facts),
        rows=tuple(_rows(found)),
    )


def _rows(found: CurveComparison) -> Iterator[_CurvesRow]:
    pairs = {pair.run: pair for pair in found.pairs}
    for x in found.at:
        for subject in found.subjects:
            pair = pairs.get(subject.label)
            estimate = subject.model.estimate(x)
            ratio = pair.ratio(x) if pair is not None else None
            beyond = pair is not None and (pair.domain is None or not pair.domain[0] <= x <= pair.domain[1])
            yield _CurvesRow(
                x=x,
                subject=subject.label,
                value=float(estimate.value),
                low=float(estimate.low),
                high=float(estimate.high),
                unit=subject.model.y.unit,
                extrapolated=bool(estimate.extrapolated),
                ratio=None if ratio is None else Interval.read(ratio),
                ratio_extrapolated=ratio is not None and beyond,
            )
