"""Checks of Ren et al. 2025, "Profiling Multi-Level Operator Costs for Bottleneck Diagnosis in High-Speed Data Planes".

Table II is ``platforms/ren2025.yaml``.
"""

from __future__ import annotations

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


def operator_quadrants(
    operators: tuple[str, ...], platforms: tuple[str, ...], threshold: str = "global-median"
) -> dict[str, Quantity]:
    """The quadrants of operators on platforms under a rule for the threshold, and whether to avoid each of them."""
    found = _analysed(Threshold.parse(threshold))
    placed = [_placement(found, platform, name) for name in operators for platform in platforms]
    return {
        "quadrants": tuple(_quadrant(each) for each in placed),
        "threshold_cycles": placed[0].threshold_cycles,
        "avoided": all(each.strategy == AVOID for each in placed),
    }


def shifts_of(operators: tuple[str, ...], threshold: str = "global-median") -> dict[str, Quantity]:
    """Whether the quadrants of operators differ between both platforms, and all operators of which they do."""
    every = {s.start.profile.operator for s in _analysed(Threshold.parse(threshold)).shifts if s.changed}
    return {"shifted": tuple(name in every for name in operators), "every_shift": tuple(sorted(every))}


def operators_in(quadrant: str, threshold: str = "global-median") -> dict[str, Quantity]:
    """How many operators of both platforms lie in a quadrant."""
    kind = Quadrant(quadrant)
    return {"operators": sum(p.quadrant is kind for p in _analysed(Threshold.parse(threshold)).placements)}


def accelerating_operators() -> dict[str, Quantity]:
    """Operators with an exponent above 1, of each platform."""
    growing = (Quadrant.LATENT_TRAP, Quadrant.EMERGENT)
    return {
        platform.lower(): tuple(sorted(p.profile.operator for p in _analysed().of(platform) if p.quadrant in growing))
        for platform in CLOCKS_GHZ
    }


def accelerating_share(of_class: str) -> dict[str, Quantity]:
    """Share of the operators of a class of Table I whose cost accelerates on both platforms."""
    names = [name for name, kind in CLASSES.items() if kind == of_class]
    found = _analysed()
    exponents = {n: [_placement(found, p, n).profile.exponent for p in CLOCKS_GHZ] for n in names}
    growing = [n for n, values in exponents.items() if all(k is not None and k.value > 1 for k in values)]
    return {"share": len(growing) / len(names)}


def cost_per_byte(operator: str) -> dict[str, Quantity]:
    """Cycles per byte of 256 B over those of 64 B by Eq. 4, and of the last 128 B of packets over the 64 B before."""
    ratios, increases = [], []
    for platform in CLOCKS_GHZ:
        at = operator_row(platform, operator)
        low, middle, high = (number_of(at, f"cycles_{size}") for size in (64, 128, 256))
        ratios.append(high / 256 / (low / 64))
        increases.append((high - middle) / 128 / ((middle - low) / 64))
    return {"ratios": tuple(ratios), "increase_ratios": tuple(increases), "highest_increase": max(increases)}


def highest_increase(operators: tuple[str, ...]) -> dict[str, Quantity]:
    """The highest ``increase_ratios`` of :func:`cost_per_byte` of operators, and whose it is."""
    ratios = {name: number_of(cost_per_byte(name), "highest_increase") for name in operators}
    worst = max(ratios, key=lambda name: ratios[name])
    return {"ratio": ratios[worst], "operator": worst}


def cost_contrast(dear: str, cheap: str) -> dict[str, Quantity]:
    """The base cost of one operator over that of another, on each platform."""
    found = analyse(load_platforms("ren2025"), OpqOptions(contrasts=((dear, cheap),)))
    return {c.platform.lower(): c.ratio.value for c in found.contrasts if c.ratio is not None}


def platform_ratio(operator: str) -> dict[str, Quantity]:
    """Base cost on Arm over that on x86, in cycles and in time."""
    found = _analysed()
    arm, x86 = (_base(_placement(found, platform, operator)) for platform in ("Arm", "x86"))
    return {"cycles_ratio": arm / x86, "time_ratio": arm / x86 * CLOCKS_GHZ["x86"] / CLOCKS_GHZ["Arm"]}


def most_expensive_operators() -> dict[str, Quantity]:
    """The operator with the highest base cost of each platform, and how many times that is the next one's."""
    ranked = [
        sorted(((_base(p), p.profile.operator) for p in _analysed().of(name)), reverse=True) for name in CLOCKS_GHZ
    ]
    return {
        "operators": tuple(first[1] for first, *_ in ranked),
        "ratios": tuple(first[0] / second[0] for first, second, *_ in ranked),
    }


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
