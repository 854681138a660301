"""Checks of Baldi and Sapio 2018, "Network Function Modeling and Performance Estimation"."""

from __future__ import annotations

from dataclasses import replace

from p4perf.evaluation.eo import load_function, load_hardware
from p4perf.evaluation.reproduction.schema import Quantity
from p4perf.models.eo import (
    Estimate,
    Hardware,
    accesses_per_s,
    estimate,
    make_bill,
    parse_function,
    registered_operations,
)

MACHINE = "xeon-e5-2690v2"
SOCKET_REMOTE_SHARE = 0.5
"""Packets in the cache of the other socket (section 4.2)."""


def operation_cost(operation: str, profile: str = "formula", remote: float = 0.0) -> dict[str, Quantity]:
    """Cycles and accesses to memory of one elementary operation (section 2.2)."""
    function = parse_function("one", [operation])
    bill = make_bill([function], load_hardware(MACHINE, profile), frame_bytes=64, remote=remote)
    return {"cycles": bill.cycles, "dram_accesses": bill.dram_accesses}


def function_cost(function: str, profile: str = "formula", frame_bytes: int = 64) -> dict[str, Quantity]:
    """Cycles, accesses to memory and rates of one core for a function (section 3)."""
    found = _estimated(function, profile, frame_bytes)
    return {
        "cycles": found.bill.cycles,
        "dram_accesses": found.bill.dram_accesses,
        "mpps": found.mpps_per_core,
        "gbps": found.mpps_per_core * found.wire_bytes * 8 / 1e3,
    }


def share_of_links(function: str, profile: str, frame_bytes: tuple[int, int]) -> dict[str, Quantity]:
    """The rate of one core over what all links of the machine carry, for two sizes of frames (section 4.1.1)."""
    links = load_hardware(MACHINE, profile).links
    assert links is not None  # noqa: S101 - the machine of the paper has two ports
    shares = []
    for size in frame_bytes:
        found = _estimated(function, profile, size)
        shares.append(found.mpps_per_core * 1e6 * found.wire_bytes * 8 / (links.ports * links.rate_bps))
    return {"small": shares[0], "large": shares[1]}


def frame_independence(function: str, small_bytes: int, large_bytes: int) -> dict[str, Quantity]:
    """Cycles for large frames over those for small ones."""
    small, large = (_estimated(function, "formula", size).bill.cycles for size in (small_bytes, large_bytes))
    return {"ratio": large / small}


def cache_for_tables() -> dict[str, Quantity]:
    """How large a table may be to lie in L1 and L2 together [KiB], and how many entries of 12 B that are."""
    hardware = load_hardware(MACHINE)
    size = hardware.capacity_bytes("L2")

    def cached(entries: int) -> bool:
        bill = make_bill([parse_function("one", [f"ht_lookup(1, 12, {entries})"])], hardware, frame_bytes=64)
        return not bill.dram_accesses

    entries = size // 12
    return {"kib": size / 1024, "entries_in_cache": entries, "cached": cached(entries), "beyond": cached(entries + 1)}


def cache_latencies(clock_ghz: float) -> dict[str, Quantity]:
    """Latencies of the caches in cycles, and how much longer L3 takes than L2 at a clock [ns]."""
    names = load_hardware(MACHINE, "formula").names()
    l1, l2, l3 = (float(names[level]) for level in ("L1", "L2", "L3"))
    return {"l1_cycles": l1, "l2_cycles": l2, "l3_cycles": l3, "l2_to_l3_ns": (l3 - l2) / clock_ghz}


def published_operations() -> dict[str, Quantity]:
    """How many elementary operations come from Table 1, where two of a row count twice."""
    return {"operations": sum(o.source.startswith("baldi2018") for o in registered_operations().values())}


def prefix_lookups(entry_bytes: int) -> dict[str, Quantity]:
    """Memory accesses of a longest prefix match of up to three bytes, and of a longer one."""
    short, long = (operation_cost(f"lpm_lookup({b}, {entry_bytes})")["dram_accesses"] for b in (3, 4))
    return {"short": short, "long": long}


def memory_rate(function: str, data_rate_mts: float = 1333, cas_cycles: float = 9) -> dict[str, Quantity]:
    """What the memory allows, one access after another, ``(2 CAS + 3) / data rate`` each (section 3.1.1)."""
    found = _estimated(function, "paper", 64)
    memory = replace(found.hardware.memory, data_rate_mts=data_rate_mts, cas_cycles=cas_cycles)
    mpps = accesses_per_s(memory) / found.bill.dram_accesses / 1e6
    return {"mpps": mpps, "gbps": mpps * found.wire_bytes * 8 / 1e3}


def memory_ratio(first: str, second: str) -> dict[str, Quantity]:
    """What the memory allows one function over what it allows another."""
    rates = [memory_rate(name)["mpps"] for name in (first, second)]
    assert isinstance(rates[0], float) and isinstance(rates[1], float)  # noqa: S101, PT018 - rates are
    return {"ratio": rates[0] / rates[1]}


def gateway_rate(frame_bytes: int, cores: int) -> dict[str, Quantity]:
    """The gateway of section 4.2, both directions at equal packet rates: what cores and memory allow [Mpps]."""
    both = [_estimated(name, "paper", frame_bytes) for name in ("bng/access", "bng/core")]
    cycles = sum(each.bill.cycles for each in both) / 2
    accesses = sum(each.bill.dram_accesses for each in both) / 2
    hardware = both[0].hardware
    return {
        "cpu_mpps": cores * hardware.clock_hz / cycles / 1e6,
        "memory_mpps": accesses_per_s(hardware.memory, cores) / accesses / 1e6,
        "extra_cycles": both[0].bill.cycles - _estimated("bng/access", "paper", 64).bill.cycles,
    }


def remote_packets(header_bytes: int, data_bytes: int) -> dict[str, Quantity]:
    """What receiving costs more if half of the packets are in the cache of the other socket (section 4.2)."""
    hardware = load_hardware(MACHINE, "formula")
    function = parse_function("one", [f"I/O_mem({header_bytes}, {data_bytes})"])
    near, far = (make_bill([function], hardware, frame_bytes=64, remote=share) for share in (0.0, SOCKET_REMOTE_SHARE))
    return {"cycles": far.cycles - near.cycles, "dram_accesses": far.dram_accesses - near.dram_accesses}


def cost_ratio(first: str, second: str, profile: str = "formula") -> dict[str, Quantity]:
    """Cycles of one function over those of another."""
    cycles = [_estimated(name, profile, 64).bill.cycles for name in (first, second)]
    return {"ratio": cycles[0] / cycles[1], "difference": cycles[0] - cycles[1]}


def _estimated(function: str, profile: str, frame_bytes: int) -> Estimate:
    hardware: Hardware = load_hardware(MACHINE, profile)
    return estimate([load_function(function)], hardware, frame_bytes=frame_bytes)
