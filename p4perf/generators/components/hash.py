"""Externs: hashes over a number of bytes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field as Bounds

from p4perf.generators.base import Component, ComponentParameters
from p4perf.generators.builder import ProgramBuilder
from p4perf.generators.components.layout import append_header, data_fields, pattern
from p4perf.generators.program import (
    Action,
    Assign,
    BinaryOp,
    CallAction,
    Const,
    Field,
    FieldRef,
    Hash,
    Header,
    Statement,
)

RESULT_BITS = {"crc16": 16, "crc32": 32, "checksum16": 16}

MASK = 0x5A3C


class HashBytes(Component):
    """``repetitions`` hashes over the ``size_bytes`` bytes of one header, whose first field takes the result.

    Scaled: bytes, repetitions. Held: one action. The result is hashed with the rest the next time, after an exclusive
    or with a constant, so that no repetition can be left out; it ends up in the packet. The header is parsed and
    deparsed: its size, and the cost of that, grows with the bytes.
    """

    name = "hash"
    summary = "hashes over a number of bytes of a header"

    class Parameters(ComponentParameters):
        """Parameters of the hashes."""

        algorithm: Annotated[Literal["crc16", "crc32", "checksum16"], Bounds(description="hash algorithm")] = "crc32"
        size_bytes: Annotated[int, Bounds(ge=4, le=1480, multiple_of=4, description="bytes hashed")]
        repetitions: Annotated[int, Bounds(ge=0, le=64, description="hashes, one after another")] = 1

    def extend(self, builder: ProgramBuilder, parameters: Parameters) -> None:
        """Add the header, the action and its call."""
        bits = RESULT_BITS[parameters.algorithm]
        rest = data_fields(parameters.size_bytes - bits // 8)
        header = Header(builder.unique("hashed"), (Field("result", bits), *rest))
        append_header(builder, header, pattern(header.fields))
        result = FieldRef(header.name, "result")
        digest = Hash(result, parameters.algorithm, tuple(FieldRef(header.name, f.name) for f in header.fields))
        body: list[Statement] = []
        for n in range(parameters.repetitions):
            if n:
                body.append(Assign(result, BinaryOp("^", result, Const(MASK))))
            body.append(digest)
        action = builder.unique("calculate_hash")
        builder.add_action(Action(action, body=tuple(body)))
        builder.add_control(CallAction(action))
