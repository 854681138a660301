"""Match-action tables: entries, key width, action data, hit ratio."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field as Bounds

from p4perf.errors import CapabilityError
from p4perf.generators.base import Component, ComponentParameters
from p4perf.generators.builder import ProgramBuilder
from p4perf.generators.components.l2fwd import ETHERTYPE_EXPERIMENTAL
from p4perf.generators.program import (
    Action,
    ApplyTable,
    Assign,
    BinaryOp,
    Drop,
    EntrySet,
    Expression,
    Field,
    FieldRef,
    Header,
    Key,
    ParameterRef,
    SetEgress,
    Table,
)

WORD_BITS = 32
"""Width of one action data parameter and of the checksum field that consumes them."""


class MatchActionTable(Component):
    """One table with ``entries`` entries whose key the packets enumerate.

    Scaled: entries, key width, action data. Held: one header with the key and a 32-bit field, one table. The action
    takes the output port and further 32-bit words as data; it writes the exclusive or of the words into the packet, so
    that every byte of an entry is read and a wrong entry shows in the packet. A miss drops the packet.
    """

    name = "match_action_table"
    summary = "one match-action table, scaled by entries, key width or action data"

    class Parameters(ComponentParameters):
        """Parameters of the table."""

        match_kind: Annotated[Literal["exact"], Bounds(description="P4 match kind of the key")] = "exact"
        entries: Annotated[int, Bounds(ge=1, le=10**9, description="table entries")]
        key_bits: Annotated[int, Bounds(ge=8, le=512, multiple_of=8, description="width of the key, in bits")] = 128
        action_data_bytes: Annotated[
            int, Bounds(ge=4, le=1024, multiple_of=4, description="action data of one entry, in bytes")
        ] = 64
        hit_ratio: Annotated[float, Bounds(ge=0, le=1, description="share of packets whose key is in the table")] = 1.0

    def extend(self, builder: ProgramBuilder, parameters: Parameters) -> None:
        """Add the header with the key, the action, the table and its application."""
        needed = parameters.entries * (1 if parameters.hit_ratio == 1 else 2)
        if parameters.key_bits < 64 and needed > 1 << parameters.key_bits:
            raise CapabilityError(
                f"a key of {parameters.key_bits} bit has {1 << parameters.key_bits} values, but {needed} are needed",
                key="program.parameters.key_bits",
                hint="use a wider key or fewer entries (packets that miss need as many values again)",
            )
        header = builder.unique("bench")
        follows_ethernet = builder.last_header.name == "ethernet"
        builder.add_header(
            Header(header, (Field("key", parameters.key_bits), Field("result", WORD_BITS))),
            select="ether_type" if follows_ethernet else None,
            select_value=ETHERTYPE_EXPERIMENTAL if follows_ethernet else None,
        )
        words = parameters.action_data_bytes * 8 // WORD_BITS
        names = ["port", *(f"data_{j}" for j in range(1, words))]
        action, miss, table = builder.unique("set_data"), builder.unique("miss"), builder.unique("table_exact")
        result = FieldRef(header, "result")
        value: Expression = result
        for name in names[1:]:
            value = BinaryOp("^", value, ParameterRef(name))
        body = (SetEgress(ParameterRef("port")), *((Assign(result, value),) if words > 1 else ()))
        builder.add_action(Action(action, tuple(Field(n, WORD_BITS) for n in names), body))
        builder.add_action(Action(miss, body=(Drop(),)))
        key = FieldRef(header, "key")
        builder.add_table(Table(table, (Key(key),), (action, miss), miss, EntrySet(parameters.entries, action)))
        builder.add_control(ApplyTable(table))
        builder.vary(key, parameters.entries)
