"""Checks of Baldi and Sapio 2018, "Network Function Modeling and Performance Estimation"."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from p4perf.evaluation.papers.baldi2018 import load_function, load_hardware
from p4perf.evaluation.papers.claims import Quantity, number_of
from p4perf.models import eo
from p4perf.models.eo.mapping import MIN_FRAME_BYTES, OVERHEAD_BYTES, OperationBreakdown

MACHINE = "xeon-e5-2690v2"
GATEWAY = ("bng/access", "bng/core")
"""Both directions of section 3.2."""
SOCKET_REMOTE_SHARE = 0.5
"""Packets in the cache of the other socket (section 4.2)."""

LINES = "ceil(b / 64)"
"""Accesses of operations whose data are in no cache yet (section 2.2)."""

FIGURE_3_LOOP = ("clear", "load", "add", "subtract", "add", "compare", "jump")
"""What the code of figure 3 executes for each two bytes."""
FIGURE_3_END = ("copy", "shift", "mask", "add", "copy", "shift", "add", "store")
"""And once behind its loop."""


def operation_cost(operation: str, profile: str = "formula", remote: float = 0.0) -> dict[str, Quantity]:
    """Cycles and accesses to memory of one elementary operation (section 2.2)."""
    return _costs(_breakdown(operation, load_hardware(MACHINE, profile), remote))


def function_cost(
    function: str, profile: str = "formula", frame_bytes: int = 64, clock_ghz: float | None = None
) -> dict[str, Quantity]:
    """Cycles, accesses to memory and rates of one core for a function (section 3), at another clock if one is given."""
    found = _estimated(function, profile, frame_bytes, clock_ghz)
    return {**_costs(found.breakdown), **_rates(found.mpps_per_core, found)}


def cycles_of(functions: tuple[str, ...]) -> dict[str, Quantity]:
    """Cycles of functions by the printed formulas."""
    return {"cycles": tuple(_estimated(name, "formula", 64).breakdown.cycles.value for name in functions)}


def field_cost(field_bytes: int, level: Literal["L1", "L2"], in_cache: bool = True) -> dict[str, Quantity]:
    """Cycles and accesses of parsing a field by the other forms of its formula: from L2, or not in a cache yet."""
    hardware = load_hardware(MACHINE, "formula")
    cycles, accesses = (eo.parse_expression(text) for text in (f"{level} * ceil(b / 8)", "0" if in_cache else LINES))
    rule = replace(hardware.rules["parse"], cycles=cycles, accesses=accesses)
    hardware = replace(hardware, rules={**hardware.rules, "parse": rule})
    return _costs(_breakdown(f"parse({field_bytes})", hardware))


def estimates_over_sizes(function: str, profile: str, frame_bytes: tuple[int, ...]) -> dict[str, Quantity]:
    """The estimates that figures 10 to 12 draw over packet sizes: lowest and highest rate of one core [Mpps]."""
    rates = [_estimated(function, profile, size).mpps_per_core for size in frame_bytes]
    return {"lowest_mpps": min(rates), "highest_mpps": max(rates)}


def share_of_links(function: str, profile: str, frame_bytes: tuple[int, int]) -> dict[str, Quantity]:
    """The rate of one core over what all links of the machine carry, for two sizes of frames (section 4.1.1)."""
    links = load_hardware(MACHINE, profile).links
    assert links is not None  # noqa: S101 - the machine of the paper has two ports
    found = [_estimated(function, profile, size) for size in frame_bytes]
    small, large = (e.mpps_per_core * 1e6 * e.wire_bytes * 8 / (links.ports * links.rate_bps) for e in found)
    return {"small": small, "large": large}


def cache_for_tables() -> dict[str, Quantity]:
    """How large a table may be to lie in L1 and L2 together [KiB], and how many entries of 12 B that are."""
    hardware = load_hardware(MACHINE)
    size = hardware.capacity_bytes("L2")
    entries = size // 12
    cached, beyond = (not _breakdown(f"ht_lookup(1, 12, {n})", hardware).dram_accesses for n in (entries, entries + 1))
    return {"kib": size / 1024, "entries_in_cache": entries, "cached": cached, "beyond": beyond}


def cache_latencies() -> dict[str, Quantity]:
    """Latencies of the caches in cycles."""
    names = load_hardware(MACHINE, "formula").names()
    return {f"{level.lower()}_cycles": float(names[level]) for level in ("L1", "L2", "L3")}


def published_operations() -> dict[str, Quantity]:
    """How many elementary operations come from Table 1, where two of a row count twice."""
    return {"operations": sum(o.source.startswith("baldi2018") for o in eo.registered_operations().values())}


def prefix_lookups(entry_bytes: int) -> dict[str, Quantity]:
    """Memory accesses of a longest prefix match of up to three bytes, and of a longer one."""
    short, long = (operation_cost(f"lpm_lookup({b}, {entry_bytes})")["dram_accesses"] for b in (3, 4))
    return {"short": short, "long": long}


def memory_rates(
    accesses: tuple[float, ...], data_rate_mts: float = 1333, cas_cycles: float = 9
) -> dict[str, Quantity]:
    """What the memory allows with some accesses a packet, one after another, ``(2 CAS + 3) / data rate`` each."""
    memory = replace(load_hardware(MACHINE).memory, data_rate_mts=data_rate_mts, cas_cycles=cas_cycles)
    return {"mpps": tuple(eo.accesses_per_s(memory) / each / 1e6 for each in accesses)}


def rates_of_cycles(clock_ghz: float, cycles: tuple[float, ...]) -> dict[str, Quantity]:
    """What a core does with packets of 64 B that take some cycles; ``mpps_by_1024`` has 1024 in place of 1000."""
    mpps = [1e3 * clock_ghz / each for each in cycles]
    return {
        "mpps": tuple(mpps),
        "gbps": tuple(rate * 8 * (MIN_FRAME_BYTES + OVERHEAD_BYTES) / 1e3 for rate in mpps),
        "mpps_by_1024": tuple(1.024 * rate for rate in mpps),
    }


def both_directions(mpps: tuple[float, float]) -> dict[str, Quantity]:
    """The average of the rates of two directions, and what is possible of both at equal packet rates [Mpps]."""
    return {"average_mpps": sum(mpps) / 2, "equal_mpps": 2 / sum(1 / each for each in mpps)}


def memory_ratio(first: str, second: str) -> dict[str, Quantity]:
    """What the memory allows one function over what it allows another, by the accesses of both."""
    over, under = (_estimated(name, "paper", 64).breakdown.dram_accesses for name in (first, second))
    return {"ratio": under / over}


def gateway_rate(frame_bytes: int, cores: int) -> dict[str, Quantity]:
    """The gateway of section 4.2, both directions at equal packet rates: what cores and memory allow [Mpps].

    ``serial_mpps`` is that of a memory that serves one access of all cores after another, as in section 3.1.1, and
    ``mean_of_directions_mpps`` the mean of what the cores can do of each direction alone.
    """
    both = [_estimated(name, "paper", frame_bytes) for name in GATEWAY]
    cycles = sum(each.breakdown.cycles.value for each in both) / 2
    accesses = sum(each.breakdown.dram_accesses for each in both) / 2
    hardware = both[0].hardware
    cpu, serial = cores * hardware.clock_hz / cycles / 1e6, eo.accesses_per_s(hardware.memory) / accesses / 1e6
    return {
        "cpu_mpps": cpu,
        "mean_of_directions_mpps": cores * sum(each.mpps_per_core for each in both) / 2,
        "serial_mpps": serial,
        "bound": "memory" if serial < cpu else "cpu",
        "memory_mpps": eo.accesses_per_s(hardware.memory, cores) / accesses / 1e6,
        "extra_cycles": both[0].breakdown.cycles.value - _estimated("bng/access", "paper", 64).breakdown.cycles.value,
    }


def remote_packets(header_bytes: int, data_bytes: int) -> dict[str, Quantity]:
    """What receiving costs more if half of the packets are in the cache of the other socket (section 4.2)."""
    hardware = load_hardware(MACHINE, "formula")
    operation = f"I/O_mem({header_bytes}, {data_bytes})"
    near, far = (_breakdown(operation, hardware, share) for share in (0.0, SOCKET_REMOTE_SHARE))
    return {"cycles": far.cycles.value - near.cycles.value, "dram_accesses": far.dram_accesses - near.dram_accesses}


def platform_specific(small_bytes: int, large_bytes: int) -> dict[str, Quantity]:
    """Figure 13: by how much half of the packets in the other socket's cache lower what the memory allows [%].

    The mean of both directions of the gateway; the memory serves one access after another.
    """
    lost: dict[str, Quantity] = {}
    for name, size in (("small", small_bytes), ("large", large_bytes)):
        accesses = []
        for remote in (0.0, SOCKET_REMOTE_SHARE):
            both = [load_function(each) for each in GATEWAY]
            hardware = load_hardware(MACHINE, "paper")
            breakdowns = [eo.make_breakdown([each], hardware, frame_bytes=size, remote=remote) for each in both]
            accesses.append(sum(breakdown.dram_accesses for breakdown in breakdowns) / len(breakdowns))
        lost[f"{name}_percent"] = 100 * (1 - accesses[0] / accesses[1])
        lost[f"{name}_added_accesses"] = accesses[1] - accesses[0]
    return lost


def learning_costs(entries: int) -> dict[str, Quantity]:
    """Renewing an entry of a table of that size, and what learning adds to the totals of section 3.1 [cycles]."""
    totals = [_estimated(name, "paper", 64).breakdown.cycles.value for name in ("switch/learning", "switch/basic")]
    renewing = operation_cost(f"ct_insertion(2, 14, {entries}, 0)")
    return {**{f"renewing_{name}": value for name, value in renewing.items()}, "added_cycles": totals[0] - totals[1]}


def encapsulated_bytes(function: str, headers: tuple[int, ...]) -> dict[str, Quantity]:
    """The bytes of some headers of figure 7 together, and what the model of a function encapsulates."""
    (call,) = (call for call in load_function(function).calls if call.operation.name == "deparse")
    return {"bytes": sum(headers), "modelled_bytes": float(call.values({})["b"])}


def figure_3_cycles(few_bytes: int, many_bytes: int) -> dict[str, Quantity]:
    """Instructions of figure 3 for each two bytes and besides, and the cycles of the formula for both."""
    few, many = (number_of(operation_cost(f"checksum({size})"), "cycles") for size in (few_bytes, many_bytes))
    each = (many - few) / ((many_bytes - few_bytes) / 2)
    return {"instructions": (len(FIGURE_3_LOOP), len(FIGURE_3_END)), "cycles": (each, few - each * few_bytes / 2)}


def figure_3_words(data_bytes: int) -> dict[str, Quantity]:
    """How many words the loop of figure 3 adds, which ends when no more than one byte is left."""
    words, left = 0, data_bytes
    while True:
        words, left = words + 1, left - 2
        if left <= 1:
            return {"words": words}


def figure_3_sum(words: tuple[int, ...]) -> dict[str, Quantity]:
    """What the code of figure 3 stores for words of 16 bit, and their checksum by RFC 1071."""
    total = sum(words)
    folded = (total >> 16) + (total & 0xFFFF)
    stored = (folded + (folded >> 16)) & 0xFFFF
    while total >> 16:
        total = (total >> 16) + (total & 0xFFFF)
    return {"stored": stored, "checksum": total ^ 0xFFFF, "complement": stored ^ 0xFFFF}


def cost_ratio(
    first: str, second: str, profile: str = "formula", frame_bytes: tuple[int, int] = (64, 64)
) -> dict[str, Quantity]:
    """Cycles of one function over those of another, each with its size of frames."""
    pairs = zip((first, second), frame_bytes, strict=True)
    over, under = (_estimated(name, profile, size).breakdown.cycles.value for name, size in pairs)
    return {"ratio": over / under, "difference": over - under}


def _breakdown(operation: str, hardware: eo.Hardware, remote: float = 0.0) -> OperationBreakdown:
    return eo.make_breakdown([eo.parse_function("one", [operation])], hardware, frame_bytes=64, remote=remote)


def _costs(breakdown: OperationBreakdown) -> dict[str, Quantity]:
    return {"cycles": breakdown.cycles.value, "dram_accesses": breakdown.dram_accesses}


def _rates(mpps: float, found: eo.RateEstimate) -> dict[str, Quantity]:
    return {"mpps": mpps, "gbps": mpps * found.wire_bytes * 8 / 1e3}


def _estimated(function: str, profile: str, frame_bytes: int, clock_ghz: float | None = None) -> eo.RateEstimate:
    hardware: eo.Hardware = load_hardware(MACHINE, profile)
    if clock_ghz is not None:
        hardware = replace(hardware, clock_hz=clock_ghz * 1e9)
    return eo.estimate([load_function(function)], hardware, frame_bytes=frame_bytes)
