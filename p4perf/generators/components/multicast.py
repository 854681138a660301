"""Packet paths: multicast."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field as Bounds

from p4perf.generators.base import Component, ComponentParameters
from p4perf.generators.builder import ProgramBuilder
from p4perf.generators.components.layout import append_header
from p4perf.generators.program import Action, Assign, BinaryOp, CallAction, Const, Field, FieldRef, Header, Multicast

MARK_BITS = 32


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

    def extend(self, builder: ProgramBuilder, parameters: Parameters) -> None:
        """Add the header, the action and its call."""
        header = Header(builder.unique("marked"), (Field("mark", MARK_BITS),))
        append_header(builder, header)
        mark = FieldRef(header.name, "mark")
        action = builder.unique("send_to_group")
        group = (Multicast(tuple(range(1, parameters.ports + 1))),) if parameters.ports else ()
        builder.add_action(Action(action, body=(Assign(mark, BinaryOp("+", mark, Const(1))), *group)))
        builder.add_control(CallAction(action))
