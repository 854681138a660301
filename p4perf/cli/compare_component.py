"""``p4perf compare --component``: models of one component, published ones too, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from p4perf.cli.output import SCHEMA_VERSION, Format, emit, say

if TYPE_CHECKING:
    from p4perf.evaluation.comparison.crossings import Crossing
    from p4perf.evaluation.comparison.curves import CurvePair
    from p4perf.evaluation.comparison.ratios import Ratio
    from p4perf.experiment.subjects import ComponentComparison, Subject

KIND = "curves"


def compare_models(
    component: str,
    names: list[str],
    *,
    folder: Path,
    reference: str | None,
    metric: str | None,
    at: list[float],
    output: Path | None,
    fmt: Format,
) -> None:
    """Print the comparison, and write it as JSON if a folder is named."""
    from p4perf.experiment.subjects import compare_component
    from p4perf.results.files import strict_json, write_text_atomically

    found = compare_component(component, names, folder=folder, reference=reference, metric=metric, at=at)
    rows = _value_rows(found)
    if fmt is Format.TABLE:
        _print(found, rows)
    else:
        emit(fmt, KIND, rows, **_record(found))
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        record = {"schema_version": SCHEMA_VERSION, "kind": KIND, **_record(found), "rows": rows}
        write_text_atomically(output / "curves.json", strict_json(record, indent=2) + "\n")
        say(f"written: {output / 'curves.json'}")


def _print(found: ComponentComparison, rows: list[dict[str, Any]]) -> None:
    curves = found.curves
    for subject in found.subjects:
        mark = " (reference)" if subject.label == curves.reference else ""
        say(f"{subject.label}{mark}: {subject.source}")
    for difference in found.differences:
        say(f"  {difference.text()}")
    for caution in found.cautions:
        say(f"note: {caution}")
    emit(
        Format.TABLE, "", [row for s in found.subjects for row in _part_rows(s)], title=f"models of {curves.component}"
    )
    table: dict[float, dict[str, Any]] = {}
    for row in rows:
        line = table.setdefault(row["x"], {curves.x.name: row["x"]})
        line[row["subject"]] = _cell(row["value"], row["low"], row["high"], row["extrapolated"])
        if row["subject"] != curves.reference:
            ratio = _cell(row["ratio"], row["ratio_low"], row["ratio_high"], row["ratio_extrapolated"])
            line[f"{row['subject']} / {curves.reference}"] = ratio
    emit(Format.TABLE, "", list(table.values()), title="values; * is extrapolated")
    for pair in curves.pairs:
        say(_sentence(pair))
    for subject in found.subjects:
        for remark in subject.model.provenance.get("remarks", ()) if subject.published else ():
            say(f"{subject.label}: {remark}")


def _part_rows(subject: Subject) -> list[dict[str, Any]]:
    """The parts of a curve; of a published one also those whose parameters are not printed."""
    from p4perf.evaluation.error_metrics import error_text

    model = subject.model
    name = model.y.name
    rows: list[dict[str, Any]] = [
        {
            "subject": subject.label,
            "from": f"{part.start:.4g}",
            "to": f"{part.end:.4g}",
            "function": formula.removeprefix(f"{name} = "),
            "unit": model.y.label(),
            "error": error_text(model.error, part.error) if part.error else "",
        }
        for part, formula in zip(model.fitting.parts, model.formulas(), strict=True)
    ]
    said = model.provenance.get("parts", []) if subject.published else []
    for part in said[len(rows) :]:
        function = f"{part['function']}: {part['printed']}"
        empty = {"unit": "", "error": f"not printed: {part['not_printed']}"}
        rows.append({"subject": subject.label, "from": part["from"], "to": part["to"], "function": function, **empty})
    return rows


def _value_rows(found: ComponentComparison) -> list[dict[str, Any]]:
    curves = found.curves
    pairs = {pair.run: pair for pair in curves.pairs}
    rows = []
    for x in curves.at:
        for subject in found.subjects:
            pair = pairs.get(subject.label)
            estimate = subject.model.estimate(x)
            ratio = pair.ratio(x) if pair is not None else None
            beyond = pair is not None and (pair.domain is None or not pair.domain[0] <= x <= pair.domain[1])
            rows.append(
                {
                    "x": x,
                    "subject": subject.label,
                    "value": _number(float(estimate.value)),
                    "low": _number(float(estimate.low)),
                    "high": _number(float(estimate.high)),
                    "unit": subject.model.y.unit,
                    "extrapolated": bool(estimate.extrapolated),
                    "ratio": None if ratio is None else ratio.value,
                    "ratio_low": None if ratio is None else ratio.low,
                    "ratio_high": None if ratio is None else ratio.high,
                    "ratio_extrapolated": bool(ratio is not None and beyond),
                }
            )
    return rows


def _record(found: ComponentComparison) -> dict[str, Any]:
    curves = found.curves
    return {
        "component": curves.component,
        "variable": curves.x.name,
        "reference": curves.reference,
        "subjects": [_subject_record(s) for s in found.subjects],
        "differences": [{"key": d.key, "values": dict(d.values)} for d in found.differences],
        "cautions": list(found.cautions),
        "pairs": [_pair_record(pair) for pair in curves.pairs],
    }


def _subject_record(subject: Subject) -> dict[str, Any]:
    model = subject.model
    return {
        "label": subject.label,
        "source": subject.source,
        "target": model.target,
        "metric": model.y.name,
        "unit": model.y.unit,
        "domain": list(model.domain),
        "formulas": list(model.formulas()),
        "published": subject.published,
        "provenance": dict(model.provenance) if subject.published else {},
    }


def _pair_record(pair: CurvePair) -> dict[str, Any]:
    return {
        "subject": pair.run,
        "reference": pair.reference,
        "compared": None if pair.compared is None else pair.compared.name,
        "domain": None if pair.domain is None else list(pair.domain),
        "increase_from": pair.increase_from,
        "reason": pair.reason,
        "crossings": None if pair.crossings is None else [_crossing_record(c) for c in pair.crossings],
    }


def _crossing_record(crossing: Crossing) -> dict[str, Any]:
    return {name: getattr(crossing, name) for name in ("x", "low", "high", "above", "sure", "step")}


def _sentence(pair: CurvePair) -> str:
    """What a pair comes to."""
    who = f"{pair.run} and {pair.reference}"
    if pair.compared is None:
        return f"{who}: no ratio: {pair.reason}"
    if pair.domain is None:
        return f"{who}: {pair.reason}"
    what = pair.compared.label()
    if pair.increase_from is not None:
        what += f" over the value at {pair.increase_from:g}"
    ratios = [r for x in (pair.domain[0], pair.domain[1]) if (r := pair.ratio(x)) is not None]
    said = f", {_ends(ratios)}" if ratios else ""
    places = "; ".join(f"{c.x:.4g}{'' if c.sure else ' (unsure)'}" for c in pair.crossings or ())
    cross = f"the curves cross at {places}" if places else "the curves do not cross"
    return f"{who}: {what} from {pair.domain[0]:g} to {pair.domain[1]:g}{said}; {cross}"


def _ends(ratios: list[Ratio]) -> str:
    return "ratio " + " to ".join(f"{ratio.value:.3g}" for ratio in ratios)


def _number(value: float) -> float | None:
    return value if value == value and abs(value) != float("inf") else None


def _cell(value: float | None, low: float | None, high: float | None, extrapolated: bool) -> str:
    if value is None:
        return ""
    band = "" if low is None or high is None else f" [{low:.4g}, {high:.4g}]"
    return f"{value:.4g}{band}{' *' if extrapolated else ''}"
