"""Whole programs: what they are made of, which ways packets take through them, and what that costs."""

from p4perf.models.program.bill import Bill, Charge, Pricing
from p4perf.models.program.constructs import KINDS, Construct, Kind, construct
from p4perf.models.program.graph import Edge, Node, NodeKind, ProgramGraph

__all__ = [
    "KINDS",
    "Bill",
    "Charge",
    "Construct",
    "Edge",
    "Kind",
    "Node",
    "NodeKind",
    "Pricing",
    "ProgramGraph",
    "construct",
]
