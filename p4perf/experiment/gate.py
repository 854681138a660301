"""The gate: did something become slower than a baseline says, on any of many components?

The verdicts as a document, as JUnit XML, and as a summary in Markdown.
"""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import stdtrit
from typing_extensions import override

from p4perf.errors import DataError, ExitCode, P4PerfError, UsageError
from p4perf.evaluation.comparison.gate import ComponentShifts, judge
from p4perf.evaluation.comparison.ratios import MARGIN, ComparisonOutcome, measured_ratios
from p4perf.evaluation.comparison.shifts import PointShifts, paired_shifts, point_shifts, scattered
from p4perf.evaluation.report import render_markdown
from p4perf.experiment import gate_sides
from p4perf.experiment.compare import KeyDifference, differences, spec_differences
from p4perf.experiment.evaluate import BASELINE
from p4perf.experiment.gate_drift import ComparedRuns, GateDrift, with_drifts
from p4perf.models.component import ComponentModel
from p4perf.models.estimate import Estimate
from p4perf.records import Document, Interval, Record, counted, doc, interval
from p4perf.results.files import storing
from p4perf.results.table import LEVEL, Samples

DRIFT = 0.5
"""The baseline program has moved if the whole interval of its ratio is beyond this share of the margin."""

OLD, NEW = "baseline", "new"


class GateRow(Record):
    """A component with its verdict."""

    experiment: str = doc("name of the experiment")
    target: str = doc("target")
    metric: str = doc("metric; empty where nothing could be compared")
    unit: str = doc("its unit; empty with `--relative`")
    verdict: str = doc("`slower`, `faster`, `higher`, `lower`, `same` or `no verdict`", of="outcome")
    regression: bool = doc("whether that is worse", of="worse")
    ratio: Interval | None = interval("new runs over baseline, over all shared points", "ratio")
    detectable: float | None = doc("smallest change that would have been found; null if unbounded", "ratio")
    detectable_at_a_point: float | None = doc("the same, of a change at one point only", "ratio")
    p_value: float | None = doc("of the ratio in its direction, adjusted for all components")
    points: int = doc("points that count")
    starts: int = doc("accepted starts of a point of the new runs, median")
    baseline_starts: int = doc("those of the baseline; 0 for a model")
    against: str = doc("`runs` or `model`")
    local_first: str | None = doc("first point of a range that shifted by more than the margin", of="local.first")
    local_last: str | None = doc("its last point", of="local.last")
    local_points: int | None = doc("its number of points", of="local.points")
    local_ratio: Interval | None = interval("its ratio", "ratio", of="local.ratio")
    baseline_program_ratio: Interval | None = interval("ratio of the interleaved baseline, or null", "ratio")
    relative_ratio: Interval | None = interval("the ratio in units of that program", "ratio")
    differences: tuple[KeyDifference, ...] = doc("")
    reason: str = doc("one sentence, for people")


class GateDocument(Document, kind="gate"):
    """`p4perf gate --baseline BASE RUN...`: one row for each component.

    See [the gate](comparing.md#the-gate).
    """

    verdict: str = doc("`passed`, `failed` or `no verdict`")
    exit_code: int = doc("0, 1 or 6")
    margin: float = doc("smallest change that matters", "ratio")
    level: float = doc("intended coverage of intervals", "ratio")
    relative: bool = doc("whether all is in units of the interleaved baseline program")
    drifts: tuple[GateDrift, ...] = doc("")
    warnings: tuple[str, ...] = doc("warnings, for people")
    rows: tuple[GateRow, ...] = doc("")

    @override
    def __repr__(self) -> str:
        return f"<GateDocument: {self.verdict}, {counts(self)}>"

    @override
    def _repr_html_(self) -> str:
        import pandas as pd

        return pd.DataFrame(short_rows(self)).to_html(index=False)


@dataclass(frozen=True)
class _Prepared:
    """The values of a :class:`GateRow` but for its verdict, and what the component is judged by."""

    known: dict[str, Any]
    component: ComponentShifts
    runs: ComparedRuns | None = None


