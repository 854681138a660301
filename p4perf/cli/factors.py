"""The command that takes a factorial experiment apart: factors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from p4perf.cli.app import app
from p4perf.cli.output import Format, FormatOption, emit, say, say_origin
from p4perf.errors import UsageError
from p4perf.results import Run

if TYPE_CHECKING:
    from p4perf.evaluation.papers.takeya2024.factors import FactorAnalysis, Gain

SHOWN_PAIRS = 5


@app.command()
def factors(
    source: Annotated[Path, typer.Argument(help="A run directory of combined variants, or a CSV file.")],
    metric: Annotated[
        str | None, typer.Option("--metric", help="Metric, or column of the file; default: the first of the spec.")
    ] = None,
    names: Annotated[
        str | None,
        typer.Option("--factors", help="Variables or columns that are 0 or 1: a,b,c; default: the combined variants."),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option("--where", help="Value of another swept variable: frame=64. May be repeated."),
    ] = None,
    cache: Annotated[
        str | None, typer.Option("--cache", help="Metric or column of cache use, such as misses per packet.")
    ] = None,
    lower: Annotated[
        bool, typer.Option("--lower-is-better", help="File: less of the metric is better, as of cycles.")
    ] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the intervals.")] = 1,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder for the figures; default: that of the run.")
    ] = None,
    fmt: FormatOption = Format.TABLE,
) -> None:
    """Main effects, interactions, leave-one-out ratios and the best order of combined variants."""
    from p4perf.evaluation.papers.takeya2024.factors import analyse, factorial_from_csv
    from p4perf.experiment.factors import draw_factors, run_factorial, run_title

    chosen = [name.strip() for name in (names or "").split(",") if name.strip()]
    title, machine, titles = source.name, "", dict[str, str]()
    path: Callable[[str], Path] | None = None if output is None else lambda name: output / name
    if source.is_dir():
        run = Run.open(source)
        if lower:
            raise UsageError("--lower-is-better is for files; of a run's metrics it is known")
        cells, titles = run_factorial(run, metric=metric, factors=chosen, where=_where(where), cache=cache)
        say_origin(run.identity)
        title, machine = run_title(run)
        path = path or run.directory.plot_path
    else:
        if metric is None or where:
            raise UsageError("a file needs --metric, and has no --where", hint="leave out rows of the file instead")
        cells = factorial_from_csv(source, metric, chosen, cache=cache, higher_is_better=not lower)
    analysis = analyse(cells, seed=seed)
    plots = () if path is None else draw_factors(analysis, path, title=title, machine=machine)
    rows = _rows(analysis, titles)
    if fmt is Format.TABLE:
        _print(analysis, rows)
    else:
        emit(fmt, "factors", rows, **_record(analysis), plots=[str(plot) for plot in plots])
    for plot in plots:
        say(f"plot: {plot}")


def _where(texts: list[str] | None) -> dict[str, str]:
    found = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--where {text}: expected name=value")
        found[name.strip()] = value.strip()
    return found


def _rows(analysis: FactorAnalysis, titles: dict[str, str]) -> list[dict[str, Any]]:
    order = {rung.factor: at for at, rung in enumerate(analysis.ladder.rungs, 1)} if analysis.ladder else {}
    rows = []
    for name in analysis.factorial.factors:
        effect = analysis.main.of(name)
        rows.append(
            {
                "factor": name,
                "title": titles.get(name, ""),
                "effect": effect.ratio,
                "effect_low": effect.low,
                "effect_high": effect.high,
                **_gain("single", analysis.single[name]),
                **_gain("leave_one_out", analysis.last[name]),
                "best_without": analysis.best_without(name),
                "order": order.get(name),
            }
        )
    return rows


def _gain(name: str, gain: Gain | None) -> dict[str, float | None]:
    if gain is None:
        return {name: None, f"{name}_low": None, f"{name}_high": None}
    return {name: gain.ratio, f"{name}_low": gain.low, f"{name}_high": gain.high}


def _pair_rows(analysis: FactorAnalysis) -> list[dict[str, Any]]:
    """Interactions, the strongest first."""
    if analysis.pairs is None:
        return []
    pairs = [effect for effect in analysis.pairs.effects if len(effect.factors) == 2]
    return [
        {"factors": list(e.factors), "effect": e.ratio, "effect_low": e.low, "effect_high": e.high}
        for e in sorted(pairs, key=lambda e: -e.strength)
    ]


def _ladder_rows(analysis: FactorAnalysis) -> list[dict[str, Any]]:
    if analysis.ladder is None:
        return []
    ladder = analysis.ladder
    steps = [{"step": 0, "factor": "", "value": ladder.base, "gain": None, "untried": list[str]()}]
    for at, (rung, untried) in enumerate(zip(ladder.rungs, ladder.untried, strict=True), 1):
        steps.append(
            {"step": at, "factor": rung.factor, "value": rung.value, "gain": rung.gain, "untried": list(untried)}
        )
    return steps


def _record(analysis: FactorAnalysis) -> dict[str, Any]:
    cells = analysis.factorial
    pairs = analysis.pairs
    return {
        "metric": cells.metric,
        "unit": cells.unit,
        "higher_is_better": cells.higher_is_better,
        "cache": cells.cache or None,
        "cells": len(cells.cells),
        "all_cells": 2 ** len(cells.factors),
        "skipped": list(cells.skipped),
        "repetitions": list(cells.repetitions),
        "r_squared": analysis.main.r_squared,
        "r_squared_pairs": None if pairs is None else pairs.r_squared,
        "interactions": _pair_rows(analysis),
        "ladder": _ladder_rows(analysis),
        **_gain("full_gain", analysis.full),
        **_gain("single_product", analysis.product),
        **_gain("synergy", analysis.synergy),
        "additivity": analysis.additivity,
        "without_single": list(analysis.without_single),
    }


def _short(row: dict[str, Any]) -> dict[str, Any]:
    """A row without what is empty, and with intervals beside their numbers: ``1.3 [1.1, 1.4]``."""
    few: dict[str, Any] = {}
    for key, value in row.items():
        empty = value is None or (value in ("", []) and key != "factor")
        if empty or key.endswith(("_low", "_high")):
            continue
        low, high = row.get(f"{key}_low"), row.get(f"{key}_high")
        few[key] = value if low is None or high is None else f"{value:.4g} [{low:.4g}, {high:.4g}]"
    return few


def _print(analysis: FactorAnalysis, rows: list[dict[str, Any]]) -> None:
    record = _record(analysis)
    cells = analysis.factorial
    unit = f" [{cells.unit}]" if cells.unit else ""
    emit(
        Format.TABLE,
        "",
        [_short(row) for row in rows],
        title=f"{cells.metric}{unit}: what each factor multiplies it by (above 1 is better)",
    )
    if shown := record["interactions"][:SHOWN_PAIRS]:
        emit(Format.TABLE, "", [_short(row) for row in shown], title="strongest interactions")
    if record["ladder"]:
        emit(Format.TABLE, "", [_short(row) for row in record["ladder"]], title="best order")
    pairs = "" if analysis.pairs is None else f", {analysis.pairs.r_squared:.2f} with pairs"
    say(f"{len(cells.cells)} of {record['all_cells']} combinations; R2 {analysis.main.r_squared:.2f}{pairs}")
    if cells.skipped:
        say(f"warning: nothing accepted of {'; '.join(cells.skipped)}")
    if analysis.synergy is not None and analysis.full is not None and analysis.product is not None:
        say(
            f"all together: {analysis.full.ratio:.4g} times, product of the single gains: "
            f"{analysis.product.ratio:.4g}; {analysis.additivity}"
        )
    elif analysis.full is not None:
        missing = ", ".join(analysis.without_single)
        say(f"all together: {analysis.full.ratio:.4g} times; not measured alone: {missing}")
