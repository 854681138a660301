"""Packet paths: clones."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field as Bounds

from p4perf.generators.base import Component, ComponentParameters
from p4perf.generators.builder import ProgramBuilder
from p4perf.generators.components.layout import append_header
from p4perf.generators.program import Action, Assign, BinaryOp, CallAction, Clone, Const, Field, FieldRef, Header

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

    def extend(self, builder: ProgramBuilder, parameters: Parameters) -> None:
        """Add the header, the action and its call."""
        header = Header(builder.unique("marked"), (Field("mark", MARK_BITS),))
        append_header(builder, header)
        mark = FieldRef(header.name, "mark")
        action = builder.unique("clone_packet")
        clones = tuple(Clone(FIRST_PORT + n) for n in range(parameters.copies))
        marks = (Assign(mark, BinaryOp("+", mark, Const(1))),) if parameters.marked else ()
        builder.add_action(Action(action, body=(*marks, *clones)))
        builder.add_control(CallAction(action))
