"""A pretended machine: what each elementary operation costs on it, in core cycles, and so what micro-benchmarks see."""

from p4perf.evaluation.papers.baldi2018.calibration import Chase, cache_shares
from p4perf.models.estimate import exactly

CACHES = {"L1": 48 << 10, "L2": 2 << 20, "L3": 32 << 20}
AVAILABLE = 16 << 30
BASE = 20.0
TRUE = {
    "parse": 0.5, "deparse": 0.75, "increase": 0.25, "sum": 0.5, "extract": 1.0, "branch": 0.5, "miss": 30.0,
    "word": 3.0, "entry": 0.25, "hash": 60.0, "any": 30.0,
    "array": 1.0, "lpm": 5.0, "byte": 4.0, "list": 2.0, "each": 1.5,
}  # fmt: skip
STALLS = {"L2": 5.0, "L3": 40.0, "DRAM": 200.0}


def stall(size):
    return sum(STALLS.get(level, 0.0) * share for level, share in cache_shares(CACHES, size).items())


def lookup(case):
    words, data = case.key_bits // 64, case.data_bytes // 8
    cost = TRUE["hash"] + (TRUE["word"] + TRUE["parse"] + TRUE["deparse"]) * words + TRUE["entry"] * (words + data)
    cost += TRUE["any"] * (1 - 1 / case.entries)
    if case.operation == "ct_insertion":
        return cost - TRUE["entry"] * data + 25.0
    return cost + (3 * stall(109 * case.entries) if case.name not in ("hash",) and case.entries > 200 else 0)


def cost(case):
    """What one packet takes more with the operation of a case."""
    name = case.operation
    if name in ("parse", "deparse", "increase", "sum", "extract", "branch"):
        return case.count * TRUE[name]
    if name == "miss":
        return TRUE["parse"] + TRUE["branch"] + TRUE["miss"] / 2
    if name == "array_access":
        return case.count * (TRUE["array"] + stall(8 * case.cells))
    if case.table == "exact":
        return lookup(case)
    if case.table == "lpm":
        return TRUE["parse"] + TRUE["lpm"] + TRUE["entry"] * 8
    if case.table == "lpm6":
        return 2 * (TRUE["parse"] + TRUE["deparse"]) + TRUE["lpm"] + TRUE["entry"] * 8 + 5 * TRUE["byte"]
    if case.table.startswith("list"):
        missed = TRUE["miss"] * (1 - 1 / 8)
        return TRUE["parse"] + TRUE["list"] + missed + TRUE["each"] * (case.entries + 1) / 2
    return float(case.size)


def chases():
    """What the pointer chase sees, by level and chains."""
    return {
        (level, chains): Chase(1, chains, exactly(cycles))
        for level, cycles in {"L1": 5.0, "L2": 15.0, "L3": 60.0, "DRAM": 300.0}.items()
        for chains in (1, 16)
    }
