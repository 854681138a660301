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
from p4perf.evaluation.papers.ren2025.analysis import OpqAnalysis
from p4perf.evaluation.papers.ren2025.costs import (
    COST,
    COST_TSC,
    OPERATOR,
    PACKET_SIZE,
    RESOLUTION,
    TOGETHER,
    OperatorCosts,
    Platform,
)
from p4perf.evaluation.papers.ren2025.quadrants import Placement, Quadrant
from p4perf.evaluation.papers.ren2025.shifts import Agreement, Contrast, Interaction, Shift
from p4perf.models.operator import PowerLaw
from p4perf.results import Run
from p4perf.results.files import csv_text, interval_columns, json_number, strict_json, write_text_atomically
from p4perf.results.folders import dated_name, file_word, filled_folder, new_folder
from p4perf.results.table import FIXED_COLUMNS

if TYPE_CHECKING:
    from matplotlib.figure import Figure


UNKNOWN = "unknown processor"
_NOISE_OF_NAMES = re.compile(r"\((?:R|TM|tm|r)\)|\bCPU\b|\bProcessor\b|\s@.*$|\d+-Core")


def read_platforms(paths: Sequence[Path], *, clock: str = "core") -> tuple[Platform, ...]:
    """Each run as a platform, named by its processor.

    Args:
        paths: run directories that swept ``operator`` and ``packet_size``.
        clock: ``core`` for cycles of the core's clock, ``tsc`` for those of the time stamp counter.

    Raises:
        UsageError: a run is given twice, or sweeps something else.
        DataError: a run cannot be read, or has no costs.
        NoVerdictError: nothing in a run was accepted.
    """
    seen = [path.resolve() for path in paths]
    if twice := [path for path, place in zip(paths, seen, strict=True) if seen.count(place) > 1]:
        raise UsageError(f"{twice[0]} is given twice")
    runs = [Run.open(path) for path in paths]
    names = platform_names([(run.node.text("cpu_model"), run.manifest.target) for run in runs])
    return tuple(_platform(run, name, clock) for run, name in zip(runs, names, strict=True))


def platform_names(platforms: Sequence[tuple[str, str]]) -> list[str]:
    """Processors in short; with the target where a processor has several, and numbered where that is not enough.

    Args:
        platforms: processor, perhaps empty, and target of each run.
    """
    several = len({target for _, target in platforms}) > 1
    names = [_processor(cpu or UNKNOWN) + (f" ({target})" if several else "") for cpu, target in platforms]
    return [
        f"{name} #{names[: at + 1].count(name)}" if names.count(name) > 1 else name for at, name in enumerate(names)
    ]


def _processor(model: str) -> str:
    return " ".join(_NOISE_OF_NAMES.sub(" ", model).split()) or model


def _platform(run: Run, name: str, clock: str) -> Platform:
    table = run.table
    missing = [column for column in (OPERATOR, PACKET_SIZE) if column not in table.columns]
    if missing:
        raise UsageError(
            f"{run.name} does not sweep {' and '.join(missing)}", hint="measure one with p4perf run operator/all"
        )
    metric = COST_TSC if clock == "tsc" else COST
    rows = table[table["metric"] == metric]
    if rows.empty:
        raise DataError(f"{run.name} has no measurements of {metric!r}")
    accepted = rows[rows["accepted"].astype(bool)]
    if accepted.empty:
        raise NoVerdictError(f"no cost in {run.name} was accepted", hint="look at the quality flags")
    factor = _clock_factor(table) if clock == "tsc" else 1.0
    resolutions = table[(table["metric"] == RESOLUTION) & table["accepted"].astype(bool)]
    more = _further_variables(accepted)
    found = [_costs(name, label, group, resolutions, more, factor) for label, group in _by_operator(accepted, more)]
    title = f"{run.node.text('cpu_model') or UNKNOWN}, {run.manifest.target}"
    single = tuple(each for each in found if TOGETHER not in each.operator)
    pairs = tuple(each for each in found if TOGETHER in each.operator)
    return Platform(name, title, str(run.path), False, single, pairs)


def _clock_factor(table: pd.DataFrame) -> float:
    """Cycles of the time stamp counter for one of the core; resolutions are told in those of the core."""
    good = table[table["accepted"].astype(bool)]
    medians = [good.loc[good["metric"] == m, "value"].median() for m in ("tsc_cycles_per_packet", "cycles_per_packet")]
    ratio = float(medians[0]) / float(medians[1]) if medians[1] else 1.0
    return ratio if ratio > 0 else 1.0


