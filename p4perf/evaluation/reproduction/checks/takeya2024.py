"""Checks of Takeya et al. 2024, "Understanding Roadblocks in Virtual Network I/O", on the data that it published."""

from __future__ import annotations

import itertools
from functools import cache

from p4perf.errors import UsageError
from p4perf.evaluation.eivu import SERVERS, Claim, Study, check_claims, read_study
from p4perf.evaluation.eivu.study import FACTORS, number_at
from p4perf.evaluation.factors import FactorAnalysis, analyse
from p4perf.evaluation.reproduction.schema import Quantity
from p4perf.models.cesim import CacheHierarchy, CacheModel, Variant
from p4perf.specs.items import read_items


def study_claim(number: int) -> dict[str, Quantity]:
    """What the measurements say of a claim of ``p4perf eivu claims``."""
    return {"verdict": _claims()[number].verdict}


def study_number(number: int, path: str) -> dict[str, Quantity]:
    """A number that such a claim is judged by; ``path`` leads to it, as in ``lowest_hit_pct.0``."""
    value: object = _claims()[number].numbers
    for part in path.split("."):
        value = value[int(part)] if isinstance(value, list | tuple) else _below(value, part)
    if not isinstance(value, bool | int | float | str):
        raise UsageError(f"{path} of claim {number} is no number")
    return {"value": value}


def throughput(server: str, item: str) -> dict[str, Quantity]:
    """Throughput of an item, or of dpdk_split or dpdk_packed, on a server [Mpps]."""
    return {"mpps": _mpps(server, item)}


def throughput_gain(server: str, item: str, over: str) -> dict[str, Quantity]:
    """Throughput of one item over that of another."""
    return {"ratio": _mpps(server, item) / _mpps(server, over)}


def dpdk_range(queues: str) -> dict[str, Quantity]:
    """Lowest and highest throughput of DPDK over the servers, with ``dpdk_split`` or ``dpdk_packed`` queues [Mpps]."""
    found = [_mpps(server, queues) for server in SERVERS]
    return {"lowest_mpps": min(found), "highest_mpps": max(found)}


def counts() -> dict[str, Quantity]:
    """Items by category, and the cells of the factorial design that exist."""
    items = read_items()
    found: dict[str, Quantity] = {"items": len(items)}
    found |= {
        category: sum(item.category == category for item in items)
        for category in ("base", "programmatic", "configurational", "combinational")
    }
    subsets = sum(1 for n in range(2, len(FACTORS) + 1) for _ in itertools.combinations(FACTORS, n))
    return {**found, "cells": len(_study().factorial("S1").cells), "subsets_of_two_and_more": subsets}


def factor_effects(server: str, factor: str) -> dict[str, Quantity]:
    """What a factor is worth as the last one, whether it is worth most, and the best that is reached without it."""
    found = _factors(server)
    last = {name: gain.ratio for name, gain in found.last.items() if gain is not None}
    return {
        "ratio": last[factor],
        "first": max(last, key=lambda name: last[name]),
        "best_without_mpps": found.best_without(factor) or 0.0,
    }


def loads_per_packet(server: str, item: str) -> dict[str, Quantity]:
    """Loads that were counted per packet of an item, from its misses and its hit ratio."""
    rows = _study().items(server)
    missed = 1 - number_at(rows, item, "l1_hit_pct") / 100
    return {"loads": number_at(rows, item, "l1_miss_pp") / missed}


def model_parameters(alpha: float) -> dict[str, Quantity]:
    """What follows from the parameters of CESim: latencies behind L1 [ns], loads in series, acceleration."""
    model = CacheModel(alpha)
    return {
        "beyond_l1_ns": model.hierarchy.beyond_l1_ns(),
        "processing_ns": model.processing_ns,
        "serial_accesses": model.serial_accesses,
        "beta": model.beta,
        "best_mpps": float(model.throughput_mpps(1.0)),
    }


def model_throughput(alpha: float, hit_percent: float, variant: Variant = "parallelised") -> dict[str, Quantity]:
    """Throughput of the model at a hit ratio of L1 [Mpps]."""
    return {"mpps": float(CacheModel(alpha, variant=variant).throughput_mpps(hit_percent / 100))}


def model_hit_ratio(alpha: float, mpps: float, variant: Variant = "parallelised") -> dict[str, Quantity]:
    """The hit ratio of L1 that a throughput needs [%]."""
    return {"hit_percent": 100 * CacheModel(alpha, variant=variant).hit_ratio_for(mpps)}


def model_tipping_point(alpha: float) -> dict[str, Quantity]:
    """Where throughput is halved, and how steep it is there against the simple model."""
    model = CacheModel(alpha)
    tipping = model.tipping_point()
    slope = tipping.slope_mpps / model.with_variant("simple").tipping_point().slope_mpps
    return {
        "half_miss_ratio": tipping.half_miss_ratio or 0.0,
        "analytic_miss_ratio": tipping.analytic_miss_ratio or 0.0,
        "slope_ratio": slope,
    }


def model_levels(alpha: float, hit_percent: float) -> dict[str, Quantity]:
    """Lowest and highest throughput at a hit ratio of L1 over hit ratios of L2 and L3 from none to all [Mpps]."""
    found = [
        float(
            CacheModel(alpha, hierarchy=CacheHierarchy(l2_hit_ratio=r2, l3_hit_ratio=r3)).throughput_mpps(
                hit_percent / 100
            )
        )
        for r2 in (0.0, 0.7, 1.0)
        for r3 in (0.0, 0.79, 1.0)
    ]
    return {"lowest_mpps": min(found), "highest_mpps": max(found), "spread": max(found) / min(found) - 1}


@cache
def _study() -> Study:
    return read_study()


@cache
def _claims() -> dict[int, Claim]:
    return {claim.number: claim for claim in check_claims(_study())}


@cache
def _factors(server: str) -> FactorAnalysis:
    return analyse(_study().factorial(server), resamples=10)


def _mpps(server: str, item: str) -> float:
    if server not in SERVERS:
        raise UsageError(f"there is no server {server!r}", hint=f"known: {', '.join(SERVERS)}")
    rows = _study().dpdk(server) if item.startswith("dpdk") else _study().items(server)
    return number_at(rows, item, "mpps")


def _below(value: object, part: str) -> object:
    if not isinstance(value, dict) or part not in value:
        raise UsageError(f"there is no number {part!r}")
    return value[part]
