"""What generated C on DPDK can do and up to where: the table of its capabilities, and what no table can say."""

from __future__ import annotations

from collections.abc import Collection

from p4perf.errors import CapabilityError
from p4perf.generators.analysis import condition_operands, control_nodes
from p4perf.generators.capabilities import Capabilities, Limit
from p4perf.generators.dpdk_c_fields import WORD_BITS
from p4perf.generators.dpdk_c_tables import table_kind
from p4perf.generators.program import Const, FieldRef, If, Program, Table

MAX_EXACT_ENTRIES = 100_000_000
"""Beyond it the 32-bit ring and bucket arithmetic of rte_hash in DPDK 22.11 comes near its limit of 2**30 slots."""

MAX_LPM_ENTRIES = 200_000
"""rte_lpm_add searches all rules of the same length: 100,000 take 2 to 5 s, 200,000 four times that, and so on."""

MAX_FIB_ENTRIES = 1 << 24
MAX_LIST_ENTRIES = 100_000
MAX_ACL_ENTRIES = 100_000

MAX_FRAME_BYTES = 2048
MAX_ADDED_BYTES = 512
MAX_COPIES = 64
MAX_TABLES = 1024
MAX_VARYING = 8
MAX_KEY_BITS = 4096
MAX_ACL_KEY_BITS = 63 * 32

ACL = "acl"
FIB = "fib"
VARIANTS = {
    ACL: "ternary tables are rte_acl instead of a list",
    FIB: "lpm tables are rte_fib instead of rte_lpm",
}


def capabilities(variants: Collection[str] = ()) -> Capabilities:
    """The table for a choice of :data:`VARIANTS`."""
    acl, fib = ACL in variants, FIB in variants
    return Capabilities(
        "dpdk-c",
        offers=frozenset({"operator", "fence"}),
        limits={
            "frame bytes": Limit(MAX_FRAME_BYTES, "one mbuf a packet"),
            "bytes of added headers": Limit(MAX_ADDED_BYTES, "room before the packet in its mbuf"),
            "computed field bits": Limit(WORD_BITS, "C has no wider numbers"),
            "register bits": Limit(WORD_BITS, "C has no wider numbers"),
            "tables": Limit(MAX_TABLES, "counters of the harness"),
            "exact entries": Limit(MAX_EXACT_ENTRIES, "rte_hash of DPDK 22.11 has at most 2**30 slots"),
            "exact key bits": Limit(MAX_KEY_BITS, "the key is copied before it is looked up"),
            "lpm entries": Limit(MAX_FIB_ENTRIES, "measured: memory and time of rte_fib")
            if fib
            else Limit(MAX_LPM_ENTRIES, "rte_lpm_add searches all rules for each new one; variant fib takes more"),
            "lpm key bits": Limit(128, "rte_lpm6 and rte_fib6 have addresses of 16 B"),
            "ternary entries": Limit(MAX_ACL_ENTRIES, "rte_acl_build, time and memory")
            if acl
            else Limit(MAX_LIST_ENTRIES, "a list that is searched from its beginning"),
            "ternary key bits": Limit(MAX_ACL_KEY_BITS, "rte_acl has 64 fields, of which the first has one byte")
            if acl
            else Limit(MAX_KEY_BITS, "the key is copied before it is looked up"),
            "nested conditionals": Limit(200, "nested blocks of C; clang takes 256"),
            "copies": Limit(MAX_COPIES, "room for copies in the harness"),
            "varying fields": Limit(MAX_VARYING, "packet source of the harness"),
        },
    )


def check(program: Program, variants: Collection[str] = ()) -> None:
    """Refuse what the generated C cannot express.

    Raises:
        CapabilityError: the message names the limit and where it comes from.
    """
    capabilities(variants).check(program)
    for state in program.parser:
        if state.select is not None and program.width_bits(state.select) > WORD_BITS:
            raise CapabilityError(f"state {state.name} selects on {_wide(program, state.select)}")
    for node in control_nodes(program.control):
        if isinstance(node, If):
            for e in condition_operands(node.condition):
                if isinstance(e, Const) and e.value >> WORD_BITS:
                    raise CapabilityError(f"dpdk-c compares with numbers of up to {WORD_BITS} bit, not with {e.value}")
    for table in program.tables:
        _check_table(program, table, variants)


def _wide(program: Program, ref: FieldRef) -> str:
    return f"{ref.header}.{ref.field}, which has {program.width_bits(ref)} bit; dpdk-c compares up to {WORD_BITS} bit"


def _check_table(program: Program, table: Table, variants: Collection[str]) -> None:
    kind, bits, free = table_kind(program, table, variants), program.key_bits(table), table.entries.free_bits
    if not 0 <= free <= bits:
        raise CapabilityError(f"table {table.name} has {free} free bits in a key of {bits} bit")
    if kind == "exact" and free:
        raise CapabilityError(f"table {table.name} matches exactly, but {free} bits of its key are free")
    if kind in ("lpm", "lpm6", "fib", "fib6") and free == bits:
        raise CapabilityError(f"table {table.name} has prefixes of no bits, which rte_{kind} does not take")
