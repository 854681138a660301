"""Predictions of several programs on several targets, as JSON values and as rows of tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from p4perf.errors import CapabilityError
from p4perf.evaluation.prediction.answer import PATHS, Conditions, Measured, PathName, Prediction, TargetModel, predict
from p4perf.evaluation.prediction.breakdown import Itemised, Line, NodeSum
from p4perf.evaluation.prediction.changes import Difference, difference
from p4perf.evaluation.prediction.programs import Pair, Subject
from p4perf.evaluation.prediction.rates import Band, LatencyAnswer, SizeRate
from p4perf.models.program import Charge
from p4perf.models.program.paths import Way
from p4perf.programs.reading.flow import base_name

Check = Callable[[Subject, str], None]


@dataclass(frozen=True)
class Refusal:
    """A program that a target cannot do, and why."""

    program: str
    values: tuple[tuple[str, object], ...]
    target: str
    reason: str


@dataclass(frozen=True)
class Answers:
    """Everything that was asked for.

    Args:
        predictions: of every program on every target, the unchanged one in front of the changed one.
        differences: between these.
        refusals: what targets cannot do.
        measured: what was measured beside it.
    """

    predictions: tuple[Prediction, ...]
    differences: tuple[Difference, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    measured: tuple[Measured, ...] = ()

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
        pairs: programs, with what they were before.
        models: prices.
        conditions: frame size, cores, line, load.
        path: the way that differences are of.
        check: raises a CapabilityError where a target cannot do a program.

    Raises:
        P4PerfError: as :func:`~p4perf.evaluation.prediction.answer.predict`.
        CapabilityError: no target can do any of the programs; with the reason of the first.
    """
    predictions: list[Prediction] = []
    differences: list[Difference] = []
    refusals: list[Refusal] = []
    first: CapabilityError | None = None
    for pair in pairs:
        for model in models:
            try:
                found = _predicted(pair.subject, model, conditions, check)
            except CapabilityError as error:
                first = first or error
                values = tuple(pair.subject.values.items())
                refusals.append(Refusal(pair.subject.graph.name, values, model.name, error.message))
                continue
            if pair.before is not None:
                before = _predicted(pair.before, model, conditions, check)
                predictions.append(before)
                differences.append(difference(before, found, path))
            predictions.append(found)
    if not predictions and first is not None:
        raise first
    return Answers(tuple(predictions), tuple(differences), tuple(refusals))


def _predicted(subject: Subject, model: TargetModel, conditions: Conditions, check: Check) -> Prediction:
    check(subject, model.target)
    return predict(subject.graph, model, conditions, changes=subject.changes, values=subject.values)


_EXACT_WAYS = 2**53


def summary(found: Prediction) -> dict[str, Any]:
    """One row: the answer in a line."""
    latency = found.latency
    rate = found.rate
    out: dict[str, Any] = {
        "program": found.graph.name,
        "change": "; ".join(found.changes),
        **found.values,
        "target": found.model.target,
        "machine": found.model.machine,
        **_flat("cycles", found.cycles()),
        **{f"{path}_cycles": found.cycles(path).value for path in ("best", "worst")},
        **_flat("mpps_per_core", found.core_mpps),
        "cores": found.conditions.cores,
        "frame_bytes": rate.frame_bytes,
        **_flat("mpps", rate.mpps),
        **_flat("gbps", rate.gbps),
        "bound": rate.bound,
        "line_rate_from_bytes": found.line_rate_from[0],
        "load": latency and latency.load.value,
        "p50_us": latency and dict(latency.quantiles_us)["p50_us"].value,
        "p99_us": latency and dict(latency.quantiles_us)["p99_us"].value,
        "loss": latency and latency.loss.value,
        "memory_bytes": found.expected.bill.memory_bytes,
        "open_above": found.open_above,
    }
    return {key: finite(value) for key, value in out.items()}


def record(found: Prediction) -> dict[str, Any]:
    """Everything, as JSON values."""
    conditions = found.conditions
    return {
        "program": found.graph.name,
        "source": found.graph.source,
        "changes": list(found.changes),
        "values": dict(found.values),
        "model": {
            "name": found.model.name,
            "target": found.model.target,
            "machine": found.model.machine,
            "clock_hz": found.clock_hz,
            "origin": found.model.origin,
        },
        "conditions": {
            "frame_bytes": found.frame_bytes,
            "cores": conditions.cores,
            "line_rate_bps": conditions.line_rate_bps,
        },
        "cycles": _band(found.cycles()),
        "level": found.expected.bill.level,
        "open_above": found.open_above,
        "mpps_per_core": _band(found.core_mpps),
        "sizes": [_size(size) for size in found.sizes],
        "line_rate_from_bytes": dict(zip(("value", "low", "high"), found.line_rate_from, strict=True)),
        "latency": None if found.latency is None else _latency(found.latency),
        "memory_bytes": found.expected.bill.memory_bytes,
        "memory": memory_rows(found),
        "ways": found.analysis.ways if found.analysis.ways <= _EXACT_WAYS else float(found.analysis.ways),
        "deviation_cycles": found.analysis.deviation,
        "paths": [_path(found, path) for path in PATHS],
        "most_probable": [_way(way) for way in found.analysis.most_probable],
        "most_expensive": [_way(way) for way in found.analysis.most_expensive],
        "sources": sources(found),
        "warnings": list(found.warnings),
    }


def sources(found: Prediction) -> list[str]:
    """The component models that the expected bill rests on."""
    named = {name for line in found.expected.lines for name in line.charge.source.split(", ")}
    return sorted(named - {""})


