"""Virtual network I/O, and combined variants: estimate cesim, analyse factors, and the study EIVU."""

from __future__ import annotations

import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Option

from p4perf.cli.app import (
    Format,
    FormatOption,
    analyse_app,
    emit,
    estimate_app,
    print_table,
    say,
    say_origin,
    share_option,
    with_interval,
)
from p4perf.records import as_rows
from p4perf.results import Run, find_run

if TYPE_CHECKING:
    from p4perf.evaluation.papers.takeya2024.factors import FactorAnalysis
    from p4perf.experiment.factors import FactorsDocument


class VariantName(StrEnum):
    SIMPLE = "simple"
    BETA1 = "beta1"
    PARALLELISED = "parallelised"


@estimate_app.command()
def cesim(
    hit_ratio: Annotated[
        list[float] | None, share_option("--hit-ratio", "-r", help="L1 hit ratio, such as 0.999. Repeatable.")
    ] = None,
    inverse: Annotated[
        list[str] | None, Option(help="Throughput whose hit ratio is wanted, such as 100mpps. Repeatable.")
    ] = None,
    variant: Annotated[list[VariantName] | None, Option(help="Variant of the model; default: all. Repeatable.")] = None,
    revision: Annotated[
        Literal["fixed", "pre-fix"], Option(help="fixed, or pre-fix for latencies weighted with hit ratios.")
    ] = "fixed",
    alpha: Annotated[float, share_option("--alpha", help="Share of pure processing in a packet's best time.")] = 0.5,
    best: Annotated[str, Option(help="Throughput at a hit ratio of 1.")] = "172mpps",
    accesses: Annotated[float, Option(help="Loads per packet.")] = 163.0,
    clock_ghz: Annotated[float, Option(help="Clock of the core in GHz.")] = 3.5,
    l1_cycles: Annotated[float, Option(help="Latency of L1 in cycles.")] = 4.0,
    l2_cycles: Annotated[float, Option(help="Latency of L2 in cycles.")] = 14.0,
    l3_cycles: Annotated[float, Option(help="Latency of L3 in cycles.")] = 68.0,
    memory_cycles: Annotated[float, Option(help="Latency of memory, part in cycles.")] = 79.0,
    memory_ns: Annotated[float, Option(help="Latency of memory, part in ns.")] = 50.0,
    l2_hit_ratio: Annotated[float, share_option("--l2-hit-ratio", help="Hit ratio of L2.")] = 0.7,
    l3_hit_ratio: Annotated[float, share_option("--l3-hit-ratio", help="Hit ratio of L3.")] = 0.79,
    fit: Annotated[Path | None, Option(help="CSV of hit ratios and throughputs to fit alpha and beta to.")] = None,
    x: Annotated[str, Option(help="With --fit: column of hit ratios.")] = "hit_ratio",
    y: Annotated[str, Option(help="With --fit: column of throughputs in Mpps.")] = "throughput_mpps",
    fmt: FormatOption = Format.TABLE,
) -> None:
    """Estimate throughput from the L1 hit ratio, or the reverse."""
    from p4perf.api.papers import estimate_cesim

    document = estimate_cesim(
        hit_ratio or (), inverse or (), variants=[name.value for name in variant or ()], revision=revision,
        alpha=alpha, best=best, accesses=accesses, fit=fit, x=x, y=y, clock_ghz=clock_ghz, l1_cycles=l1_cycles,
        l2_cycles=l2_cycles, l3_cycles=l3_cycles, memory_cycles=memory_cycles, memory_ns=memory_ns,
        l2_hit_ratio=l2_hit_ratio, l3_hit_ratio=l3_hit_ratio,
    )  # fmt: skip
    emit(fmt, document)
    if fmt is not Format.TABLE:
        return
    print_table(as_rows(document.tipping_points), title="tipping points, as miss ratios of L1")
    for each in document.fits:
        bounds = f"; at a bound: {', '.join(each.at_bounds)}" if each.at_bounds else ""
        say(
            f"{each.variant}: alpha = {each.alpha:.4g}, beta = {each.beta:.4g} from {each.n} pairs, "
            f"off by a factor of {each.factor:.3g}{bounds}"
        )


def print_claims(folder: Path | None, fmt: Format) -> None:
    """Print the claims of the study with their verdicts, from its data or those of a folder."""
    from p4perf.evaluation.papers.takeya2024.eivu import EivuClaimsDocument, read_study, study_findings

    rows = study_findings(read_study(folder))
    short = [{key: value for key, value in row.items() if key != "numbers"} for row in as_rows(rows)]
    emit(fmt, EivuClaimsDocument(rows=rows), rows=short)


def print_items(numbers: list[str] | None, fmt: Format, *, as_spec: bool) -> None:
    """Print items of the study, or a spec that measures them; without numbers all."""
    from p4perf.api.listing import list_items
    from p4perf.specs.experiment import spec_yaml
    from p4perf.specs.items import items_of, items_spec

    if as_spec:
        sys.stdout.write(spec_yaml(items_spec(items_of(numbers) if numbers else None)))
        return
    document = list_items("eivu", items=numbers or ())
    rows = document.as_dict()["rows"]
    short = ("item", "category", "process", "factors", "runs", "change")
    table = [{key: value for key, value in row.items() if key in short} for row in rows]
    emit(fmt, document, rows=table if fmt is Format.TABLE else None)
    if fmt is Format.TABLE:
        say(f"{len(rows)} items; component vio can run {sum(row['runs'] for row in rows)} of them")


SHOWN_PAIRS = 5


@analyse_app.command()
def factors(
    source: Annotated[
        Path, Argument(metavar="SOURCE", parser=find_run, help="A run directory of combined variants, or a CSV file.")
    ],
    metric: Annotated[str | None, Option(help="Metric, or column of the file; default: the first of the spec.")] = None,
    names: Annotated[
        str | None, Option("--factors", help="Variables or columns of 0 and 1: a,b,c; default: the combined variants.")
    ] = None,
    where: Annotated[list[str] | None, Option(help="Value of another swept variable: frame=64. Repeatable.")] = None,
    cache: Annotated[str | None, Option(help="Metric or column of cache use, such as misses.")] = None,
    lower: Annotated[bool, Option("--lower-is-better", help="File: lower is better, as for cycles.")] = False,
    seed: Annotated[int, Option(min=0, help="Seed of the intervals.")] = 1,
    output: Annotated[Path | None, Option("--output", "-o", help="Folder for figures; default: the run.")] = None,
    fmt: FormatOption = Format.TABLE,
) -> None:
    """Analyse combined variants: effects, interactions and the best order."""
    from p4perf.api.papers import analyse_factors
    from p4perf.experiment.evaluate import run_title
    from p4perf.experiment.factors import draw_factors, factors_document

    chosen = [name.strip() for name in (names or "").split(",") if name.strip()]
    found = analyse_factors(
        source, metric, factors=chosen, where=where or (), cache=cache, lower_is_better=lower, seed=seed
    )
    analysis, title, machine = found.analysis, source.name, ""
    path: Callable[[str], Path] | None = None if output is None else lambda name: output / name
    if source.is_dir():
        run = Run.open(source)
        say_origin(run.identity)
        title, machine = run_title(run)
        path = path or run.directory.plot_path
    plots = () if path is None else draw_factors(analysis, path, title=title, machine=machine)
    document = factors_document(analysis, found.titles, plots)
    emit(fmt, document, tables=lambda: _print(analysis, document))
    for plot in plots:
        say(f"plot: {plot}")


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
