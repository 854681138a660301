"""P4_16 for the portable NIC architecture as p4c-dpdk takes it; see :mod:`p4perf.generators.p4.dpdk`.

* ``send_to_port`` takes a constant or a parameter of an action, nothing that is computed.
* There is no port at first, and none is no drop: where a packet can pass without one, a flag tells and is tested
  last.
* ``drop_packet`` ends the packet at once. Nothing that follows could undo that; but where something after it leaves
  something behind (a count, a register), drops are kept in a flag that is tested last.
* The colours of meters have wrong numbers: those of PNA, not DPDK's. ``YELLOW`` is 2 for p4c (red for DPDK), and would
  be 1 (yellow) if it were right: a packet that conforms is neither, so that is what is asked for.
* The number of the pass has 3 bit: comparisons with a larger number are refused.
* Recirculation works; it waits for the end where a packet can be dropped after it was asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar, Literal

from p4perf.errors import CapabilityError
from p4perf.generators.analysis import condition_operands, control_nodes, statements
from p4perf.generators.capabilities import Capabilities
from p4perf.generators.p4.dpdk import LIMITS, PORT_BITS, DpdkGenerator, DpdkWriter
from p4perf.generators.p4.expressions import Scope, Typed, constant_text
from p4perf.generators.p4.flow import Flow
from p4perf.generators.p4.names import p4_name
from p4perf.generators.p4.writer import port_parameters
from p4perf.generators.program import (
    Action,
    Const,
    Expression,
    If,
    ParameterRef,
    PassNumber,
    Program,
    Recirculate,
    Resubmit,
    SetEgress,
)

PASS_BITS = 3
"""Width of the number of the pass (``PassNumberUint_t`` in dpdk/pna.p4)."""

CAPABILITIES = Capabilities(
    owner="pna",
    missing={
        "hash crc16": "p4c-dpdk silently calculates crc32 instead",
        "hash checksum16": "InternetChecksum of p4c-dpdk is wrong over anything but whole headers",
        "random": "p4c-dpdk does not implement it",
        "resubmit": "PNA does not have it",
        "clone": "mirror_packet of PNA copies the packet as it leaves, not as it came",
        "multicast": "PNA does not have it",
    },
    limits=LIMITS,
    remarks={
        "hash crc32": "CRC-32C, not inverted, and over bytes in the order of the processor where fields are copied",
        "meter": "the length that it is told is the input port; without rates it says green; colours other than green "
        "have other numbers",
    },
)


class PnaWriter(DpdkWriter):
    """Statements of pna."""

    prefix = "PNA"
    drop_now = "drop_packet();"

    def __init__(self, program: Program, flow: Flow) -> None:
        super().__init__(program, flow)
        if flow.lasting_after_drop:
            self.drop_flag = f"meta.{self.metadata_name('dropped')}"
        self.forwarded = f"meta.{self.metadata_name('forwarded')}" if flow.may_lack_port else None
        waits = flow.recirculates and (flow.drop_after_again or flow.may_lack_port or self.drop_flag is not None)
        self.recirculated = f"meta.{self.metadata_name('recirculated')}" if waits else None

    def pass_number(self) -> Typed | None:
        """The architecture counts passes."""
        return Typed("(PassNumberUint_t)istd.pass", PASS_BITS)

    def flags(self) -> Iterator[str]:
        """A drop, a port that was set, a recirculation."""
        yield from (flag for flag in (self.drop_flag, self.recirculated, self.forwarded) if flag)

    def epilogue(self) -> Iterator[str]:
        """The first that applies: a drop, a recirculation, no port."""
        branches = [
            (f"{flag} == {value}", call)
            for flag, value, call in (
                (self.drop_flag, 1, self.drop_now),
                (self.recirculated, 1, "recirculate();"),
                (self.forwarded, 0, self.drop_now),
            )
            if flag
        ]
        for position, (condition, call) in enumerate(branches):
            yield f"{'} else ' if position else ''}if ({condition}) {{"
            yield f"    {call}"
        if branches:
            yield "}"

    def parameter_type(self, action: Action, parameter: str) -> str:
        """A parameter that is a port has the type of one: no cast is taken there."""
        if parameter in port_parameters(action):
            return "PortId_t"
        return super().parameter_type(action, parameter)

    def action_scope(self, action: Action) -> Scope:
        """A parameter that is a port is a number by way of its base type."""
        scope = super().action_scope(action)
        ports = {name: Typed(f"(PortIdUint_t){p4_name(name)}", PORT_BITS) for name in port_parameters(action)}
        return replace(scope, parameters={**scope.parameters, **ports})

    def set_egress(self, port: Expression, scope: Scope) -> str:
        """A constant or a parameter."""
        if isinstance(port, Const):
            text = f"(PortId_t){constant_text(port.value, PORT_BITS)}"
        else:
            assert isinstance(port, ParameterRef)  # noqa: S101 - checked before
            text = p4_name(port.name)
        call = f"send_to_port({text});"
        return f"{call} {self.forwarded} = 1;" if self.forwarded else call

    def again(self, statement: Recirculate | Resubmit) -> str:
        """At once, or by a flag that is tested at the end."""
        return f"{self.recirculated} = 1;" if self.recirculated else "recirculate();"

    @property
    def other_colour(self) -> str:
        """No conforming packet has it, whether its number is right or not."""
        return "PNA_MeterColor_t.YELLOW"

    def meter_call(self, name: str, index: str) -> str:
        """Without a colour that the packet comes with: none of them could be written rightly."""
        return f"{name}.dpdk_execute({index}, (bit<32>)(PortIdUint_t)istd.input_port)"


class Pna(DpdkGenerator):
    """Renders the programs for pna."""

    name = "pna"
    summary = "P4_16 for pna as p4c-dpdk takes it"
    title = "pna (p4c-dpdk)"
    template = "p4/pna.p4.j2"
    architecture: ClassVar[Literal["psa", "pna"]] = "pna"
    capabilities: ClassVar[Capabilities] = CAPABILITIES
    compilers = (("p4test", "{source}"), ("p4c-dpdk", "--arch", "pna", "-o", "{output}.spec", "{source}"))
    writer_class: ClassVar[type[DpdkWriter]] = PnaWriter

    def check(self, program: Program, flow: Flow) -> None:
        """Refuse ports that are computed, besides what p4c-dpdk does not take anyway."""
        super().check(program, flow)
        for statement in statements(program):
            if isinstance(statement, SetEgress) and not isinstance(statement.port, Const | ParameterRef):
                raise CapabilityError(
                    "pna sends to a constant port or to one from an entry, not to one that is computed (send_to_port)"
                )
        for node in control_nodes(program.control):
            if isinstance(node, If):
                _check_passes(node)


def _check_passes(node: If) -> None:
    sides = condition_operands(node.condition)
    if any(isinstance(e, PassNumber) for e in sides):
        for e in sides:
            if isinstance(e, Const) and e.value >> PASS_BITS:
                raise CapabilityError(
                    f"pna counts passes in {PASS_BITS} bit, and {e.value} is more (PassNumberUint_t in dpdk/pna.p4)"
                )
