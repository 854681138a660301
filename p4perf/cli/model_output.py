"""How commands print a model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from p4perf.cli.output import SCHEMA_VERSION, Format, emit, print_json, say

if TYPE_CHECKING:
    from p4perf.evaluation.outcome import Evaluation
    from p4perf.models.component import ComponentModel


def emit_model(evaluation: Evaluation | None, fmt: Format, *, run: str | None) -> None:
    """Print the parts of a model: part, domain, function, parameters with intervals, error."""
    from p4perf.evaluation.error_metrics import error_text
    from p4perf.evaluation.tables import model_rows
    from p4perf.models.notation import number

    if fmt is Format.JSON:
        print_json({"schema_version": SCHEMA_VERSION, "kind": "model", "run": run, **model_json(evaluation)})
    if evaluation is None:
        say("no model: the spec asks for none, or sweeps several variables; p4perf show prints the points")
    if evaluation is None or fmt is Format.JSON:
        return
    model = evaluation.model
    level = f" with {number(100 * model.uncertainty.level)} % intervals" if model.uncertainty else ""
    parameters = f"parameters{level}"
    rows: list[dict[str, Any]] = [
        {
            "part": row.part,
            model.x.name: f"{row.start:g} .. {row.end:g}",
            "points": row.points,
            "function": row.formula.removeprefix(f"{model.y.name} = "),
            parameters: ", ".join(p.text() for p in row.parameters),
            "error": error_text(model.error, row.error),
        }
        for row in model_rows(model)
    ]
    emit(fmt, "model", rows, title=f"{model.y.label()} over {model.x.label()}")
    if fmt is Format.TABLE:
        _say_rest(evaluation)


def _say_rest(evaluation: Evaluation) -> None:
    from p4perf.evaluation.error_metrics import error_text
    from p4perf.evaluation.tables import candidate_rows

    model = evaluation.model
    say(f"combined error: {error_text(model.error, model.fitting.error)}")
    candidates = candidate_rows(evaluation.derived.derivation)
    best = min(candidates, key=lambda row: math.inf if row.l1_bic is None else row.l1_bic)
    for row in candidates:
        mark = "" if not row.chosen else " (chosen)" if row is best else " (asked for)"
        splits = ", ".join(f"{x:g}" for x in row.split_x)
        at = f" at {splits}" if splits else ""
        noun = "part" if row.parts == 1 else "parts"
        say(f"  {row.parts} {noun}{mark}: {error_text(model.error, row.error)}, L1-BIC {_score(row.l1_bic)}{at}")
    for explanation in evaluation.explanations:
        say(explanation.text(model.x.name))
    if evaluation.missing:
        say(f"warning: no accepted trial at {model.x.name} = {', '.join(f'{v:g}' for v in evaluation.missing)}")


def _score(value: float | None) -> str:
    from p4perf.models.notation import number

    return number(value) if value is not None and math.isfinite(value) else "not defined"


NO_MODEL: Mapping[str, Any] = {
    **dict.fromkeys(("name", "target", "x", "y", "domain", "error_metric", "error")),
    **{key: [] for key in ("parts", "splits", "split_x", "split_intervals", "candidates", "explanations")},
    **{key: [] for key in ("points_without_accepted_trials", "plots")},
}
"""What is printed of a run that has no model: the same keys, null or empty."""


def model_json(evaluation: Evaluation | None) -> Mapping[str, Any]:
    """The model as the commands print it: axes, parts, splits, error, explanations and plots."""
    from p4perf.evaluation.tables import candidate_rows, model_rows

    if evaluation is None:
        return NO_MODEL
    model: ComponentModel = evaluation.model
    uncertainty = model.uncertainty
    return {
        "name": model.name,
        "target": model.target,
        "x": {"name": model.x.name, "unit": model.x.unit, "scale": model.x.scale},
        "y": {"name": model.y.name, "unit": model.y.unit},
        "domain": list(model.domain),
        "error_metric": model.error,
        "error": model.fitting.error,
        "parts": [row.as_dict() for row in model_rows(model)],
        "splits": list(model.fitting.splits),
        "split_x": list(model.fitting.split_x),
        "split_intervals": [[i.low, i.high] for i in uncertainty.splits] if uncertainty else [],
        "candidates": [row.as_dict() for row in candidate_rows(evaluation.derived.derivation)],
        "explanations": [e.text(model.x.name) for e in evaluation.explanations],
        "points_without_accepted_trials": list(evaluation.missing),
        "plots": [str(p) for p in evaluation.plots],
    }
