"""From run directories to an analysis of operators, as data and as files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from p4perf.errors import DataError, NoVerdictError, UsageError
from p4perf.evaluation.papers.ren2025 import costs
from p4perf.evaluation.papers.ren2025.analysis import OpqAnalysis
from p4perf.evaluation.papers.ren2025.costs import OPERATOR, PACKET_SIZE, OperatorCosts, Platform
from p4perf.evaluation.papers.ren2025.quadrants import Placement, Quadrant
from p4perf.evaluation.plots.style import write_outputs
from p4perf.experiment.compare import numbered, require_distinct
from p4perf.records import Document, Interval, Record, as_rows, doc, interval
from p4perf.results import Run
from p4perf.results.files import csv_text, dated_name, file_word, json_text
from p4perf.results.table import FIXED_COLUMNS

if TYPE_CHECKING:
    from matplotlib.figure import Figure


UNKNOWN = "unknown processor"
_NOISE_OF_NAMES = re.compile(r"\((?:R|TM|tm|r)\)|\bCPU\b|\bProcessor\b|\s@.*$|\d+-Core")


def read_platforms(paths: Sequence[Path], *, clock: str = "core") -> tuple[Platform, ...]:
    """Each run as a platform, named by its processor.

    Args:
        clock: ``core`` for cycles of the core's clock, ``tsc`` for those of the time stamp counter.

    Raises:
        UsageError: a run is given twice, or sweeps something else.
        DataError: a run cannot be read, or has no costs.
        NoVerdictError: nothing in a run was accepted.
    """
    require_distinct(paths)
    runs = [Run.open(path) for path in paths]
    names = platform_names([(run.node.text("cpu_model"), run.manifest.target) for run in runs])
    return tuple(_platform(run, name, clock) for run, name in zip(runs, names, strict=True))


def platform_names(platforms: Sequence[tuple[str, str]]) -> list[str]:
    """Processors in short; with the target where a processor has several, and numbered where that is not enough."""
    several = len({target for _, target in platforms}) > 1
    shortened = [" ".join(_NOISE_OF_NAMES.sub(" ", cpu).split()) or cpu or UNKNOWN for cpu, _ in platforms]
    targets = [f" ({target})" if several else "" for _, target in platforms]
    return numbered([name + target for name, target in zip(shortened, targets, strict=True)])


def _platform(run: Run, name: str, clock: str) -> Platform:
    table = run.table
    missing = [column for column in (OPERATOR, PACKET_SIZE) if column not in table.columns]
    if missing:
        raise UsageError(f"{run.name} does not sweep {' and '.join(missing)}", hint="p4perf run operator/all does")
    metric = costs.COST_TSC if clock == "tsc" else costs.COST
    if not (table["metric"] == metric).any():
        raise DataError(f"{run.name} has no measurements of {metric!r}")
    accepted = table[table["accepted"].astype(bool)]
    if not (accepted["metric"] == metric).any():
        raise NoVerdictError(f"no cost in {run.name} was accepted", hint="look at the quality flags")
    factor = _clock_factor(accepted) if clock == "tsc" else 1.0
    used = accepted[accepted["metric"].isin((metric, costs.RESOLUTION))]
    groups = [(label, group) for label, group in _by_operator(used) if (group["metric"] == metric).any()]
    found = [_costs(name, label, group, metric, factor) for label, group in groups]
    title = f"{run.node.text('cpu_model') or UNKNOWN}, {run.manifest.target}"
    single = tuple(each for each in found if costs.TOGETHER not in each.operator)
    pairs = tuple(each for each in found if costs.TOGETHER in each.operator)
    return Platform(name, title, str(run.path), False, single, pairs)


def _clock_factor(rows: pd.DataFrame) -> float:
    """TSC cycles per core cycle; resolutions are recorded in core cycles."""
    medians = [rows.loc[rows["metric"] == m, "value"].median() for m in ("tsc_cycles_per_packet", "cycles_per_packet")]
    ratio = float(medians[0]) / float(medians[1]) if medians[1] else 1.0
    return ratio if ratio > 0 else 1.0


def _by_operator(rows: pd.DataFrame) -> Sequence[tuple[str, pd.DataFrame]]:
    """Groups of rows by operator, in the order of the sweep. Further swept variables distinguish operators, too."""
    others = [str(c) for c in rows.columns if c not in (*FIXED_COLUMNS, OPERATOR, PACKET_SIZE)]
    more = [c for c in others if rows[c].nunique(dropna=False) > 1]
    ordered = rows.sort_values("point_index", kind="stable") if "point_index" in rows.columns else rows
    groups = []
    for (operator, *values), group in ordered.groupby([OPERATOR, *more], sort=False, dropna=False):
        words = (f"{value:g}" if isinstance(value, float) else str(value) for value in values)
        further = ", ".join(f"{name} {word}" for name, word in zip(more, words, strict=True))
        groups.append((f"{operator} ({further})" if further else str(operator), group))
    return groups


def _costs(platform: str, label: str, rows: pd.DataFrame, metric: str, factor: float) -> OperatorCosts:
    """The costs of one operator by size, with the smallest cost that can be distinguished from zero there.

    That is the larger of the median resolution of the repetitions, and half of the range of their costs.
    """
    sizes, cycles, least = [], [], []
    resolutions = rows[rows["metric"] == costs.RESOLUTION]
    for size, group in rows[rows["metric"] == metric].groupby(PACKET_SIZE, sort=True):
        values = tuple(float(v) for v in group["value"])
        said = resolutions.loc[resolutions[PACKET_SIZE] == size, "value"]
        half_range = (max(values) - min(values)) / 2
        try:
            sizes.append(int(float(str(size))))
        except (OverflowError, ValueError):
            raise DataError(f"the {PACKET_SIZE} {size!r} is no number of bytes") from None
        cycles.append(values)
        least.append(max(half_range, float(said.median()) * factor if len(said) else 0.0))
    return OperatorCosts(label, platform, tuple(sizes), tuple(cycles), tuple(least))


PARENT = Path("operators")


def write_opq(found: OpqAnalysis, folder: Path | None, now: datetime) -> tuple[Path, tuple[Path, ...]]:
    """Write document, rows and plots, by default into a new folder below ``operators``.

    Folder, result and errors are those of :func:`~p4perf.evaluation.plots.style.write_outputs`.
    """
    document = opq_document(found)
    texts = {"opq.json": json_text(document.as_dict()), "opq.csv": csv_text(as_rows(document.rows))}
    words = [file_word(platform.name) for platform in found.platforms]
    default = PARENT / dated_name(words if len(words) <= 3 else [f"{len(words)}-platforms"], now)
    return write_outputs(texts, dict(_figures(found, now)), folder, default)


def _figures(found: OpqAnalysis, now: datetime) -> Iterator[tuple[str, Figure]]:
    from p4perf.evaluation.plots import PlotInfo
    from p4perf.evaluation.plots.operators import contrast_figure, cost_figure, quadrant_figure

    info = PlotInfo(date=now.strftime("%Y-%m-%d"), machine="; ".join(p.title for p in found.platforms))
    with suppress(NoVerdictError):  # nothing was measured at two sizes, or above the resolution
        yield "quadrants", quadrant_figure(found, info=info)
    yield "costs", cost_figure(found, info=info)
    if found.contrasts:
        yield "contrasts", contrast_figure(found, info=info)


# --- the document


class _Platform(Record):
    name: str = doc("name of a platform")
    title: str = doc("processor, for people")
    source: str = doc("run directory, or where the numbers are published")
    published: bool = doc("whether they are taken from a publication")


class _OpqRow(Record):
    platform: str = doc("name of the platform", of="profile.platform")
    operator: str = doc("name of the operator", of="profile.operator")
    published: bool = doc("whether the row is a published law", of="profile.published")
    base_cycles: Interval | None = interval(
        "base cost; null if it is below the resolution or not known", "cycles", of="profile.base"
    )
    base_below_cycles: float | None = doc("the resolution that the base cost is below", "cycles")
    base_measured: bool = doc(
        "whether 64 bytes were measured; else the base cost is that of the power law", of="profile.base_measured"
    )
    exponent: Interval | None = interval("k; null where nothing was fitted", of="profile.exponent")
    interval_from: str = doc("`repetitions`, `residuals` or empty without an interval of k", of="profile.interval_from")
    r_squared: float | None = doc("of the power law, in logarithms; null without scatter", of="profile.r_squared")
    better: str = doc("`power`, `affine` or `undecided`; empty without a line")
    threshold_cycles: float | None = doc("what the base cost is compared with", "cycles")
    quadrant: str | None = doc("quadrant; null without a base cost or an exponent")
    p_latent_trap: float | None = doc("probability of that quadrant; null without repetitions", "ratio")
    p_high_startup: float | None = doc("likewise", "ratio")
    p_ideal: float | None = doc("likewise", "ratio")
    p_emergent: float | None = doc("likewise", "ratio")
    strategy: str = doc("what to do about it, for people")


class _Size(Record):
    packet_size_bytes: int = doc("packet size", "B", of="size_bytes")
    cycles: Interval | None = interval(
        "median cost; null if it is below the resolution; of a published law, what that says", "cycles"
    )
    below_cycles: float | None = doc("the resolution that it is below", "cycles")
    repetitions: int = doc("accepted repetitions; 0 of a published law")


class _Law(Record):
    platform: str = doc("name of the platform; `laws` has the order of `rows`", of="profile.platform")
    operator: str = doc("name of the operator", of="profile.operator")
    sizes: tuple[_Size, ...] = doc("", of="profile.sizes")
    power_base_cycles: float | None = doc("C(64) of the power law in logs", "cycles", of="profile.power.base_cycles")
    power_exponent: float | None = doc("its k", of="profile.power.exponent")
    power_r_squared: float | None = doc("its R2, in logarithms", of="profile.r_squared")
    squares_base_cycles: float | None = doc(
        "C(64) of the power law by least squares of cycles", "cycles", of="profile.power_squares.base_cycles"
    )
    squares_exponent: float | None = doc("its k", of="profile.power_squares.exponent")
    squares_r_squared: float | None = doc("its R2, in cycles", of="profile.r_squared_squares")
    affine_fixed_cycles: float | None = doc("c0 of the line", "cycles", of="profile.affine.fixed_cycles")
    affine_cycles_per_byte: float | None = doc("c1 of the line", "cycles/B", of="profile.affine.cycles_per_byte")
    power_error: float | None = doc("RMS of the logarithm of cost over power law", "ratio", of="profile.error_power")
    affine_error: float | None = doc(
        "the same of the line; null if the line is not positive everywhere", "ratio", of="profile.error_affine"
    )


class _Shift(Record):
    from_platform: str = doc("platform that was given first", of="start.profile.platform")
    from_operator: str = doc("its operator", of="start.profile.operator")
    from_quadrant: str | None = doc("quadrant there", of="start.quadrant.value")
    to_platform: str = doc("the next platform that has it", of="end.profile.platform")
    to_operator: str = doc("what it is called there", of="end.profile.operator")
    to_quadrant: str | None = doc("quadrant there", of="end.quadrant.value")
    changed: bool | None = doc("whether the quadrants differ; null if one is not known")
    probability: float | None = doc("that they differ; null without repetitions", "ratio")
    base_ratio: float | None = doc("base cost there over here", "ratio")


class _Contrast(Record):
    platform: str = doc("platform that has both operators")
    dear: str = doc("the one operator", of="dear.operator")
    cheap: str = doc("the other one", of="cheap.operator")
    ratio: Interval | None = interval("base cost of the one over that of the other", "ratio")
    at_least: float | None = doc("if the other one is below the resolution: the ratio is more than this", "ratio")


class _Interaction(Record):
    platform: str = doc("platform")
    first: str = doc("an operator")
    second: str = doc("the operator that it was measured with")
    packet_size_bytes: int = doc("packet size", "B", of="size_bytes")
    together_cycles: Interval = interval("cost of both together", "cycles", of="together")
    sum_cycles: Interval = interval("sum of the costs of both alone", "cycles", of="alone")
    interaction_cycles: Interval = interval("what both together cost beyond the sum", "cycles", of="extra")
    resolution_cycles: float = doc("the largest resolution of the three", "cycles")
    additive: bool = doc("whether no interaction is seen")


class _Agreement(Record):
    operator: str = doc("operator or pair of both runs; no items if it was not asked")
    packet_size_bytes: int = doc("packet size", "B", of="size_bytes")
    first_cycles: float = doc("median in the first run", "cycles", of="first")
    second_cycles: float = doc("median in the second", "cycles", of="second")
    allowed_cycles: float = doc("how far they may be apart", "cycles", of="allowed")
    compared: bool = doc("whether one of them is above 5 cycles")
    agrees: bool = doc("whether they agree, or are not compared")


class OpqDocument(Document, kind="opq"):
    """`p4perf analyse opq [RUN...]`: one row for each operator of each platform.

    `opq.json` has the same keys, without `output` and `plots`. See [quadrants](operators.md#quadrants). All costs are
    cycles per packet.
    """

    output: str = doc("folder of the files", optional=True)
    plots: tuple[str, ...] = doc("paths of the plots", optional=True)
    threshold: str = doc("rule of the threshold, for people", of="options.threshold.text()")
    ties: str = doc("what a base cost at the threshold is: `high` or `low`", of="options.threshold.ties")
    level: float = doc("intended coverage of intervals", "ratio", of="options.level")
    resamples: int = doc("bootstrap resamples", of="options.resamples")
    seed: int = doc("their seed", of="options.seed")
    notes: tuple[str, ...] = doc("what exponents above 1 may come from, for people")
    warnings: tuple[str, ...] = doc("warnings, for people")
    platforms: tuple[_Platform, ...] = doc("")
    laws: tuple[_Law, ...] = doc("", of="placements")
    shifts: tuple[_Shift, ...] = doc("")
    contrasts: tuple[_Contrast, ...] = doc("")
    interactions: tuple[_Interaction, ...] = doc("")
    agreed: bool | None = doc("whether two runs agree; null if that was not asked")
    agreements: tuple[_Agreement, ...] = doc("")
    rows: tuple[_OpqRow, ...] = doc("")


def opq_document(found: OpqAnalysis, **files: Any) -> OpqDocument:
    """The analysis as ``opq.json`` has it; ``files`` are ``output`` and ``plots``, if they are written."""
    agreements = found.agreements or ()
    agreed = None if found.agreements is None else all(each.agrees for each in agreements)
    rows = tuple(_row(placement) for placement in found.placements)
    return OpqDocument.read(found, agreed=agreed, agreements=agreements, rows=rows, **files)


def _row(placement: Placement) -> _OpqRow:
    each = placement.profile
    shares = placement.probabilities
    return _OpqRow.read(
        placement,
        base_below_cycles=each.below_cycles if each.base is None else None,
        better="" if each.affine is None else each.model.better,
        quadrant=None if placement.quadrant is None else placement.quadrant.value,
        **{f"p_{q.name.lower()}": None if shares is None else shares[q] for q in Quadrant},
    )