def gate_runs(
    baseline: Sequence[Path],
    runs: Sequence[Path],
    *,
    metric: str | None = None,
    relative: bool = False,
    margin: float = MARGIN,
    drift: float | None = None,
) -> GateDocument:
    """Judge new runs by a baseline.

    Args:
        relative: divide each start by the baseline program of the same start.
        drift: standard deviation between runs; by default what several runs show.

    Raises:
        UsageError: nothing of the runs is in the baseline, or a path makes no sense.
        DataError: something is damaged.
    """
    new, whole = gate_sides.read_sides(runs)
    old = gate_sides.with_partners(gate_sides.read_sides(baseline)[0], new)
    if any(side.model is not None for side in new.values()):
        raise UsageError("a model is no new run", hint="only the baseline may be a model")
    gate_sides.require_other(baseline, old, new)
    if not old.keys() & new.keys():
        hint = "experiment and target must be the same"
        for before, after in ((b[1], a[1]) for b in old for a in new if b[0] == a[0]):
            turns = f"p4perf gate --interleaved SPEC --target {after} --baseline-target {before}"
            hint = f"{turns} measures both targets in turns; p4perf compare RUN RUN compares targets"
        raise UsageError(
            f"nothing of the runs is in the baseline: it has {_named(old)}; the runs are {_named(new)}", hint=hint
        )
    warnings = [f"{_name(key)} is new: the baseline does not have it" for key in new if key not in old]
    prepared = [
        _prepared(old[key], side, metric, relative, margin, warnings) for key, side in new.items() if key in old
    ]
    absent = [key for key in old if key not in new]
    if whole:
        prepared += [_nothing(key, "not in the new campaign") for key in absent]
    elif absent:
        warnings.append(f"{len(absent)} components of the baseline are in none of the runs")
    compared = [(p.component.shifts, p.runs) for p in prepared if p.component.shifts is not None and p.runs is not None]
    shifts, drifts = with_drifts(compared, given=drift, relative=relative, told=warnings)
    drifted = iter(shifts)
    components = [
        p.component if p.component.shifts is None else replace(p.component, shifts=next(drifted)) for p in prepared
    ]
    verdicts = judge(components, margin)
    rows = [GateRow.read(verdict, **each.known) for each, verdict in zip(prepared, verdicts, strict=True)]
    return gate_document(rows, margin=margin, relative=relative, drifts=drifts, warnings=tuple(dict.fromkeys(warnings)))


def gate_document(
    rows: Sequence[GateRow],
    *,
    margin: float,
    relative: bool,
    drifts: tuple[GateDrift, ...] = (),
    warnings: tuple[str, ...],
) -> GateDocument:
    """The document; exit code 1 if anything is worse, else 6 if anything has no verdict, else 0."""
    code = ExitCode.NO_VERDICT if not rows or any(map(_undecided, rows)) else ExitCode.OK
    if any(row.regression for row in rows):
        code = ExitCode.VERDICT_FAILED
    return GateDocument(
        verdict=VERDICTS[code],
        exit_code=int(code),
        margin=margin,
        level=LEVEL,
        relative=relative,
        drifts=drifts,
        warnings=warnings,
        rows=tuple(rows),
    )


def _undecided(row: GateRow) -> bool:
    return row.verdict == ComparisonOutcome.NO_VERDICT


def _name(key: gate_sides.Key) -> str:
    return f"{key[0]} on {key[1]}"


def _named(sides: dict[gate_sides.Key, gate_sides.GateSide]) -> str:
    names = [_name(key) for key in sides]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _nothing(key: gate_sides.Key, reason: str, metric: str = "", against: str = "runs") -> _Prepared:
    known: dict[str, Any] = {"experiment": key[0], "target": key[1], "metric": metric, "unit": "", "against": against}
    known |= {"starts": 0, "baseline_starts": 0, "differences": ()}
    known |= dict.fromkeys(("baseline_program_ratio", "relative_ratio"))
    return _Prepared(known, ComponentShifts(metric, None, reason=reason))


