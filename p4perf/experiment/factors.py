"""Combined variants of a run: the cells, what each factor does, and figures of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from p4perf.errors import DataError, UsageError
from p4perf.evaluation.papers.takeya2024.factors import FactorAnalysis, Factorial, factorial_from_table
from p4perf.evaluation.plots import PlotInfo, save
from p4perf.records import Document, Interval, Record, doc, interval
from p4perf.results import Run
from p4perf.specs.metrics import metric_named

RISING = ("packet_rate", "throughput_ndr", "throughput_pdr", "receive_rate", "core_frequency")
"""Metrics of which more is better; of all others it is less."""

CACHE_METRICS = (
    *("function_l1_misses", "cache_misses", "simulated_function_line_requests"),
    *("simulated_l1_misses", "simulated_l2_misses", "simulated_llc_misses"),
)
"""Metrics for the axis of cache use; the first that was measured is taken."""


def run_factorial(
    run: Run,
    *,
    metric: str | None = None,
    factors: Sequence[str] = (),
    where: Mapping[str, str] | None = None,
    cache: str | None = None,
) -> tuple[Factorial, dict[str, str]]:
    """The cells of a run, and the titles of its factors.

    Args:
        metric: by default the modelled one, or the first that its spec asks for.
        factors: by default the variants whose subsets its spec sweeps.
        cache: metric of cache use; by default the first of :data:`CACHE_METRICS` that was measured.

    Raises:
        NoVerdictError: nothing was measured, or nothing accepted.
        UsageError: the run has no factors, or other variables are swept that ``where`` does not fix.
        DataError: the metric was not measured, or a column is no factor.
    """
    spec, table = run.spec, run.measured
    chosen = tuple(factors) or spec.sweep.combined.subsets_of
    if not chosen:
        raise UsageError(
            f"{spec.name} combines no variants, so it has no factors",
            key="sweep.multiplex",
            hint="name variables that are 0 or 1 with --factors a,b",
        )
    wanted = metric or run.headline
    measured = {str(name) for name in table["metric"].unique()}
    shown = cache or next((name for name in CACHE_METRICS if name in measured and name != wanted), None)
    cells = factorial_from_table(table, wanted, chosen, where=where, cache=shown, higher_is_better=wanted in RISING)
    titles = {name: spec.variants[name].title if name in spec.variants else "" for name in chosen}
    return cells, titles


def draw_factors(
    analysis: FactorAnalysis, path: Callable[[str], Path], *, title: str, machine: str = ""
) -> tuple[Path, ...]:
    """Write the figures: the ladder, and the metric over cache use where that is known."""
    from p4perf.evaluation.plots.factors import cache_figure, ladder_figure

    note = f"R² {analysis.main.r_squared:.2f}" + (
        "" if analysis.pairs is None else f", with pairs {analysis.pairs.r_squared:.2f}"
    )
    metric = metric_named(analysis.factorial.cache)
    unit = f" [{metric.unit}]" if metric is not None else ""
    x_label = f"{analysis.factorial.cache.replace('_', ' ')}{unit}"
    info = PlotInfo(title=title, machine=machine, note=note, x_label=x_label)
    drawn: list[Path] = []
    for name, figure_of in (("ladder", ladder_figure), ("cache", cache_figure)):
        with suppress(DataError):
            drawn += save(figure_of(analysis, info=info), path, f"factors_{analysis.factorial.metric}_{name}")
    return tuple(drawn)


# --- the document


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
    effect: Interval = interval("how much more they do together", "ratio", of="ratio")


class _Ladder(Record):
    step: int = doc("step of the best order; 0 is the base")
    factor: str = doc("factor that is added")
    value: float = doc("value that is reached", "of the metric")
    gain: float | None = doc("over the step before", "ratio")
    untried: tuple[str, ...] = doc("factors whose cell of this step was not measured")


class FactorsDocument(Document, kind="factors"):
    """`p4perf analyse factors`: a row for each factor.

    Effects and gains are factors of the metric, above 1 is better; their intervals are null without repetitions.
    """

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
    full_gain: Interval | None = interval("all factors over the base", "ratio", of="full")
    single_product: Interval | None = interval(
        "product of the single gains; null where one is missing", "ratio", of="product"
    )
    synergy: Interval | None = interval("full gain over that product", "ratio")
    additivity: str = doc("`super-additive`, `sub-additive`, `as if independent` or `unknown`")
    without_single: tuple[str, ...] = doc("factors that were not measured alone")
    plots: tuple[str, ...] = doc("figures that were written")
    rows: tuple[_FactorsRow, ...] = doc("")


def factors_document(
    analysis: FactorAnalysis, titles: Mapping[str, str], plots: Sequence[Path] = ()
) -> FactorsDocument:
    """The analysis as the command prints it; ``titles`` are those of its factors."""
    cells, ladder = analysis.factorial, analysis.ladder
    effects = () if analysis.pairs is None else analysis.pairs.effects
    steps, order = [], {}
    if ladder is not None:
        steps = [_Ladder(step=0, factor="", value=ladder.base, gain=None, untried=())]
        for at, (rung, untried) in enumerate(zip(ladder.rungs, ladder.untried, strict=True), 1):
            steps.append(_Ladder.read(rung, step=at, untried=untried))
            order[rung.factor] = at
    rows = (
        _FactorsRow.read(
            None,
            factor=name,
            title=titles.get(name, ""),
            effect=analysis.main.of(name).ratio,
            single=analysis.single[name],
            leave_one_out=analysis.last[name],
            best_without=analysis.best_without(name),
            order=order.get(name),
        )
        for name in cells.factors
    )
    return FactorsDocument.read(
        analysis,
        cache=cells.cache or None,
        cells=len(cells.cells),
        all_cells=2 ** len(cells.factors),
        interactions=sorted((e for e in effects if len(e.factors) == 2), key=lambda e: -e.strength),
        ladder=steps,
        plots=plots,
        rows=rows,
    )
