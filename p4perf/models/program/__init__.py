"""Whole programs: what they are made of, which paths packets take through them, and what that costs."""

from p4perf.models.program.costs import Charge, CostBreakdown, Pricing
from p4perf.models.program.graph import KINDS, Construct, Edge, Kind, Node, NodeKind, ProgramGraph, construct

__all__ = [
    "KINDS",
    "Charge",
    "Construct",
    "CostBreakdown",
    "Edge",
    "Kind",
    "Node",
    "NodeKind",
    "Pricing",
    "ProgramGraph",
    "construct",
]
