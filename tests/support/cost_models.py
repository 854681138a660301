"""Small cost models as files, with numbers that can be checked by hand."""

from p4perf.models.program.costs import CostModel
from p4perf.models.program.costs_storage import cost_model_json
from p4perf.models.program.curves import ComponentCosts, CostPoint
from p4perf.models.program.prices import Curve, Domain, Price
from p4perf.models.program.primitives import PrimitiveCosts

ENTRIES = (10, 100, 1000, 10_000)
TABLE = {"match_kind": "exact", "key_bits": 128, "action_data_bytes": 64}
FLAT = {
    "extract": 2.0,
    "select": 1.0,
    "emit": 4.0,
    "lookup lpm": 20.0,
    "write header": 3.0,
    "write metadata": 1.0,
    "condition": 1.0,
    "compute": 1.0,
    "set egress": 1.0,
    "drop": 1.0,
    "checksum update": 30.0,
}


def small_model(target="fake", clock="2 GHz", baseline=60.0, primitives=True):
    """A baseline of 60; tables of 40 cycles and 10 more for each factor of ten of entries beyond 10; headers 5 each."""
    tables = tuple(CostPoint({**TABLE, "entries": e}, 40.0 + 10 * n, 0.5) for n, e in enumerate(ENTRIES))
    headers = tuple(CostPoint({"headers": n, "header_bits": 32}, 5.0 * n, 0.2) for n in (0, 1, 4, 8))
    machine = {"cpu_model": "Test CPU @ 2.00GHz"} | ({"core_frequency": clock} if clock else {})
    return CostModel(
        target=target,
        baseline=baseline,
        baseline_error=0.5,
        components={
            "match_action_table": ComponentCosts("match_action_table", dict(TABLE), tables),
            "parser_headers": ComponentCosts("parser_headers", {"header_bits": 32}, headers),
        },
        frame_bytes=1024,
        machine=machine,
        primitives=small_prices(target, baseline).record() if primitives else None,
    )


def small_prices(target, baseline):
    """Flat prices, and exact tables of 40 cycles at 10 entries and 70 at 10000; 10 % to either side."""
    grown = Curve("entries", "log", (10.0, 10_000.0), (0.0, 30.0))
    exact = Price(
        "lookup exact", 40.0, (grown,), domains=(Domain("entries", (10.0, 10_000.0)),), low=0.9, high=1.1,
        sources=("mat/exact-entries",), points=4,
    )  # fmt: skip
    prices = [Price(key, cycles, low=0.9, high=1.1, sources=(f"flat/{key}",)) for key, cycles in FLAT.items()]
    return PrimitiveCosts(target, baseline, {p.key: p for p in (*prices, exact)})


def write_model(path, **more):
    """Write a small model; its path."""
    path.write_text(cost_model_json(small_model(**more)))
    return path
