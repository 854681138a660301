"""Checks of Takeya et al. 2024, "Understanding Roadblocks in Virtual Network I/O", on the data that it published."""

from __future__ import annotations

import itertools
import re
from functools import cache

from p4perf.errors import UsageError
from p4perf.evaluation.papers.claims import Quantity
from p4perf.evaluation.papers.takeya2024 import eivu
from p4perf.evaluation.papers.takeya2024.cesim import CacheHierarchy, CacheModel, Variant, log_error
from p4perf.evaluation.papers.takeya2024.factors import FactorAnalysis, analyse
from p4perf.models.eo.mapping import MIN_FRAME_BYTES, OVERHEAD_BYTES
from p4perf.specs.items import FACTORS, read_items

_CHANGE = re.compile(r"(?P<before>\d+)(?: [a-zA-Z]+)? -> (?:(?P<after>\d+))?")


def study_claim(number: int) -> dict[str, Quantity]:
    """The verdict of a row of ``p4perf reproduce eivu``."""
    return {"verdict": _findings()[number].verdict}


def study_numbers(number: int, path: str) -> dict[str, Quantity]:
    """The numbers of such a row under a name, such as ``lowest_hit_pct``, mostly of the servers in their order."""
    found = _findings()[number].numbers
    if not isinstance(values := found.get(path), list):
        raise UsageError(f"there are no numbers {path!r} of claim {number}")
    return {"values": tuple(values)}


def rank_correlations(column: str, others: tuple[str, ...], study: eivu.Study | None = None) -> dict[str, Quantity]:
    """Of a column with others, such as ``l1_miss_pp``, on the servers that counted both; of the published data."""
    found = (eivu.rank_correlations(study or _study(), column, other) for other in others)
    return {"values": tuple(value for by_server in found for value in by_server.values())}


def throughput(server: str, item: str) -> dict[str, Quantity]:
    """Throughput of an item, or of dpdk_split or dpdk_packed, on a server [Mpps]."""
    return {"mpps": _mpps(server, item)}


def throughput_gain(server: str, item: str, over: str) -> dict[str, Quantity]:
    return {"ratio": _mpps(server, item) / _mpps(server, over)}


def dpdk_range(queues: str) -> dict[str, Quantity]:
    """Lowest and highest throughput of DPDK over the servers, with ``dpdk_split`` or ``dpdk_packed`` queues.

    Bit rates count preamble and gap.
    """
    low, high = (of(_mpps(server, queues) for server in eivu.SERVERS) for of in (min, max))
    bits = 8 * (MIN_FRAME_BYTES + OVERHEAD_BYTES) / 1e3
    return {"lowest_mpps": low, "highest_mpps": high, "lowest_gbps": bits * low, "highest_gbps": bits * high}


def counts() -> dict[str, Quantity]:
    """Items by category, and the cells of the factorial design that exist."""
    items = read_items()
    found: dict[str, Quantity] = {"items": len(items)}
    found |= {
        category: sum(item.category == category for item in items)
        for category in ("base", "programmatic", "configurational", "combinational")
    }
    subsets = sum(1 for n in range(2, len(eivu.FACTORS) + 1) for _ in itertools.combinations(eivu.FACTORS, n))
    return {**found, "cells": len(_study().factorial("S1").cells), "subsets_of_two_and_more": subsets}


def items_of_servers() -> dict[str, Quantity]:
    return {"items": tuple(len(_study().items(server)) for server in eivu.SERVERS)}


def kinds_of_items(category: str) -> dict[str, Quantity]:
    """The kinds of modification that the items of a category have."""
    return {"kinds": tuple(sorted({i.group.split(" / ")[0] for i in read_items() if i.category == category}))}


def changes_of_factor(factor: str, items: tuple[str, ...]) -> dict[str, Quantity]:
    """Sizes before and after some items, whether these belong to a factor, and the first size less the others."""
    found = [_CHANGE.search(item.change) for item in read_items() if item.number in items]
    before = [int(change["before"]) for change in found if change]
    after = [int(change["after"]) for change in found if change and change["after"]]
    return {
        "before": tuple(before),
        "after": tuple(after),
        "smaller": len(after) == len(before) and all(new < old for new, old in zip(after, before, strict=True)),
        "rest": before[0] - sum(before[1:]),
        "of_factor": set(items) <= set(FACTORS[factor][1]),
    }


