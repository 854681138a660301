"""Forwarding: packets that pass again, and copies of them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field as Bounds
from typing_extensions import override

from p4perf.programs import ir
from p4perf.programs.builder import ProgramBuilder
from p4perf.programs.component import Component, ComponentParameters
from p4perf.programs.components.baseline import append_header

PASSES_BITS = 32


class Recirculation(Component):
    """The packet is deparsed and goes through the program again, ``times`` times, before it is sent.

    Scaled: the passes. Held: a header with one field, to which every pass adds one, and one conditional. A pass is the
    whole program: parser, control flow, deparser.
    """

    name = "recirculate"
    summary = "packets that go through the program again after the deparser, a number of times"

    class Parameters(ComponentParameters):
        """Parameters of the recirculation."""

        times: Annotated[int, Bounds(ge=0, le=255, description="recirculations of every packet")]

    @override
    def extend(self, builder: ProgramBuilder, parameters: Parameters) -> None:
        header = ir.Header(builder.unique("looped"), (ir.Field("passes", PASSES_BITS),))
        append_header(builder, header)
        passes = ir.FieldRef(header.name, "passes")
        count, again = builder.unique("count_pass"), builder.unique("send_round")
        builder.add_action(ir.Action(count, body=(ir.Assign(passes, ir.BinaryOp("+", passes, ir.Const(1))),)))
        builder.add_action(ir.Action(again, body=(ir.Recirculate(),)))
        builder.add_control(ir.CallAction(count))
        builder.add_control(
            ir.If(ir.Compare("<", ir.PassNumber(), ir.Const(parameters.times)), (ir.CallAction(again),))
        )


class Resubmission(Component):
    """The packet goes through the program again as it came, ``times`` times, before it is sent.

    Scaled: the passes. Held: a header with one field, to which every pass adds its number (what the passes before the
    last one wrote is lost with them), and one conditional. A pass is the parser and the control flow; a target that
    sees that nothing else of a pass remains may do less.
    """

    name = "resubmit"
    summary = "packets that go through the program again as they came, a number of times"

    class Parameters(ComponentParameters):
        """Parameters of the resubmission."""

        times: Annotated[int, Bounds(ge=0, le=255, description="resubmissions of every packet")]

    @override
    def extend(self, builder: ProgramBuilder, parameters: Parameters) -> None:
        header = ir.Header(builder.unique("looped"), (ir.Field("passes", PASSES_BITS),))
        append_header(builder, header, {"passes": 1})
        passes = ir.FieldRef(header.name, "passes")
        count, again = builder.unique("note_pass"), builder.unique("send_again")
        builder.add_action(ir.Action(count, body=(ir.Assign(passes, ir.BinaryOp("+", passes, ir.PassNumber())),)))
        builder.add_action(ir.Action(again, body=(ir.Resubmit(),)))
        builder.add_control(ir.CallAction(count))
        builder.add_control(
            ir.If(ir.Compare("<", ir.PassNumber(), ir.Const(parameters.times)), (ir.CallAction(again),))
        )


FIRST_PORT = 2
"""Port of the first clone; the packet itself leaves by port 1."""

MARK_BITS = 32


class Clones(Component):
    """One action clones the packet ``copies`` times, each clone to a port of its own.

    Scaled: the clones. Held: a header with one field. With ``marked`` the action adds one to it, which clones of the
    packet as it came do not show; targets that clone packets as they are sent cannot do that.
    """

    name = "clone"
    summary = "an action that clones the packet a number of times"

    class Parameters(ComponentParameters):
        """Parameters of the clones."""

        copies: Annotated[int, Bounds(ge=0, le=32, description="clones of every packet")]
        marked: Annotated[bool, Bounds(description="the packet is changed, its clones are not")] = False

    @override
    def extend(self, builder: ProgramBuilder, parameters: Parameters) -> None:
        header = ir.Header(builder.unique("marked"), (ir.Field("mark", MARK_BITS),))
        append_header(builder, header)
        mark = ir.FieldRef(header.name, "mark")
        action = builder.unique("clone_packet")
        clones = tuple(ir.Clone(FIRST_PORT + n) for n in range(parameters.copies))
        marks = (ir.Assign(mark, ir.BinaryOp("+", mark, ir.Const(1))),) if parameters.marked else ()
        builder.add_action(ir.Action(action, body=(*marks, *clones)))
        builder.add_control(ir.CallAction(action))


class MulticastPorts(Component):
    """The packet is sent by the ports 1 to ``ports``, all copies as the deparser made them.

    Scaled: the ports. Held: a header with one field, to which the action adds one before. One port is a group of one;
    without any the packet takes the way of the baseline.
    """

    name = "multicast"
    summary = "an action that sends the packet by a number of ports"

    class Parameters(ComponentParameters):
        """Parameters of the multicast group."""

        ports: Annotated[int, Bounds(ge=0, le=32, description="ports of the group; without any there is no group")]

    @override
    def extend(self, builder: ProgramBuilder, parameters: Parameters) -> None:
        header = ir.Header(builder.unique("marked"), (ir.Field("mark", MARK_BITS),))
        append_header(builder, header)
        mark = ir.FieldRef(header.name, "mark")
        action = builder.unique("send_to_group")
        group = (ir.Multicast(tuple(range(1, parameters.ports + 1))),) if parameters.ports else ()
        builder.add_action(ir.Action(action, body=(ir.Assign(mark, ir.BinaryOp("+", mark, ir.Const(1))), *group)))
        builder.add_control(ir.CallAction(action))
