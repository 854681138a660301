"""C on DPDK: the program as t4p4s would build it, one static inline step per component.

Packet buffers come from an rte_mempool in bursts of 32; exact tables are rte_hash (cuckoo) with single-packet lookups
and action data indexed by the position that the lookup returns. Headers are processed in place, in the packet.
"""

from __future__ import annotations

from collections.abc import Iterator

from p4perf.errors import CapabilityError
from p4perf.generators.analysis import subexpressions
from p4perf.generators.base import GeneratedFile, Generator, TrafficPlan
from p4perf.generators.program import (
    ENTRY_MULTIPLIER,
    METADATA,
    Action,
    Assign,
    BinaryOp,
    Const,
    Drop,
    Expression,
    FieldRef,
    ParameterRef,
    Program,
    SetEgress,
    Table,
    Workload,
)
from p4perf.generators.rendering import render
from p4perf.version import __version__

MAX_ARITHMETIC_BITS = 64
MAX_KEY_BYTES = 64


class DpdkC(Generator):
    """Renders ``program.c`` and ``baseline.c``, which the measuring harness of the local targets links."""

    name = "dpdk-c"
    summary = "C on DPDK: rte_mempool, bursts of 32, rte_hash"

    def generate(self, workload: Workload, traffic: TrafficPlan) -> tuple[GeneratedFile, ...]:
        """``program.c`` and ``baseline.c``.

        Raises:
            CapabilityError: a field wider than 64 bit is computed with, a key is not made of whole bytes or longer than
                64 B, headers are not emitted in the order in which they came, or a field is written that the parser of
                the next packet would select on.
        """
        return (
            GeneratedFile("program.c", (render_program(workload.program, "under_test"),)),
            GeneratedFile("baseline.c", (render_program(workload.baseline, "baseline"),)),
        )


def render_program(program: Program, role: str) -> str:
    """One program as a C file that defines ``struct program program_<role>``."""
    _check(program)
    writer = _Writer(program)
    return render(
        "c/program.c.j2",
        program=program,
        role=role,
        version=__version__,
        multiplier=ENTRY_MULTIPLIER,
        absent_bytes=max(header.size_bytes for header in program.headers),
        written=_written_headers(program),
        load=writer.load,
        statements=writer.statements,
        key_lines=writer.key_lines,
        c_type=c_type,
        mask=mask,
    )


def _written_headers(program: Program) -> list[str]:
    """Names of the headers that an action writes to, in the order of the program."""
    written = {s.destination.header for a in program.actions for s in a.body if isinstance(s, Assign)}
    return [header.name for header in program.headers if header.name in written]


def c_type(width_bits: int) -> str:
    """The unsigned C type that holds a value of that width."""
    return next(f"uint{size}_t" for size in (8, 16, 32, 64) if width_bits <= size)


def mask(width_bits: int) -> str:
    """A C constant with the lowest ``width_bits`` bits set."""
    return f"0x{(1 << width_bits) - 1:x}u" + ("ll" if width_bits > 32 else "")


class _Writer:
    """Expressions, statements and keys of one program as C text."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def _place(self, ref: FieldRef) -> tuple[int, int]:
        """Offset in its header and width of a field, in bits."""
        return self._program.header(ref.header).offset_bits(ref.field), self._program.width_bits(ref)

    def load(self, ref: FieldRef) -> str:
        if ref.header == METADATA:
            return f"p->m_{ref.field}"
        offset, width = self._place(ref)
        if offset % 8 == 0 and width % 8 == 0:
            return f"load_bytes(p->h_{ref.header} + {offset // 8}, {width // 8})"
        return f"load_bits(p->h_{ref.header}, {offset}, {width})"

    def expression(self, e: Expression) -> str:
        if isinstance(e, Const):
            return f"{e.value}u" + ("ll" if e.value >= 1 << 32 else "")
        if isinstance(e, FieldRef):
            return self.load(e)
        if isinstance(e, BinaryOp):
            return f"({self.expression(e.left)} {e.operator} {self.expression(e.right)})"
        if isinstance(e, ParameterRef):
            return f"d->{e.name}"
        raise CapabilityError(f"dpdk-c: {type(e).__name__} is not available")

    def statements(self, action: Action) -> Iterator[str]:
        for statement in action.body:
            if isinstance(statement, Drop):
                yield "p->dropped = true;"
            elif isinstance(statement, SetEgress):
                yield f"p->egress = (int32_t){self.expression(statement.port)};"
            elif isinstance(statement, Assign):
                yield self._assignment(statement)
            else:
                raise CapabilityError(f"dpdk-c: {type(statement).__name__} is not available")

    def _assignment(self, statement: Assign) -> str:
        ref, value = statement.destination, self.expression(statement.value)
        if ref.header == METADATA:
            return f"p->m_{ref.field} = {value} & {mask(self._program.width_bits(ref))};"
        offset, width = self._place(ref)
        if offset % 8 == 0 and width % 8 == 0:
            return f"store_bytes(p->h_{ref.header} + {offset // 8}, {width // 8}, {value});"
        return f"store_bits(p->h_{ref.header}, {offset}, {width}, {value});"

    def key_lines(self, table: Table) -> Iterator[str]:
        at = 0
        for key in table.keys:
            width = self._program.width_bits(key.field)
            if key.field.header == METADATA:
                yield f"store_bytes(key + {at}, {width // 8}, {self.load(key.field)});"
            else:
                offset, _ = self._place(key.field)
                yield f"memcpy(key + {at}, p->h_{key.field.header} + {offset // 8}, {width // 8});"
            at += width // 8


def _check(program: Program) -> None:
    """Refuse what this generator cannot express."""
    order = [h.name for h in program.headers]
    extracted = [name for state in program.parser for name in state.extracts]
    if list(program.emit) != order or extracted != order:
        raise CapabilityError("dpdk-c processes headers in place: they have to be emitted in the order of extraction")
    selected = {state.select for state in program.parser if state.select}
    for action in program.actions:
        for statement in action.body:
            if not isinstance(statement, Assign):
                continue
            if statement.destination in selected:
                raise CapabilityError(
                    f"action {action.name} writes {statement.destination.header}.{statement.destination.field}, on "
                    "which the parser selects; buffers are used again, so the next packet would be parsed otherwise"
                )
            used = [statement.destination, *(e for e in subexpressions(statement.value) if isinstance(e, FieldRef))]
            for ref in used:
                if program.width_bits(ref) > MAX_ARITHMETIC_BITS:
                    raise CapabilityError(
                        f"{ref.header}.{ref.field} has {program.width_bits(ref)} bit; dpdk-c computes with up to "
                        f"{MAX_ARITHMETIC_BITS} bit"
                    )
    for table in program.tables:
        _check_key(program, table)


def _check_key(program: Program, table: Table) -> None:
    for key in table.keys:
        width = program.width_bits(key.field)
        inside = key.field.header != METADATA
        offset = program.header(key.field.header).offset_bits(key.field.field) if inside else 0
        if width % 8 or offset % 8:
            raise CapabilityError(
                f"key {key.field.header}.{key.field.field} of {table.name} is not made of whole bytes"
            )
    if program.key_bits(table) > MAX_KEY_BYTES * 8:
        raise CapabilityError(f"the key of {table.name} is longer than {MAX_KEY_BYTES} B, the limit of dpdk-c")