def difference_record(found: Difference) -> dict[str, Any]:
    """What a change does, as JSON values."""
    return {
        "program": found.after.graph.name,
        "changes": list(found.after.changes),
        "model": found.after.model.name,
        "cycles": _band(found.cycles),
        "mpps_per_core": _band(found.mpps),
        "context_cycles": found.context,
        "lines": [
            {
                "node": line.node,
                "part": line.part,
                "before": None if line.before is None else _charge(line.before),
                "after": None if line.after is None else _charge(line.after),
                "cycles": _band(line.cycles),
            }
            for line in found.lines
        ],
    }


def bill_rows(found: Itemised) -> list[dict[str, Any]]:
    """The bill as rows of a table: baseline, every construct, what they cost beside one another."""
    bill = found.bill
    same: dict[tuple[str, str, str], list[Line]] = {}
    for line in found.lines:
        same.setdefault((line.part, base_name(line.node), line.label), []).append(line)
    rows = [_plain_row("baseline", bill.baseline), *(_same_row(*key, lines) for key, lines in same.items())]
    if bill.context:
        rows.append(_plain_row("context", bill.context))
    return rows


def _same_row(part: str, node: str, construct: str, lines: Sequence[Line]) -> dict[str, Any]:
    """The same construct in the copies of a node, or several times in one, as a row."""
    charges = [line.charge for line in lines]
    sources = dict.fromkeys(charge.source for charge in charges if charge.source)
    return {
        "part": part,
        "node": node,
        "construct": construct,
        "times": sum(charge.times for charge in charges),
        "cycles": sum(charge.cycles for charge in charges),
        "low": finite(sum(charge.low for charge in charges)),
        "high": finite(sum(charge.high for charge in charges)),
        "basis": charges[0].basis,
        "source": next(iter(sources), "").partition(", ")[0],
    }


def node_rows(found: Itemised) -> list[dict[str, Any]]:
    """The sums of the nodes as rows, with baseline, context and share of the whole."""
    bill = found.bill
    sums = [
        NodeSum("baseline", "", 1.0, bill.baseline, bill.baseline, bill.baseline),
        *found.by_node(),
        *([NodeSum("context", "", 1.0, bill.context, bill.context, bill.context)] if bill.context else []),
    ]
    total = bill.cycles
    return [
        {
            "part": each.part,
            "node": each.node,
            "times": each.times,
            "cycles": each.cycles,
            "low": finite(each.low),
            "high": finite(each.high),
            "share": each.cycles / total if total > 0 else None,
        }
        for each in sums
    ]


def memory_rows(found: Prediction) -> list[dict[str, Any]]:
    """What takes how much memory, as rows of a table."""
    items = () if found.memory is None else found.memory.items
    return [{"what": i.what, "bytes": i.size_bytes, "basis": i.basis, "source": i.source} for i in items]


def finite(value: Any) -> Any:
    """Infinities and what is no number as None."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _plain_row(part: str, cycles: float) -> dict[str, Any]:
    return {
        "part": part, "node": "", "construct": "", "times": 1.0, "cycles": cycles, "low": None, "high": None,
        "basis": "", "source": "",
    }  # fmt: skip


def _flat(name: str, band: Band) -> dict[str, Any]:
    return {name: band.value, f"{name}_low": band.low, f"{name}_high": band.high}


def _band(band: Band) -> dict[str, Any]:
    return {"value": finite(band.value), "low": finite(band.low), "high": finite(band.high)}


def _size(rate: SizeRate) -> dict[str, Any]:
    return {
        "frame_bytes": rate.frame_bytes,
        "mpps": _band(rate.mpps),
        "gbps": _band(rate.gbps),
        "line_mpps": rate.line_mpps,
        "bound": rate.bound,
    }


def _latency(found: LatencyAnswer) -> dict[str, Any]:
    return {
        "rate_mpps": found.rate_mpps,
        "load": _band(found.load),
        "loss": _band(found.loss),
        "mean_us": _band(found.mean_us),
        **{name: _band(band) for name, band in found.quantiles_us},
        "overloaded": found.overloaded,
    }


def _path(found: Prediction, path: PathName) -> dict[str, Any]:
    itemised = found.bills[path]
    bill = itemised.bill
    way = None if path == "expected" else found.way(path)
    return {
        "path": path,
        "cycles": _band(found.cycles(path)),
        "steps": [] if way is None else steps(way),
        "probability": None if way is None else way.probability,
        "baseline_cycles": bill.baseline,
        "context_cycles": bill.context,
        "bill": [{"node": line.node, "part": line.part, **_charge(line.charge)} for line in itemised.lines],
    }


def _charge(charge: Charge) -> dict[str, Any]:
    return {
        "construct": charge.what.kind,
        "sizes": dict(charge.what.sizes),
        "where": charge.what.where,
        "times": charge.times,
        "cycles": charge.cycles,
        "low": finite(charge.low),
        "high": finite(charge.high),
        "basis": charge.basis,
        "source": charge.source,
        "remark": charge.remark,
    }


def steps(way: Way) -> list[str]:
    """The steps of a way for people: ``ipv4_lpm: hit``."""
    return [f"{step.node}: {step.label}" if step.label else step.node for step in way.steps]


def _way(way: Way) -> dict[str, Any]:
    return {"steps": steps(way), "probability": way.probability, "cycles": way.cost}


def rate_rows(found: Sequence[SizeRate], line_rate_bps: float) -> list[dict[str, Any]]:
    """Rates over frame sizes as rows of a table."""
    return [
        {
            "frame_bytes": rate.frame_bytes,
            "mpps": finite(rate.mpps.value),
            "mpps_low": finite(rate.mpps.low),
            "mpps_high": finite(rate.mpps.high),
            "gbps": finite(rate.gbps.value),
            "of_line": finite(rate.gbps.value * 1e9 / line_rate_bps),
            "bound": rate.bound,
        }
        for rate in found
    ]
