"""Actions: field writes, arithmetic, conditionals, hashes, checksums and random numbers."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from pydantic import Field as Bounds
from typing_extensions import override

from p4perf.programs import ir
from p4perf.programs.builder import ProgramBuilder
from p4perf.programs.component import Component, ComponentParameters
from p4perf.programs.components.baseline import append_header, data_fields, pattern
from p4perf.programs.operators import HASH_BITS, internet_checksum


class HeaderFieldWrites(Component):
    """``writes`` of the ``fields`` fields of one header are written by one action.

    Scaled: the number of assignments. Held: the header, which is parsed and deparsed whole at every point.
    ``operation`` is ``set`` (a constant, 255 as in Scholz 2021; a compiler may merge neighbouring constants into one
    store, and which constant it is may decide about the instructions that it takes) or ``increment`` (read, add one,
    write: what a program does with a counter or a time to live).
    """

    name = "header_field_writes"
    summary = "an action that writes a number of header fields"

    class Parameters(ComponentParameters):
        writes: int = Bounds(ge=0, le=470, description="fields written")
        fields: int = Bounds(16, ge=1, le=470, description="fields of the header")
        field_bits: Literal[8, 16, 32, 64] = Bounds(32, description="width of each field, in bits")
        operation: Literal["set", "increment"] = Bounds("increment", description="constants, or each field plus one")
        constant: int = Bounds(255, ge=0, le=255, description="what `set` writes")

    @override
    def extend(self, builder: ProgramBuilder, parameters: Parameters) -> None:
        if parameters.writes > parameters.fields:
            raise parameters.refusal(
                "writes", f"{parameters.writes} writes need as many fields, but the header has {parameters.fields}"
            )
        fields = [ir.Field(f"f{n}", parameters.field_bits) for n in range(parameters.fields)]
        header = append_header(builder, "written", fields, {f.name: n for n, f in enumerate(fields)})
        refs = [ir.FieldRef(header.name, f.name) for f in fields[: parameters.writes]]
        if parameters.operation == "set":
            body = [ir.Assign(ref, ir.Const(parameters.constant)) for ref in refs]
        else:
            body = [ir.Assign(ref, ir.BinaryOp("+", ref, ir.Const(1))) for ref in refs]
        builder.call("write_fields", body)


ADDEND = 0x9E3779B1
MASK = 0x5A5A5A5A
"""Constants of the chain, cut to the width of the fields. Neither operation can be expressed by the other one."""


class MetadataWrites(Component):
    """One action writes ``writes`` metadata fields, each once.

    Scaled: the assignments and the metadata. Held: a header with two fields. With ``operation`` ``chain`` the first
    metadata field is computed from a header field, each other one from the one before, alternately by adding and by
    exclusive or of a constant, and the last goes into the packet: the computations cannot be folded, but a compiler may
    keep the fields in a processor register instead of memory. ``set`` writes constants that are never read, as Scholz
    2021 has it: dead code, which an optimising compiler removes.
    """

    name = "metadata_writes"
    summary = "an action that writes a number of metadata fields"

    class Parameters(ComponentParameters):
        writes: int = Bounds(ge=0, le=1024, description="metadata fields written")
        field_bits: Literal[8, 16, 32, 64] = Bounds(32, description="width of each field, in bits")
        operation: Literal["chain", "set"] = Bounds("chain", description="each from the previous one, or constants")

    @override
    def extend(self, builder: ProgramBuilder, parameters: Parameters) -> None:
        bits = parameters.field_bits
        fields = (ir.Field("seed", bits), ir.Field("result", bits))
        header = append_header(builder, "chained", fields, pattern(fields))
        last: ir.Expression = ir.FieldRef(header.name, "seed")
        body = []
        for n in range(parameters.writes):
            ref = ir.FieldRef(ir.METADATA, builder.unique("written"))
            builder.metadata.append(ir.Field(ref.field, bits))
            if parameters.operation == "set":
                body.append(ir.Assign(ref, ir.Const(255)))
            else:
                constant = ir.Const((MASK if n % 2 else ADDEND) & (1 << bits) - 1)
                body.append(ir.Assign(ref, ir.BinaryOp("^" if n % 2 else "+", last, constant)))
                last = ref
        builder.call("write_metadata", (*body, ir.Assign(ir.FieldRef(header.name, "result"), last)))


VALUE = 0x0123456789ABCDEF
SPARSE = 0x8040201008040201
OPERANDS: Mapping[ir.BinaryOperator, int] = MappingProxyType(
    {"+": 0xF1BBCDCBFA53E0F5, "-": 0xF1BBCDCBFA53E0F5, "^": 0xF1BBCDCBFA53E0F5, "&": ~SPARSE, "|": SPARSE}
)
MIXED_IN = 0x5A3C96B5E1872DFE
"""What the packets carry and what is mixed in, cut to the width: so that a hundred operations give as many values."""


class Arithmetic(Component):
    """``operations`` operations on a header field, each of which needs the result of the one before.

    Scaled: assignments of the form ``value = (value operator operand) mix constant``, where ``operand`` is another
    header field. Held: the header. ``mix`` is ``^`` for sums and differences and ``+`` for the others: two operations
    of one kind in a row could be folded into one, and now they cannot. The cost of one is that of the operation, of the
    mixing, and of whatever the target does to read and write a header field.
    """

    name = "arithmetic"
    summary = "a number of arithmetic operations on a header field"

    class Parameters(ComponentParameters):
        operations: int = Bounds(ge=0, le=1024, description="operations in sequence")
        operator: Literal["+", "-", "&", "|", "^"] = Bounds("+", description="what is computed")
        width_bits: Literal[8, 16, 32, 48, 64] = Bounds(32, description="width of the operands, in bits")

    @override
    def extend(self, builder: ProgramBuilder, parameters: Parameters) -> None:
        bits = parameters.width_bits
        mask = (1 << bits) - 1
        values = {"value": VALUE & mask, "operand": OPERANDS[parameters.operator] & mask}
        header = append_header(builder, "operands", [ir.Field(name, bits) for name in values], values)
        value, operand = ir.FieldRef(header.name, "value"), ir.FieldRef(header.name, "operand")
        mix: ir.BinaryOperator = "^" if parameters.operator in ("+", "-") else "+"
        step = ir.Assign(
            value, ir.BinaryOp(mix, ir.BinaryOp(parameters.operator, value, operand), ir.Const(MIXED_IN & mask))
        )
        builder.call("compute", (step,) * parameters.operations)


VALUE_BITS = 32
MODULUS = 1 << VALUE_BITS
FIRST_VALUE = 0x12345678
MAX_NESTED = 64


class Conditionals(Component):
    """``conditionals`` comparisons of a value with constants, and an action for either outcome.

    Scaled: the conditionals. Held: a header with two fields, and two actions. The value is a copy of one field; both
    actions change it, by an addition and an exclusive or in either order, and what it is at last goes into the other
    field. Each comparison is therefore of another value, and none follows from those before. All packets are alike, so
    that a processor predicts every branch; a compiler may replace a branch by a conditional move. ``taken`` is the
    share of conditionals that hold, spread evenly. With ``nested`` each conditional stands inside the one before, where
    that holds; the first ones hold, up to the share ``taken``.
    """

    name = "conditionals"
    summary = "a number of conditionals, in sequence or nested"

    class Parameters(ComponentParameters):
        conditionals: int = Bounds(ge=0, le=1024, description="conditionals, at most 64 if nested")
        nested: bool = Bounds(False, description="each inside the one before")
        taken: float = Bounds(0.5, ge=0, le=1, description="share of the conditionals that are true")

    @override
    def extend(self, builder: ProgramBuilder, parameters: Parameters) -> None:
        if parameters.nested and parameters.conditionals > MAX_NESTED:
            raise parameters.refusal(
                "conditionals",
                f"{parameters.conditionals} conditionals are too many to be nested, {MAX_NESTED} are possible",
                "set nested to false, or use fewer",
            )
        fields = [ir.Field(name, VALUE_BITS) for name in ("given", "result")]
        header = append_header(builder, "decided", fields, {"given": FIRST_VALUE})
        value = ir.FieldRef(ir.METADATA, builder.unique("value"))
        builder.metadata.append(ir.Field(value.field, VALUE_BITS))
        added, mask = ir.Const(ADDEND), ir.Const(MASK)
        start = builder.action("take_value", [ir.Assign(value, ir.FieldRef(header.name, "given"))])
        sum_first = ir.BinaryOp("^", ir.BinaryOp("+", value, added), mask)
        held = builder.action("held", [ir.Assign(value, sum_first)])
        sum_last = ir.BinaryOp("+", ir.BinaryOp("^", value, mask), added)
        other = builder.action("not_held", [ir.Assign(value, sum_last)])
        end = builder.action("give_value", [ir.Assign(ir.FieldRef(header.name, "result"), value)])
        inner: ir.Nodes = ()
        for condition in reversed(_conditions(value, parameters)):
            if parameters.nested:
                inner = (ir.If(condition, (held, *inner), (other,)),)
            else:
                inner = (ir.If(condition, (held,), (other,)), *inner)
        builder.control += (start, *inner, end)


def _conditions(value: ir.FieldRef, parameters: Conditionals.Parameters) -> list[ir.Compare]:
    """The comparisons, with constants next to the value that the packets have by then."""
    found, at, count = [], FIRST_VALUE, parameters.conditionals
    for n in range(count):
        if parameters.nested:
            holds = n < round(parameters.taken * count)
        else:
            holds = int((n + 1) * parameters.taken) > int(n * parameters.taken)
        found.append(ir.Compare("<", value, ir.Const(at + 1 if holds else at)))
        # Where a nested conditional does not hold, those inside of it are never reached.
        at = (at + ADDEND) % MODULUS ^ MASK if holds else ((at ^ MASK) + ADDEND) % MODULUS
    return found


_RESULT_MASK = 0x5A3C


class HashBytes(Component):
    """``repetitions`` hashes over the ``size_bytes`` bytes of one header, whose first field takes the result.

    Scaled: bytes, repetitions. Held: one action. The result is hashed with the rest the next time, after an exclusive
    or with a constant, so that no repetition can be left out; it ends up in the packet. The header is parsed and
    deparsed: its size, and the cost of that, grows with the bytes.
    """

    name = "hash"
    summary = "hashes over a number of bytes of a header"

    class Parameters(ComponentParameters):
        algorithm: Literal["crc16", "crc32", "checksum16"] = Bounds("crc32", description="hash algorithm")
        size_bytes: int = Bounds(ge=4, le=1480, multiple_of=4, description="bytes hashed")
        repetitions: int = Bounds(1, ge=0, le=64, description="hashes in sequence")

    @override
    def extend(self, builder: ProgramBuilder, parameters: Parameters) -> None:
        bits = HASH_BITS[parameters.algorithm]
        rest = data_fields(parameters.size_bytes - bits // 8)
        fields = (ir.Field("result", bits), *rest)
        header = append_header(builder, "hashed", fields, pattern(fields))
        result = ir.FieldRef(header.name, "result")
        digest = ir.Hash(result, parameters.algorithm, tuple(ir.FieldRef(header.name, f.name) for f in header.fields))
        body: list[ir.Statement] = []
        for n in range(parameters.repetitions):
            if n:
                body.append(ir.Assign(result, ir.BinaryOp("^", result, ir.Const(_RESULT_MASK))))
            body.append(digest)
        builder.call("calculate_hash", body)


CHECKSUM_BITS = 16

WRONG = 0xDEAD
"""What the field of a packet holds whose checksum is to be updated."""


class Checksum(Component):
    """The internet checksum over the ``size_bytes`` bytes of one header, which hold the checksum itself.

    Scaled: the bytes. Held: one header, the control flow. ``verify`` drops packets whose checksum is wrong; those that
    are sent have a right one, except for those that miss, whose last bytes are others. ``update`` writes the checksum
    of the packet before it is sent; the packets come with a wrong one. Either way the outcome depends on the sum.
    """

    name = "checksum"
    summary = "the checksum of a header, verified or updated"

    class Parameters(ComponentParameters):
        operation: Literal["verify", "update"] = Bounds("verify", description="what is done with the checksum")
        size_bytes: int = Bounds(
            ge=4, le=1480, multiple_of=4, description="size of the header in bytes, including the checksum"
        )
        hit_ratio: float = Bounds(1.0, ge=0, le=1, description="share of packets with a correct checksum")

    @override
    def extend(self, builder: ProgramBuilder, parameters: Parameters) -> None:
        if parameters.operation == "update" and parameters.hit_ratio < 1:
            raise parameters.refusal(
                "hit_ratio",
                "an update does not ask whether the checksum was right",
                "leave hit_ratio out, or set operation to verify",
            )
        data = data_fields(parameters.size_bytes - CHECKSUM_BITS // 8)
        fields, values = (ir.Field("sum", CHECKSUM_BITS), *data), pattern(data)
        if parameters.operation == "update":
            header = append_header(builder, "summed", fields, values | {"sum": WRONG})
            builder.updated.append(ir.FieldRef(header.name, "sum"))
            return
        values[data[-1].name] = 0
        content = b"".join(values[f.name].to_bytes(f.width_bits // 8, "big") for f in data)
        header = append_header(builder, "summed", fields, values | {"sum": internet_checksum(content)})
        builder.verified.append(ir.FieldRef(header.name, "sum"))
        builder.vary(ir.FieldRef(header.name, data[-1].name), 1)


class RandomNumbers(Component):
    """``numbers`` random numbers, each written into a field of its own of one header.

    Scaled: the numbers. Held: the header of ``fields`` fields. The bits of the numbers are not checked, only that
    nothing else changes.
    """

    name = "random"
    summary = "an action that writes a number of random numbers into a header"

    class Parameters(ComponentParameters):
        numbers: int = Bounds(ge=0, le=64, description="random numbers")
        fields: int = Bounds(16, ge=1, le=64, description="fields of the header")
        width_bits: Literal[8, 16, 32] = Bounds(32, description="width of a number, in bits")

    @override
    def extend(self, builder: ProgramBuilder, parameters: Parameters) -> None:
        if parameters.numbers > parameters.fields:
            raise parameters.refusal(
                "numbers",
                f"{parameters.numbers} numbers need as many fields, but the header has {parameters.fields}",
                "use more fields",
            )
        fields = tuple(ir.Field(f"number_{n}", parameters.width_bits) for n in range(parameters.fields))
        header = append_header(builder, "drawn", fields, pattern(fields))
        body = tuple(ir.Random(ir.FieldRef(header.name, f.name)) for f in fields[: parameters.numbers])
        builder.call("draw_numbers", body)
