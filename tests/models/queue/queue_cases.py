"""The reference operating points: found by simulation with 24 to 360 million packets each, with 95 % intervals."""

import csv
from pathlib import Path

import pytest

from p4perf.models.queue import ModeratedQueue, distributions

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"
REFERENCE, SERVICE = DATA / "dta_reference.csv", DATA / "dta_service_pmf.csv"
NEED = pytest.mark.skipif(not REFERENCE.exists(), reason="../shared/data/dta_reference.csv is not here")
ARRIVALS = {
    "det": distributions.deterministic,
    "pois": distributions.poisson_pmf,
    "geo": distributions.geometric,
    "nbin": distributions.negative_binomial,
}
EMP = dict(
    zip(
        range(3, 17),
        (
            *(0.05394, 0.113673, 0.148623, 0.151634, 0.134337, 0.109314, 0.084383),
            *(0.063007, 0.046075, 0.033269, 0.02385, 0.017039, 0.012164, 0.008692),
        ),
        strict=True,
    )
)
"""Service times 3 to 16 us, mean 7.25."""


def emp():
    return distributions.from_samples(list(EMP), list(EMP.values()))


def rows():
    if not REFERENCE.exists():
        return []
    with REFERENCE.open() as stream:
        return list(csv.DictReader(stream))


def services():
    found = {}
    with SERVICE.open() as stream:
        for row in csv.DictReader(stream):
            found.setdefault(row["service"], []).append((int(row["k_us"]), float(row["prob"])))
    return {name: distributions.from_samples(*zip(*pairs, strict=True)) for name, pairs in found.items()}


def moderated(arrival, mean, tau, limit, *, service=None, overhead=4):
    return ModeratedQueue(ARRIVALS[arrival](mean), service or emp(), tau, overhead, limit)


def deviations(row, result):
    """What is outside of the tolerance: (name, found, wanted)."""
    wanted = {name: float(text) for name, text in row.items() if is_number(text)}
    bad = []

    def check(name, found, tolerance):
        if abs(found - wanted[name]) > tolerance:
            bad.append((name, found, wanted[name]))

    check("ED_us", result.mean_us, 1.5 * wanted["ED_ci95"] + 5e-4 * wanted["ED_us"])
    check("std_us", result.std_us, 1.5 * wanted["std_ci95"] + 5e-4 * wanted["std_us"])
    for name, share, times in (("q50", 0.5, 1.5), ("q90", 0.9, 1.5), ("q99", 0.99, 1.5), ("q99_9", 0.999, 2.0)):
        check(f"{name}_us", result.quantile_us(share), max(1.0, times * wanted[f"{name}_ci95"]))
    if wanted["pb"] > 1e-3:
        check("pb", result.loss, 1.5 * wanted["pb_ci95"])
    return bad


def is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True
