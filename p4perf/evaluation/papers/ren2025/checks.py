"""Checks of Ren et al. 2025, "Profiling Multi-Level Operator Costs for Bottleneck Diagnosis in High-Speed Data Planes".

Table II is ``platforms/ren2025.yaml``.
"""

from __future__ import annotations

from typing import Literal

from p4perf.errors import UsageError
from p4perf.evaluation.papers.claims import Quantity, number_of
from p4perf.evaluation.papers.ren2025 import OpqAnalysis, OpqOptions, Threshold, analyse, load_platforms
from p4perf.evaluation.papers.ren2025.costs import cost_cycles
from p4perf.evaluation.papers.ren2025.quadrants import AVOID, Placement, Quadrant

CLOCKS_GHZ = {"Arm": 1.8, "x86": 2.2}
"""Section III-A."""

CLASSES = {
    "CRC": "compute-intensive",
    "Checksum": "compute-intensive",
    "hash": "memory-intensive",
    "htons": "simple data manipulation",
    "printf": "system I/O call",
    "rte_log": "optimized logging",
}
"""Table I."""

LINE_BYTES = 64
PATH_OF_A_BURST = 32
"""Packets that a data plane on DPDK usually takes at once."""


def delta_cost(clock_ghz: float, base_cycles: float, operator_cycles: float) -> dict[str, Quantity]:
    """Eq. 1 to 3 there and back: rates of a core from its cycles, and the cost of the operator from both rates."""
    hertz = clock_ghz * 1e9
    base_pps, operator_pps = hertz / base_cycles, hertz / (base_cycles + operator_cycles)
    return {"cycles": cost_cycles(hertz, operator_pps, base_pps)}


def operator_row(platform: str, operator: str) -> dict[str, Quantity]:
    """A row of Table II, and its cost for larger packets by Eq. 4."""
    profile = _placement(_analysed(), platform, operator).profile
    at = {f"cycles_{s.size_bytes}": s.cycles.value for s in profile.sizes if s.cycles is not None}
    return {
        "base_cycles": at["cycles_64"],
        "exponent": profile.exponent.value if profile.exponent is not None else 0.0,
        "r_squared": profile.r_squared if profile.r_squared is not None else 0.0,
        **at,
    }


def rows_of_table(operators: tuple[str, ...]) -> dict[str, Quantity]:
    """Base costs, exponents and R2 of operators as they ship, of Arm and x86 for each."""
    rows = [operator_row(platform, name) for name in operators for platform in CLOCKS_GHZ]
    return {
        name: tuple(number_of(row, key) for row in rows)
        for name, key in (("base_cycles", "base_cycles"), ("exponents", "exponent"), ("r_squared", "r_squared"))
    }


def operator_quadrant(
    platform: str,
    operator: str,
    threshold: str = "global-median",
    ties: Literal["high", "low"] = "high",
    without: tuple[str, ...] = (),
    of: str | None = None,
) -> dict[str, Quantity]:
    """The quadrant of an operator under a rule for the threshold."""
    found = _analysed(Threshold.parse(threshold, ties=ties, without=without, of=of))
    placed = _placement(found, platform, operator)
    return {
        "quadrant": _quadrant(placed),
        "threshold_cycles": placed.threshold_cycles,
        "avoid": placed.strategy == AVOID,
    }


def quadrants_of(operators: tuple[str, ...], platform: str, threshold: str = "global-median") -> dict[str, Quantity]:
    """The quadrants of several operators on one platform."""
    found = _analysed(Threshold.parse(threshold))
    return {"quadrants": tuple(_quadrant(_placement(found, platform, name)) for name in operators)}


def shifted_operators(threshold: str = "global-median") -> dict[str, Quantity]:
    """Operators whose quadrant differs between both platforms."""
    found = _analysed(Threshold.parse(threshold))
    return {"operators": tuple(sorted(s.start.profile.operator for s in found.shifts if s.changed))}


def operators_in(quadrant: str, threshold: str = "global-median") -> dict[str, Quantity]:
    """How many operators of both platforms lie in a quadrant."""
    kind = Quadrant(quadrant)
    return {"operators": sum(p.quadrant is kind for p in _analysed(Threshold.parse(threshold)).placements)}


