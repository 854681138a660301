"""The control flow of a program as a graph: what happens at each node, and where packets go from there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from p4perf.models.program.constructs import Construct

NodeKind = Literal["parser state", "table", "action", "condition", "block", "deparser", "end"]


@dataclass(frozen=True, slots=True)
class Edge:
    """A way on.

    Args:
        label: what decides for it: ``hit``, ``miss``, the name of an action, ``true``, ``false``, a value of a select,
            ``default``, or nothing.
        to: name of the next node; empty where the packet's way ends (it is sent or dropped).
        probability: share of the packets at the node that go this way; None if nobody said.
    """

    label: str
    to: str
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """One step: what it is made of, and where it leads. Without edges the way of a packet ends here."""

    name: str
    kind: NodeKind
    constructs: tuple[Construct, ...] = ()
    edges: tuple[Edge, ...] = ()
    where: str = ""


@dataclass(frozen=True)
class ProgramGraph:
    """A program, as far as costs are concerned. It has no cycles: loops of parsers are unrolled or refused.

    Args:
        name: of the program.
        nodes: by their names, in the order of the program.
        start: name of the first node.
        source: what it was read from: ``p4perf``, ``bmv2``, ``swx``, ``p4c``.
        remarks: what a reader should know, such as what was left out and why.
        frame_bytes: frame size that belongs to it, with FCS; None if it says nothing of it.
    """

    name: str
    nodes: Mapping[str, Node]
    start: str
    source: str
    remarks: tuple[str, ...] = field(default=())
    frame_bytes: int | None = None
