"""Factor analysis of a run: which variables are its factors, what is better, and where its figures go."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from p4perf.errors import DataError, UsageError
from p4perf.evaluation.papers.takeya2024.factors import FactorAnalysis, Factorial, factorial_from_table
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


def run_title(run: Run) -> tuple[str, str]:
    """Title of a run, and its target and processor, for figures."""
    machine = (f"target {run.manifest.target}", run.node.text("cpu_model"), run.manifest.created[:10])
    return run.spec.title or run.spec.name, ", ".join(text for text in machine if text)


def draw_factors(
    analysis: FactorAnalysis, path: Callable[[str], Path], *, title: str, machine: str = ""
) -> tuple[Path, ...]:
    """Write the figures: the ladder, and the metric over cache use where that is known."""
    from p4perf.evaluation.plots import PlotInfo, save
    from p4perf.evaluation.plots.factors import cache_figure, ladder_figure

    note = f"R² {analysis.main.r_squared:.2f}" + (
        "" if analysis.pairs is None else f", with pairs {analysis.pairs.r_squared:.2f}"
    )
    metric = metric_named(analysis.factorial.cache)
    unit = f" [{metric.unit}]" if metric is not None else ""
    x_label = f"{analysis.factorial.cache.replace('_', ' ')}{unit}"
    info = PlotInfo(title=title, machine=machine, note=note, x_label=x_label)
    drawn: list[Path] = []
    for name, draw in (("ladder", ladder_figure), ("cache", cache_figure)):
        try:
            figure = draw(analysis, info=info)
        except DataError:
            continue
        drawn += save(figure, path, f"factors_{analysis.factorial.metric}_{name}")
    return tuple(drawn)
