"""The quadrants of operators: analyse opq."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Option

from p4perf.cli.app import Format, FormatOption, analyse_app, emit, print_table, say
from p4perf.errors import ExitCode
from p4perf.results import find_run

if TYPE_CHECKING:
    from p4perf.evaluation.papers.ren2025 import OpqAnalysis
    from p4perf.evaluation.papers.ren2025.profiles import OperatorProfile
    from p4perf.evaluation.papers.ren2025.quadrants import Placement
    from p4perf.models.estimate import Estimate


@analyse_app.command()
def opq(
    runs: Annotated[
        list[Path] | None,
        Argument(
            metavar="[RUN]...",
            parser=find_run,
            help="Run directories that swept operator and packet_size.",
            show_default=False,
        ),
    ] = None,
    beside: Annotated[
        list[str] | None, Option("--with", help="Platforms to compare with: ren2025, or your own file. Repeatable.")
    ] = None,
    threshold: Annotated[
        str,
        Option(help="Threshold of base costs: global-median, lower-median, platform-median, or a number of cycles."),
    ] = "global-median",
    ties: Annotated[Literal["high", "low"], Option(help="Side of a base cost equal to the threshold.")] = "high",
    without: Annotated[
        list[str] | None, Option("--median-without", help="Operator to exclude from the median. Repeatable.")
    ] = None,
    of: Annotated[
        str | None, Option("--median-of", help="Take the median over the operators of this platform only.")
    ] = None,
    contrast: Annotated[list[str] | None, Option(help="Two operators to compare: HIGH,LOW. Repeatable.")] = None,
    clock: Annotated[Literal["core", "tsc"], Option(help="Clock of the cycles.")] = "core",
    agree: Annotated[bool, Option("--agree", help="Check that two runs agree; exit code 1 if they do not.")] = False,
    level: Annotated[float, Option(min=0.5, max=0.999, help="Intended coverage of intervals.")] = 0.95,
    output: Annotated[
        Path | None, Option("--output", "-o", help="Folder for the data and the plots; default: a new one.")
    ] = None,
    fmt: FormatOption = Format.TABLE,
) -> int:
    """Analyse operators: base cost, exponent and quadrant, on each machine."""
    from p4perf.api.papers import analyse_opq
    from p4perf.experiment.opq import opq_document, write_opq

    analysis = analyse_opq(
        list(runs or ()), beside or (), threshold=threshold, ties=ties, median_without=without or (),
        median_of=of, contrasts=contrast or (), clock=clock, agree=agree, level=level,
    )  # fmt: skip
    found = analysis.analysis
    folder, plots = write_opq(found, output, datetime.now(UTC))
    for warning in found.warnings:
        say(f"warning: {warning}")
    emit(fmt, opq_document(found, output=folder, plots=plots), tables=lambda: _print(found))
    say(f"written: {folder}")
    agreed = all(each.agrees for each in found.agreements or ())
    return int(ExitCode.OK if agreed else ExitCode.VERDICT_FAILED)


def _print(found: OpqAnalysis) -> None:
    for platform in found.platforms:
        mark = "published" if platform.published else "measured"
        say(f"{platform.name} ({mark}): {platform.title}; {platform.source}")
        placements = found.of(platform.name)
        print_table([_cost_row(p) for p in placements], title=f"{platform.name}: cycles per packet")
    for note in found.notes:
        say(f"note: {note}")
    splits = sorted({p.threshold_cycles for p in found.placements if p.threshold_cycles == p.threshold_cycles})
    cycles = ", ".join(f"{split:.4g}" for split in splits)
    title = f"quadrants: k at 1, base cost at {cycles} cycles ({found.options.threshold.text()})"
    print_table([_quadrant_row(p) for p in found.placements], title=title)
    for quadrant, strategy in sorted({(p.quadrant.value, p.strategy) for p in found.placements if p.quadrant}):
        say(f"{quadrant}: {strategy}")
    if found.shifts:
        print_table(_shift_rows(found), title="shifts")
    if found.contrasts:
        print_table(_contrast_rows(found), title="base costs side by side")
    if found.interactions:
        print_table(_interaction_rows(found), title="two operators together, cycles per packet")
    if found.agreements is not None:
        _print_agreement(found)


def _cost_row(placement: Placement) -> dict[str, Any]:
    each = placement.profile
    row: dict[str, Any] = {"operator": each.operator}
    for size in each.sizes:
        text = f"below {size.below_cycles:.3g}" if size.cycles is None else _plus_minus(size.cycles)
        row[f"{size.size_bytes} B"] = text
    return row | {
        "power law": "" if each.power is None else each.power.text(),
        "R2": _digits(each.r_squared),
        "better": _better(each),
    }


def _better(each: OperatorProfile) -> str:
    if each.affine is None:
        return ""
    return {"power": "power law", "affine": f"line {each.affine.text()}", "undecided": "both alike"}[each.model.better]


def _quadrant_row(placement: Placement) -> dict[str, Any]:
    each = placement.profile
    base = (
        f"below {each.below_cycles:.3g}"
        if each.base is None and each.below_cycles is not None
        else _estimate(each.base)
    )
    quadrant = placement.quadrant.value if placement.quadrant else ""
    if not quadrant:
        quadrant = "none: below the resolution" if each.unseen else "none: too few sizes"
    others = [
        f"{name.value} {share:.2g}"
        for name, share in (placement.probabilities or {}).items()
        if name is not placement.quadrant and share >= 0.005
    ]
    return {
        "platform": each.platform,
        "operator": each.operator,
        "base cost": base,
        "k": _estimate(each.exponent),
        "quadrant": quadrant,
        "probability": _digits(placement.probability),
        "or": ", ".join(others),
    }


def _shift_rows(found: OpqAnalysis) -> list[dict[str, Any]]:
    rows = []
    for shift in found.shifts:
        ends = [end.quadrant.value if end.quadrant else "none" for end in (shift.start, shift.end)]
        rows.append(
            {
                "operator": " -> ".join(dict.fromkeys(end.profile.operator for end in (shift.start, shift.end))),
                "from": shift.start.profile.platform,
                "to": shift.end.profile.platform,
                "quadrants": " -> ".join(ends) if shift.changed or shift.changed is None else f"{ends[0]}, no shift",
                "probability of a shift": _digits(shift.probability),
                "base cost": "" if shift.base_ratio is None else f"x {shift.base_ratio:.3g}",
            }
        )
    return rows


def _contrast_rows(found: OpqAnalysis) -> list[dict[str, Any]]:
    return [
        {
            "platform": each.platform,
            "operators": f"{each.dear.operator} / {each.cheap.operator}",
            "ratio": f"more than {each.at_least:.4g}" if each.at_least is not None else _estimate(each.ratio),
        }
        for each in found.contrasts
    ]


def _interaction_rows(found: OpqAnalysis) -> list[dict[str, Any]]:
    return [
        {
            "platform": each.platform,
            "operators": f"{each.first} + {each.second}",
            "packet size": each.size_bytes,
            "together": _estimate(each.together),
            "sum": _estimate(each.alone),
            "interaction": _estimate(each.extra),
            "says": "additive" if each.additive else "overlap" if each.extra.value < 0 else "in each other's way",
        }
        for each in found.interactions
    ]


def _print_agreement(found: OpqAnalysis) -> None:
    compared = [each for each in found.agreements or () if each.compared]
    rows = [
        {
            "operator": each.operator,
            "packet size": each.size_bytes,
            "first": each.first,
            "second": each.second,
            "allowed difference": each.allowed,
        }
        for each in compared
        if not each.agrees
    ]
    if rows:
        print_table(rows, title="costs that differ by more than 10 % and 2 cycles")
    say(f"{sum(each.agrees for each in compared)} of {len(compared)} costs above 5 cycles agree")


def _estimate(found: Estimate | None) -> str:
    from p4perf.models.notation import number

    return "" if found is None else found.text(number)


def _plus_minus(found: Estimate) -> str:
    """A number with half of its interval, which is symmetric."""
    from p4perf.models.notation import number

    if not found.bounded:
        return number(found.value)
    return f"{number(found.value)} ± {number(found.high - found.value, 2)}"


def _digits(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
