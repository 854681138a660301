"""C on DPDK: the program as t4p4s would build it, one static inline step per component.

Packet buffers come from an rte_mempool in bursts of 32. Tables are those of DPDK: rte_hash (cuckoo) with single lookups
for exact match, rte_lpm and rte_lpm6 for the longest prefix, a list that is searched from its beginning for ternary
match (as t4p4s has it). Action data is indexed by what the lookup returns.

The variant ``fib`` takes rte_fib and rte_fib6 for the longest prefix. The variant ``acl`` takes rte_acl for ternary
match: the packets of a burst are parsed first and then looked up all at once, if such a table is the first, and nothing
before it can change its key; else one by one.

Headers are processed in place, in the packet. Only programs that send packets with other headers, or in another order,
than they came with have a deparser: headers that are added live outside of the packet, and at the end all valid headers
are copied out of the packet and back in front of the payload, twice their size in all. A packet that goes through again
is parsed again. A program that writes fields in place and clones or resubmits keeps a copy of the headers as they came.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from typing_extensions import override

from p4perf.errors import CapabilityError
from p4perf.generators.base import OFFERED, GeneratedFile, Generator, render
from p4perf.generators.c import dpdk_text
from p4perf.generators.c.dpdk_text import DpdkCWriter
from p4perf.generators.c.writer import WORD_BITS, cells, check_passes, mask, number
from p4perf.programs import ir
from p4perf.programs.analysis import applied_tables, expressions, statements, used_actions
from p4perf.programs.capabilities import Capabilities, Limit, constructs, standing_at
from p4perf.programs.component import TrafficPlan
from p4perf.programs.dataflow import read_early
from p4perf.programs.entries import Row, rows_of
from p4perf.programs.interpreter import MAX_PASSES
from p4perf.version import __version__

LONGEST_LPM_BITS = 32
"""Keys of rte_lpm and rte_fib; longer ones go to rte_lpm6 and rte_fib6."""

ADDRESS_BYTES = 16
"""Key of rte_lpm6 and rte_fib6."""


@dataclass(frozen=True, slots=True)
class TableText:
    """A table, and what the templates need to know of it besides."""

    of: ir.Table
    index: int
    kind: str
    """Of ``targets/harness/dpdk/tables.h``: ``exact``, ``lpm``, ``lpm6``, ``fib``, ``fib6``, ``list32``, ``list64``,
    ``list``, ``acl``."""
    key_bits: int
    key_number: str | None
    """The key as a number, or None: then :attr:`key_lines` write it to ``key``."""
    key_lines: tuple[str, ...]
    key_room: int
    """Bytes of ``key``."""
    rows: tuple[Row, ...] | None
    """The entries, where they are one by one."""
    data: tuple[str, ...]
    """Initial values of ``struct entry_TABLE`` as C: of each entry, of the default action, and of the choices of
    entries; empty where entries follow a rule."""
    selector: str
    """Number by which packets choose among the actions of an entry."""

    @property
    def zeroed(self) -> bool:
        """Whether bytes of the key are not written by :attr:`key_lines`, or not all at once."""
        return self.kind != "exact" or any(not line.startswith("memcpy") for line in self.key_lines)


_SUMMARIES = {
    "none": "no key, so that every packet takes the default action",
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


def table_kind(program: ir.Program, table: ir.Table, variants: Collection[str]) -> str:
    """The kind of lookup that a table gets: see :attr:`TableText.kind`; ``none`` without a key."""
    bits, kind = program.key_bits(table), program.match_kind(table)
    if not bits:
        return "none"
    if kind == "lpm" and isinstance(table.entries, ir.EntryList):
        # The keys together are a prefix where the lpm key is the last.
        kind = "lpm" if table.keys[-1].match_kind == "lpm" and bits <= 8 * ADDRESS_BYTES else "ternary"
    if kind == "exact":
        return "exact"
    if kind == "lpm":
        return ("fib" if "fib" in variants else "lpm") + ("" if bits <= LONGEST_LPM_BITS else "6")
    if "acl" in variants:
        return "acl"
    return "list32" if bits <= 32 else "list64" if bits <= 64 else "list"


def _table_text(fields: DpdkCWriter, table: ir.Table, index: int, variants: Collection[str]) -> TableText:
    program, listed = fields.program, isinstance(table.entries, ir.EntryList)
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
    data: tuple[str, ...] = ()
    if listed:
        data = (*fields.entries(table, len(table.listing) + 1), fields.default_entry(table), *fields.choices(table))
    return TableText(
        of=table,
        index=index,
        kind=kind,
        key_bits=bits,
        key_number=number,
        key_lines=lines,
        key_room=rooms.get(kind, -(-bits // 8)),
        rows=rows_of(program, table) if listed and bits else None,
        data=data,
        selector=fields.load(table.selector) if table.selector is not None else "",
    )


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
VARIANTS = {ACL: "ternary tables are rte_acl instead of a list", FIB: "lpm tables are rte_fib instead of rte_lpm"}


def capabilities(variants: Collection[str] = ()) -> Capabilities:
    """The table for a choice of :data:`VARIANTS`."""
    acl, fib = ACL in variants, FIB in variants
    return Capabilities(
        "dpdk-c",
        offers=OFFERED | {"hash of the payload", "operator", "fence"},
        limits={
            "frame bytes": Limit(MAX_FRAME_BYTES, "one mbuf a packet"),
            "bytes of added headers": Limit(MAX_ADDED_BYTES, "room before the packet in its mbuf"),
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


def check(program: ir.Program, variants: Collection[str] = ()) -> None:
    """Refuse what the generated C cannot express."""
    capabilities(variants).check(program)
    for state in program.parser:
        if state.select is not None and program.width_bits(state.select) > WORD_BITS:
            bits, ref = program.width_bits(state.select), f"{state.select.header}.{state.select.field}"
            what = f"{ref}, which has {bits} bit; dpdk-c compares up to {WORD_BITS} bit"
            raise CapabilityError(f"state {state.name} selects on {what}")
    for table in program.tables:
        with standing_at(table.place):
            _check_table(program, table, variants)
    check_passes(program, "dpdk-c")


def _check_table(program: ir.Program, table: ir.Table, variants: Collection[str]) -> None:
    if isinstance(table.entries, ir.EntryList):
        return
    kind, bits, free = table_kind(program, table, variants), program.key_bits(table), table.rule.free_bits
    if not 0 <= free <= bits:
        raise CapabilityError(f"table {table.name} has {free} free bits in a key of {bits} bit")
    if kind == "exact" and free:
        raise CapabilityError(f"table {table.name} matches exactly, but {free} bits of its key are free")
    if kind in ("lpm", "lpm6", "fib", "fib6") and free == bits:
        raise CapabilityError(f"table {table.name} has prefixes of no bits, which rte_{kind} does not take")


OWN_OPERATOR = "own_operator.c"
"""The C text of a user's operator, as it was given."""


