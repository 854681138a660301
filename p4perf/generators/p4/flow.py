"""What the control flow of a program can do on any of its paths: only what a program needs of this is generated."""

from __future__ import annotations

from dataclasses import dataclass

from p4perf.errors import CapabilityError
from p4perf.programs import ir
from p4perf.programs.analysis import expressions, statements
from p4perf.programs.dataflow import PathState, follow

_LASTING = (ir.CountPacket, ir.MeterPacket, ir.WriteRegister, ir.Clone)
"""Statements that leave something behind even if the packet is dropped."""


@dataclass(frozen=True, slots=True)
class FlowFacts:
    """What can happen on the paths of a program."""

    may_lack_port: bool
    """A packet can pass without any egress port set and without a drop."""
    revived: bool
    """Something after a drop can set the port."""
    drops: bool
    """A packet can be dropped."""
    lasting_after_drop: bool
    """Something after a drop can leave something behind: a count, a register, a clone."""
    recirculates: bool
    resubmits: bool
    """A packet can go through the program again."""
    drop_after_again: bool
    """A packet that is to go through again can be dropped after that was said."""
    cloning_actions: int
    """The most actions with clones that one packet can meet."""
    counts_passes: bool
    """The number of the pass is asked for."""

    @property
    def again(self) -> bool:
        """Whether a packet can go through the program again."""
        return self.recirculates or self.resubmits


def analyse(program: ir.Program) -> FlowFacts:
    """Derive what the P4 text has to provide for from the dataflow of a program.

    Raises:
        CapabilityError: a field is read of a header that may have been removed; no P4 dialect says what that gives.
    """
    found = follow(program)
    for read in found.reads:
        if read.field.header in read.state.removed:
            raise CapabilityError(
                f"field {read.field.field} of header {read.field.header} is read after the header was removed, "
                "which P4_16 leaves undefined"
            )
    end = found.end or PathState()
    after_drop = [step.what for step in found.steps if step.state.droppers]
    kinds = {type(s) for s in statements(program)}
    return FlowFacts(
        may_lack_port=not end.decided,
        revived=any(isinstance(s, ir.SetEgress) or (isinstance(s, ir.Multicast) and s.ports) for s in after_drop),
        drops=bool(end.droppers),
        lasting_after_drop=any(isinstance(s, _LASTING) for s in after_drop),
        recirculates=ir.Recirculate in kinds,
        resubmits=ir.Resubmit in kinds,
        drop_after_again=any(isinstance(step.what, ir.Drop) and step.state.passes_again for step in found.steps),
        cloning_actions=end.clones,
        counts_passes=any(isinstance(e, ir.PassNumber) for e in expressions(program)),
    )


def possibly_absent(program: ir.Program) -> frozenset[str]:
    """Headers that some packets come without, although the program asks for their fields without a test.

    P4_16 leaves undefined what their fields read as; a Program says zero.
    """
    extracted = {name for state in program.parser for name in state.extracts}
    reads = (r for r in follow(program).reads if r.field.header not in r.state.valid)
    return frozenset(r.field.header for r in reads if r.field.header in extracted)
