"""Externs: the number and the size of counters."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field as Bounds

from p4perf.generators.base import Component, ComponentParameters
from p4perf.generators.builder import ProgramBuilder
from p4perf.generators.components.layout import append_indexed_header
from p4perf.generators.program import Action, CallAction, Counter, CountPacket


class CounterUpdates(Component):
    """``updates`` packet counters, in an array of ``size`` cells each; the packets choose the cells.

    Scaled: the arrays, each of which one action updates once, and their cells. Held: a header with the index, which is
    the same for all arrays. With more cells, more memory is touched: 8 B a cell, or what the target takes.
    """

    name = "counter"
    summary = "a number of counters, indexed by a header field"

    class Parameters(ComponentParameters):
        """Parameters of the counters."""

        updates: Annotated[int, Bounds(ge=0, le=64, description="counters updated, each in an array of its own")]
        size: Annotated[int, Bounds(ge=1, le=16777216, description="cells of each array, a power of two")] = 1024

    def extend(self, builder: ProgramBuilder, parameters: Parameters) -> None:
        """Add the header, the counters, the action and its call."""
        index = append_indexed_header(builder, "counted", (), parameters.size)
        body = []
        for _ in range(parameters.updates):
            counter = Counter(builder.unique("packets"), parameters.size)
            builder.add_counter(counter)
            body.append(CountPacket(counter.name, index))
        action = builder.unique("count_packet")
        builder.add_action(Action(action, body=tuple(body)))
        builder.add_control(CallAction(action))
