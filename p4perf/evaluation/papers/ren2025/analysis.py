"""What the operators of some platforms show together: quadrant shifts, ratios, interactions, agreement.

Ren et al. 2025 take it for granted that the baseline costs the same with an operator as without (section II-B). On a
core that works out of order it need not: what one operator waits for, another can fill. The interaction is what the
pair costs beyond the sum of both,

    I = C(a + b) - (C(a) + C(b)),

negative where they overlap, positive where they are in each other's way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.special import stdtrit

from p4perf.errors import NoVerdictError, UsageError
from p4perf.evaluation.comparison.ratios import satterthwaite
from p4perf.evaluation.papers.ren2025.costs import OperatorCosts, Platform, pair_of, same_operator
from p4perf.evaluation.papers.ren2025.profiles import OperatorProfile, interval, profile
from p4perf.evaluation.papers.ren2025.quadrants import Placement, Threshold, place
from p4perf.models.estimate import Estimate
from p4perf.models.operator import BASE_SIZE_BYTES
from p4perf.results.table import LEVEL, RESAMPLES, SEED, redrawn_medians


@dataclass(frozen=True)
class QuadrantShift:
    """The same operator on two platforms, the arrow of the chart."""

    start: Placement
    end: Placement

    @property
    def changed(self) -> bool | None:
        """Whether the quadrants differ (the quadrant shift of Ren et al. 2025, section III-C); None if one has none."""
        if self.start.quadrant is None or self.end.quadrant is None:
            return None
        return self.start.quadrant is not self.end.quadrant

    @property
    def probability(self) -> float | None:
        """That the quadrants differ; None if neither side has repetitions, or one has no quadrant."""
        if self.changed is None or (self.start.draws is None and self.end.draws is None):
            return None
        names = list(type(self.start.quadrant)) if self.start.quadrant is not None else []
        sides = [
            place.draws if place.draws is not None else np.full(1, names.index(place.quadrant))
            for place in (self.start, self.end)
            if place.quadrant is not None
        ]
        return float(np.mean(sides[0] != sides[1]))

    @property
    def base_ratio(self) -> float | None:
        """Base cost at the end over that at the start; None if one is not known."""
        bases = (self.start.profile.base, self.end.profile.base)
        return None if bases[0] is None or bases[1] is None else bases[1].value / bases[0].value


def shifts(platforms: Sequence[Platform], placements: Sequence[Placement]) -> tuple[QuadrantShift, ...]:
    """From each platform to the next that has the operator, in the order of the platforms.

    An operator of one platform may be several on the next (two ways to calculate a CRC): there is a shift to each.
    """
    by_row = {(p.profile.platform, p.profile.operator): p for p in placements}
    found = []
    for at, platform in enumerate(platforms):
        for row in platform.operators:
            for later in platforms[at + 1 :]:
                matches = [other for other in later.operators if same_operator(row, other)]
                start = by_row[platform.name, row.operator]
                found += [QuadrantShift(start, by_row[later.name, other.operator]) for other in matches]
                if matches:
                    break
    return tuple(found)


@dataclass(frozen=True)
class Contrast:
    """Two operators of one platform beside each other (Fig. 2 of Ren et al. 2025): dear over cheap.

    Where the cheap one is below the resolution, the ratio is None and ``at_least`` that to the resolution.
    """

    platform: str
    dear: OperatorProfile
    cheap: OperatorProfile
    ratio: Estimate | None
    at_least: float | None


def contrast(dear: OperatorProfile, cheap: OperatorProfile, *, level: float) -> Contrast | None:
    """The ratio of two base costs; None if the dear one has none.

    The interval is calculated in logarithms from the bootstrap replicates of both.
    """
    if dear.base is None or cheap.rank_cycles is None:
        return None
    if cheap.base is None:
        at_least = dear.base.value / cheap.rank_cycles if cheap.rank_cycles else None
        return Contrast(dear.platform, dear, cheap, None, at_least)
    ratio = dear.base.value / cheap.base.value
    return Contrast(dear.platform, dear, cheap, _interval(ratio, dear, cheap, level), None)


def _interval(ratio: float, dear: OperatorProfile, cheap: OperatorProfile, level: float) -> Estimate:
    if dear.replicates is None or cheap.replicates is None:
        return Estimate(ratio)
    variances, freedoms = [], []
    for each in (dear, cheap):
        values = each.replicates[:, 0] if each.replicates is not None else np.ones(1)
        variances.append(float(np.var(np.log(np.maximum(values, 1e-9)))))
        known = [s.repetitions for s in each.sizes if s.size_bytes == BASE_SIZE_BYTES]
        freedoms.append(float(max(1, (known[0] if known else min(s.repetitions for s in each.sizes)) - 1)))
    half = float(np.sqrt(sum(variances)) * stdtrit(satterthwaite(variances, freedoms), (1 + level) / 2))
    return Estimate(ratio, ratio * float(np.exp(-half)), ratio * float(np.exp(half)))


@dataclass(frozen=True)
class Interaction:
    """A pair at one size; all costs in cycles per packet. ``alone`` is the sum of both measured by themselves."""

    platform: str
    first: str
    second: str
    size_bytes: int
    together: Estimate
    alone: Estimate
    extra: Estimate
    resolution_cycles: float

    @property
    def additive(self) -> bool:
        """Whether no interaction is seen: it is not above the resolution, or its interval holds zero."""
        return abs(self.extra.value) <= self.resolution_cycles or (self.extra.bounded and 0.0 in self.extra)


def interactions(
    pairs: Sequence[OperatorCosts],
    operators: Sequence[OperatorCosts],
    *,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> tuple[Interaction, ...]:
    """The interaction of each pair (``a+b``) of a platform at each size at which all three were measured."""
    known: Mapping[str, OperatorCosts] = {each.operator: each for each in operators}
    generator = np.random.default_rng(seed)
    found = []
    for pair in pairs:
        names = pair_of(pair.operator, known)
        if names is None:
            continue
        first, second = known[names[0]], known[names[1]]
        for size in pair.packet_size_bytes:
            three = (pair, first, second)
            costs = [values for each in three if (values := each.at(size)) is not None]
            if len(costs) == len(three):
                resolution = max(each.resolution_cycles[each.packet_size_bytes.index(size)] for each in three)
                terms = _terms(costs, level, resamples, generator)
                found.append(Interaction(pair.platform, *names, size, *terms, resolution))
    return tuple(found)


def _terms(
    costs: Sequence[Sequence[float]], level: float, resamples: int, generator: np.random.Generator
) -> tuple[Estimate, Estimate, Estimate]:
    """The pair, the sum, and their difference; variances of medians add."""
    together, first, second = (float(np.median(values)) for values in costs)
    extra = together - first - second
    if any(len(values) < 2 for values in costs):
        return Estimate(together), Estimate(first + second), Estimate(extra)
    variances = [float(np.var(redrawn_medians(values, resamples, generator))) for values in costs]
    freedoms = [len(values) - 1.0 for values in costs]
    return (
        interval(together, variances[0], freedoms[0], level),
        interval(first + second, sum(variances[1:]), satterthwaite(variances[1:], freedoms[1:]), level),
        interval(extra, sum(variances), satterthwaite(variances, freedoms), level),
    )


SHARE = 0.10
"""Costs may differ by this share of the smaller one ..."""
CYCLES = 2.0
"""... or by this many cycles, whichever is more."""
LEAST_CYCLES = 5.0
"""Operators that cost no more than this in both measurements are not compared."""


@dataclass(frozen=True)
class CostAgreement:
    """One operator at one size in two measurements [cycles per packet], compared above :data:`LEAST_CYCLES`."""

    operator: str
    size_bytes: int
    first: float
    second: float
    allowed: float
    compared: bool

    @property
    def agrees(self) -> bool:
        """Whether they are near enough, or too small to be compared."""
        return not self.compared or abs(self.first - self.second) <= self.allowed


def agreement(first: Platform, second: Platform) -> tuple[CostAgreement, ...]:
    """Every operator and pair at every size that both measured: within 10 % or 2 cycles."""
    other = {each.operator: each for each in _measured(second)}
    found = []
    for each in _measured(first):
        if each.operator not in other:
            continue
        for size in each.packet_size_bytes:
            values = other[each.operator].at(size)
            if values is not None:
                a, b = float(np.median(each.at(size) or values)), float(np.median(values))
                allowed = max(CYCLES, SHARE * min(abs(a), abs(b)))
                found.append(CostAgreement(each.operator, size, a, b, allowed, max(a, b) > LEAST_CYCLES))
    return tuple(found)


def _measured(platform: Platform) -> Sequence[OperatorCosts]:
    return [row for row in (*platform.operators, *platform.pairs) if isinstance(row, OperatorCosts)]


DEFAULT_CONTRAST = ("printf_file", "rte_log_suppressed")
"""The pair of Fig. 2 of Ren et al. 2025, printf and rte_log, by the names that p4perf has for them."""


@dataclass(frozen=True)
class OpqOptions:
    """What can be chosen.

    ``contrasts`` are pairs of a dear and a cheap operator, whose base costs are set beside each other; a name may be
    that of another platform.
    """

    threshold: Threshold = field(default_factory=Threshold)
    contrasts: tuple[tuple[str, str], ...] = (DEFAULT_CONTRAST,)
    level: float = LEVEL
    resamples: int = RESAMPLES
    seed: int = SEED


@dataclass(frozen=True)
class OpqAnalysis:
    """The result; ``agreements`` are those of two measurements of one machine, on request."""

    platforms: tuple[Platform, ...]
    placements: tuple[Placement, ...]
    shifts: tuple[QuadrantShift, ...]
    contrasts: tuple[Contrast, ...]
    interactions: tuple[Interaction, ...]
    agreements: tuple[CostAgreement, ...] | None
    options: OpqOptions
    notes: tuple[str, ...]
    warnings: tuple[str, ...]

    def of(self, platform: str) -> tuple[Placement, ...]:
        return tuple(p for p in self.placements if p.profile.platform == platform)


def analyse(
    platforms: Sequence[Platform], options: OpqOptions | None = None, *, agree: tuple[Platform, Platform] | None = None
) -> OpqAnalysis:
    """Analyse the operators of one platform or more, and compare two measurements of one machine if asked to.

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
    rows = [row for platform in platforms for row in platform.operators]
    profiles = [profile(row, level=options.level, resamples=options.resamples, seed=options.seed) for row in rows]
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
    """One sentence for all operators with the same note."""
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
