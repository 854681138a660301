"""Small cost models as files, with numbers that can be checked by hand."""

from p4perf.models.program.costs import CostModel
from p4perf.models.program.costs_storage import cost_model_json
from p4perf.models.program.memory import MeasuredTable
from p4perf.models.program.prices import Curve, Domain, Price
from p4perf.models.program.primitives import PrimitiveCosts

ENTRIES = (10, 100, 1000, 10_000)
TABLE = {"match_kind": "exact", "key_bits": 128, "action_data_bytes": 64, "tables": 1, "applications": 1, "keys": 1}
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


def small_model(target="fake", clock="2 GHz", baseline=60.0, memory_bytes=None):
    """A baseline of 60, and flat prices.

    Args:
        memory_bytes: of every entry of measured tables; None: none was measured.
    """
    machine = {"cpu_model": "Test CPU @ 2.00GHz"} | ({"core_frequency": clock} if clock else {})
    tables = (
        () if memory_bytes is None else tuple(MeasuredTable({**TABLE, "entries": e}, memory_bytes * e) for e in ENTRIES)
    )
    return CostModel(target, baseline, tables, 1024, machine, primitives=small_prices(target, baseline).record())


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
