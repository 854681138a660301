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

from p4perf.generators.analysis import control_nodes, statements
from p4perf.generators.base import GeneratedFile, Generator, TrafficPlan
from p4perf.generators.dpdk_c_fields import c_type, is_aligned, mask, number
from p4perf.generators.dpdk_c_layout import Layout, first_table, layout, program_actions
from p4perf.generators.dpdk_c_limits import check
from p4perf.generators.dpdk_c_statements import StatementWriter
from p4perf.generators.dpdk_c_tables import TableText, table_text
from p4perf.generators.interpreter import MAX_PASSES
from p4perf.generators.program import (
    ENTRY_MULTIPLIER,
    Action,
    ApplyTable,
    Fence,
    Hash,
    HeaderChecksum,
    MeterPacket,
    Multicast,
    Operator,
    ParserState,
    Program,
    Random,
    RunOperator,
    SelectCase,
    Workload,
)
from p4perf.generators.rendering import render
from p4perf.version import __version__

OWN_OPERATOR = "own_operator.c"
"""The C text of a user's operator, as it was given."""


class DpdkC(Generator):
    """Renders ``program.c`` and ``baseline.c``, which the measuring harness of the local targets links."""

    name = "dpdk-c"
    summary = "C on DPDK: rte_mempool, bursts of 32, rte_hash"

    def __init__(self, variants: Collection[str] = ()) -> None:
        self._variants = tuple(variants)

    def generate(self, workload: Workload, traffic: TrafficPlan) -> tuple[GeneratedFile, ...]:
        """``program.c`` and ``baseline.c``, and beside them the text of a user's operator.

        Raises:
            CapabilityError: something is beyond :func:`~p4perf.generators.dpdk_c_limits.capabilities`.
        """
        own = next((s.code for s in operators(workload.program) if s.code), None)
        return (
            GeneratedFile("program.c", (render_program(workload.program, "under_test", self._variants),)),
            GeneratedFile("baseline.c", (render_program(workload.baseline, "baseline", self._variants),)),
            *((GeneratedFile(OWN_OPERATOR, (own,)),) if own is not None else ()),
        )


def operators(program: Program) -> tuple[Operator, ...]:
    """The operators that a program runs, each once."""
    return tuple(dict.fromkeys(s.operator for s in statements(program) if isinstance(s, RunOperator)))


def needs_operators(program: Program) -> bool:
    """Whether a program includes ``operators.h``."""
    return any(isinstance(s, RunOperator | Fence) for s in statements(program))


@dataclass(frozen=True, slots=True)
class _View:
    """A program as the templates see it."""

    program: Program
    plan: Layout
    writer: StatementWriter
    actions: tuple[Action, ...]
    tables: tuple[TableText, ...]
    groups: tuple[tuple[int, ...], ...]
    batched: TableText | None
    """The table that is looked up for a whole burst at once."""
    applied: frozenset[str]
    """Names of the tables that the control flow applies."""

    @property
    def with_data(self) -> tuple[Action, ...]:
        """Actions of entries that have action data."""
        names = {table.action for table in self.tables if table.has_data}
        return tuple(action for action in self.program.actions if action.name in names)

    def cases(self, state: ParserState) -> tuple[SelectCase, ...]:
        """The cases of a select; of equal values the first, as C allows one only."""
        return tuple({case.value: case for case in reversed(state.cases)}.values())[::-1]

    def by_words(self, checksum: HeaderChecksum) -> bool:
        """Whether a checksum is one of the words that are summed up."""
        return is_aligned(self.program.header(checksum.header), checksum.field)


def render_program(program: Program, role: str, variants: Collection[str] = ()) -> str:
    """One program as a C file that defines ``struct program program_<role>``."""
    check(program, variants)
    plan, body = layout(program), list(statements(program))
    groups = tuple(dict.fromkeys(s.ports for s in body if isinstance(s, Multicast) and s.ports))
    writer = StatementWriter(program, plan, groups)
    tables = tuple(table_text(writer.fields, t, n, variants) for n, t in enumerate(program.tables))
    first = first_table(program)
    view = _View(
        program=program,
        plan=plan,
        writer=writer,
        actions=program_actions(program),
        tables=tables,
        groups=groups,
        batched=next((t for t in tables if t.name == first and t.kind == "acl"), None),
        applied=frozenset(n.table for n in control_nodes(program.control) if isinstance(n, ApplyTable)),
    )
    return render(
        "c/program.c.j2",
        view=view,
        program=program,
        plan=plan,
        fields=writer.fields,
        role=role,
        version=__version__,
        multiplier=ENTRY_MULTIPLIER,
        max_passes=MAX_PASSES,
        absent_bytes=max((header.size_bytes for header in program.headers), default=1),
        hashes=bool(program.verified or program.updated or any(isinstance(s, Hash) for s in body)),
        operators=operators(program),
        operator_header=needs_operators(program),
        random=any(isinstance(s, Random) for s in body),
        metered=any(isinstance(s, MeterPacket) for s in body),
        c_type=c_type,
        mask=mask,
        number=number,
    )
