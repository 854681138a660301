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

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from typing_extensions import override

from p4perf.errors import CapabilityError
from p4perf.generators.base import GeneratedFile, Generator, render
from p4perf.generators.c import dpdk_text
from p4perf.generators.c.dpdk_text import DpdkCWriter, DpdkLayout
from p4perf.generators.c.writer import WORD_BITS, cells, check_passes, mask, number
from p4perf.programs import ir
from p4perf.programs.analysis import (
    control_nodes,
    expressions,
    statements,
    used_actions,
)
from p4perf.programs.capabilities import Capabilities, Limit, standing_at
from p4perf.programs.component import TrafficPlan
from p4perf.programs.entries import Row, rows_of
from p4perf.programs.interpreter import MAX_PASSES
from p4perf.version import __version__

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
    """Of ``targets/harness/dpdk/tables.h``: ``exact``, ``lpm``, ``lpm6``, ``fib``, ``fib6``, ``list32``, ``list64``,
    ``list``, ``acl``."""
    summary: str
    actions: tuple[str, ...]
    """What entries may run; there is more than one only where they are one by one."""
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

    rows: tuple[Row, ...] | None = None
    """The entries, where they are one by one."""
    data: tuple[str, ...] = ()
    """Initial values of the data of each entry, of the default action, and of the choices of entries, as C."""
    default_at: int = 0
    """Place of the default action there."""
    counter: str = ""
    """The counter of its entries."""
    selector: str = ""
    """Number by which packets choose among the actions of an entry."""

    @property
    def action(self) -> str:
        """The action of the entries of a rule."""
        return self.actions[0]

    @property
    def key_type(self) -> str:
        return "uint64_t" if self.kind == "list64" else "uint32_t"

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
    """The kind of lookup that a table gets: see :attr:`TableText.kind`."""
    bits, kind = program.key_bits(table), program.match_kind(table)
    if not bits:
        return "none"
    if kind == "lpm" and isinstance(table.entries, ir.EntryList) and not _whole_prefixes(table, bits):
        kind = "ternary"
    if kind == "exact":
        return "exact"
    if kind == "lpm":
        return ("fib" if "fib" in variants else "lpm") + ("" if bits <= LONGEST_LPM_BITS else "6")
    if "acl" in variants:
        return "acl"
    return "list32" if bits <= 32 else "list64" if bits <= 64 else "list"


def _whole_prefixes(table: ir.Table, bits: int) -> bool:
    """Whether the keys together, the lpm key last, are what a table of prefixes takes."""
    return table.keys[-1].match_kind == "lpm" and bits <= 8 * ADDRESS_BYTES


