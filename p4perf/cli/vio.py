"""The commands about virtual network I/O: cesim and eivu."""

from __future__ import annotations

import math
import re
import sys
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from p4perf.cli.app import app
from p4perf.cli.output import Format, FormatOption, emit, say
from p4perf.errors import UsageError

if TYPE_CHECKING:
    from p4perf.evaluation.papers.takeya2024.cesim import CacheFit, CacheModel


DEFAULT_HIT_RATIOS = (0.99, 0.995, 0.999, 0.9995, 0.9999, 1.0)

_RATE = re.compile(r"(?i)\s*([0-9][0-9_.e+-]*)\s*([kmg]?)pps\s*")


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
        list[float] | None, typer.Option("--hit-ratio", "-r", help="Hit ratio of L1, such as 0.999. May be repeated.")
    ] = None,
    inverse: Annotated[
        list[str] | None,
        typer.Option(
            "--inverse", help="Throughput of which the hit ratio is wanted, such as 100mpps. May be repeated."
        ),
    ] = None,
    variant: Annotated[
        list[VariantName] | None, typer.Option("--variant", help="Variant of the model; default: all. May be repeated.")
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
    from p4perf.evaluation.papers.takeya2024.cesim import CacheHierarchy, CacheModel

    hierarchy = CacheHierarchy(
        clock_ghz, l1_cycles, l2_cycles, l3_cycles, memory_cycles, memory_ns, l2_hit_ratio, l3_hit_ratio
    )
    base = CacheModel(alpha, _mpps(best, "--best"), accesses, hierarchy, "parallelised", revision.value)
    names = [v.value for v in variant] if variant else ["simple", "beta1", "parallelised"]
    models = [base.with_variant(name) for name in names]  # type: ignore[arg-type]
    fits = [_fitted(fit, x, y, model) for model in models] if fit is not None else []
    if fits:
        models = [found.model for found in fits]
    rates = [_mpps(text, "--inverse") for text in inverse or ()]
    ratios = hit_ratio if hit_ratio or rates else DEFAULT_HIT_RATIOS
    rows = [row for model in models for row in _rows(model, ratios or (), rates)]
    tipping = [_tipping_row(model) for model in models]
    fitted = [_fit_row(found) for found in fits]
    if fmt is not Format.TABLE:
        emit(fmt, "cesim", rows, parameters=_parameters(base), tipping_points=tipping, fits=fitted)
        return
    emit(fmt, "", rows)
    emit(fmt, "", tipping, title="tipping points, as miss ratios of L1")
    for row in fitted:
        bounds = f"; at a bound: {', '.join(row['at_bounds'])}" if row["at_bounds"] else ""
        say(
            f"{row['variant']}: alpha = {row['alpha']:.4g}, beta = {row['beta']:.4g} from {row['n']} pairs, "
            f"off by a factor of {row['factor']:.3g}{bounds}"
        )


def _mpps(text: str, option: str) -> float:
    """A rate in Mpps: a plain number is in Mpps; units in upper or lower case."""
    match = _RATE.fullmatch(text)
    try:
        value = float(text if match is None else match[1]) * (
            1.0 if match is None else {"": 1e-6, "k": 1e-3, "m": 1.0, "g": 1e3}[match[2].lower()]
        )
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UsageError(f"{option} {text}: expected a rate such as 100mpps")
    return value


def _fitted(path: Path, x: str, y: str, model: CacheModel) -> CacheFit:
    import numpy as np

    from p4perf.evaluation.fitting.datafiles import read_csv
    from p4perf.evaluation.papers.takeya2024.cesim import fit_cache_model

    samples = read_csv(path, x, y)
    repeated = [len(values) for values in samples.values]
    return fit_cache_model(np.repeat(samples.x, repeated), np.concatenate(samples.values), model)


def _rows(model: CacheModel, ratios: Any, rates: list[float]) -> list[dict[str, Any]]:
    head = {"variant": model.variant, "revision": model.revision, "alpha": model.alpha, "beta": model.beta}
    found = [
        {**head, "asked": "throughput", "hit_ratio": r, "miss_ratio": 1 - r, "mpps": float(model.throughput_mpps(r))}
        for r in ratios
    ]
    for rate in rates:
        miss = model.miss_ratio_for(rate)
        found.append({**head, "asked": "hit ratio", "hit_ratio": 1 - miss, "miss_ratio": miss, "mpps": rate})
    return found


def _parameters(model: CacheModel) -> dict[str, Any]:
    own = {key: value for key, value in asdict(model).items() if key not in ("hierarchy", "variant", "revision")}
    return {**own, **asdict(model.hierarchy)}


def _tipping_row(model: CacheModel) -> dict[str, Any]:
    point = model.tipping_point()
    return {
        "variant": model.variant,
        "analytic_miss_ratio": point.analytic_miss_ratio,
        "linear_miss_ratio": point.linear_miss_ratio,
        "half_miss_ratio": point.half_miss_ratio,
        "knee_miss_ratio": point.knee_miss_ratio,
        "serial_miss_ratio": point.serial_miss_ratio,
        "slope_mpps": point.slope_mpps,
    }


def _fit_row(found: CacheFit) -> dict[str, Any]:
    return {
        "variant": found.model.variant,
        "alpha": found.model.alpha,
        "beta": found.beta,
        "accesses_per_packet": found.model.accesses_per_packet,
        "rms_log_error": found.rms_log_error,
        "factor": found.factor,
        "n": found.n,
        "at_bounds": list(found.at_bounds),
    }


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
        list[str] | None, typer.Option("--item", help="Of items and spec: only these, such as 014. May be repeated.")
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
        _claims(data, fmt)


def _items(numbers: list[str] | None, fmt: Format) -> None:
    from p4perf.specs.items import items_of, read_items

    rows = [
        {
            "item": item.number,
            "name": item.name,
            "category": item.category,
            "group": item.group,
            "process": item.process,
            "parents": list(item.parents),
            "factors": item.factors,
            "runs": item.runs,
            "change": item.change,
            "settings": [f"{key}={value}" for key, value in item.settings.items()],
            "not_run_because": item.not_run_because,
        }
        for item in (items_of(numbers) if numbers else read_items())
    ]
    if fmt is not Format.TABLE:
        emit(fmt, "eivu.items", rows)
        return
    short = ("item", "category", "process", "factors", "runs", "change")
    emit(fmt, "", [{key: row[key] for key in short} for row in rows])
    say(f"{len(rows)} items, {sum(bool(row['runs']) for row in rows)} of which component vio can do")


def _cells(folder: Path | None, fmt: Format) -> None:
    from p4perf.evaluation.papers.takeya2024 import SERVERS, read_study
    from p4perf.evaluation.papers.takeya2024.eivu import FACTORS

    study = read_study(folder)
    cells = {server: study.factorial(server).cells for server in SERVERS}
    rows = []
    for present in sorted(cells["S1"], key=lambda p: (len(p), sorted(p))):
        row: dict[str, object] = {name: int(name in present) for name in FACTORS}
        for server in SERVERS:
            cell = cells[server][present]
            row |= {f"{server}_mpps": cell.median, f"{server}_l1_misses": cell.cache}
        rows.append(row)
    emit(fmt, "eivu.cells", rows)


def _claims(folder: Path | None, fmt: Format) -> None:
    from p4perf.evaluation.papers.takeya2024 import check_claims, read_study

    claims = check_claims(read_study(folder))
    rows = [{"number": c.number, "claim": c.text, "verdict": c.verdict, "finding": c.finding} for c in claims]
    if fmt is Format.JSON:
        emit(fmt, "eivu.claims", [{**row, "numbers": dict(c.numbers)} for row, c in zip(rows, claims, strict=True)])
    else:
        emit(fmt, "eivu.claims", rows)
