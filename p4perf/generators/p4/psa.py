"""P4_16 for the portable switch architecture as p4c-dpdk takes it; see :mod:`p4perf.generators.p4.dpdk`.

* The packet starts as dropped, as PSA says; ``send_to_port`` takes a drop back: drops are kept in a flag where
  something after them can set the port. Either way the rest of the control runs.
* ``resubmit``, clones, multicast, recirculation and everything in egress compile, but metadata is written that nobody
  reads: all are refused.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from p4perf.generators.capabilities import Capabilities
from p4perf.generators.p4.dpdk import LIMITS, PORT_BITS, DpdkGenerator, DpdkWriter
from p4perf.generators.p4.expressions import Scope, expression_text
from p4perf.generators.p4.flow import Flow
from p4perf.generators.program import Expression, Program

_NOTHING = "p4c-dpdk writes metadata for it that the pipeline never reads"

CAPABILITIES = Capabilities(
    owner="psa",
    missing={
        "hash crc16": "p4c-dpdk silently calculates crc32 instead",
        "hash checksum16": "InternetChecksum of p4c-dpdk is wrong over anything but whole headers",
        "random": "p4c-dpdk does not implement it",
        "recirculate": _NOTHING,
        "resubmit": _NOTHING,
        "clone": _NOTHING,
        "multicast": _NOTHING,
    },
    limits=LIMITS,
    remarks={
        "hash crc32": "CRC-32C, not inverted, and over bytes in the order of the processor where fields are copied",
        "meter": "the length that it is told is the input port; without rates it says green",
    },
)


class PsaWriter(DpdkWriter):
    """Statements of psa."""

    prefix = "PSA"
    drop_now = "ingress_drop(ostd);"

    def __init__(self, program: Program, flow: Flow) -> None:
        super().__init__(program, flow)
        if flow.revived:
            self.drop_flag = f"meta.{self.metadata_name('dropped')}"

    @property
    def other_colour(self) -> str:
        """p4c-dpdk knows the numbers of PSA's colours."""
        return "PSA_MeterColor_t.RED"

    def meter_call(self, name: str, index: str) -> str:
        """Colour-blind: the packet comes as green."""
        return f"{name}.dpdk_execute({index}, PSA_MeterColor_t.GREEN, (bit<32>)(PortIdUint_t)istd.ingress_port)"

    def set_egress(self, port: Expression, scope: Scope) -> str:
        """Any value can be a port."""
        return f"send_to_port(ostd, (PortId_t)(PortIdUint_t){_bracketed(expression_text(scope, port, PORT_BITS))});"


def _bracketed(text: str) -> str:
    return f"({text})" if " " in text else text


class Psa(DpdkGenerator):
    """Renders the programs for psa."""

    name = "psa"
    summary = "P4_16 for psa as p4c-dpdk takes it"
    title = "psa (p4c-dpdk)"
    template = "p4/psa.p4.j2"
    architecture: ClassVar[Literal["psa", "pna"]] = "psa"
    capabilities: ClassVar[Capabilities] = CAPABILITIES
    compilers = (("p4test", "{source}"), ("p4c-dpdk", "--arch", "psa", "-o", "{output}.spec", "{source}"))
    writer_class: ClassVar[type[DpdkWriter]] = PsaWriter
