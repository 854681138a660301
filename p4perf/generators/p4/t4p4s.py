"""P4_16 for v1model as t4p4s accepts it (P4ELTE/t4p4s, master of January 2023, with its pinned hlir16, on DPDK).

t4p4s compiles many programs to something else than they say, without a message. What is done about each trap:

* It reads ``egress_port`` and ignores ``egress_spec``: the former is written.
* Metadata that was never written reads as a pseudo-random constant: all of it is set to zero first. So do fields of
  headers that a packet lacks; a note in the program names them.
* Ternary and range keys become exact ones (hlir16 ``hlir_attrs.py:839``): ternary tables are refused.
* Exact tables hold 1024 entries whatever their size says, and lose the others silently: more are refused. All entries
  stand in the program, as its control plane has no messages for our keys; ``size`` is at least their number.
* Sums and differences exist for 8, 16 and 32 bit; comparisons other than for equality compare addresses above 32 bit.
* ``update_checksum`` computes and stores nothing, ``verify_checksum`` compares with zero instead of the checksum,
  ``execute_meter`` prints a line, ``clone`` too, ``resubmit`` and ``recirculate`` do not link: all are refused.
* Hash algorithms that it does not know become the identity, and csum16 lacks the complement. crc32 is CRC-32C from all
  ones, and not of the bytes of the packet: fields of more than 32 bit are all read from the start of their header, and
  others have the byte order of the processor. No hash is taken.
* ``random`` is C's ``rand``, 31 bit, and divides by zero for all of 32 bit: only numbers of 8 and 16 bit are taken.
* Random numbers go to variables first: the C that it generates casts the address of a field to an integer.
* Registers of more than 32 bit do not link.
* A parser error drops, but what the control flow does afterwards can set the port again; v1model's error is not tested,
  as nothing says that it is ever set.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from typing_extensions import override

from p4perf.errors import CapabilityError
from p4perf.generators.p4 import writer as p4
from p4perf.generators.p4.v1model import V1Model, V1Writer
from p4perf.generators.p4.writer import FlowFacts
from p4perf.programs import analysis, ir
from p4perf.programs.capabilities import Capabilities, Limit

MAX_ENTRIES = 1024
"""Entries of an exact table (``HASH_ENTRIES``)."""

MAX_TERNARY_ENTRIES = 255
"""Entries of its list of ternary keys; none today, as they become exact ones."""

MAX_PORT = 99
"""Highest port: 100 is the broadcast of t4p4s, 200 its drop."""

SUM_BITS = (8, 16, 32)
COMPARED_BITS = 32
"""Widest fields that are compared for order."""

RANDOM_BITS = (8, 16)

MAX_PREFIX_GROUPS = 256
"""Groups of prefixes longer than 24 bit (``tbl8``) in ``rte_lpm`` as t4p4s configures it."""

CAPABILITIES = Capabilities(
    owner="t4p4s",
    missing={
        "ternary": "its compiler turns ternary keys into exact ones (hlir16 hlir_attrs.py:839)",
        "hash crc16": "its runtime falls back to the identity (dpdkx_v1model_hash.c)",
        "hash crc32": "it hashes the start of the header in the place of fields of more than 32 bit (multi_actions.c)",
        "hash checksum16": "its csum16 is not complemented (dpdkx_v1model_hash.c)",
        "checksum verify": "its verify_checksum compares with zero, not with the checksum (dpdkx_v1model_checksum.c)",
        "checksum update": "its update_checksum stores nothing (dpdkx_v1model_checksum.c)",
        "meter": "its execute_meter only prints a line (dpdkx_v1model_smem.c)",
        "recirculate": "its runtime does not have it; the program does not link",
        "resubmit": "its runtime does not have it; the program does not link",
        "clone": "its clone only prints a line (dpdkx_v1model_clone.c)",
        "multicast": "its control plane has no message that makes a group (messages.h)",
    },
    limits={
        "exact entries": Limit(MAX_ENTRIES, "HASH_ENTRIES in dpdk_tables.h; more are lost silently"),
        "lpm entries": Limit(
            MAX_ENTRIES, "all entries stand in the program: its control plane has no message for them"
        ),
        "ternary entries": Limit(
            MAX_TERNARY_ENTRIES, "size of its list in 8 bit (ternary_naive.h), which its compiler does not use yet"
        ),
        "lpm key bits": Limit(128, "rte_lpm6"),
        "register bits": Limit(32, "its runtime has no wider registers; the program does not link"),
        "bytes of all headers": Limit(1024, "its deparser has a buffer of 1024 B (dpdk_nicon.h)"),
        "bytes of added headers": Limit(120, "headroom of its packet buffers, as Scholz 2021 has it"),
    },
    remarks={
        "random": "numbers of C's rand",
        "counter": "unverified at run time: the runtime converts the index from network byte order",
    },
)


class T4P4SWriter(V1Writer):
    """v1model as t4p4s takes it: another port field, metadata set to zero, random numbers by way of variables."""

    port_field: ClassVar[str] = "standard_metadata.egress_port"

    @override
    def zeroed(self) -> Iterator[str]:
        yield from (self.field(ir.FieldRef(ir.METADATA, f.name)) for f in self.program.metadata)
        yield from self.flags()

    @override
    def effect(self, statement: ir.Statement, position: int, action: ir.Action, scope: p4.Scope) -> Iterator[str]:
        if not isinstance(statement, ir.Random):
            yield from super().effect(statement, position, action, scope)
            return
        bits = self.program.width_bits(statement.destination)
        draw = f"random({{}}, {bits}w0, {p4.constant_text(-1, bits)});"
        yield from self.by_variable(statement.destination, bits, position, action, draw.format)

    @override
    def is_const(self, table: ir.Table) -> bool:
        return table.entries.count > 0

    @override
    def size(self, table: ir.Table) -> int:
        return max(1, table.entries.count)


class T4P4S(V1Model):
    """Renders the programs for t4p4s, with all their entries."""

    name = "t4p4s"
    summary = "P4_16 for t4p4s (v1model as it takes it)"
    title = "t4p4s (v1model)"
    template = "p4/t4p4s.p4.j2"
    capabilities = CAPABILITIES
    max_port = MAX_PORT
    compilers = (("p4test", "{source}"),)
    writer_class = T4P4SWriter

    @override
    def check(self, program: ir.Program, flow: FlowFacts) -> None:
        super().check(program, flow)
        for statement in analysis.statements(program):
            ref = analysis.destination(statement)
            parts = (e for whole in analysis.operands(statement) for e in analysis.subexpressions(whole))
            sums = any(isinstance(e, ir.BinaryOp) and e.operator in ("+", "-") for e in parts)
            if sums and ref is not None and program.width_bits(ref) not in SUM_BITS:
                widths = ", ".join(map(str, SUM_BITS))
                raise CapabilityError(
                    f"t4p4s adds and subtracts in {widths} bit, not in {program.width_bits(ref)} (codegen.sugar.py:970)"
                )
            if isinstance(statement, ir.Random) and program.width_bits(statement.destination) not in RANDOM_BITS:
                raise CapabilityError(
                    "t4p4s draws random numbers of 8 and 16 bit: rand() has 31 bit, and all of 32 bit divide by zero "
                    "(dpdkx_v1model_random.c)"
                )
        for node in analysis.control_nodes(program.control):
            test = node.condition if isinstance(node, ir.If) else None
            if isinstance(test, ir.Compare) and test.comparator not in ("==", "!="):
                sides = analysis.condition_operands(test)
                if any(isinstance(e, ir.FieldRef) and program.width_bits(e) > COMPARED_BITS for e in sides):
                    raise CapabilityError(
                        f"t4p4s compares addresses instead of fields of more than {COMPARED_BITS} bit"
                    )
        for table in program.tables:
            groups = _prefix_groups(program, table)
            if groups > MAX_PREFIX_GROUPS:
                raise CapabilityError(
                    f"the prefixes of table {table.name} need {groups} tbl8 groups, and t4p4s has {MAX_PREFIX_GROUPS} "
                    "(dpdk_tables.h)"
                )


def _prefix_groups(program: ir.Program, table: ir.Table) -> int:
    """Groups of ``rte_lpm`` (keys of at most 32 bit) that prefixes longer than 24 bit take."""
    width, free = program.key_bits(table), table.rule.free_bits
    if program.match_kind(table) != "lpm" or width > 32 or width - free <= 24:
        return 0
    shared = max(0, width - 24 - free)
    return -(-table.entries.count >> shared)
