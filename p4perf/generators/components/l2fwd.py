"""The baseline: the minimal program that forwards packets."""

from __future__ import annotations

from p4perf.generators.base import Component, ComponentParameters
from p4perf.generators.builder import ProgramBuilder
from p4perf.generators.program import Action, CallAction, Const, Field, Header, SetEgress

ETHERTYPE_EXPERIMENTAL = 0x88B5
"""IEEE 802 local experimental EtherType 1: announces the headers of a component."""

ETHERNET = Header("ethernet", (Field("dst", 48), Field("src", 48), Field("ether_type", 16)))

ETHERNET_VALUES = {"dst": 0x020000000002, "src": 0x020000000001, "ether_type": ETHERTYPE_EXPERIMENTAL}
"""Locally administered addresses; they never change."""


class L2Forward(Component):
    """Extract the Ethernet header, send the packet out of port 1, deparse. Every cost is a difference to this."""

    name = "l2fwd"
    summary = "the baseline: extract Ethernet, set a constant output port"

    class Parameters(ComponentParameters):
        """The baseline has no parameters."""

    def extend(self, builder: ProgramBuilder, parameters: Parameters) -> None:
        """Add the baseline to an empty program; to one that has it already, nothing is added."""
        if builder.has_header(ETHERNET.name):
            return
        builder.add_header(ETHERNET, ETHERNET_VALUES)
        builder.add_action(Action("forward", body=(SetEgress(Const(1)),)))
        builder.add_control(CallAction("forward"))
