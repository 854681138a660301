"""An analysis of operators as data and as files: ``opq.json``, ``opq.csv`` and plots."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from p4perf.errors import NoVerdictError
from p4perf.evaluation.operators.agreement import Agreement
from p4perf.evaluation.operators.analysis import OpqAnalysis
from p4perf.evaluation.operators.interactions import Interaction
from p4perf.evaluation.operators.quadrants import Placement, Quadrant
from p4perf.evaluation.operators.shifts import Contrast, Shift
from p4perf.models.operator import PowerLaw
from p4perf.results.files import strict_json, write_text_atomically
from p4perf.results.folders import filled_folder, new_folder
from p4perf.results.naming import dated_name, file_word
from p4perf.results.tables import csv_text, interval_columns, json_number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    from p4perf.evaluation.plots.operator_costs import contrast_figure, cost_figure
    from p4perf.evaluation.plots.operator_quadrants import quadrant_figure

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