def accelerating_operators(platform: str) -> dict[str, Quantity]:
    """Operators with an exponent above 1, and how many have one below."""
    quadrants = {p.profile.operator: p.quadrant for p in _analysed().of(platform)}
    growing = tuple(sorted(n for n, q in quadrants.items() if q in (Quadrant.LATENT_TRAP, Quadrant.EMERGENT)))
    return {"operators": growing, "others": len(quadrants) - len(growing)}


def accelerating_share(of_class: str) -> dict[str, Quantity]:
    """Share of the operators of a class of Table I whose cost accelerates on both platforms."""
    names = [name for name, kind in CLASSES.items() if kind == of_class]
    found = _analysed()
    exponents = {n: [_placement(found, p, n).profile.exponent for p in CLOCKS_GHZ] for n in names}
    growing = [n for n, values in exponents.items() if all(k is not None and k.value > 1 for k in values)]
    return {"share": len(growing) / len(names)}


def cost_per_byte(platform: str, operator: str) -> dict[str, Quantity]:
    """By Eq. 4, cycles per byte of packets of 256 B over those of 64 B, and of the last 128 B over the 64 B before."""
    at = operator_row(platform, operator)
    low, middle, high = (number_of(at, f"cycles_{size}") for size in (64, 128, 256))
    return {"ratio": high / 256 / (low / 64), "increase_ratio": (high - middle) / 128 / ((middle - low) / 64)}


def highest_increase(operators: tuple[str, ...]) -> dict[str, Quantity]:
    """The highest ``increase_ratio`` of :func:`cost_per_byte` of operators on both platforms, and whose it is."""
    ratios = {
        f"{name} on {platform}": number_of(cost_per_byte(platform, name), "increase_ratio")
        for name in operators
        for platform in CLOCKS_GHZ
    }
    worst = max(ratios, key=lambda name: ratios[name])
    return {"ratio": ratios[worst], "operator": worst}


def cost_contrast(platform: str, dear: str, cheap: str) -> dict[str, Quantity]:
    """The base cost of one operator over that of another."""
    found = analyse(load_platforms("ren2025"), OpqOptions(contrasts=((dear, cheap),)))
    ratios = [c.ratio.value for c in found.contrasts if c.platform == platform and c.ratio is not None]
    return {"ratio": ratios[0]}


def platform_ratio(operator: str) -> dict[str, Quantity]:
    """Base cost on Arm over that on x86, in cycles and in time."""
    found = _analysed()
    arm, x86 = (_base(_placement(found, platform, operator)) for platform in ("Arm", "x86"))
    return {"cycles_ratio": arm / x86, "time_ratio": arm / x86 * CLOCKS_GHZ["x86"] / CLOCKS_GHZ["Arm"]}


def dearest_operator(platform: str) -> dict[str, Quantity]:
    """The operator with the highest base cost, and how many times that is the next one's."""
    ranked = sorted(((_base(p), p.profile.operator) for p in _analysed().of(platform)), reverse=True)
    return {"operator": ranked[0][1], "ratio": ranked[0][0] / ranked[1][0]}


def goodness_of_fits() -> dict[str, Quantity]:
    """The lowest R2 of Table II."""
    values = [p.profile.r_squared for p in _analysed().placements if p.profile.r_squared is not None]
    return {"lowest": min(values)}


def threshold_of_table(threshold: str = "global-median", without: tuple[str, ...] = ()) -> dict[str, Quantity]:
    """Where base costs are split [cycles]."""
    found = _analysed(Threshold.parse(threshold, without=without))
    return {"cycles": found.placements[0].threshold_cycles}


def burst_in_cache(packet_bytes: int, cache_bytes: int) -> dict[str, Quantity]:
    """Bytes of the packets of a burst, as a share of a cache."""
    lines = -(-packet_bytes // LINE_BYTES)
    return {"share": PATH_OF_A_BURST * lines * LINE_BYTES / cache_bytes}


def _analysed(threshold: Threshold | None = None) -> OpqAnalysis:
    return analyse(load_platforms("ren2025"), OpqOptions(threshold=threshold or Threshold()))


def _placement(found: OpqAnalysis, platform: str, operator: str) -> Placement:
    for placed in found.of(platform):
        if placed.profile.operator == operator:
            return placed
    raise UsageError(f"Table II has no operator {operator!r} on {platform!r}")


def _quadrant(placed: Placement) -> str:
    return placed.quadrant.value if placed.quadrant is not None else "none"


def _base(placed: Placement) -> float:
    base = placed.profile.base
    return base.value if base is not None else 0.0