def _prepared(
    old: gate_sides.GateSide,
    new: gate_sides.GateSide,
    metric: str | None,
    relative: bool,
    margin: float,
    warnings: list[str],
) -> _Prepared:
    """Everything about a component but its verdict; what cannot be compared has a reason instead."""
    for side, words in ((old, "the baseline"), (new, "the new run")):
        if side.reason:
            return _nothing(new.key, f"{words}: {side.reason}")
    against = "runs" if old.model is None else "model"
    warnings += [*gate_sides.side_origin(new), *(gate_sides.side_origin(old) if old.model is None else ())]
    differences = _differences(old, new, warnings)
    chosen = metric or new.headline()
    every: Sequence[Sequence[gate_sides.Starts]] = ((), ())
    paired = bool(new.pair) and old.pair == new.pair
    try:
        if old.model is not None:
            before, (shifts, labels, after) = None, _against_model(old.model, new, chosen, relative)
        else:
            every = [side.starts_of_runs(chosen, relative=relative) for side in (old, new)]
            before, after = map(gate_sides.together, every)
            shifts, labels = _against_runs(before, after, len(every[1]), len(every[0]), paired=paired)
    except P4PerfError as error:
        return _nothing(new.key, error.message, chosen, against)
    drift = _drift(old, new)
    limit = 1 + DRIFT * margin
    if drift is not None and drift.side_of(1 / limit, limit):
        warnings.append(
            f"{_name(new.key)}: the baseline program moved, too: {BASELINE} by a ratio of {drift.value:.3f}; "
            "the compiler or the machine changed more than this component"
        )
    if before is not None and (lost := [key for key in before.points if key not in after.points]):
        warnings.append(f"{_name(new.key)}: {len(lost)} of {len(before.points)} points of the baseline are not there")
    reason = ""
    if shifts is None:
        reason = "no point is shared that has positive values"
        if labels:
            reason = (
                f"{len(labels)} shared points with a single start: two starts on both sides are needed, or three points"
            )
    runs = ComparedRuns(
        chosen,
        gate_sides.place_of_run(new.runs[0]),
        gate_sides.run_group(old, every[0]),
        gate_sides.run_group(new, every[1]),
        max(1, len(old.runs)),
        len(new.runs),
        paired=paired,
    )
    if not paired and gate_sides.runs_are_far(old, new):
        warnings.append(
            f"{_name(new.key)}: the baseline runs were made close together, the new one much later: their drift says "
            "little of it"
        )
    known = _nothing(new.key, reason, chosen, against).known
    known |= {
        "unit": after.unit,
        "starts": after.typical,
        "baseline_starts": 0 if before is None else before.typical,
        "baseline_program_ratio": drift,
        "relative_ratio": None if relative else _relative(old, new, chosen),
        "differences": differences,
    }
    return _Prepared(known, ComponentShifts(chosen, shifts, labels, reason), runs)


def _differences(old: gate_sides.GateSide, new: gate_sides.GateSide, warnings: list[str]) -> tuple[KeyDifference, ...]:
    """What differs between the specs and the machines of the first runs of both sides; warns of it."""
    specs: tuple[KeyDifference, ...] = ()
    if old.runs and new.runs:
        specs = spec_differences({OLD: old.runs[0].spec, NEW: new.runs[0].spec})
    machine: tuple[KeyDifference, ...] = ()
    facts = {OLD: old.machine(), NEW: new.machine()}
    if all(facts.values()):
        machine = differences("machine", facts)
    elif old.model is not None:
        warnings.append(f"{_name(new.key)}: the model does not say on which machine it was measured")
    warnings += [f"the specs of {_name(new.key)} differ: {d.text()}" for d in specs]
    warnings += [f"the machines differ: {d.text()}" for d in machine]
    return (*specs, *machine)


