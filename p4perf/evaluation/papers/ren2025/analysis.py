"""Everything that the operators of some platforms say: profiles, quadrants, shifts, ratios, interactions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from p4perf.errors import NoVerdictError, UsageError
from p4perf.evaluation.papers.ren2025.costs import OperatorCosts, Platform
from p4perf.evaluation.papers.ren2025.profiles import OperatorProfile, profile
from p4perf.evaluation.papers.ren2025.quadrants import Placement, Threshold, place
from p4perf.evaluation.papers.ren2025.shifts import (
    Agreement,
    Contrast,
    Interaction,
    Shift,
    agreement,
    contrast,
    interactions,
    shifts,
)
from p4perf.results.table import LEVEL, RESAMPLES, SEED

DEFAULT_CONTRAST = ("printf_file", "rte_log_suppressed")
"""The pair of Fig. 2 of Ren et al. 2025, printf and rte_log, by the names that p4perf has for them."""


@dataclass(frozen=True)
class OpqOptions:
    """What can be chosen.

    Args:
        threshold: where base costs are split.
        contrasts: pairs of operators whose base costs are set beside each other: the dear one, the cheap one. A name
            may be that of another platform.
    """

    threshold: Threshold = field(default_factory=Threshold)
    contrasts: tuple[tuple[str, str], ...] = (DEFAULT_CONTRAST,)
    level: float = LEVEL
    resamples: int = RESAMPLES
    seed: int = SEED


@dataclass(frozen=True)
class OpqAnalysis:
    """The result.

    Args:
        placements: one for each operator of each platform, in order.
        shifts: from platform to platform.
        agreements: of the first two measured platforms, if that was asked for.
        notes: what exponents above 1 may come from.
        warnings: what a reader should know before believing it.
    """

    platforms: tuple[Platform, ...]
    placements: tuple[Placement, ...]
    shifts: tuple[Shift, ...]
    contrasts: tuple[Contrast, ...]
    interactions: tuple[Interaction, ...]
    agreements: tuple[Agreement, ...] | None
    options: OpqOptions
    notes: tuple[str, ...]
    warnings: tuple[str, ...]

    def of(self, platform: str) -> tuple[Placement, ...]:
        return tuple(p for p in self.placements if p.profile.platform == platform)


def analyse(
    platforms: Sequence[Platform], options: OpqOptions | None = None, *, agree: tuple[Platform, Platform] | None = None
) -> OpqAnalysis:
    """Analyse the operators of platforms.

    Args:
        platforms: one at least, with different names.
        options: threshold, contrasts, level, resamples, seed.
        agree: two measurements of one machine that are to be compared.

    Raises:
        UsageError: there is no platform, two have one name, or the threshold names what is not there.
        NoVerdictError: there is no base cost at all, or the two measurements share no operator.
    """
    options = options or OpqOptions()
    names = [platform.name for platform in platforms]
    if not names:
        raise UsageError("there is no platform to analyse", hint="name a run, or --with ren2025")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UsageError(f"two platforms are called {twice[0]}", hint="rename one in its file")
    _check_rows(platforms, options.threshold)
    profiles = [
        profile(row, level=options.level, resamples=options.resamples, seed=options.seed)
        for platform in platforms
        for row in platform.operators
    ]
    placements = place(profiles, options.threshold)
    agreements = agreement(*agree) if agree is not None else None
    if agreements is not None and not agreements:
        raise NoVerdictError("the two runs share no operator at the same packet size")
    measured = [(p, [r for r in p.operators if isinstance(r, OperatorCosts)]) for p in platforms]
    return OpqAnalysis(
        tuple(platforms),
        placements,
        shifts(platforms, placements),
        tuple(_contrasts(platforms, profiles, options)),
        tuple(
            found
            for platform, rows in measured
            for found in interactions(
                platform.pairs, rows, level=options.level, resamples=options.resamples, seed=options.seed
            )
        ),
        agreements,
        options,
        tuple(_notes(placements)),
        tuple(_warnings(placements)),
    )


def _check_rows(platforms: Sequence[Platform], threshold: Threshold) -> None:
    known = {row.operator for platform in platforms for row in platform.operators}
    for name in threshold.without:
        if name not in known:
            raise UsageError(f"there is no operator {name} to leave out of the median")
    if threshold.of is not None and threshold.of not in {platform.name for platform in platforms}:
        hint = f"there are {', '.join(platform.name for platform in platforms)}"
        raise UsageError(f"there is no platform {threshold.of} to take the median of", hint=hint)


def _contrasts(
    platforms: Sequence[Platform], profiles: Sequence[OperatorProfile], options: OpqOptions
) -> Sequence[Contrast]:
    by_row = {(p.platform, p.operator): p for p in profiles}
    found = []
    for dear, cheap in options.contrasts:
        asked = [
            (by_row[platform.name, a.operator], by_row[platform.name, b.operator])
            for platform in platforms
            for a in platform.named(dear)
            for b in platform.named(cheap)
            if a.operator != b.operator
        ]
        if not asked and (dear, cheap) != DEFAULT_CONTRAST:
            raise UsageError(f"no platform has both {dear} and {cheap}")
        found += [c for a, b in asked if (c := contrast(a, b, level=options.level)) is not None]
    return found


def _notes(placements: Sequence[Placement]) -> Sequence[str]:
    """One sentence for all operators of which the same is to be said."""
    found: dict[str, list[str]] = {}
    for p in placements:
        if p.profile.note:
            found.setdefault(p.profile.note, []).append(f"{p.profile.operator} on {p.profile.platform}")
    return [f"{', '.join(rows)}: {note}" for note, rows in found.items()]


def _warnings(placements: Sequence[Placement]) -> Sequence[str]:
    found = [
        f"{p.profile.operator} on {p.profile.platform}: {p.profile.warning}" for p in placements if p.profile.warning
    ]
    unseen = [p.profile for p in placements if p.profile.base is None and p.profile.below_cycles is not None]
    doubtful = [
        f"{p.operator} on {p.platform}"
        for p in unseen
        for split in [q.threshold_cycles for q in placements if q.profile is p]
        if p.below_cycles is not None and p.below_cycles >= split
    ]
    if doubtful:
        found.append(f"the resolution is not finer than the threshold for {', '.join(doubtful)}: low is not sure")
    return found
