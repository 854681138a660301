"""From run directories to the platforms of an analysis of operators."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from p4perf.errors import DataError, NoVerdictError, UsageError
from p4perf.evaluation.operator_costs import COST, COST_TSC, OPERATOR, PACKET_SIZE, RESOLUTION, TOGETHER
from p4perf.evaluation.operators.costs import OperatorCosts, Platform
from p4perf.evaluation.statistics import FIXED_COLUMNS
from p4perf.experiment.record import run_record
from p4perf.results import RunDirectory

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
    runs = [RunDirectory.open(path) for path in paths]
    manifests = [run_record(run) for run in runs]
    names = platform_names(manifests)
    return tuple(
        _platform(run, manifest, name, clock) for run, manifest, name in zip(runs, manifests, names, strict=True)
    )


def platform_names(manifests: Sequence[dict[str, Any]]) -> list[str]:
    """Processors in short; with the target where a processor has several, and numbered where that is not enough."""
    processors = [_processor(str(manifest["node"].get("cpu_model") or "unknown processor")) for manifest in manifests]
    targets = {str(manifest["target"]) for manifest in manifests}
    names = [
        f"{processor} ({manifest['target']})" if len(targets) > 1 else processor
        for processor, manifest in zip(processors, manifests, strict=True)
    ]
    return [
        f"{name} #{names[: at + 1].count(name)}" if names.count(name) > 1 else name for at, name in enumerate(names)
    ]


def _processor(model: str) -> str:
    return " ".join(_NOISE_OF_NAMES.sub(" ", model).split()) or model


def _platform(run: RunDirectory, manifest: dict[str, Any], name: str, clock: str) -> Platform:
    table = run.read_measurements()
    missing = [column for column in (OPERATOR, PACKET_SIZE) if column not in table.columns]
    if missing:
        raise UsageError(
            f"{run.path.name} does not sweep {' and '.join(missing)}", hint="measure one with p4perf run operator/all"
        )
    metric = COST_TSC if clock == "tsc" else COST
    rows = table[table["metric"] == metric]
    if rows.empty:
        raise DataError(f"{run.path.name} has no measurements of {metric!r}")
    accepted = rows[rows["accepted"].astype(bool)]
    if accepted.empty:
        raise NoVerdictError(f"no cost in {run.path.name} was accepted", hint="look at the quality flags")
    factor = _clock_factor(table) if clock == "tsc" else 1.0
    resolutions = table[(table["metric"] == RESOLUTION) & table["accepted"].astype(bool)]
    more = _further_variables(accepted)
    found = [_costs(name, label, group, resolutions, more, factor) for label, group in _by_operator(accepted, more)]
    node = manifest["node"]
    title = f"{node.get('cpu_model') or 'unknown processor'}, {manifest['target']}"
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
    """Variables that are swept besides operator and size: they tell operators apart, too."""
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
