"""The commands about virtual network I/O: cesim and eivu."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from p4perf.cli.app import app
from p4perf.cli.output import Format, FormatOption, emit, print_table, say
from p4perf.errors import UsageError
from p4perf.records import Document, Record, as_rows, doc, listing

if TYPE_CHECKING:
    from p4perf.evaluation.papers.takeya2024.cesim import CacheFit, CacheModel


DEFAULT_HIT_RATIOS = (0.99, 0.995, 0.999, 0.9995, 0.9999, 1.0)

_RATE = re.compile(r"(?i)\s*([0-9][0-9_.e+-]*)\s*([kmg]?)pps\s*")


class _CesimRow(Record):
    variant: str = doc("`simple`, `beta1` or `parallelised`")
    revision: str = doc("`fixed` or `pre-fix`")
    alpha: float = doc("share of pure processing", "ratio")
    beta: float = doc("acceleration by overlap", "ratio")
    asked: str = doc("what was asked for: `throughput` or `hit ratio`")
    hit_ratio: float = doc("hit ratio of L1", "ratio")
    miss_ratio: float = doc("one less that", "ratio")
    mpps: float = doc("throughput", "Mpps")


class _TippingPoint(Record):
    variant: str = doc("variant")
    analytic_miss_ratio: float | None = doc("half of the best throughput, by formula", "ratio")
    linear_miss_ratio: float = doc("half of it, by the slope at a hit ratio of 1", "ratio")
    half_miss_ratio: float | None = doc("half of it in the model; null where it is never reached", "ratio")
    knee_miss_ratio: float | None = doc("where throughput bends down most", "ratio")
    serial_miss_ratio: float | None = doc("from there on all loads are paid one after another", "ratio")
    slope_mpps: float = doc("change of throughput per hit ratio at a hit ratio of 1", "Mpps")


class _Fit(Record):
    variant: str = doc("variant that was fitted", of="model.variant")
    alpha: float = doc("share of pure processing", "ratio", of="model.alpha")
    beta: float = doc("acceleration by overlap", "ratio")
    accesses_per_packet: float = doc("what that makes of the loads", "loads/packet", of="model.accesses_per_packet")
    rms_log_error: float = doc("root of the mean square of ln(model / measured)")
    factor: float = doc("the same as a factor", "ratio")
    n: int = doc("pairs")
    at_bounds: tuple[str, ...] = doc("parameters that the data do not determine")


class CesimDocument(Document):
    """`p4perf cesim`: a row for each variant and question."""

    KIND = "cesim"

    parameters: dict[str, Any] = doc("parameters of the model before a fit, units in their names")
    tipping_points: tuple[_TippingPoint, ...] = doc("")
    fits: tuple[_Fit, ...] = doc("")
    rows: tuple[_CesimRow, ...] = doc("")


class VariantName(StrEnum):
    """Variants of the model."""

    SIMPLE = "simple"
    BETA1 = "beta1"
    PARALLELISED = "parallelised"


class RevisionName(StrEnum):
    """Revisions of the model."""

    FIXED = "fixed"
    PRE_FIX = "pre-fix"


@app.command()
def cesim(
    hit_ratio: Annotated[
        list[float] | None, typer.Option("--hit-ratio", "-r", help="Hit ratio of L1, such as 0.999. Repeatable.")
    ] = None,
    inverse: Annotated[
        list[str] | None,
        typer.Option("--inverse", help="Throughput of which the hit ratio is wanted, such as 100mpps. Repeatable."),
    ] = None,
    variant: Annotated[
        list[VariantName] | None, typer.Option("--variant", help="Variant of the model; default: all. Repeatable.")
    ] = None,
    revision: Annotated[
        RevisionName, typer.Option("--revision", help="fixed, or pre-fix for latencies weighted with hit ratios.")
    ] = RevisionName.FIXED,
    alpha: Annotated[float, typer.Option("--alpha", help="Share of pure processing in a packet's best time.")] = 0.5,
    best: Annotated[str, typer.Option("--best", help="Throughput at a hit ratio of 1.")] = "172mpps",
    accesses: Annotated[float, typer.Option("--accesses", help="Loads per packet.")] = 163.0,
    clock_ghz: Annotated[float, typer.Option("--clock-ghz", help="Clock of the core in GHz.")] = 3.5,
    l1_cycles: Annotated[float, typer.Option("--l1-cycles", help="Latency of L1 in cycles.")] = 4.0,
    l2_cycles: Annotated[float, typer.Option("--l2-cycles", help="Latency of L2 in cycles.")] = 14.0,
    l3_cycles: Annotated[float, typer.Option("--l3-cycles", help="Latency of L3 in cycles.")] = 68.0,
    memory_cycles: Annotated[float, typer.Option("--memory-cycles", help="Latency of memory, part in cycles.")] = 79.0,
    memory_ns: Annotated[float, typer.Option("--memory-ns", help="Latency of memory, part in ns.")] = 50.0,
    l2_hit_ratio: Annotated[float, typer.Option("--l2-hit-ratio", help="Hit ratio of L2.")] = 0.7,
    l3_hit_ratio: Annotated[float, typer.Option("--l3-hit-ratio", help="Hit ratio of L3.")] = 0.79,
    fit: Annotated[
        Path | None, typer.Option("--fit", help="CSV of hit ratios and throughputs that alpha and beta are fitted to.")
    ] = None,
    x: Annotated[str, typer.Option("--x", help="With --fit: column of hit ratios.")] = "hit_ratio",
    y: Annotated[str, typer.Option("--y", help="With --fit: column of throughputs in Mpps.")] = "throughput_mpps",
    fmt: FormatOption = Format.TABLE,
) -> None:
    """Throughput over the hit ratio of the L1 cache, and which hit ratio a throughput needs (CESim)."""
    import numpy as np

    from p4perf.evaluation.fitting.datafiles import read_csv
    from p4perf.evaluation.papers.takeya2024.cesim import CacheHierarchy, CacheModel, fit_cache_model

    hierarchy = CacheHierarchy(
        clock_ghz, l1_cycles, l2_cycles, l3_cycles, memory_cycles, memory_ns, l2_hit_ratio, l3_hit_ratio
    )
    base = CacheModel(alpha, _mpps(best, "--best"), accesses, hierarchy, "parallelised", revision.value)
    names = [v.value for v in variant] if variant else ["simple", "beta1", "parallelised"]
    models = [base.with_variant(name) for name in names]  # type: ignore[arg-type]
    fits: list[CacheFit] = []
    if fit is not None:
        samples = read_csv(fit, x, y)
        measured = np.repeat(samples.x, list(map(len, samples.values))), np.concatenate(samples.values)
        fits = [fit_cache_model(*measured, model) for model in models]
        models = [found.model for found in fits]
    rates = [_mpps(text, "--inverse") for text in inverse or ()]
    ratios = hit_ratio or (() if rates else DEFAULT_HIT_RATIOS)
    numbers = asdict(base) | asdict(hierarchy)
    document = CesimDocument(
        parameters={key: value for key, value in numbers.items() if key not in ("hierarchy", "variant", "revision")},
        tipping_points=tuple(_TippingPoint.read(model.tipping_point(), variant=model.variant) for model in models),
        fits=tuple(_Fit.read(found) for found in fits),
        rows=tuple(row for model in models for row in _rows(model, ratios, rates)),
    )
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


def _mpps(text: str, option: str) -> float:
    """A rate in Mpps: a plain number is in Mpps; units in upper or lower case."""
    number, prefix = match.groups() if (match := _RATE.fullmatch(text)) else (text, "m")
    try:
        value = float(number) * {"": 1e-6, "k": 1e-3, "m": 1.0, "g": 1e3}[prefix.lower()]
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UsageError(f"{option} {text}: expected a rate such as 100mpps")
    return value


def _rows(model: CacheModel, ratios: Sequence[float], rates: Sequence[float]) -> Iterator[_CesimRow]:
    for ratio in ratios:
        mpps = float(model.throughput_mpps(ratio))
        yield _CesimRow.read(model, asked="throughput", hit_ratio=ratio, miss_ratio=1 - ratio, mpps=mpps)
    for rate in rates:
        miss = model.miss_ratio_for(rate)
        yield _CesimRow.read(model, asked="hit ratio", hit_ratio=1 - miss, miss_ratio=miss, mpps=rate)


class _EivuItemsRow(Record):
    item: str = doc("001 to 141", of="number")
    name: str = doc("in a few words")
    category: str = doc("base, programmatic, configurational or combinational")
    group: str = doc("class and subclass")
    process: str = doc("rx, nf, tx or all: whose behaviour it changes")
    parents: tuple[str, ...] = doc("items that it inherits from")
    factors: str = doc("factors that it consists of, in brackets one that it is a part of")
    runs: bool = doc("whether component `vio` can do it")
    change: str = doc("values before and after")
    settings: tuple[str, ...] = doc("parameters of component `vio`")
    not_run_because: str = doc("why it cannot be run; empty if it can")


EivuItemsDocument = listing("eivu.items", _EivuItemsRow, "`p4perf eivu items`: the items of the study.")


class _EivuCellsRow(Record):
    a: int = doc("1 with the factor; `b` to `f` likewise")
    b: int = doc("")
    c: int = doc("")
    d: int = doc("")
    e: int = doc("")
    f: int = doc("")
    S1_mpps: float = doc("throughput on server S1, where the network function was profiled", "Mpps")
    S1_l1_misses: float = doc("L1 misses of the network function", "misses/packet")
    S2_mpps: float = doc("the same of S2", "Mpps")
    S2_l1_misses: float = doc("", "misses/packet")
    S3_mpps: float = doc("the same of S3", "Mpps")
    S3_l1_misses: float = doc("", "misses/packet")
    S4_mpps: float = doc("the same of S4", "Mpps")
    S4_l1_misses: float = doc("", "misses/packet")


EivuCellsDocument = listing(
    "eivu.cells", _EivuCellsRow, "`p4perf eivu cells`: a row for each combination of factors that was measured."
)


class _EivuClaimsRow(Record):
    number: int = doc("number of the claim")
    claim: str = doc("the claim", of="text")
    verdict: str = doc("`supported`, `partly supported` or `not supported`")
    finding: str = doc("the numbers that decide")
    numbers: dict[str, Any] = doc("all numbers that were computed")


EivuClaimsDocument = listing("eivu.claims", _EivuClaimsRow, "`p4perf eivu claims`: the claims of the study.")


class About(StrEnum):
    """What of the study."""

    ITEMS = "items"
    SPEC = "spec"
    CELLS = "cells"
    CLAIMS = "claims"


@app.command()
def eivu(
    about: Annotated[About, typer.Argument(help="What of the study.")] = About.ITEMS,
    item: Annotated[
        list[str] | None, typer.Option("--item", help="Of items and spec: only these, such as 014. Repeatable.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option("--data", help="Of cells and claims: folder with an eivu_results.csv of your own.")
    ] = None,
    fmt: FormatOption = Format.TABLE,
) -> None:
    """The study of virtual network I/O (EIVU): its 141 items, a spec of them, its factorial cells, its claims."""
    if item and about not in (About.ITEMS, About.SPEC):
        raise UsageError("--item is for items and spec")
    if data is not None and about not in (About.CELLS, About.CLAIMS):
        raise UsageError("--data is for cells and claims")
    if about is About.ITEMS:
        _items(item, fmt)
    elif about is About.SPEC:
        from p4perf.specs.experiment import spec_yaml
        from p4perf.specs.items import items_of, items_spec

        sys.stdout.write(spec_yaml(items_spec(items_of(item) if item else None)))
    elif about is About.CELLS:
        _cells(data, fmt)
    else:
        from p4perf.evaluation.papers.takeya2024.eivu import read_study, study_findings

        rows = tuple(_EivuClaimsRow.read(c) for c in study_findings(read_study(data)))
        short = [{key: value for key, value in row.items() if key != "numbers"} for row in as_rows(rows)]
        emit(fmt, EivuClaimsDocument(rows=rows), rows=short)


def _items(numbers: list[str] | None, fmt: Format) -> None:
    from p4perf.specs.items import items_of, read_items

    items = items_of(numbers) if numbers else read_items()
    settings = [tuple(f"{key}={value}" for key, value in item.settings.items()) for item in items]
    rows = tuple(_EivuItemsRow.read(item, settings=own) for item, own in zip(items, settings, strict=True))
    short = ("item", "category", "process", "factors", "runs", "change")
    table = [{key: value for key, value in row.items() if key in short} for row in as_rows(rows)]
    emit(fmt, EivuItemsDocument(rows=rows), rows=table if fmt is Format.TABLE else None)
    if fmt is Format.TABLE:
        say(f"{len(items)} items, {sum(item.runs for item in items)} of which component vio can do")


def _cells(folder: Path | None, fmt: Format) -> None:
    from p4perf.evaluation.papers.takeya2024.eivu import FACTORS, SERVERS, read_study

    study = read_study(folder)
    cells = {server: study.factorial(server).cells for server in SERVERS}
    rows = []
    for present in sorted(cells["S1"], key=lambda p: (len(p), sorted(p))):
        row: dict[str, Any] = {name: int(name in present) for name in FACTORS}
        for server in SERVERS:
            cell = cells[server][present]
            row |= {f"{server}_mpps": cell.median, f"{server}_l1_misses": cell.cache}
        rows.append(_EivuCellsRow.read(row))
    emit(fmt, EivuCellsDocument(rows=tuple(rows)))
