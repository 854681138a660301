"""What SWX leaves to the program: headers that are read while they are not there, unwritten metadata, drops.

A header of SWX that was not extracted points to wherever it was last, metadata keeps what the packet before left, and
``drop`` ends a packet at once. What a :class:`~p4perf.programs.ir.Program` means is what the instructions make
of that; here is found out where they are needed, so that no others are.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from p4perf.errors import CapabilityError
from p4perf.programs import ir
from p4perf.programs.analysis import statements
from p4perf.programs.dataflow import PORT, PathState, follow


@dataclass(slots=True)
class Findings:
    """What the instructions have to take care of."""

    unset: set[ir.FieldRef] = field(default_factory=set)
    """Metadata that may be read before it was written; ``PORT`` if no egress port may have been set."""
    maybe_invalid: set[str] = field(default_factory=set)
    """Headers that may be read or written while they are not valid."""
    unsafe_reads: set[ir.FieldRef] = field(default_factory=set)
    """Fields that may be read while their header is not valid."""
    unsafe_writes: set[tuple[str, ir.FieldRef]] = field(default_factory=set)
    """Actions and fields that they may write while the header is not valid."""
    read_again: set[ir.FieldRef] = field(default_factory=set)
    """Fields that may be read after they were written, all while their header is not valid."""
    flagged_drops: set[str] = field(default_factory=set)
    """Actions that drop a packet after which something is still to be seen, so that they may not end it."""
    edges: dict[tuple[str, str], PathState] = field(default_factory=dict)
    """What is known when the parser goes from a state to another one."""


def parser_order(program: ir.Program) -> list[ir.ParserState]:
    """The states that can be reached, each after all those that lead to it."""
    order: list[str] = []
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            raise CapabilityError(f"dpdk-swx has no loops of parser states, and {name} is in one")
        if name == ir.ACCEPT or name in done:
            return
        state = program.state(name)
        # The last successor is visited first, so that a state stands right before its default or only case.
        for successor in (*reversed([c.next_state for c in state.cases]), state.default):
            visit(successor, (*path, name))
        done.add(name)
        order.append(name)

    visit("start", ())
    return [program.state(name) for name in reversed(order)]


_SHOWS = (ir.CountPacket, ir.WriteRegister, ir.Clone, ir.ApplyTable)
"""What can be noticed although the packet is dropped; tables count their hits."""


def _flagged_drops(program: ir.Program) -> set[str]:
    """Actions with a drop after which something can still be noticed, wherever they are run."""
    if uses(program, ir.Clone):
        return {a.name for a in program.actions if any(isinstance(s, ir.Drop) for s in a.body)}
    return {name for step in follow(program).steps if isinstance(step.what, _SHOWS) for name in step.state.droppers}


def examine(program: ir.Program) -> Findings:
    """What the instructions of a program have to take care of."""
    flagged = _flagged_drops(program)
    found = follow(program, drop_ends=lambda action: action not in flagged)
    findings = Findings(flagged_drops=flagged, edges=found.edges)
    for state in parser_order(program):
        if (selected := found.selects.get(state.name)) is None:
            continue
        if selected.field.header == ir.METADATA:
            findings.unset.add(selected.field)
        elif selected.field.header not in selected.state.valid:
            raise CapabilityError(
                f"parser state {state.name} selects on {selected.field.header}.{selected.field.field}, "
                "which may not be there"
            )
    for read in found.reads:
        if read.field.header == ir.METADATA:
            if read.field not in read.state.assigned:
                findings.unset.add(read.field)
        elif read.field.header not in read.state.valid:
            findings.maybe_invalid.add(read.field.header)
            findings.unsafe_reads.add(read.field)
            if read.field in read.state.lost_writes:
                findings.read_again.add(read.field)
    for write in found.writes:
        if write.field.header not in (ir.METADATA, *write.state.valid):
            findings.maybe_invalid.add(write.field.header)
            findings.unsafe_writes.add((write.action or "", write.field))
    if found.end is not None and PORT not in found.end.assigned:
        findings.unset.add(PORT)
    return findings


def uses(program: ir.Program, kind: type) -> bool:
    return any(isinstance(s, kind) for s in statements(program))


def recirculates_by_flag(program: ir.Program) -> bool:
    """Whether recirculation has to wait for the end: SWX would take the next packet for one that comes back."""
    return uses(program, ir.Recirculate) and uses(program, ir.Drop)
