"""Additions on one metadata field."""

from __future__ import annotations

from pydantic import Field as Bounds

from p4perf.programs import ir
from p4perf.programs.builder import ProgramBuilder
from p4perf.programs.component import Component, ComponentParameters


class Additions(Component):
    """``count`` additions, each of which needs the result of the one before. Held: the width of the field."""

    name = "additions"
    summary = "an action with a number of additions to one metadata field"

    class Parameters(ComponentParameters):
        """Parameters of the additions."""

        count: int = Bounds(ge=0, le=10000, description="additions")

    def extend(self, builder: ProgramBuilder, parameters: Parameters) -> None:
        total = builder.unique("total")
        builder.metadata.append(ir.Field(total, 32))
        ref = ir.FieldRef(ir.METADATA, total)
        steps = (ir.Assign(ref, ir.BinaryOp("+", ref, ir.Const(n + 1))) for n in range(parameters.count))
        builder.call("add", steps)
