"""State: counters, meters and registers."""

from __future__ import annotations

from typing import Literal

from pydantic import Field as Bounds
from typing_extensions import override

from p4perf.programs import ir
from p4perf.programs.builder import ProgramBuilder
from p4perf.programs.component import Component, ComponentParameters
from p4perf.programs.components.baseline import append_indexed_header


class CounterUpdates(Component):
    """``updates`` packet counters, in an array of ``size`` cells each; the packets choose the cells.

    Scaled: the arrays, each of which one action updates once, and their cells. Held: a header with the index, which is
    the same for all arrays. With more cells, more memory is touched: 8 B a cell, or what the target takes.
    """

    name = "counter"
    summary = "a number of counters, indexed by a header field"

    class Parameters(ComponentParameters):
        updates: int = Bounds(ge=0, le=64, description="counters updated, each in an array of its own")
        size: int = Bounds(1024, ge=1, le=16777216, description="cells of each array, a power of two")

    @override
    def extend(self, builder: ProgramBuilder, parameters: Parameters) -> None:
        index = append_indexed_header(builder, "counted", (), parameters.size)
        body = []
        for _ in range(parameters.updates):
            counter = ir.Counter(builder.unique("packets"), parameters.size)
            builder.counters.append(counter)
            body.append(ir.CountPacket(counter.name, index))
        builder.call("count_packet", body)


COLOUR_BITS = 32


class Meters(Component):
    """``executions`` meters, in an array of ``size`` cells each; the packets choose the cells.

    Scaled: the arrays, each of which one action executes once, their cells, and the fields of the header that take
    the colours. Held: the index, which is the same for all arrays. Every packet conforms, so every colour is green;
    the packets come with another one in each field.
    """

    name = "meter"
    summary = "a number of meters, indexed by a header field"

    class Parameters(ComponentParameters):
        executions: int = Bounds(ge=0, le=64, description="meters executed, each in an array of its own")
        size: int = Bounds(1024, ge=1, le=1048576, description="cells of each array, a power of two")

    @override
    def extend(self, builder: ProgramBuilder, parameters: Parameters) -> None:
        colours = tuple(ir.Field(f"colour_{n}", COLOUR_BITS) for n in range(parameters.executions))
        index = append_indexed_header(builder, "metered", colours, parameters.size)
        body = []
        for colour in colours:
            meter = ir.Meter(builder.unique("rate"), parameters.size)
            builder.meters.append(meter)
            body.append(ir.MeterPacket(ir.FieldRef(index.header, colour.name), meter.name, index))
        builder.call("meter_packet", body)


class Registers(Component):
    """``accesses`` registers, in an array of ``size`` cells each; the packets choose the cells.

    Scaled: the arrays, each of which one action accesses once, their cells, and the fields of the header, one for each
    array. Held: the index, which is the same for all arrays. ``read`` puts the cells into the fields (the packets come
    with other values there); ``write`` puts the fields into the cells; ``read_write`` puts each cell into its field,
    adds one to the field and writes it back.
    """

    name = "register"
    summary = "a number of registers that are read or written, indexed by a header field"

    class Parameters(ComponentParameters):
        accesses: int = Bounds(ge=0, le=64, description="registers accessed, each in an array of its own")
        operation: Literal["read", "write", "read_write"] = Bounds("read", description="what is done with the cells")
        width_bits: Literal[8, 16, 32, 64] = Bounds(32, description="width of a cell, in bits")
        size: int = Bounds(1024, ge=1, le=16777216, description="cells of each array, a power of two")

    @override
    def extend(self, builder: ProgramBuilder, parameters: Parameters) -> None:
        fields = tuple(ir.Field(f"value_{n}", parameters.width_bits) for n in range(parameters.accesses))
        index = append_indexed_header(builder, "stored", fields, parameters.size)
        body: list[ir.Statement] = []
        for field in fields:
            register = ir.Register(builder.unique("cells"), parameters.size, parameters.width_bits)
            builder.registers.append(register)
            value = ir.FieldRef(index.header, field.name)
            if parameters.operation != "write":
                body.append(ir.ReadRegister(value, register.name, index))
            if parameters.operation == "read_write":
                body.append(ir.Assign(value, ir.BinaryOp("+", value, ir.Const(1))))
            if parameters.operation != "read":
                body.append(ir.WriteRegister(register.name, index, value))
        builder.call("access_registers", body)