class DpdkC(Generator):
    """Renders ``program.c`` and ``baseline.c``, which the measuring harness of the local targets links."""

    name = "dpdk-c"
    summary = "C on DPDK: rte_mempool, bursts of 32, rte_hash"

    def __init__(self, variants: Collection[str] = ()) -> None:
        self._variants = tuple(variants)

    @override
    def generate(self, workload: ir.Workload, traffic: TrafficPlan) -> tuple[GeneratedFile, ...]:
        own = next((s.code for s in operators(workload.program) if s.code), None)
        return (
            GeneratedFile("program.c", (render_program(workload.program, "under_test", self._variants),)),
            GeneratedFile("baseline.c", (render_program(workload.baseline, "baseline", self._variants),)),
            *((GeneratedFile(OWN_OPERATOR, (own,)),) if own is not None else ()),
        )


def operators(program: ir.Program) -> tuple[ir.Operator, ...]:
    return tuple(dict.fromkeys(s.operator for s in statements(program) if isinstance(s, ir.RunOperator)))


def render_program(program: ir.Program, role: str, variants: Collection[str] = ()) -> str:
    """One program as a C file that defines ``struct program program_<role>``."""
    check(program, variants)
    body = list(statements(program))
    groups = tuple(dict.fromkeys(s.ports for s in body if isinstance(s, ir.Multicast) and s.ports))
    writer = DpdkCWriter(program, dpdk_text.layout(program), groups)
    tables: list[TableText] = []
    for table in program.tables:
        with standing_at(table.place):
            tables.append(_table_text(writer, table, len(tables), variants))
    first = dpdk_text.first_table(program)
    taken = {name for table in program.tables for name in table.taken}
    asked = set(expressions(program))
    return render(
        "c/program.c.j2",
        program=program,
        plan=writer.plan,
        fields=writer,
        role=role,
        version=__version__,
        used=constructs(program),
        actions=[program.action(name) for name in used_actions(program)],
        with_data=[a for a in program.actions if a.parameters and a.name in taken],
        filled={t.rule.action for t in program.tables if not isinstance(t.entries, ir.EntryList)},
        tables=tables,
        summaries=_SUMMARIES,
        batched=next((t for t in tables if t.of.name == first and t.kind == "acl"), None),
        applied={table.name for table in applied_tables(program)},
        multiplier=ir.ENTRY_MULTIPLIER,
        max_passes=MAX_PASSES,
        absent_bytes=max((header.size_bytes for header in program.headers), default=1),
        hashes=bool(program.verified or program.updated or any(isinstance(s, ir.Hash) for s in body)),
        operators=operators(program),
        parses=any(state.body or state.selected for state in program.parser),
        asks_length=ir.Intrinsic("packet_length") in asked,
        early=read_early(program),
        asks_port=ir.Intrinsic("ingress_port") in asked,
        cells=cells,
        c_type=dpdk_text.c_type,
        mask=mask,
        number=number,
    )
