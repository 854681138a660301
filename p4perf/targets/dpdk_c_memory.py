"""Memory of the tables and states of a program on DPDK 22.11, in bytes, from the layouts of its libraries."""

from __future__ import annotations

from collections.abc import Collection

from p4perf.generators.dpdk_c_tables import table_kind
from p4perf.generators.program import Program, Table

TBL24_BYTES = 4 << 24
"""First stage of rte_lpm, rte_lpm6, rte_fib and rte_fib6: four bytes for every value of 24 bits."""

_GROUP_BYTES = 4 << 8
_METER_BYTES = 32
_TABLE_BYTES = 16 << 10
"""What is set aside for a table beside its entries: descriptors, ring of free slots, names."""

_SEEN_BYTES = {"exact": 1984, "list": 256, "list32": 256}
"""What it takes of that, by the kind of table: seen with one table in the heap."""

_SEEN_OTHERWISE_BYTES = 2224


def program_bytes(program: Program, variants: Collection[str] = ()) -> int:
    """Memory to set aside for all tables, counters, registers and meters, in bytes."""
    return sum(item_bytes(program, variants).values()) + _TABLE_BYTES * len(program.tables)


def item_bytes(program: Program, variants: Collection[str] = ()) -> dict[str, int]:
    """Memory of each table, counter, register and meter, in bytes, by its name."""
    found = {}
    for table in program.tables:
        beside = _SEEN_BYTES.get(table_kind(program, table, variants), _SEEN_OTHERWISE_BYTES)
        found[table.name] = table_bytes(program, table, variants) + beside
    found |= {c.name: 8 * c.size for c in program.counters} | {r.name: 8 * r.size for r in program.registers}
    return found | {m.name: _METER_BYTES * m.size for m in program.meters}


def table_bytes(program: Program, table: Table, variants: Collection[str] = ()) -> int:
    """Memory of one table with its action data, in bytes."""
    kind, count = table_kind(program, table, variants), max(table.entries.count, 1)
    bits = program.key_bits(table)
    if kind == "exact":
        slots = max(count * 5 // 4, 64)
        buckets = 64 * max(_power_of_two(slots) // 8, 1)
        return buckets + slots * (_key_slot(bits) + entry_bytes(program, table)) + 4 * _power_of_two(slots + 1)
    data = count * entry_bytes(program, table)
    if kind in ("lpm", "lpm6", "fib", "fib6"):
        return data + _prefix_bytes(kind, count, bits - table.entries.free_bits)
    if kind == "acl":
        # Rules, and transitions: rarely more than two nodes of 1 KiB at the bottom of a trie for 256 rules.
        fields = 1 + -(-bits // 32)
        return data + count * (12 + 16 * fields) + count * 16 * fields + (1 << 20)
    words = -(-bits // 64)
    return data + count * (8 if kind == "list32" else 16 * words)


def entry_bytes(program: Program, table: Table) -> int:
    """Action data of one entry, in bytes: whole cache lines, none if the action has no parameters."""
    data = program.action(table.entries.action).data_bits // 8
    return -(-data // 64) * 64


def touched_bytes(program: Program, table: Table, entries: int) -> float:
    """Bytes of cache lines that lookups of all entries of an exact table touch: buckets, key slots, action data."""
    buckets = 64 * _power_of_two(entries * 5 // 4) / 8
    return buckets + entries * (_key_slot(program.key_bits(table)) + entry_bytes(program, table))


def _prefix_bytes(kind: str, count: int, depth: int) -> int:
    if kind in ("lpm", "fib"):
        groups = _distinct(count, depth, 24) if depth > 24 else 0
        return TBL24_BYTES + groups * _GROUP_BYTES + count * (8 if kind == "lpm" else 256)
    if kind == "lpm6":
        groups = sum(_distinct(count, depth, length) for length in range(24, depth, 8))
        return TBL24_BYTES + groups * (_GROUP_BYTES + 16) + count * 80
    groups = -(-depth // 8) * _distinct(count, depth, depth // 8 * 8)
    return TBL24_BYTES + groups * _GROUP_BYTES + count * 384


def _distinct(count: int, depth: int, length: int) -> int:
    """How many prefixes of some length ``count`` neighbouring prefixes of ``depth`` bits have among them."""
    return -(-count >> max(depth - length, 0))


def _key_slot(key_bits: int) -> int:
    return -(-(8 + -(-key_bits // 8)) // 16) * 16


def _power_of_two(n: int) -> int:
    return 1 << max(n - 1, 1).bit_length()