def _against_runs(
    before: gate_sides.Starts, after: gate_sides.Starts, runs: int = 1, reference_runs: int = 1, *, paired: bool = False
) -> tuple[PointShifts | None, tuple[str, ...]]:
    if before.variables != after.variables:
        swept = [", ".join(s.variables) or "nothing" for s in (before, after)]
        raise UsageError(f"the baseline sweeps {swept[0]}, the new run {swept[1]}")
    if before.unit != after.unit:
        raise DataError(f"the baseline is in {before.unit or 'no unit'}, the new run in {after.unit or 'no unit'}")
    shared = sorted((key for key in after.points if key in before.points), key=_order)
    names = [_label(after.variables, key) for key in shared]
    if paired:
        pairs = [gate_sides.pairs_of(before, after, key) for key in shared]
        positive = [np.log([new / old for old, new in each if min(old, new) > 0]) for each in pairs]
        some = [n for n, ratios in enumerate(positive) if len(ratios) > 1]
        some = some or [n for n, ratios in enumerate(positive) if len(ratios)]
        return paired_shifts([positive[n] for n in some]), tuple(names[n] for n in some)
    found = measured_ratios(after.samples(shared), before.samples(shared))
    kept = [point for point in found.points if point.deviation is not None] or list(found.points)
    return point_shifts(found, runs, reference_runs), tuple(names[int(point.x)] for point in kept)


def _order(key: gate_sides.PointKey) -> tuple[tuple[bool, float, str], ...]:
    """Points in ascending order of their values, numbers before words."""
    return tuple((not isinstance(v, int | float), float(v) if isinstance(v, int | float) else 0.0, str(v)) for v in key)


def _label(variables: Sequence[str], key: gate_sides.PointKey) -> str:
    named = (
        f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in zip(variables, key, strict=True)
    )
    return ", ".join(named) or "the only point"


def _against_model(
    model: ComponentModel, new: gate_sides.GateSide, metric: str, relative: bool
) -> tuple[PointShifts | None, tuple[str, ...], gate_sides.Starts]:
    """Shifts of the points within the domain of a model.

    The scatter about the common shift holds that of the starts and the misfit of the curve; the band of the curve may
    be wrong in the same direction everywhere, so its median width is in everything.
    """
    if relative:
        raise UsageError("a model holds no baseline program to be relative to", hint="give the run of the model")
    starts = gate_sides.together(new.starts_of_runs(metric))
    if model.y.name != metric:
        raise UsageError(f"the model is one of {model.y.name}, not of {metric}")
    if starts.variables != (model.x.name,):
        raise UsageError(f"the model is one over {model.x.name}, the run sweeps {', '.join(starts.variables)}")
    if model.uncertainty is None:
        raise UsageError("the model has no intervals, so that a change cannot be distinguished from its error")
    low, high = model.domain
    keys = sorted((key for key in starts.points if low <= float(key[0]) <= high), key=_order)
    x = np.array([float(key[0]) for key in keys])
    curve = model.estimate(x)
    medians = np.array([float(np.median(starts.points[key])) for key in keys])
    within = np.isfinite(curve.low) & np.isfinite(curve.high) & (curve.low <= curve.value) & (curve.value <= curve.high)
    if keys and not within.any():
        raise UsageError("the numbers of the model are impossible: its curve lies nowhere within its intervals")
    usable = (medians > 0) & within & (curve.value > 0) & (curve.low > 0)
    keys = [key for key, good in zip(keys, usable, strict=True) if good]
    labels = tuple(_label(starts.variables, key) for key in keys)
    if not usable.any():
        return None, labels, starts
    wide = 2 * float(stdtrit(1e6, (1 + model.uncertainty.level) / 2))
    shared = float(np.median(np.log(curve.high[usable] / curve.low[usable]))) / wide
    centres = np.log(medians[usable] / curve.value[usable])
    return scattered(centres.tolist(), shared), labels, starts


def _drift(old: gate_sides.GateSide, new: gate_sides.GateSide) -> Estimate | None:
    """The ratio of the interleaved baseline program, over all starts."""
    before, after = old.baseline(), new.baseline()
    if not before or not after:
        return None
    one = (0.0,)
    found = measured_ratios(Samples(one, (after,)), Samples(one, (before,)))
    return found.points[0].ratio if found.points else None


