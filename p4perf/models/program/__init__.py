"""Whole programs: what they are made of, which paths packets take through them, and what that costs."""

from p4perf.models.program.costs import Charge as Charge
from p4perf.models.program.costs import CostBreakdown as CostBreakdown
from p4perf.models.program.costs import Pricing as Pricing
from p4perf.models.program.graph import KINDS as KINDS
from p4perf.models.program.graph import Construct as Construct
from p4perf.models.program.graph import Edge as Edge
from p4perf.models.program.graph import Node as Node
from p4perf.models.program.graph import NodeKind as NodeKind
from p4perf.models.program.graph import ProgramGraph as ProgramGraph
from p4perf.models.program.graph import construct as construct
