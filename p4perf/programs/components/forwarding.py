"""Forwarding: packets that pass again, and copies of them."""

from __future__ import annotations

from pydantic import Field as Bounds
from typing_extensions import override

from p4perf.programs import ir
from p4perf.programs.builder import ProgramBuilder
from p4perf.programs.component import Component, ComponentParameters
from p4perf.programs.components.baseline import append_header

FIELD_BITS = 32
_ONE = ir.Const(1)


def _one_field(builder: ProgramBuilder, header: str, field: str, value: int = 0) -> ir.FieldRef:
    """The field of a header of its own behind the others."""
    added = append_header(builder, header, [ir.Field(field, FIELD_BITS)], {field: value} if value else None)
    return ir.FieldRef(added.name, field)


def _increment(field: ir.FieldRef, by: ir.Expression = _ONE) -> ir.Assign:
    return ir.Assign(field, ir.BinaryOp("+", field, by))


def _repeat(builder: ProgramBuilder, stem: str, statement: ir.Statement, times: int) -> None:
    """Run a statement in the first passes only."""
    again = builder.action(stem, [statement])
    builder.control.append(ir.If(ir.Compare("<", ir.PassNumber(), ir.Const(times)), (again,)))


class Recirculation(Component):
    """The packet is deparsed and goes through the program again, ``times`` times, before it is sent.

    Scaled: the passes. Held: a header with one field, to which every pass adds one, and one conditional. A pass is the
    whole program: parser, control flow, deparser.
    """

    name = "recirculate"
    summary = "a number of recirculations of every packet, after the deparser"

    class Parameters(ComponentParameters):
        times: int = Bounds(ge=0, le=255, description="recirculations of every packet")

    @override
    def extend(self, builder: ProgramBuilder, parameters: Parameters) -> None:
        passes = _one_field(builder, "looped", "passes")
        builder.call("count_pass", [_increment(passes)])
        _repeat(builder, "send_round", ir.Recirculate(), parameters.times)


class Resubmission(Component):
    """The packet goes through the program again as it came, ``times`` times, before it is sent.

    Scaled: the passes. Held: a header with one field, to which every pass adds its number (what the passes before the
    last one wrote is lost with them), and one conditional. A pass is the parser and the control flow; a target that
    sees that nothing else of a pass remains may do less.
    """

    name = "resubmit"
    summary = "a number of resubmissions of every packet, as it arrived"

    class Parameters(ComponentParameters):
        times: int = Bounds(ge=0, le=255, description="resubmissions of every packet")

    @override
    def extend(self, builder: ProgramBuilder, parameters: Parameters) -> None:
        passes = _one_field(builder, "looped", "passes", 1)
        builder.call("note_pass", [_increment(passes, ir.PassNumber())])
        _repeat(builder, "send_again", ir.Resubmit(), parameters.times)


FIRST_PORT = 2
"""Port of the first clone; the packet itself leaves by port 1."""


class Clones(Component):
    """One action clones the packet ``copies`` times, each clone to a port of its own.

    Scaled: the clones. Held: a header with one field. With ``marked`` the action adds one to it, which clones of the
    packet as it came do not show; targets that clone packets as they are sent cannot do that.
    """

    name = "clone"
    summary = "an action that clones the packet a number of times"

    class Parameters(ComponentParameters):
        copies: int = Bounds(ge=0, le=32, description="clones of every packet")
        marked: bool = Bounds(False, description="change the packet, but not its clones")

    @override
    def extend(self, builder: ProgramBuilder, parameters: Parameters) -> None:
        mark = _one_field(builder, "marked", "mark")
        clones = tuple(ir.Clone(FIRST_PORT + n) for n in range(parameters.copies))
        marks = (_increment(mark),) if parameters.marked else ()
        builder.call("clone_packet", (*marks, *clones))


class MulticastPorts(Component):
    """The packet is sent by the ports 1 to ``ports``, all copies as the deparser made them.

    Scaled: the ports. Held: a header with one field, to which the action adds one before. One port is a group of one;
    without any the packet takes the path of the baseline.
    """

    name = "multicast"
    summary = "an action that sends the packet out of a number of ports"

    class Parameters(ComponentParameters):
        ports: int = Bounds(ge=0, le=32, description="ports of the group; 0: no group")

    @override
    def extend(self, builder: ProgramBuilder, parameters: Parameters) -> None:
        mark = _one_field(builder, "marked", "mark")
        group = (ir.Multicast(tuple(range(1, parameters.ports + 1))),) if parameters.ports else ()
        builder.call("send_to_group", (_increment(mark), *group))