def _relative(old: gate_sides.GateSide, new: gate_sides.GateSide, metric: str) -> Estimate | None:
    """The common ratio in units of the interleaved baseline program; None where it is unknown."""
    if old.model is not None or not old.baseline() or not new.baseline():
        return None
    try:
        before, after = (gate_sides.together(side.starts_of_runs(metric, relative=True)) for side in (old, new))
        shifts, _ = _against_runs(before, after, paired=bool(new.pair) and old.pair == new.pair)
    except P4PerfError:
        return None
    if shifts is None:
        return None
    found = shifts.common().ratio(LEVEL)
    return found if math.isfinite(found.value) else None


_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
NO_VERDICT = str(ComparisonOutcome.NO_VERDICT)
VERDICTS = {ExitCode.OK: "passed", ExitCode.VERDICT_FAILED: "failed", ExitCode.NO_VERDICT: NO_VERDICT}


def counts(found: GateDocument) -> str:
    """Such as ``30 components: 29 same, 1 slower``."""
    outcomes = [row.verdict for row in found.rows]
    parts = [f"{outcomes.count(name)} {name}" for name in dict.fromkeys(outcomes)]
    return f"{counted(len(outcomes), 'component')}: {', '.join(parts)}"


def junit_xml(found: GateDocument) -> bytes:
    """The result as JUnit XML: a regression is a failure, a component without a verdict is skipped."""
    failed, skipped = sum(row.regression for row in found.rows), sum(map(_undecided, found.rows))
    numbers = {"tests": str(len(found.rows)), "failures": str(failed), "errors": "0", "skipped": str(skipped)}
    suites = ET.Element("testsuites", {"name": "p4perf gate", **numbers})
    suite = ET.SubElement(suites, "testsuite", {"name": "p4perf gate", **numbers})
    properties = ET.SubElement(suite, "properties")
    for name in ("verdict", "exit_code", "margin", "level", "relative"):
        ET.SubElement(properties, "property", {"name": name, "value": _text(getattr(found, name))})
    for row in found.rows:
        case = ET.SubElement(suite, "testcase", {"classname": _text(row.target), "name": _text(row.experiment)})
        headline = _text(f"{row.metric} {row.verdict}: {_ratio(row)}".removesuffix(": "))
        if row.regression:
            failure = ET.SubElement(case, "failure", {"type": row.verdict, "message": headline})
            failure.text = _text(row.reason)
        elif _undecided(row):
            ET.SubElement(case, "skipped", {"message": _text(f"no verdict: {row.reason}")})
        else:
            ET.SubElement(case, "system-out").text = headline
    if found.warnings:
        ET.SubElement(suite, "system-err").text = _text("\n".join(found.warnings))
    ET.indent(suites)
    return bytes(ET.tostring(suites, encoding="utf-8", xml_declaration=True)) + b"\n"


def _text(value: object) -> str:
    """Text that XML can hold."""
    return _NOT_XML.sub("�", str(value))


def _ratio(row: GateRow) -> str:
    """Such as ``1.052 [1.040, 1.064]``; empty where nothing could be compared."""
    return "" if row.ratio is None else Estimate(**vars(row.ratio)).text("{:.3f}".format)


def _percent(share: float | None) -> str:
    """Such as ``2.3 %``."""
    return "" if share is None else f"{100 * share:.2g} %"


def short_rows(found: GateDocument) -> list[dict[str, str]]:
    rows = []
    for row in found.rows:
        ratio, _, ends = _ratio(row).partition(" ")
        known = {"experiment": row.experiment, "target": row.target, "verdict": row.verdict, "ratio": ratio}
        rows.append(known | {"interval": ends, "detectable": _percent(row.detectable), "reason": row.reason})
    return rows


def append_summary(found: GateDocument, path: Path) -> None:
    """Append the result, for the page of a continuous integration job, to a file, which is made if need be."""
    text = render_markdown(
        "gate.md.j2",
        verdict=found.verdict,
        counts=counts(found),
        margin=_percent(found.margin),
        relative=found.relative,
        drifts=[drift.text() for drift in found.drifts],
        rows=short_rows(found),
        warnings=found.warnings,
    )
    with storing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