def bits_as_packets(gbps: float) -> dict[str, Quantity]:
    """Packets of 64 B of a rate in Gbit/s, if that counts preamble and gap, and if it does not [Mpps]."""
    bits = 1e3 * gbps / 8
    return {"mpps": bits / (MIN_FRAME_BYTES + OVERHEAD_BYTES), "mpps_of_frames_alone": bits / MIN_FRAME_BYTES}


def gains_over_servers(items: tuple[str, ...], servers: tuple[str, ...] = tuple(eivu.SERVERS)) -> dict[str, Quantity]:
    """Throughput of items over that of the base, of each on several servers."""
    return {"ratios": tuple(_mpps(server, item) / _mpps(server, "001") for item in items for server in servers)}


def best_items() -> dict[str, Quantity]:
    """The factors of the fastest item of each server, and its throughput [Mpps]."""
    fastest = [_study().items(server).sort_values("mpps").iloc[-1] for server in eivu.SERVERS]
    return {
        "factors": tuple(str(item["factors"]) for item in fastest),
        "mpps": tuple(float(item["mpps"]) for item in fastest),
    }


def gains_of_factor(factor: str) -> dict[str, Quantity]:
    """The gain of a factor as the last one, and the factor that gains most so, on each server."""
    every = [{n: g.value for n, g in _factors(server).last.items() if g is not None} for server in eivu.SERVERS]
    return {
        "ratios": tuple(gains[factor] for gains in every),
        "first": tuple(max(gains, key=gains.__getitem__) for gains in every),
    }


def median_miss_percent() -> dict[str, Quantity]:
    """The median share of loads that miss L1 over the items of each server [%]."""
    return {"percents": tuple(float(100 - _study().items(s)["l1_hit_pct"].median()) for s in eivu.SERVERS)}


def hit_ratios_of(server: str, item: str) -> dict[str, Quantity]:
    """The hit ratios of L2 and L3 that were counted of an item, and those of the model [%]."""
    rows, model = _study().items(server), CacheHierarchy()
    return {
        "l2_percent": eivu.number_at(rows, item, "l2_hit_pct"),
        "l3_percent": eivu.number_at(rows, item, "l3_hit_pct"),
        "model_l2_percent": 100 * model.l2_hit_ratio,
        "model_l3_percent": 100 * model.l3_hit_ratio,
    }


def model_machine() -> dict[str, Quantity]:
    """Clock and latencies of the modelled machine."""
    model = CacheHierarchy()
    return {"clock_ghz": model.clock_ghz, "cycles": (model.l1_cycles, model.l2_cycles, model.l3_cycles)}


def model_errors(server: str, alpha: float) -> dict[str, Quantity]:
    """Root mean square of the logarithm of model over measurement, at the hit ratios of all items of a server."""
    rows = _study().items(server)[["l1_hit_pct", "mpps"]].dropna()
    hit_ratio, model = rows["l1_hit_pct"].to_numpy() / 100, CacheModel(alpha)
    simple, parallelised = (log_error(m, hit_ratio, rows["mpps"]) for m in (model.with_variant("simple"), model))
    return {"simple": simple, "parallelised": parallelised, "ratio": simple / parallelised}


def loads_per_packet(server: str, item: str) -> dict[str, Quantity]:
    """Loads that were counted per packet of an item, from its misses and its hit ratio."""
    rows = _study().items(server)
    missed = 1 - eivu.number_at(rows, item, "l1_hit_pct") / 100
    return {"loads": eivu.number_at(rows, item, "l1_miss_pp") / missed}


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
    ratios = itertools.product((0.0, 0.7, 1.0), (0.0, 0.79, 1.0))
    levels = [CacheHierarchy(l2_hit_ratio=r2, l3_hit_ratio=r3) for r2, r3 in ratios]
    found = [float(CacheModel(alpha, hierarchy=each).throughput_mpps(hit_percent / 100)) for each in levels]
    return {"lowest_mpps": min(found), "highest_mpps": max(found), "spread": max(found) / min(found) - 1}


@cache
def _study() -> eivu.Study:
    return eivu.read_study()


@cache
def _findings() -> dict[int, eivu.StudyFinding]:
    return {finding.number: finding for finding in eivu.study_findings(_study())}


@cache
def _factors(server: str) -> FactorAnalysis:
    return analyse(_study().factorial(server), resamples=10)


def _mpps(server: str, item: str) -> float:
    if server not in eivu.SERVERS:
        raise UsageError(f"there is no server {server!r}", hint=f"known: {', '.join(eivu.SERVERS)}")
    rows = _study().dpdk(server) if item.startswith("dpdk") else _study().items(server)
    return eivu.number_at(rows, item, "mpps")
