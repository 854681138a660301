"""The command that takes a factorial experiment apart: factors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from p4perf.cli.app import app
from p4perf.cli.options import assignments
from p4perf.cli.output import Format, FormatOption, emit, print_table, say, say_origin, with_interval
from p4perf.errors import UsageError
from p4perf.records import Document, Interval, Record, doc, interval
from p4perf.results import Run

if TYPE_CHECKING:
    from p4perf.evaluation.papers.takeya2024.factors import FactorAnalysis
    from p4perf.models.estimate import Estimate


class _FactorsRow(Record):
    factor: str = doc("name")
    title: str = doc("title of the variant")
    effect: Interval = interval("main effect", "ratio")
    single: Interval | None = interval("alone over the base", "ratio")
    leave_one_out: Interval | None = interval("all over all but this", "ratio")
    best_without: float | None = doc("best value of the cells without it", "of the metric")
    order: int | None = doc("place in the best order, from 1")


class _Interaction(Record):
    factors: tuple[str, ...] = doc("two factors; the strongest pair comes first")
    effect: Interval = interval("how much more they do together", "ratio")


class _Ladder(Record):
    step: int = doc("step of the best order; 0 is the base")
    factor: str = doc("factor that is added")
    value: float = doc("value that is reached", "of the metric")
    gain: float | None = doc("over the step before", "ratio")
    untried: tuple[str, ...] = doc("factors whose cell of this step was not measured")


class FactorsDocument(Document):
    """`p4perf factors`: a row for each factor.

    Effects and gains are factors of the metric, above 1 is better; their intervals are null without repetitions.
    """

    KIND = "factors"

    metric: str = doc("metric", of="factorial.metric")
    unit: str = doc("its unit; empty for a file", of="factorial.unit")
    higher_is_better: bool = doc("whether a gain is a rise", of="factorial.higher_is_better")
    cache: str | None = doc("what stands for cache use in the figure")
    cells: int = doc("combinations that were measured")
    all_cells: int = doc("combinations that there are")
    skipped: tuple[str, ...] = doc("combinations without an accepted value", of="factorial.skipped")
    repetitions: tuple[int, ...] = doc("fewest and most of a cell", of="factorial.repetitions")
    r_squared: float = doc("share of the variance that the main effects explain", "ratio", of="main.r_squared")
    r_squared_pairs: float | None = doc(
        "the same with those of pairs; null where the cells do not tell these apart", "ratio", of="pairs.r_squared"
    )
    interactions: tuple[_Interaction, ...] = doc("")
    ladder: tuple[_Ladder, ...] = doc("")
    full_gain: Interval | None = interval("all factors over the base", "ratio")
    single_product: Interval | None = interval("product of the single gains; null where one is missing", "ratio")
    synergy: Interval | None = interval("full gain over that product", "ratio")
    additivity: str = doc("`super-additive`, `sub-additive`, `as if independent` or `unknown`")
    without_single: tuple[str, ...] = doc("factors that were not measured alone")
    plots: tuple[str, ...] = doc("figures that were written")
    rows: tuple[_FactorsRow, ...] = doc("")


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
        list[str] | None, typer.Option("--where", help="Value of another swept variable: frame=64. Repeatable.")
    ] = None,
    cache: Annotated[str | None, typer.Option("--cache", help="Metric or column of cache use, such as misses.")] = None,
    lower: Annotated[bool, typer.Option("--lower-is-better", help="File: less is better, as of cycles.")] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the intervals.")] = 1,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Folder for figures; default: the run.")] = None,
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
        values = assignments(where, "--where", "name=value")
        cells, titles = run_factorial(run, metric=metric, factors=chosen, where=values, cache=cache)
        say_origin(run.identity)
        title, machine = run_title(run)
        path = path or run.directory.plot_path
    else:
        if metric is None or where:
            raise UsageError("a file needs --metric, and has no --where", hint="leave out rows of the file instead")
        cells = factorial_from_csv(source, metric, chosen, cache=cache, higher_is_better=not lower)
    analysis = analyse(cells, seed=seed)
    plots = () if path is None else draw_factors(analysis, path, title=title, machine=machine)
    document = _document(analysis, titles, plots)
    if fmt is Format.TABLE:
        _print(analysis, document)
    else:
        emit(fmt, document)
    for plot in plots:
        say(f"plot: {plot}")


def _document(analysis: FactorAnalysis, titles: dict[str, str], plots: Sequence[Path]) -> FactorsDocument:
    cells = analysis.factorial
    effects = () if analysis.pairs is None else analysis.pairs.effects
    pairs = sorted((effect for effect in effects if len(effect.factors) == 2), key=lambda e: -e.strength)
    return FactorsDocument.read(
        analysis,
        cache=cells.cache or None,
        cells=len(cells.cells),
        all_cells=2 ** len(cells.factors),
        interactions=[_Interaction(factors=e.factors, effect=Interval.read(e.ratio)) for e in pairs],
        ladder=_steps(analysis),
        full_gain=_gain(analysis.full),
        single_product=_gain(analysis.product),
        synergy=_gain(analysis.synergy),
        plots=plots,
        rows=_rows(analysis, titles),
    )


def _rows(analysis: FactorAnalysis, titles: dict[str, str]) -> list[_FactorsRow]:
    order = {rung.factor: at for at, rung in enumerate(analysis.ladder.rungs, 1)} if analysis.ladder else {}
    return [
        _FactorsRow(
            factor=name,
            title=titles.get(name, ""),
            effect=Interval.read(analysis.main.of(name).ratio),
            single=_gain(analysis.single[name]),
            leave_one_out=_gain(analysis.last[name]),
            best_without=analysis.best_without(name),
            order=order.get(name),
        )
        for name in analysis.factorial.factors
    ]


def _gain(gain: Estimate | None) -> Interval | None:
    return None if gain is None else Interval.read(gain)


def _steps(analysis: FactorAnalysis) -> list[_Ladder]:
    if analysis.ladder is None:
        return []
    ladder = analysis.ladder
    rungs = zip(ladder.rungs, ladder.untried, strict=True)
    steps = [_Ladder.read(rung, step=at, untried=untried) for at, (rung, untried) in enumerate(rungs, 1)]
    return [_Ladder(step=0, factor="", value=ladder.base, gain=None, untried=()), *steps]


def _short(row: dict[str, Any]) -> dict[str, Any]:
    """A row without what is empty, and with intervals beside their numbers: ``1.3 [1.1, 1.4]``."""
    few: dict[str, Any] = {}
    for key, value in row.items():
        empty = value is None or (value in ("", []) and key != "factor")
        if empty or key.endswith(("_low", "_high")):
            continue
        low, high = row.get(f"{key}_low"), row.get(f"{key}_high")
        few[key] = value if low is None or high is None else with_interval(value, low, high)
    return few


def _print(analysis: FactorAnalysis, document: FactorsDocument) -> None:
    cells = analysis.factorial
    unit = f" [{cells.unit}]" if cells.unit else ""
    title = f"{cells.metric}{unit}: what each factor multiplies it by (above 1 is better)"
    print_table([_short(row.as_dict()) for row in document.rows], title=title)
    if shown := document.interactions[:SHOWN_PAIRS]:
        print_table([_short(row.as_dict()) for row in shown], title="strongest interactions")
    if document.ladder:
        print_table([_short(row.as_dict()) for row in document.ladder], title="best order")
    pairs = "" if analysis.pairs is None else f", {analysis.pairs.r_squared:.2f} with pairs"
    say(f"{len(cells.cells)} of {document.all_cells} combinations; R2 {analysis.main.r_squared:.2f}{pairs}")
    if cells.skipped:
        say(f"warning: nothing accepted of {'; '.join(cells.skipped)}")
    if analysis.synergy is not None and analysis.full is not None and analysis.product is not None:
        say(
            f"all together: {analysis.full.value:.4g} times, product of the single gains: "
            f"{analysis.product.value:.4g}; {analysis.additivity}"
        )
    elif analysis.full is not None:
        missing = ", ".join(analysis.without_single)
        say(f"all together: {analysis.full.value:.4g} times; not measured alone: {missing}")
