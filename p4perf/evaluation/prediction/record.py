"""Predictions of several programs on several targets, as JSON values and as rows of tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from p4perf.errors import CapabilityError, UsageError
from p4perf.evaluation.prediction.answer import (
    PATHS,
    Conditions,
    MeasuredPrediction,
    PathName,
    Prediction,
    SizeRate,
    TargetModel,
    predict,
)
from p4perf.evaluation.prediction.breakdown import CostLine, Itemised, NodeSum
from p4perf.evaluation.prediction.programs import CostDifference, Pair, ProgramSubject, difference
from p4perf.models.estimate import exactly
from p4perf.models.program.costs import NOTHING
from p4perf.models.program.paths import ProgramPath
from p4perf.programs.reading.flow import base_name
from p4perf.records import Document, Interval, Record, Scalar, as_rows, doc, interval, json_value, spread

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Check = Callable[[ProgramSubject, str], None]


MOST_DRAWN = 12
"""Rates of more predictions than these are not drawn."""


@dataclass(frozen=True, repr=False)
class Answers:
    """Everything that was asked for; among the predictions the unchanged program stands in front of the changed one."""

    predictions: tuple[Prediction, ...]
    differences: tuple[CostDifference, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    measured: tuple[MeasuredPrediction, ...] = ()

    @override
    def __repr__(self) -> str:
        first = [(p, f" ({'; '.join(p.changes)})" if p.changes else "") for p in self.predictions[:3]]
        said = [f"{p.graph.name}{change} on {p.model.target} {p.cycles().rounded()}" for p, change in first]
        more = ", ..." if len(self.predictions) > len(said) else ""
        return f"<Answers: {', '.join(said)}{more} cycles/packet>"

    def to_frame(self) -> pd.DataFrame:
        """A row for each program on each target: cycles, rates, latency and loss, with intervals."""
        import pandas as pd

        return pd.DataFrame(as_rows(predict_document(self, "expected").rows))

    def plot(self) -> Figure:
        """Packet rates over the frame size."""
        from p4perf.evaluation.plots.prediction import rate_figure

        return rate_figure(self.predictions[:MOST_DRAWN])

    def _repr_html_(self) -> str:
        from p4perf.evaluation.plots.style import picture

        change = ["change"] if self.differences else []
        rows = self.to_frame()[["program", *change, "target", "cycles", "cycles_low", "cycles_high", "mpps_per_core"]]
        return picture(self.plot()) + rows.to_html(index=False)

    @property
    def changed(self) -> tuple[Prediction, ...]:
        """Without the unchanged ones that are there for comparison only."""
        before = [d.before for d in self.differences]
        return tuple(p for p in self.predictions if not any(p is b for b in before))


def answer(
    pairs: Sequence[Pair],
    models: Sequence[TargetModel],
    conditions: Conditions,
    *,
    path: PathName = "expected",
    check: Check = lambda _subject, _target: None,
) -> Answers:
    """Predict all programs with all models.

    Args:
        check: raises a CapabilityError where a target cannot do a program.

    Raises:
        P4PerfError: as :func:`~p4perf.evaluation.prediction.answer.predict`.
        CapabilityError: no target can do any of the programs; with the reason of the first.
    """
    if path not in PATHS:
        raise UsageError(f"there is no path {path!r}", hint=f"paths: {', '.join(PATHS)}")
    predictions: list[Prediction] = []
    differences: list[CostDifference] = []
    refusals: list[Refusal] = []
    first: CapabilityError | None = None
    for pair in pairs:
        for model in models:
            try:
                found = _predicted(pair.subject, model, conditions, check)
            except CapabilityError as error:
                first = first or error
                refused = {"program": pair.subject.graph.name, "model": model.name, "reason": error.message}
                refusals.append(Refusal(values=dict(pair.subject.values), **refused))
                continue
            if pair.before is not None:
                before = _predicted(pair.before, model, conditions, check)
                predictions.append(before)
                differences.append(difference(before, found, path))
            predictions.append(found)
    if not predictions and first is not None:
        raise first
    return Answers(tuple(predictions), tuple(differences), tuple(refusals))


def _predicted(subject: ProgramSubject, model: TargetModel, conditions: Conditions, check: Check) -> Prediction:
    check(subject, model.target)
    graph, met = subject.graph_for(model.target), subject.path_for(model.target)
    return predict(graph, model, conditions, changes=subject.changes, values=subject.values, met=met)


_EXACT_COUNT = 2**53
"""Larger numbers are floating-point numbers in JSON."""


class _PredictRow(Record):
    program: str = doc("name of the program", of="graph.name")
    change: str = doc("changes to it; empty for the unchanged program")
    values: dict[str, Scalar] = spread("variable", "value of a swept variable")
    target: str = doc("target, with its variant", of="model.target")
    machine: str = doc("machine that the model is of", of="model.machine")
    cycles: Interval = interval("expected cost", "cycles/packet", of="cycles()")
    lowest_cost_cycles: float = doc("cost of the lowest-cost path", "cycles/packet")
    highest_cost_cycles: float = doc("cost of the highest-cost path", "cycles/packet")
    mpps_per_core: Interval = interval("rate of one core, whatever the line carries", "Mpps", of="core_mpps")
    cores: int = doc("cores that run the program", of="conditions.cores")
    frame_bytes: int = doc("frame size with FCS", "B", of="rate.frame_bytes")
    mpps: Interval = interval("rate of all cores on the line", "Mpps", of="rate.mpps")
    gbps: Interval = interval("the same on the line, with preamble and gap", "Gbit/s", of="rate.gbps")
    bound: str = doc("what limits the rate: `cpu` or `line`", of="rate.bound")
    line_rate_from_bytes: int | None = doc("smallest frame that fills the line; null where none does", "B")
    load: float | None = doc("offered work per core, as a share of time", "ratio", of="latency.load.value")
    p50_us: float | None = doc("median latency at that load", "us")
    p99_us: float | None = doc("99 % quantile", "us")
    loss: float | None = doc("share of packets that find a full ring", "lost/sent", of="latency.loss.value")
    memory_bytes: float | None = doc(
        "known memory of tables and arrays; null if none is known",
        "B",
        of="memory.size_bytes",
    )
    open_above: bool = doc("whether part of the program has neither price nor bound")


class _Model(Record):
    name: str = doc("the model: `target@machine`")
    target: str = doc("its target")
    machine: str = doc("its machine")
    clock_hz: float = doc("clock of the cores", "Hz")
    origin: str = doc("the file, or `reference`")


class _Condition(Record):
    frame_bytes: int = doc("frame size with FCS", "B")
    cores: int = doc("cores that run the program")
    line_rate_bps: float = doc("rate of the line", "bit/s")


class _Size(Record):
    frame_bytes: int = doc("a frame size", "B")
    mpps: Interval = doc("rate of all cores on the line", "Mpps")
    gbps: Interval = doc("the same with preamble and gap", "Gbit/s")
    line_mpps: float = doc("what the line carries", "Mpps")
    bound: str = doc("`cpu` or `line`")


class _Latency(Record):
    rate_mpps: float = doc("packets that arrive, over all cores", "Mpps")
    load: Interval = doc("offered work per core, as a share of time", "ratio")
    loss: Interval = doc("share of packets that find a full ring", "lost/sent")
    mean_us: Interval = doc("mean time from arrival to the end of service", "us")
    p50_us: Interval = doc("median", "us")
    p90_us: Interval = doc("90 % quantile", "us")
    p99_us: Interval = doc("99 % quantile", "us")
    p999_us: Interval = doc("99.9 % quantile", "us")
    overloaded: bool = doc("whether the load, or the upper end of its interval, exceeds what the cores can do")


class _Memory(Record):
    what: str = doc("a table, an array, or `code`")
    bytes: float | None = doc("its size; null if unknown", "B", of="size_bytes")
    basis: str = doc("how that is known: `measured`, `interpolated`, `formula`, `unknown`")
    source: str = doc("the component that was measured, or the library whose layout it is")


class _Charge(Record):
    construct: str = doc("kind of the construct", of="what.kind")
    sizes: dict[str, Any] = doc("its sizes", of="what.sizes")
    where: str = doc("its place in the program, for people", of="what.where")
    times: float = doc("average number of times that a packet meets it")
    cycles: float = doc("for all these times together", "cycles/packet", of="cycles.value")
    low: float = doc("lower end of its interval", "cycles/packet", of="cycles.low")
    high: float = doc("upper end", "cycles/packet", of="cycles.high")
    basis: str = doc("`measured`, `interpolated`, `extrapolated`, `bounded` or `unknown` (then `cycles` is 0)")
    source: str = doc("source of the price; empty if there is none")
    remark: str = doc("for people")


class _Place(Record):
    node: str = doc("step of the program")
    part: str = doc("`parser`, `tables`, `actions`, `conditions`, `blocks`, `deparser`, `end` or `others`")


class _BreakdownLine(_Charge, _Place):
    pass


class _Path(Record):
    path: str = doc("`expected`, `lowest-cost`, `highest-cost`, in this order")
    cycles: Interval = doc("its cost", "cycles/packet")
    steps: tuple[str, ...] = doc("its steps with the branches taken; empty for the expected path")
    probability: float | None = doc("share of the packets that take this path", "ratio")
    baseline_cycles: float = doc("cost of a program that only forwards", "cycles/packet")
    interaction_cycles: float = doc(
        "interaction between constructs: joint cost minus the sum of the single costs", "cycles/packet"
    )
    breakdown: tuple[_BreakdownLine, ...] = doc("")


class _ProgramPath(Record):
    steps: tuple[str, ...] = doc("its steps")
    probability: float = doc("share of the packets that take this path", "ratio")
    cycles: float = doc("sum of prices, without baseline and interaction", "cycles/packet", of="cost")


class _Prediction(Record):
    program: str = doc("name of the program", of="graph.name")
    source: str = doc("what it was read from: `p4perf`, `bmv2`, `swx` or `p4c`", of="graph.source")
    packets: str = doc(
        "for the packets sent for measuring, entries and hits of each table; otherwise empty",
        of="graph.packets",
    )
    changes: tuple[str, ...] = doc("what was changed in it")
    values: dict[str, Any] = doc("swept variables of the point")
    model: _Model = doc("")
    conditions: _Condition = doc("")
    cycles: Interval = doc("expected cost", "cycles/packet", of="cycles()")
    level: float = doc("intended coverage of the intervals of costs and rates", "ratio", of="expected.breakdown.level")
    open_above: bool = doc("whether part of the program has neither price nor bound")
    mpps_per_core: Interval = doc("rate of one core", "Mpps", of="core_mpps")
    sizes: tuple[_Size, ...] = doc("")
    line_rate_from_bytes: Interval = doc(
        "smallest frame that fills the line at the expected rate, its lower and its upper end", "B"
    )
    latency: _Latency | None = doc("")
    memory_bytes: float | None = doc("known memory of tables and arrays", "B", of="memory.size_bytes")
    memory: tuple[_Memory, ...] = doc("", of="memory.items")
    path_count: float = doc("paths through the program")
    deviation_cycles: float = doc(
        "standard deviation of the cost over packets", "cycles/packet", of="analysis.deviation"
    )
    paths: tuple[_Path, ...] = doc("")
    most_probable: tuple[_ProgramPath, ...] = doc("the most probable paths", of="analysis.most_probable")
    most_expensive: tuple[_ProgramPath, ...] = doc("the paths of highest cost", of="analysis.most_expensive")
    sources: tuple[str, ...] = doc("component models on which the expected cost breakdown is based")
    warnings: tuple[str, ...] = doc("warnings")


class _Line(Record):
    node: str = doc("a step that differs")
    part: str = doc("its part")
    before: _Charge | None = doc("its line as in `breakdown`; null if it was not there")
    after: _Charge | None = doc("its line now; null if it is gone")
    cycles: Interval = doc("difference", "cycles/packet")


class _Difference(Record):
    program: str = doc("name of the changed program", of="after.graph.name")
    changes: tuple[str, ...] = doc("what was changed", of="after.changes")
    model: str = doc("the model", of="after.model.name")
    cycles: Interval | None = doc(
        "changed less unchanged, of the path `path`; null if the difference of a line is not known", "cycles/packet"
    )
    mpps_per_core: Interval | None = doc("the same of the rate of one core", "Mpps", of="mpps")
    unknown: tuple[str, ...] = doc("the steps whose difference is unknown")
    interaction_cycles: float = doc("part of it that is interaction", "cycles/packet", of="interaction")
    lines: tuple[_Line, ...] = doc("")


class Refusal(Record):
    program: str = doc("a program that a target cannot run")
    values: dict[str, Any] = doc("swept variables of the point")
    model: str = doc("the model")
    reason: str = doc("the limit of the target")


class _Measured(Record):
    program: str = doc("`--measure`: name of the program", of="prediction.graph.name")
    change: str = doc("what was changed in it")
    values: dict[str, Scalar] = spread("variable", "value of a swept variable", of="prediction.values")
    target: str = doc("target", of="prediction.model.target")
    machine: str = doc("machine that the model is of", of="prediction.model.machine")
    measured_on: str = doc("machine on which it was measured", of="prediction.model.here")
    predicted_cycles: float = doc("prediction", "cycles/packet")
    predicted_low: float = doc("lower end of its interval", "cycles/packet")
    predicted_high: float = doc("upper end", "cycles/packet")
    measured_cycles: float = doc(
        "median of the accepted starts; of an experiment, what is beyond the baseline, and the baseline of the model",
        "cycles/packet",
        of="cycles.value",
    )
    measured_low: float = doc("lower end of its 95 % interval", "cycles/packet", of="cycles.low")
    measured_high: float = doc("upper end", "cycles/packet", of="cycles.high")
    error: float = doc("predicted less measured, over measured", "ratio")
    interval_holds: bool = doc("whether the interval of the prediction contains the measured median", of="holds")
    starts: int = doc("accepted starts")
    flags: tuple[str, ...] = doc("their [quality flags](measuring.md#quality-flags)")
    folder: str = doc("where the raw records are")


class PredictDocument(Document, kind="predict"):
    """`p4perf predict`: one row for each program (or point) and model, the unchanged program before a changed one.

    A value with its interval is a mapping of `value`, `low` and `high`; an unknown end is null. `-o DIR`
    writes the same object, without `plots`, to `prediction.json`.
    """

    path: str = doc("path whose cost breakdown was requested: `expected`, `lowest-cost` or `highest-cost`")
    predictions: tuple[_Prediction, ...] = doc("")
    differences: tuple[_Difference, ...] = doc("")
    refused: tuple[Refusal, ...] = doc("")
    measured: tuple[_Measured, ...] = doc("")
    plots: tuple[str, ...] = doc("paths of the plots", optional=True)
    rows: tuple[_PredictRow, ...] = doc("")


def predict_document(found: Answers, path: PathName, **files: Any) -> PredictDocument:
    """The answers as ``prediction.json`` has them."""
    return PredictDocument(
        path=path,
        predictions=tuple(record(each) for each in found.predictions),
        differences=tuple(_Difference.read(each) for each in found.differences),
        refused=found.refusals,
        measured=tuple(_measured(each) for each in found.measured),
        rows=tuple(summary(each) for each in found.predictions),
        **files,
    )


def summary(found: Prediction) -> _PredictRow:
    """One row: the answer in a line."""
    quantiles = {} if found.latency is None else dict(found.latency.quantiles_us)
    return _PredictRow.read(
        found,
        change="; ".join(found.changes),
        lowest_cost_cycles=found.cycles("lowest-cost").value,
        highest_cost_cycles=found.cycles("highest-cost").value,
        line_rate_from_bytes=found.line_rate_from[0],
        **{name: quantiles[name].value if quantiles else None for name in ("p50_us", "p99_us")},
    )


def record(found: Prediction) -> _Prediction:
    count = found.analysis.paths
    probable, expensive = (
        tuple(_ProgramPath.read(path, steps=tuple(steps(path))) for path in paths)
        for paths in (found.analysis.most_probable, found.analysis.most_expensive)
    )
    return _Prediction.read(
        found,
        conditions=_Condition.read(found.conditions, frame_bytes=found.frame_bytes),
        line_rate_from_bytes=Interval(**dict(zip(("value", "low", "high"), found.line_rate_from, strict=True))),
        latency=None if found.latency is None else _Latency.read(found.latency, **dict(found.latency.quantiles_us)),
        memory=memory_records(found),
        path_count=count if count <= _EXACT_COUNT else float(count),
        paths=tuple(_path(found, path) for path in PATHS),
        most_probable=probable,
        most_expensive=expensive,
        sources=sources(found),
    )


def _path(found: Prediction, path: PathName) -> _Path:
    itemised = found.breakdowns[path]
    taken = None if path == "expected" else found.path(path)
    return _Path(
        path=path,
        cycles=Interval.read(found.cycles(path)),
        steps=() if taken is None else tuple(steps(taken)),
        probability=None if taken is None else taken.probability,
        baseline_cycles=itemised.breakdown.baseline,
        interaction_cycles=itemised.breakdown.interaction,
        breakdown=tuple(_BreakdownLine.read(line.charge, node=line.node, part=line.part) for line in itemised.lines),
    )


def _measured(found: MeasuredPrediction) -> _Measured:
    band = found.prediction.cycles()
    return _Measured.read(
        found,
        change="; ".join(found.prediction.changes),
        predicted_cycles=band.value,
        predicted_low=band.low,
        predicted_high=band.high,
    )


def memory_records(found: Prediction) -> tuple[_Memory, ...]:
    return () if found.memory is None else tuple(_Memory.read(item) for item in found.memory.items)


def steps(path: ProgramPath) -> list[str]:
    """The steps of a path for people: ``ipv4_lpm: hit``."""
    return [f"{step.node}: {step.label}" if step.label else step.node for step in path.steps]


def sources(found: Prediction) -> list[str]:
    """The component models on which the expected cost breakdown is based."""
    named = {name for line in found.expected.lines for name in line.charge.source.split(", ")}
    return sorted(named - {""})


# --- tables for people

ENDS = ("baseline", "interaction")
"""What breakdowns of a program begin and end with."""


def breakdown_rows(found: Itemised) -> list[dict[str, Any]]:
    """The cost breakdown as rows of a table: baseline, every construct, interaction."""
    breakdown = found.breakdown
    same: dict[tuple[str, str, str], list[CostLine]] = {}
    for line in found.lines:
        same.setdefault((line.part, base_name(line.node), line.label), []).append(line)
    ends = [_row(name, "", "", 1.0, getattr(breakdown, name), None, None, "", "") for name in ENDS]
    rows = [_same_row(*key, lines) for key, lines in same.items()]
    return [ends[0], *rows, *(ends[1:] if breakdown.interaction else ())]


def _same_row(part: str, node: str, construct: str, lines: Sequence[CostLine]) -> dict[str, Any]:
    """The same construct in the copies of a node, or several times in one, as a row."""
    charges = [line.charge for line in lines]
    sources = dict.fromkeys(charge.source for charge in charges if charge.source)
    cycles = sum((charge.cycles for charge in charges), NOTHING)
    times, source = sum(charge.times for charge in charges), next(iter(sources), "").partition(", ")[0]
    return _row(part, node, construct, times, cycles.value, cycles.low, cycles.high, charges[0].basis, source)


def _row(*values: object) -> dict[str, Any]:
    names = ("part", "node", "construct", "times", "cycles", "low", "high", "basis", "source")
    return {name: json_value(value) for name, value in zip(names, values, strict=True)}


def node_rows(found: Itemised) -> list[dict[str, Any]]:
    """The sums of the nodes as rows, with baseline, interaction and share of the whole."""
    breakdown = found.breakdown
    ends = [NodeSum(name, "", 1.0, exactly(getattr(breakdown, name))) for name in ENDS]
    sums = [ends[0], *found.by_node(), *(ends[1:] if breakdown.interaction else ())]
    total = breakdown.cycles.value
    return [
        {
            "part": each.part,
            "node": each.node,
            "times": each.times,
            "cycles": each.cycles.value,
            "low": json_value(each.cycles.low),
            "high": json_value(each.cycles.high),
            "share": each.cycles.value / total if total > 0 else None,
        }
        for each in sums
    ]


def rate_rows(found: Sequence[SizeRate], line_rate_bps: float) -> list[dict[str, Any]]:
    return [
        {
            "frame_bytes": rate.frame_bytes,
            "mpps": json_value(rate.mpps.value),
            "mpps_low": json_value(rate.mpps.low),
            "mpps_high": json_value(rate.mpps.high),
            "gbps": json_value(rate.gbps.value),
            "of_line": json_value(rate.gbps.value * 1e9 / line_rate_bps),
            "bound": rate.bound,
        }
        for rate in found
    ]
