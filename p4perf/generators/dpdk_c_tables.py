"""Tables of a program as C text: which kind of lookup each one is, and how its key is made."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from p4perf.generators.dpdk_c_fields import FieldWriter
from p4perf.generators.program import Program, Table

LONGEST_LPM_BITS = 32
"""Keys of rte_lpm and rte_fib; longer ones go to rte_lpm6 and rte_fib6."""

ADDRESS_BYTES = 16
"""Key of rte_lpm6 and rte_fib6."""


@dataclass(frozen=True, slots=True)
class TableText:
    """What the templates need to know of a table."""

    name: str
    index: int
    kind: str
    """Of ``targets/harness/tables.h``: ``exact``, ``lpm``, ``lpm6``, ``fib``, ``fib6``, ``list32``, ``list64``,
    ``list``, ``acl``."""
    summary: str
    action: str
    default: str
    has_data: bool
    port: int
    key_bits: int
    free_bits: int
    key_number: str | None
    """The key as a number, or None: then :attr:`key_lines` write it to ``key``."""
    key_lines: tuple[str, ...]
    key_room: int
    """Bytes of ``key``."""
    words: int
    """64-bit words of the key."""

    @property
    def key_type(self) -> str:
        """C type of a key that is a number."""
        return "uint64_t" if self.kind == "list64" else "uint32_t"

    @property
    def zeroed(self) -> bool:
        """Whether bytes of the key are not written by :attr:`key_lines`, or not all at once."""
        return self.kind != "exact" or any(not line.startswith("memcpy") for line in self.key_lines)


_SUMMARIES = {
    "exact": "exact match, cuckoo hash (rte_hash), single lookups",
    "lpm": "longest prefix match, DIR-24-8 (rte_lpm)",
    "lpm6": "longest prefix match, tables of 24 and then 8 bits each (rte_lpm6)",
    "fib": "longest prefix match, DIR-24-8 (rte_fib)",
    "fib6": "longest prefix match, trie of 24 and then 8 bits each (rte_fib6)",
    "list32": "ternary match, a list of values and masks of 32 bits",
    "list64": "ternary match, a list of values and masks of 64 bits",
    "list": "ternary match, a list of values and masks in words of 64 bits",
    "acl": "ternary match, tries (rte_acl)",
}


def table_kind(program: Program, table: Table, variants: Collection[str]) -> str:
    """The kind of lookup that a table gets: see :attr:`TableText.kind`."""
    bits, kind = program.key_bits(table), program.match_kind(table)
    if kind == "exact":
        return "exact"
    if kind == "lpm":
        return ("fib" if "fib" in variants else "lpm") + ("" if bits <= LONGEST_LPM_BITS else "6")
    if "acl" in variants:
        return "acl"
    return "list32" if bits <= 32 else "list64" if bits <= 64 else "list"


def table_text(fields: FieldWriter, table: Table, index: int, variants: Collection[str]) -> TableText:
    """Everything about one table."""
    program = fields.program
    kind, bits = table_kind(program, table, variants), program.key_bits(table)
    refs = [key.field for key in table.keys]
    number: str | None = None
    lines: tuple[str, ...] = ()
    if kind in ("lpm", "fib", "list32", "list64"):
        number = fields.number(refs)
        if kind in ("lpm", "fib") and bits < LONGEST_LPM_BITS:
            number = f"({number}) << {LONGEST_LPM_BITS - bits}"
    else:
        lines = tuple(fields.gather(refs, "key + 4" if kind == "acl" else "key"))
    rooms = {"lpm6": ADDRESS_BYTES, "fib6": ADDRESS_BYTES, "list": -(-bits // 64) * 8, "acl": 4 + -(-bits // 32) * 4}
    return TableText(
        name=table.name,
        index=index,
        kind=kind,
        summary=_SUMMARIES[kind],
        action=table.entries.action,
        default=table.default_action,
        has_data=bool(program.action(table.entries.action).parameters),
        port=table.entries.port,
        key_bits=bits,
        free_bits=table.entries.free_bits,
        key_number=number,
        key_lines=lines,
        key_room=rooms.get(kind, -(-bits // 8)),
        words=-(-bits // 64),
    )