def _further_variables(rows: pd.DataFrame) -> list[str]:
    """Variables that are swept besides operator and size: they distinguish operators, too."""
    others = [str(c) for c in rows.columns if c not in FIXED_COLUMNS and c not in (OPERATOR, PACKET_SIZE)]
    return [c for c in others if rows[c].nunique(dropna=False) > 1]


def _by_operator(rows: pd.DataFrame, more: Sequence[str]) -> Sequence[tuple[str, pd.DataFrame]]:
    """Groups of rows by operator, in the order of the sweep."""
    groups: dict[str, list[Any]] = {}
    ordered = rows.sort_values("point_index", kind="stable") if "point_index" in rows.columns else rows
    for index, row in ordered.iterrows():
        label = str(row[OPERATOR])
        if more:
            label += f" ({', '.join(f'{name} {_word(row[name])}' for name in more)})"
        groups.setdefault(label, []).append(index)
    return [(label, ordered.loc[chosen]) for label, chosen in groups.items()]


def _word(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _size(value: Any) -> int:
    try:
        return int(float(str(value)))
    except (OverflowError, ValueError):
        raise DataError(f"the {PACKET_SIZE} {value!r} is no number of bytes") from None


def _costs(
    platform: str, label: str, rows: pd.DataFrame, resolutions: pd.DataFrame, more: Sequence[str], factor: float
) -> OperatorCosts:
    """The costs of one operator by size, with what can be told from zero there.

    That is the larger of the median resolution of the repetitions, and half of the range of their costs.
    """
    same = resolutions[resolutions[OPERATOR] == rows[OPERATOR].iloc[0]]
    for name in more:
        same = same[same[name] == rows[name].iloc[0]]
    sizes, cycles, least = [], [], []
    for size, group in rows.groupby(PACKET_SIZE, sort=True):
        values = tuple(float(v) for v in group["value"])
        said = same.loc[same[PACKET_SIZE] == size, "value"]
        half_range = (max(values) - min(values)) / 2
        sizes.append(_size(size))
        cycles.append(values)
        least.append(max(half_range, float(said.median()) * factor if len(said) else 0.0))
    return OperatorCosts(label, platform, tuple(sizes), tuple(cycles), tuple(least))


SCHEMA_VERSION = 1
"""Version of ``opq.json``; it rises when a key changes its meaning or goes."""

KIND = "opq"
PARENT = Path("operators")


def write_opq(found: OpqAnalysis, folder: Path | None, now: datetime) -> tuple[Path, tuple[Path, ...]]:
    """Write everything into a folder.

    Args:
        found: the analysis.
        folder: where; None makes a new one below ``operators``, named after the platforms and the time. A folder that
            is not there yet appears all at once; in one that is there, files of the same names are replaced.
        now: the time for its name.

    Returns:
        The folder, and the plots in it.

    Raises:
        StorageError: it cannot be written.
        UsageError: ``folder`` is a file.
    """
    figures = dict(_figures(found, now))

    def fill(place: Path) -> None:
        from p4perf.evaluation.plots import save_figure

        write_text_atomically(place / "opq.json", strict_json(file_record(found), indent=2) + "\n")
        write_text_atomically(place / "opq.csv", csv_text(rows(found)))
        for name, figure in figures.items():
            for kind in ("svg", "png"):
                save_figure(figure, place / f"{name}.{kind}")

    if folder is None:
        words = [file_word(platform.name) for platform in found.platforms]
        path = new_folder(PARENT / dated_name(words if len(words) <= 3 else [f"{len(words)}-platforms"], now), fill)
    else:
        path = filled_folder(folder, fill)
    return path, tuple(path / f"{name}.{kind}" for name in figures for kind in ("svg", "png"))


def _figures(found: OpqAnalysis, now: datetime) -> Iterator[tuple[str, Figure]]:
    """Figures by file name."""
    from p4perf.evaluation.plots import PlotInfo
    from p4perf.evaluation.plots.operators import contrast_figure, cost_figure, quadrant_figure

    info = PlotInfo(date=now.strftime("%Y-%m-%d"), machine="; ".join(p.title for p in found.platforms))
    with suppress(NoVerdictError):  # nothing was measured at two sizes, or above the resolution
        yield "quadrants", quadrant_figure(found, info=info)
    yield "costs", cost_figure(found, info=info)
    if found.contrasts:
        yield "contrasts", contrast_figure(found, info=info)


# --- rows of operators


def rows(found: OpqAnalysis) -> list[dict[str, Any]]:
    """One row for each operator of each platform."""
    return [_row(placement) for placement in found.placements]


def _row(placement: Placement) -> dict[str, Any]:
    each = placement.profile
    shares = placement.probabilities
    return {
        "platform": each.platform,
        "operator": each.operator,
        "published": each.published,
        **interval_columns("base_cycles", each.base),
        "base_below_cycles": each.below_cycles if each.base is None else None,
        "base_measured": each.base_measured,
        **interval_columns("exponent", each.exponent),
        "interval_from": each.interval_from,
        "r_squared": json_number(each.r_squared),
        "better": "" if each.affine is None else each.model.better,
        "threshold_cycles": json_number(placement.threshold_cycles),
        "quadrant": None if placement.quadrant is None else placement.quadrant.value,
        **{f"p_{q.name.lower()}": None if shares is None else shares[q] for q in Quadrant},
        "strategy": placement.strategy,
    }


# --- records


def file_record(found: OpqAnalysis) -> dict[str, Any]:
    """The content of ``opq.json``."""
    return {"schema_version": SCHEMA_VERSION, "kind": KIND, **record(found), "rows": rows(found)}


def record(found: OpqAnalysis) -> dict[str, Any]:
    """Everything but the rows of operators, as JSON values."""
    options = found.options
    return {
        "threshold": options.threshold.text(),
        "ties": options.threshold.ties,
        "level": options.level,
        "resamples": options.resamples,
        "seed": options.seed,
        "notes": list(found.notes),
        "warnings": list(found.warnings),
        "platforms": [
            {"name": p.name, "title": p.title, "source": p.source, "published": p.published} for p in found.platforms
        ],
        "laws": [_laws(placement) for placement in found.placements],
        "shifts": [_shift(shift) for shift in found.shifts],
        "contrasts": [_contrast(each) for each in found.contrasts],
        "interactions": [_interaction(each) for each in found.interactions],
        "agreed": None if found.agreements is None else all(each.agrees for each in found.agreements),
        "agreements": [_agreement(each) for each in found.agreements or ()],
    }


def _laws(placement: Placement) -> dict[str, Any]:
    """Costs by size and all fits of one operator."""
    each = placement.profile
    return {
        "platform": each.platform,
        "operator": each.operator,
        "sizes": [
            {
                "packet_size_bytes": size.size_bytes,
                **interval_columns("cycles", size.cycles),
                "below_cycles": size.below_cycles,
                "repetitions": size.repetitions,
            }
            for size in each.sizes
        ],
        **_power("power", each.power, each.r_squared),
        **_power("squares", each.power_squares, each.r_squared_squares),
        "affine_fixed_cycles": None if each.affine is None else each.affine.fixed_cycles,
        "affine_cycles_per_byte": None if each.affine is None else each.affine.cycles_per_byte,
        "power_error": json_number(each.error_power),
        "affine_error": json_number(each.error_affine),
    }


def _power(name: str, law: PowerLaw | None, r_squared: float | None) -> dict[str, float | None]:
    return {
        f"{name}_base_cycles": None if law is None else law.base_cycles,
        f"{name}_exponent": None if law is None else law.exponent,
        f"{name}_r_squared": json_number(r_squared),
    }


def _shift(shift: Shift) -> dict[str, Any]:
    ends = (shift.start, shift.end)
    quadrants = [None if end.quadrant is None else end.quadrant.value for end in ends]
    return {
        "from_platform": shift.start.profile.platform,
        "from_operator": shift.start.profile.operator,
        "from_quadrant": quadrants[0],
        "to_platform": shift.end.profile.platform,
        "to_operator": shift.end.profile.operator,
        "to_quadrant": quadrants[1],
        "changed": shift.changed,
        "probability": json_number(shift.probability),
        "base_ratio": json_number(shift.base_ratio),
    }


def _contrast(each: Contrast) -> dict[str, Any]:
    return {
        "platform": each.platform,
        "dear": each.dear.operator,
        "cheap": each.cheap.operator,
        **interval_columns("ratio", each.ratio),
        "at_least": json_number(each.at_least),
    }


def _interaction(each: Interaction) -> dict[str, Any]:
    return {
        "platform": each.platform,
        "first": each.first,
        "second": each.second,
        "packet_size_bytes": each.size_bytes,
        **interval_columns("together_cycles", each.together),
        **interval_columns("sum_cycles", each.alone),
        **interval_columns("interaction_cycles", each.extra),
        "resolution_cycles": each.resolution_cycles,
        "additive": each.additive,
    }


def _agreement(each: Agreement) -> dict[str, Any]:
    return {
        "operator": each.operator,
        "packet_size_bytes": each.size_bytes,
        "first_cycles": each.first,
        "second_cycles": each.second,
        "allowed_cycles": each.allowed,
        "compared": each.compared,
        "agrees": each.agrees,
    }
