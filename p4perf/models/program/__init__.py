"""Whole programs: what they are made of, which ways packets take through them, and what that costs."""

from p4perf.models.program.costs import Bill, Charge, Pricing
from p4perf.models.program.graph import KINDS, Construct, Edge, Kind, Node, NodeKind, ProgramGraph, construct

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