def table_text(fields: DpdkCWriter, table: ir.Table, index: int, variants: Collection[str]) -> TableText:
    with standing_at(table.place):
        return _table_text(fields, table, index, variants)


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
    return TableText(
        name=table.name,
        index=index,
        kind=kind,
        summary=_SUMMARIES[kind],
        actions=table.listed or (table.default_action,),
        default=table.default_action,
        has_data=listed or bool(program.action(table.rule.action).parameters),
        port=0 if listed else table.rule.port,
        key_bits=bits,
        free_bits=0 if listed else table.rule.free_bits,
        key_number=number,
        key_lines=lines,
        key_room=rooms.get(kind, -(-bits // 8)),
        words=-(-bits // 64),
        rows=rows_of(program, table) if listed and bits else None,
        data=tuple(_initial_values(fields, table)) if listed else (),
        default_at=len(table.listing),
        counter=table.counter,
        selector=fields.load(table.selector) if table.selector is not None else "",
    )


def _initial_values(fields: DpdkCWriter, table: ir.Table) -> Iterator[str]:
    """The data of each entry, of the default action, and of choices, as initial values of ``struct entry_TABLE``."""
    yield from fields.entries(table, len(table.listing) + 1)
    yield fields.default_entry(table)
    yield from fields.choices(table)


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
        offers=frozenset(
            {
                *(
                    "operator",
                    "fence",
                    "range",
                    "optional",
                    "entries one by one",
                    "control flow by table result",
                    "exit",
                ),
                *("branch in an action", "general expression", "compound condition", "parser computation"),
                *("noted parser error", "signed field", "intrinsic metadata", "byte counter", "digest", "truncation"),
                "egress",
                "action selector",
                "counter of entries",
            }
        ),
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
            raise CapabilityError(f"state {state.name} selects on {_wide(program, state.select)}")
    for table in program.tables:
        with standing_at(table.place):
            _check_table(program, table, variants)
    check_passes(program, "dpdk-c")


def _wide(program: ir.Program, ref: ir.FieldRef) -> str:
    return f"{ref.header}.{ref.field}, which has {program.width_bits(ref)} bit; dpdk-c compares up to {WORD_BITS} bit"


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


@dataclass(frozen=True, slots=True)
class _View:
    program: ir.Program
    plan: DpdkLayout
    writer: DpdkCWriter
    actions: tuple[ir.Action, ...]
    tables: tuple[TableText, ...]
    groups: tuple[tuple[int, ...], ...]
    batched: TableText | None
    """The table that is looked up for a whole burst at once."""
    applied: frozenset[str]

    @property
    def with_data(self) -> tuple[ir.Action, ...]:
        names = {action for table in self.tables if table.has_data for action in (*table.actions, table.default)}
        names = {name for name in names if self.program.action(name).parameters}
        return tuple(action for action in self.program.actions if action.name in names)

    def cases(self, state: ir.ParserState) -> tuple[ir.SelectCase, ...]:
        """The cases of a select; of equal values the first, as C allows one only."""
        return tuple({case.value: case for case in reversed(state.cases)}.values())[::-1]

    def taken(self, table: TableText) -> tuple[str, ...]:
        return self.program.table(table.name).taken

    @property
    def filled(self) -> frozenset[str]:
        """Actions whose data follows a rule."""
        return frozenset(table.action for table in self.tables if table.has_data and not table.data)

    def control(self, nodes: tuple[ir.ControlNode, ...]) -> Iterator[str]:
        found = "p->found" if self.batched and nodes is self.program.control else ""
        return self.writer.control(nodes, found=found)

    def initial(self) -> Iterator[str]:
        """What metadata begins with."""
        return (line for statement in self.program.initial for line in self.writer.statement(statement))

    @property
    def parses(self) -> bool:
        return any(state.body or state.selected for state in self.program.parser)

    def by_value(self, state: ir.ParserState) -> bool:
        """Whether a state selects one field by its values."""
        return state.select is not None and all(
            m.low == m.high and m.mask == -1 for c in state.cases for m in c.matches
        )

    def by_words(self, checksum: ir.FieldRef) -> bool:
        """Whether a checksum is one of the words that are summed up."""
        return self.program.header(checksum.header).offset_bits(checksum.field) % 16 == 0


def render_program(program: ir.Program, role: str, variants: Collection[str] = ()) -> str:
    """One program as a C file that defines ``struct program program_<role>``."""
    check(program, variants)
    plan, body = dpdk_text.layout(program), list(statements(program))
    groups = tuple(dict.fromkeys(s.ports for s in body if isinstance(s, ir.Multicast) and s.ports))
    writer = DpdkCWriter(program, plan, groups)
    tables = tuple(table_text(writer, t, n, variants) for n, t in enumerate(program.tables))
    first = dpdk_text.first_table(program)
    asked = set(expressions(program))
    view = _View(
        program=program,
        plan=plan,
        writer=writer,
        actions=tuple(program.action(name) for name in used_actions(program)),
        tables=tables,
        groups=groups,
        batched=next((t for t in tables if t.name == first and t.kind == "acl"), None),
        applied=frozenset(
            n.table for n in control_nodes(program.control + program.egress) if isinstance(n, ir.ApplyTable)
        ),
    )
    return render(
        "c/program.c.j2",
        view=view,
        program=program,
        plan=plan,
        fields=writer,
        role=role,
        version=__version__,
        multiplier=ir.ENTRY_MULTIPLIER,
        max_passes=MAX_PASSES,
        absent_bytes=max((header.size_bytes for header in program.headers), default=1),
        hashes=bool(program.verified or program.updated or any(isinstance(s, ir.Hash) for s in body)),
        operators=operators(program),
        operator_header=any(isinstance(s, ir.RunOperator | ir.Fence) for s in body),
        random=any(isinstance(s, ir.Random) for s in body),
        metered=any(isinstance(s, ir.MeterPacket) for s in body),
        asks_length=ir.Intrinsic("packet_length") in asked,
        asks_port=ir.Intrinsic("ingress_port") in asked,
        cells=cells,
        c_type=dpdk_text.c_type,
        mask=mask,
        number=number,
    )
