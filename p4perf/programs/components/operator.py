"""Operators of the DPDK world, and the baselines that their cost is a difference to."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field as Bounds
from typing_extensions import override

from p4perf.programs import ir
from p4perf.programs.builder import ProgramBuilder
from p4perf.programs.component import Component, ComponentParameters
from p4perf.programs.components.baseline import ETHERNET, L2Forward
from p4perf.programs.operators import OPERATORS
from p4perf.specs.messages import nearest

RESULT = ir.FieldRef(ir.METADATA, "result")
RESULT_BITS = 64

MAX_CODE_BYTES = 64 << 10


class ResultForward(Component):
    """The baseline of operators: forward, and write a result, zero here, into the destination address.

    Scaled: nothing. Held: what a packet costs besides its operator, the storing of a result included. Packets keep the
    place of their FCS, so that an operator has as many bytes to work on as the packet size says.
    """

    name = "l2fwd_result"
    summary = "the baseline of operators: l2fwd that also writes a result into the destination address"

    fenced: ClassVar[bool] = False

    @override
    def extend(self, builder: ProgramBuilder, parameters: ComponentParameters) -> None:
        """Add the baseline, whose control flow ends with the result in an address that a switch writes anyway."""
        L2Forward().extend(builder, parameters)
        if any(f.name == RESULT.field for f in builder.metadata):
            return
        builder.keeps_fcs = True
        builder.metadata.append(ir.Field(RESULT.field, RESULT_BITS))
        body: list[ir.Statement] = [ir.Assign(ir.FieldRef(ETHERNET.name, "dst"), RESULT)]
        if self.fenced:
            builder.call("begin_alone", [ir.Fence()])
            body.insert(0, ir.Fence(RESULT))
        builder.last.append(builder.action("write_result", body))


class SerialForward(ResultForward):
    """The same between two fences: whatever is added in between overlaps with nothing before or after it.

    Scaled: nothing. Held: as for ``l2fwd_result``. What is added costs the time that it takes alone, from its beginning
    to its end, which is known exactly of a chain of dependent instructions.
    """

    name = "l2fwd_serial"
    summary = "the baseline of operators between two fences, so that nothing overlaps with them"

    fenced = True


class OperatorCall(Component):
    """One operator of the DPDK world, or two one after the other, on all bytes of the packet.

    Scaled: which operator, and by the frame size the bytes that it works on. Held: one call a packet, whose result goes
    into the destination address; the packets belong to ``flows`` flows, told by their source address. Operators are C:
    target ``dpdk-c`` has them, others refuse them.
    """

    name = "operator"
    summary = "a data-plane operator on DPDK (CRC, hash, checksum, output, your own C), or two of them"

    class Parameters(ComponentParameters):
        operator: str = Bounds(
            pattern=r"^[a-z][a-z0-9_]*(\+[a-z][a-z0-9_]*)?$",
            max_length=100,
            description="name of an operator, or two names joined by +",
        )
        code: str = Bounds(
            "", max_length=MAX_CODE_BYTES, description="C text of an operator of your own, which has that name"
        )
        flows: int = Bounds(1000, ge=1, le=65536, description="flows that the packets belong to")
        multiplications: int = Bounds(100, ge=0, le=4096, description="length of multiply_chain")

    @override
    def extend(self, builder: ProgramBuilder, parameters: Parameters) -> None:
        ResultForward().extend(builder, parameters)
        body = tuple(ir.RunOperator(RESULT, _operator(name, parameters)) for name in parameters.operator.split("+"))
        own = {s.operator for s in body if s.operator.code}
        if len(own) > 1:
            raise parameters.refusal("operator", "a program has one operator of your own at most")
        if parameters.code and not own:
            raise parameters.refusal("code", f"{parameters.operator} has code of its own already", "use another name")
        builder.call("run_operator", body)
        source = ir.FieldRef(ETHERNET.name, "src")
        if not builder.varies(source):
            builder.vary(source, parameters.flows)


def _operator(name: str, parameters: OperatorCall.Parameters) -> ir.Operator:
    if name in OPERATORS:
        return ir.Operator(name, flows=parameters.flows, multiplications=parameters.multiplications)
    if not parameters.code:
        raise parameters.refusal("operator", f"there is no operator {name}", nearest(name, OPERATORS, "operators"))
    return ir.Operator(name, parameters.code, flows=parameters.flows)
